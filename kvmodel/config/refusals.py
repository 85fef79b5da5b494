"""Architectures that are not read, each with its reason."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import Field

from kvmodel.config.families import UNKNOWN
from kvmodel.config.reader import Reader
from kvmodel.config.spellings import CANONICAL, SPELLINGS
from kvmodel.config.text import printable, shown
from kvmodel.errors import BadConfigError
from kvmodel.records.base import Sourced
from kvmodel.registry import data_folder, read_rows

_KEYS = {
    "kv_source_layer_ids": "layers that read the compressed cache of others",
    "conv_attn_config": "convolutions inside attention",
    "encoder_layers": "an encoder beside the decoder",
    "num_decoder_layers": "an encoder beside the decoder",
    "lru_width": "an RG-LRU state",
}
_SHAPES_A_CACHE = re.compile(
    r"kv_|_kv|cache|window|chunk|mamba|ssm|wkv|rwkv|recurrent|hyena|retention|retentive|compress|latent|linear_attn|linear_attention"
    r"|block_type|layer_type|layers_block|layer_pattern|hybrid|cross_attention|state_|_state|conv_|delta|lightning|sparse_att|local_att|gla_"
)
_HARMLESS = frozenset(
    (
        "add_cross_attention",
        "attention_chunk_size",
        "attn_layer_indices",
        "block_configs",
        "cache_implementation",
        "chunk_size",
        "chunk_size_feed_forward",
        "cla_share_factor",
        "compress_ratios",
        "compress_tensors",
        "compression_config",
        "conv_bias",
        "cross_attention_hidden_size",
        "cross_attention_layers",
        "hybrid_layer_ids",
        "hybrid_layer_pattern",
        "hybrid_override_pattern",
        "initializer_cache",
        "kv_bias",
        "kv_cache_scheme",
        "kv_lora_rank",
        "layer_types",
        "layers_block_type",
        "linear_attn_config",
        "mamba_chunk_size",
        "mamba_conv_bias",
        "mamba_d_ssm",
        "mamba_dt_rank",
        "mamba_hidden_act",
        "mamba_inner_layernorms",
        "mamba_proj_bias",
        "max_window_layers",
        "mlp_layer_types",
        "mtp_hybrid_override_pattern",
        "num_kv_groups",
        "num_kv_shared_layers",
        "output_hidden_states",
        "past_key_values",
        "qk_layernorm",
        "qkv_bias",
        "query_key_value_bias",
        "return_dict_in_generate",
        "sliding_window",
        "sliding_window_pattern",
        "sliding_window_size",
        "state_dict",
        "use_cache",
        "use_conv_bias",
        "use_mamba_kernels",
        "use_qkv_bias",
        "use_sliding_window",
    )
)


class Refusal(Sourced):
    """Architectures refused for one reason."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    """What they are."""
    model_types: tuple[str, ...]
    """Their `model_type`s."""
    reason: str
    """Why, to follow the `model_type` in a sentence."""


@cache
def _refusals() -> Mapping[str, str]:
    rows = read_rows(data_folder() / "config_refusals.toml", "refusal", Refusal)
    return {model_type: row.reason for row in rows for model_type in row.model_types}


def refuse_others(reader: Reader) -> None:
    """Raise BadConfigError for an architecture that keeps something this reader does not size."""
    model_type = reader.values.get("model_type")
    if model_type is not None and not isinstance(model_type, str):
        raise BadConfigError(f"config: model_type: got {shown(model_type)}; allowed: a text")
    _refuse_types(reader, model_type or "")
    for key, what in _KEYS.items():
        if _states_something(reader.values.get(key)):
            raise BadConfigError(f"config: {reader.path(key)} is not understood: it stands for {what}")
    if reader.family is UNKNOWN:
        _refuse_unknown_keys(reader, model_type)


def _refuse_types(reader: Reader, model_type: str) -> None:
    if reader.values.get("is_encoder_decoder") is True:
        raise BadConfigError("config: an encoder-decoder: its cross-attention cache is not modelled; use a decoder-only model")
    reason = _refusals().get(model_type) or _refusals().get(model_type.removesuffix("_text"))
    if reason is None and any(word in model_type for word in ("vision", "audio", "encoder")) and reader.family is UNKNOWN:
        reason = _refusals()["clip"]
    if reason is not None:
        raise BadConfigError(f"config: model_type {shown(model_type)} {reason}")


def _refuse_unknown_keys(reader: Reader, model_type: str | None) -> None:
    known = {key.split(".")[0] for key in (*SPELLINGS, *CANONICAL)} | _HARMLESS
    for key, value in reader.values.items():
        if key not in known and _SHAPES_A_CACHE.search(key) and _states_something(value):
            where = f"model_type {shown(model_type)} is not understood"
            raise BadConfigError(f"config: {printable(reader.path(key))[:80]} may shape the cache, and {where}")
    if model_type:
        reader.warn(f"model_type {shown(model_type)} is not known here: read by its fields as a decoder whose layers keep keys and values")


def _states_something(value: Any) -> bool:
    """Whether a field turns something on: not null, false, zero, empty or `auto`."""
    if isinstance(value, list | Mapping | str):
        return len(value) > 0 and value != "auto"
    return value is not None and value is not False and value != 0
