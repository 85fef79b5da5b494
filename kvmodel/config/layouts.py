"""Where a file keeps the language model: nested objects, Mistral's own keys, GGUF metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvmodel.config.families import family_of
from kvmodel.config.gguf import from_gguf, is_gguf
from kvmodel.config.reader import MAX_SIZE, Reader
from kvmodel.errors import BadConfigError

NESTS = ("text_config", "llm_config", "language_config", "language_model_config", "thinker_config", "text_model_config")
_FROM_OUTSIDE = (
    "torch_dtype",
    "dtype",
    "quantization_config",
    "compression_config",
    "tie_word_embeddings",
    "is_encoder_decoder",
    "vocab_size",
    "_name_or_path",
    "name",
)
_MISTRAL = {
    "dim": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads",
    "hidden_dim": "intermediate_size",
    "max_seq_len": "max_position_embeddings",
    "tied_embeddings": "tie_word_embeddings",
}
_MISTRAL_MOE = {
    "num_experts": "num_experts",
    "num_experts_per_tok": "num_experts_per_tok",
    "expert_hidden_dim": "moe_intermediate_size",
    "num_shared_experts": "n_shared_experts",
    "first_k_dense_replace": "first_k_dense_replace",
}


def open_layout(fields: Mapping[str, Any]) -> Reader:
    """A reader on the language model's fields, wherever the file keeps them."""
    if is_gguf(fields):
        values, paths = from_gguf(fields)
        return _gguf_reader(values, paths)
    if "dim" in fields and "n_layers" in fields and "n_heads" in fields:
        return _mistral(fields)
    return _nested(fields)


def _gguf_reader(values: dict[str, Any], paths: dict[str, str]) -> Reader:
    reader = Reader(values, family_of(str(values.get("model_type"))), paths=paths)
    if reader.stated("torch_dtype")[0] is None:
        values["torch_dtype"] = "float16"
        reader.note("torch_dtype", "float16", "derived", why="as llama.cpp keeps its cache")
    return reader


def _nested(fields: Mapping[str, Any]) -> Reader:
    values, prefix = dict(fields), ""
    paths: dict[str, str] = {}
    for _ in range(4):
        nest = next((name for name in NESTS if isinstance(values.get(name), Mapping) and values[name]), None)
        if nest is None or (_has_layers(values) and not _has_layers(values[nest])):
            break
        outside = {key: values[key] for key in _FROM_OUTSIDE if values.get(key) is not None}
        inside = {str(key): value for key, value in values[nest].items()}
        kept = {key: value for key, value in outside.items() if inside.get(key) is None}
        paths = {key: paths.get(key, prefix + key) for key in kept}
        model_type = inside.get("model_type") or values.get("model_type")
        values = {**inside, **kept, "model_type": model_type}
        prefix += nest + "."
    model_type = values.get("model_type")
    family = family_of(model_type if isinstance(model_type, str) else "")
    return Reader(values, family, prefix=prefix, paths=paths)


def _has_layers(values: Mapping[str, Any]) -> bool:
    keys = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "layers_block_type", "layer_types")
    return any(values.get(key) is not None for key in keys)


def _holds_model(values: Mapping[str, Any]) -> bool:
    return _has_layers(values) or any(isinstance(values.get(name), Mapping) for name in NESTS)


def _mistral(fields: Mapping[str, Any]) -> Reader:
    """Mistral's `params.json` (and Llama's), whose keys are its own."""
    values = {_MISTRAL.get(key, key): value for key, value in fields.items()}
    paths = {usual: key for key, usual in _MISTRAL.items()}
    moe = fields.get("moe")
    if isinstance(moe, Mapping):
        values |= {usual: moe[key] for key, usual in _MISTRAL_MOE.items() if key in moe}
        paths |= {usual: f"moe.{key}" for key, usual in _MISTRAL_MOE.items()}
    if values.get("vocab_size") == -1:
        del values["vocab_size"]
    if "intermediate_size" not in values:
        values |= _llama_width(fields)
    if isinstance(values.get("sliding_window"), list):
        raise BadConfigError("config: sliding_window is a list in this params.json; use the model's config.json with layer_types")
    return Reader(values, family_of("mistral-params"), paths=paths)


def _llama_width(fields: Mapping[str, Any]) -> dict[str, int]:
    """Feed-forward width of Llama's `params.json`: two thirds of 4 x dim, scaled, rounded up to `multiple_of`.

    Source: github.com/meta-llama/llama-models, models/llama3/model.py.
    """
    dim, multiple, factor = fields.get("dim"), fields.get("multiple_of"), fields.get("ffn_dim_multiplier", 1.0)
    sane = isinstance(dim, int) and isinstance(multiple, int) and isinstance(factor, int | float)
    if not sane or not (0 < dim <= MAX_SIZE and 0 < multiple <= MAX_SIZE and 0 < factor < 100):  # type: ignore[operator]
        return {}
    return {"intermediate_size": -(-int(factor * int(8 * dim / 3)) // multiple) * multiple}  # type: ignore[operator]
