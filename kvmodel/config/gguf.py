"""GGUF metadata as JSON: keys such as `llama.block_count`, translated to the usual ones.

Source of the keys: github.com/ggml-org/ggml, docs/gguf.md, and llama.cpp's gguf-py/gguf/constants.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvmodel.errors import BadConfigError

_USUAL = {
    "block_count": "num_hidden_layers",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "context_length": "max_position_embeddings",
    "vocab_size": "vocab_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.value_length": "v_head_dim",
    "attention.sliding_window": "sliding_window",
    "attention.sliding_window_pattern": "sliding_window_pattern",
    "attention.kv_lora_rank": "kv_lora_rank",
    "attention.q_lora_rank": "q_lora_rank",
    "attention.shared_kv_layers": "num_kv_shared_layers",
    "attention.indexer.key_length": "index_head_dim",
    "attention.indexer.head_count": "index_n_heads",
    "attention.indexer.top_k": "index_topk",
    "attention.chunk_size": "attention_chunk_size",
    "full_attention_interval": "full_attention_interval",
    "expert_count": "num_experts",
    "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_shared_count": "n_shared_experts",
    "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
    "leading_dense_block_count": "first_k_dense_replace",
    "nextn_predict_layers": "num_nextn_predict_layers",
}
_TYPES = {
    "qwen2moe": "qwen2_moe",
    "qwen3moe": "qwen3_moe",
    "qwen3next": "qwen3_next",
    "qwen35": "qwen3_5_text",
    "qwen35moe": "qwen3_5_moe_text",
    "gemma3": "gemma3_text",
    "gemma3n": "gemma3n_text",
    "deepseek2": "deepseek_v3",
    "gpt-oss": "gpt_oss",
    "gptneox": "gpt_neox",
    "command-r": "cohere",
    "starcoder": "gpt_bigcode",
    "glm4moe": "glm4_moe",
    "minimax-m2": "minimax_m2",
    "mistral": "mistral-params",
    "mixtral": "mistral-params",
}
_SILENT: dict[str, Any] = {"num_key_value_heads": None, "head_dim": None, "multi_query": None, "new_decoder_architecture": None}
"""What metadata leave out is as many KV heads as heads, and hidden size over heads, whatever the class says."""
_DELTA = ("qwen3next", "qwen35", "qwen35moe")


def is_gguf(fields: Mapping[str, Any]) -> bool:
    """Whether an object holds GGUF metadata, bare or under `metadata`."""
    return "general.architecture" in _metadata(fields)


def from_gguf(fields: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """(fields under their usual keys, path of each). Raises BadConfigError where metadata say too little."""
    metadata = {key: _plain(value) for key, value in _metadata(fields).items()}
    arch = metadata["general.architecture"]
    if not isinstance(arch, str):
        raise BadConfigError("config: general.architecture: expected a text")
    known = {key: usual for key, usual in _USUAL.items() if f"{arch}.{key}" in metadata}
    values: dict[str, Any] = {**_SILENT, "model_type": _TYPES.get(arch, arch), "name": metadata.get("general.name")}
    values |= {usual: metadata[f"{arch}.{key}"] for key, usual in known.items()}
    values |= _latent(metadata, arch, values) if values.get("kv_lora_rank") else {}
    if any(key.startswith((f"{arch}.ssm.", f"{arch}.wkv.")) for key in metadata):
        values |= _state(metadata, arch)
    _place(values, metadata)
    values |= {key: value for key, value in fields.items() if "." not in key and key != "metadata"}
    return values, {"model_type": "general.architecture", **{usual: f"{arch}.{key}" for key, usual in known.items()}}


def _place(values: dict[str, Any], metadata: Mapping[str, Any]) -> None:
    """Layers, windows and vocabulary in the usual form: prediction layers are counted among the blocks."""
    blocks, extra = values.get("num_hidden_layers"), values.get("num_nextn_predict_layers")
    if isinstance(blocks, int) and isinstance(extra, int) and not isinstance(extra, bool) and 0 < extra < blocks:
        values["num_hidden_layers"] = blocks - extra
    if isinstance(values.get("sliding_window_pattern"), list):
        values["layer_types"] = ["sliding_attention" if slides else "full_attention" for slides in values.pop("sliding_window_pattern")]
    if values.get("sliding_window") == 0:
        values["sliding_window"] = None
    tokens = metadata.get("tokenizer.ggml.tokens")
    if isinstance(tokens, list):
        values.setdefault("vocab_size", len(tokens))


def _metadata(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    inside = fields.get("metadata")
    return inside if isinstance(inside, Mapping) and "general.architecture" in inside else fields


def _plain(value: Any) -> Any:
    return value["value"] if isinstance(value, Mapping) and "value" in value else value


def _latent(metadata: Mapping[str, Any], arch: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """MLA: the rotary part is stated, the rest of a key head is what remains of its length."""
    rope = metadata.get(f"{arch}.rope.dimension_count")
    key = metadata.get(f"{arch}.attention.key_length_mla", values.get("head_dim"))
    value = metadata.get(f"{arch}.attention.value_length_mla", values.get("v_head_dim"))
    if not isinstance(rope, int) or not isinstance(key, int):
        raise BadConfigError(f"config: {arch}.attention.kv_lora_rank needs {arch}.rope.dimension_count and {arch}.attention.key_length")
    return {"qk_rope_head_dim": rope, "qk_nope_head_dim": key - rope, "v_head_dim": value}


def _state(metadata: Mapping[str, Any], arch: str) -> dict[str, Any]:
    """Gated DeltaNet of Qwen3-Next; other state layers are not placed by the metadata."""
    sizes = {key: metadata.get(f"{arch}.ssm.{key}") for key in ("state_size", "group_count", "time_step_rank", "inner_size", "conv_kernel")}
    heads, inner = sizes["time_step_rank"], sizes["inner_size"]
    if arch not in _DELTA or not isinstance(heads, int) or not isinstance(inner, int) or heads < 1 or inner % heads:
        raise BadConfigError(
            f"config: {arch}.ssm keys size a state, but GGUF metadata do not say which layers hold it; use the config.json"
        )
    return {
        "linear_key_head_dim": sizes["state_size"],
        "linear_num_key_heads": sizes["group_count"],
        "linear_num_value_heads": heads,
        "linear_value_head_dim": inner // heads,
        "mamba_d_conv": sizes["conv_kernel"],
    }
