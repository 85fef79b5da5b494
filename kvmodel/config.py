"""Read a Hugging Face `config.json` into a ModelSpec: by its fields, never by the model's name.

Understands decoders whose layers all keep K and V of every token (Llama, Mistral without a window,
Qwen2 and Qwen3, Mixtral and their kin). Any field that would change the bytes and is not understood
is refused by name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from pydantic import ValidationError

from kvmodel.errors import BadConfigError
from kvmodel.records.model import Dense, Full, LayerGroup, ModelSpec, Moe

MAX_CONFIG_CHARACTERS = 2_000_000
MAX_LAYERS = 2_000

_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "half": "fp16"}
_QUANTIZED = {"fp8": "fp8", "awq": "int4", "gptq": "int4", "bitsandbytes": "int8"}
_OTHER_CACHES = (
    "kv_lora_rank",
    "hybrid_override_pattern",
    "full_attention_interval",
    "block_configs",
    "linear_num_value_heads",
    "mamba_num_heads",
    "mamba_d_state",
    "ssm_state_size",
    "state_size",
    "attention_chunk_size",
    "num_kv_shared_layers",
    "index_head_dim",
    "compress_ratios",
    "attn_type_list",
    "encoder_layers",
    "num_decoder_layers",
)


@dataclass(frozen=True, slots=True)
class ParsedConfig:
    """A model read from a configuration, with what had to be assumed."""

    model: ModelSpec
    assumed: tuple[str, ...]
    """Values the configuration does not state, one sentence each."""
    warnings: tuple[str, ...]
    """What a reader should check, one sentence each."""


def parse_model_config(config: str | Mapping[str, Any], *, name: str = "your model") -> ParsedConfig:
    """Read the text or the mapping of a `config.json`.

    Raises BadConfigError with one sentence: where JSON breaks (line and column), which field is
    missing or wrong and what is allowed, or which architecture is not understood.
    """
    fields = _object(config)
    nested = fields.get("text_config")
    if isinstance(nested, Mapping):
        fields = {**{k: v for k, v in fields.items() if k not in ("text_config", "vision_config")}, **nested}
    assumed: list[str] = []
    layers = _whole(fields, ("num_hidden_layers", "n_layer", "n_layers", "num_layers"), "layers", most=MAX_LAYERS)
    _check_layer_types(fields, layers)
    _refuse_other_caches(fields)
    hidden = _whole(fields, ("hidden_size", "n_embd", "d_model"), "hidden size")
    heads = _whole(fields, ("num_attention_heads", "n_head", "n_heads"), "attention heads")
    kv_heads = _kv_heads(fields, heads, assumed)
    head_dim = _head_dim(fields, hidden, heads, assumed)
    attention = Full(q_heads=heads, kv_heads=kv_heads, k_dim=head_dim, v_dim=head_dim)
    weight = _weight_dtype(fields)
    try:
        spec = ModelSpec(
            id="custom",
            name=_title(fields, name),
            family=str(fields.get("model_type") or "custom")[:40],
            hidden=hidden,
            vocab=_optional(fields, "vocab_size", 0),
            tied_embeddings=fields.get("tie_word_embeddings") is True,
            dtype=_dtype(fields, assumed),
            weight_dtype=weight or _dtype(fields, []),
            groups=(LayerGroup(name="full", count=layers, attention=attention, ffn=_ffn(fields, hidden, assumed)),),
            max_context=_optional(fields, "max_position_embeddings", None),
            source="a configuration of your own",
            checked=date.today(),
        )
    except ValidationError as error:
        first = error.errors()[0]
        raise BadConfigError(f"config: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    return ParsedConfig(spec, tuple(assumed), ())


def _object(config: str | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(config, Mapping):
        return dict(config)
    text = config.lstrip("\ufeff").strip()
    if not text:
        raise BadConfigError("config: the file is empty; expected the JSON object of a config.json")
    if len(text) > MAX_CONFIG_CHARACTERS:
        raise BadConfigError(f"config: {len(text):,} characters; allowed: up to {MAX_CONFIG_CHARACTERS:,}")
    if text.startswith("<"):
        raise BadConfigError("config: this is HTML, not JSON; download the raw config.json")
    try:
        fields = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadConfigError(f"config: not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise BadConfigError("config: JSON nested too deeply") from None
    if not isinstance(fields, dict):
        raise BadConfigError(f"config: expected a JSON object, got a {type(fields).__name__}")
    return fields


def _refuse_other_caches(fields: Mapping[str, Any]) -> None:
    for key in _OTHER_CACHES:
        if fields.get(key):
            raise BadConfigError(
                f"config: {key} marks a cache that is not plain K and V for each token; this reader does not understand it yet"
            )
    if fields.get("sliding_window") and fields.get("use_sliding_window", True):
        raise BadConfigError(
            "config: sliding_window marks a cache that is not plain K and V for each token; this reader does not understand it yet"
        )


def _whole(fields: Mapping[str, Any], names: tuple[str, ...], what: str, *, most: int = 10_000_000) -> int:
    for name in names:
        value = fields.get(name)
        if value is not None:
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
                raise BadConfigError(f"config: {name} ({what}): got {str(value)[:40]!r}; allowed: a whole number from 1 to {most:,}")
            return value
    raise BadConfigError(f"config: no {what}: expected {' or '.join(names)}")


def _optional(fields: Mapping[str, Any], name: str, default: Any) -> Any:
    return _whole(fields, (name,), name) if fields.get(name) is not None else default


def _kv_heads(fields: Mapping[str, Any], heads: int, assumed: list[str]) -> int:
    if fields.get("num_key_value_heads") is None:
        assumed.append(f"num_key_value_heads is not stated: as many as attention heads, {heads}")
        return heads
    kv_heads = _whole(fields, ("num_key_value_heads",), "KV heads")
    if heads % kv_heads:
        raise BadConfigError(f"config: num_key_value_heads {kv_heads} does not divide the {heads} attention heads")
    return kv_heads


def _head_dim(fields: Mapping[str, Any], hidden: int, heads: int, assumed: list[str]) -> int:
    if fields.get("head_dim") is not None:
        return _whole(fields, ("head_dim",), "head dimension")
    if hidden % heads:
        raise BadConfigError(f"config: no head_dim, and hidden size {hidden} does not divide by {heads} attention heads")
    assumed.append(f"head_dim is not stated: hidden size over attention heads, {hidden // heads}")
    return hidden // heads


def _check_layer_types(fields: Mapping[str, Any], layers: int) -> None:
    kinds = fields.get("layer_types")
    if kinds is None:
        return
    if not isinstance(kinds, list) or len(kinds) != layers:
        raise BadConfigError(f"config: layer_types has {len(kinds) if isinstance(kinds, list) else 'no'} entries for {layers} layers")
    other = sorted({str(kind)[:40] for kind in kinds} - {"full_attention"})
    if other:
        raise BadConfigError(f"config: layer_types names {', '.join(other[:3])}; this reader understands full_attention")


def _dtype(fields: Mapping[str, Any], assumed: list[str]) -> str:
    stated = fields.get("torch_dtype") or fields.get("dtype")
    if stated is None:
        assumed.append("torch_dtype is not stated: bf16")
        return "bf16"
    known = _DTYPES.get(str(stated).removeprefix("torch."))
    if known is None:
        raise BadConfigError(f"config: torch_dtype: got {str(stated)[:40]!r}; allowed: {', '.join(_DTYPES)}")
    return known


def _weight_dtype(fields: Mapping[str, Any]) -> str | None:
    quantization = fields.get("quantization_config")
    method = quantization.get("quant_method") if isinstance(quantization, Mapping) else None
    return _QUANTIZED.get(str(method))


def _ffn(fields: Mapping[str, Any], hidden: int, assumed: list[str]) -> Dense | Moe:
    experts = fields.get("num_local_experts") or fields.get("num_experts")
    if experts:
        return Moe(
            experts=_whole(fields, ("num_local_experts", "num_experts"), "experts"),
            top_k=_whole(fields, ("num_experts_per_tok",), "experts a token visits"),
            inter=_whole(fields, ("moe_intermediate_size", "intermediate_size"), "expert size"),
            shared_inter=_optional(fields, "shared_expert_intermediate_size", 0),
        )
    if fields.get("intermediate_size") is None:
        assumed.append(f"intermediate_size is not stated: four times the hidden size, {4 * hidden}")
        return Dense(inter=4 * hidden)
    return Dense(inter=_whole(fields, ("intermediate_size",), "feed-forward size"))


def _title(fields: Mapping[str, Any], name: str) -> str:
    stated = fields.get("_name_or_path") or fields.get("name")
    return (str(stated) if isinstance(stated, str) and stated else name)[:80]
