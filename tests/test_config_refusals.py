"""What is refused, each with one sentence that names the field, what came, what is allowed."""

from __future__ import annotations

from typing import Any

import pytest

from kvmodel.config import MAX_CONFIG_CHARACTERS, parse_model_config
from kvmodel.errors import BadConfigError
from tests.configs import LLAMA

MLA = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128}
V4 = {"model_type": "deepseek_v4", "num_hidden_layers": 2}

TEXTS = {
    "empty": ("", "empty"),
    "HTML": ("<!doctype html>", "HTML"),
    "a list": ("[1]", "object, got a list"),
    "broken": ('{"a": 1,\n "b" 2}', "line 2, column 6"),
    "too long": (" " + "[" * (MAX_CONFIG_CHARACTERS + 1), "2,000,001 characters"),
    "too deep": ("[" * 200_000, "nested too deeply"),
    "a number of many digits": ('{"num_hidden_layers": ' + "9" * 5000 + "}", "too many digits"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_that_is_no_configuration_says_what_it_is(name: str) -> None:
    text, words = TEXTS[name]
    with pytest.raises(BadConfigError, match=words):
        parse_model_config(text)


CASES: dict[str, tuple[dict[str, Any], str]] = {
    "no heads": ({**LLAMA, "num_attention_heads": 0}, "num_attention_heads: got 0; allowed: a whole number from 1"),
    "negative heads": ({**LLAMA, "num_key_value_heads": -8}, "num_key_value_heads: got -8"),
    "heads as text": ({**LLAMA, "num_attention_heads": "32"}, "num_attention_heads: got '32'"),
    "heads as truth": ({**LLAMA, "num_attention_heads": True}, "num_attention_heads: got True"),
    "heads with a fraction": ({**LLAMA, "num_attention_heads": 32.0}, r"num_attention_heads: got 32\.0"),
    "not a number": ({**LLAMA, "hidden_size": float("nan"), "head_dim": None}, "hidden_size: got nan"),
    "huge": (
        {**LLAMA, "num_hidden_layers": 10**50},
        "num_hidden_layers: got a number of over 40 digits; allowed: a whole number from 1 to 2,000",
    ),
    "more KV heads than heads": ({**LLAMA, "num_key_value_heads": 64}, "num_key_value_heads: got 64 KV heads for 32 attention heads"),
    "KV heads that do not divide": ({**LLAMA, "num_key_value_heads": 5}, "allowed: a divisor"),
    "hidden size that does not divide": ({**LLAMA, "hidden_size": 4095}, "hidden size 4095 does not divide by 32"),
    "head counts for other layers": ({**LLAMA, "num_key_value_heads": [8] * 31}, "num_key_value_heads: got a list of 31"),
    "no layers": ({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4}, "no decoder layers"),
    "vision only": (
        {"model_type": "siglip_vision_model", "num_hidden_layers": 27, "num_attention_heads": 16, "hidden_size": 1152},
        "decoder layers",
    ),
    "vision beside nothing": ({"model_type": "llava", "vision_config": {"num_hidden_layers": 24}}, "decoder layers"),
    "an encoder": ({"model_type": "bert", "num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12}, "decoder layers"),
    "an encoder-decoder": (
        {"model_type": "t5", "is_encoder_decoder": True, "d_model": 512, "num_layers": 8, "num_heads": 6, "d_kv": 64},
        "encoder-decoder",
    ),
    "an encoder-decoder by type": ({"model_type": "whisper", "d_model": 512}, "encoder-decoder"),
    "a state without a formula": ({"model_type": "rwkv", "hidden_size": 64, "num_hidden_layers": 2}, "RWKV"),
    "an unknown key that shapes the cache": (
        {**LLAMA, "model_type": "newcomer", "kv_compression_ratio": 4},
        "kv_compression_ratio may shape the cache",
    ),
    "an unknown type without KV heads": (
        {"model_type": "newcomer", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4},
        "num_key_value_heads is not stated",
    ),
    "an unknown type with a window": ({**LLAMA, "model_type": "newcomer", "sliding_window": 512}, "nothing says which layers slide"),
    "a type that is no text": ({**LLAMA, "model_type": 7}, "model_type: got 7"),
    "too few layer types": ({**LLAMA, "layer_types": ["full_attention"] * 6}, "layer_types: got a list of 6; allowed: a list of 32"),
    "an unknown layer type": ({**LLAMA, "layer_types": ["retention"] * 32}, "layer_types names 'retention'"),
    "sliding layers without a window": ({**LLAMA, "layer_types": ["sliding_attention"] * 32}, "sliding_window is not stated"),
    "an unknown letter": (
        {"model_type": "nemotron_h", "num_hidden_layers": 3, "hybrid_override_pattern": "MX*"},
        "hybrid_override_pattern names 'X'",
    ),
    "too few letters": (
        {"model_type": "nemotron_h", "num_hidden_layers": 5, "hybrid_override_pattern": "MM*"},
        "got 3 letters for 5 layers",
    ),
    "no letters": ({"model_type": "nemotron_h", "num_hidden_layers": 5}, "nothing says which layers keep a state"),
    "a hybrid that names no state": ({**LLAMA, "layer_types": ["linear_attention"] * 32}, "no field says of which kind"),
    "a state that no layer is said to keep": ({**LLAMA, "mamba_d_state": 16}, "nothing says which layers keep a state"),
    "layers numbered twice": (
        {"model_type": "kimi_linear", "num_hidden_layers": 3, "linear_attn_config": {"full_attn_layers": [1, 2], "kda_layers": [2, 3]}},
        "must number each of 3 layers once",
    ),
    "a layer number past the end": (
        {"model_type": "bamba", "num_hidden_layers": 4, "attn_layer_indices": [4]},
        "layer numbers from 0 to 3",
    ),
    "an offset past the period": ({"model_type": "jamba", "num_hidden_layers": 8, "attn_layer_offset": 8}, "attn_layer_offset: got 8"),
    "all layers sharing": (
        {"model_type": "gemma3n_text", "num_hidden_layers": 4, "num_kv_shared_layers": 4},
        "no layer would keep a cache",
    ),
    "only feed-forward layers": (
        {"model_type": "nemotron_h", "num_hidden_layers": 2, "hybrid_override_pattern": "--"},
        "no layer keeps a cache",
    ),
    "an unknown ratio": ({**V4, "compress_ratios": [4, 16]}, "compress_ratios names 16"),
    "too few ratios": ({**V4, "compress_ratios": [4]}, "got 1 entries for 2 layers"),
    "a shared compressed cache": (
        {**V4, "compress_ratios": [4, 4], "kv_source_layer_ids": [0, 0]},
        "kv_source_layer_ids is not understood",
    ),
    "a latent in a window": (
        {**LLAMA, **MLA, "sliding_window": 64, "layer_types": ["sliding_attention"] * 32},
        "kv_lora_rank with sliding layers",
    ),
    "MLA without its ranks": ({**LLAMA, "kv_lora_rank": 512}, "v_head_dim|qk_rope_head_dim"),
    "too few indexers": (
        {"model_type": "glm_moe_dsa", "num_hidden_layers": 2, "indexer_types": ["full"]},
        "full or shared for each of 2 layers",
    ),
    "an unknown dtype": ({**LLAMA, "torch_dtype": "float7"}, "torch_dtype: got 'float7'"),
    "an unknown cache format": ({**LLAMA, "quantization_config": {"kv_cache_scheme": {"num_bits": 5, "type": "float"}}}, "kv_cache_scheme"),
    "quantization as text": ({**LLAMA, "quantization_config": "fp8"}, "quantization_config: got 'fp8'; allowed: an object"),
    "more experts visited than there are": (
        {**LLAMA, "num_local_experts": 4, "num_experts_per_tok": 8},
        "num_experts_per_tok: got 8 of 4 experts",
    ),
    "a block without attention": (
        {**LLAMA, "num_hidden_layers": 1, "block_configs": [{"ffn": {}}]},
        r"block_configs\[0\]\.attention: got None",
    ),
    "GGUF of a hybrid": (
        {"general.architecture": "jamba", "jamba.block_count": 8, "jamba.ssm.state_size": 16},
        "GGUF metadata do not say which layers",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_configuration_at_odds_with_itself_is_refused_in_one_sentence(name: str) -> None:
    fields, words = CASES[name]
    with pytest.raises(BadConfigError, match=words) as caught:
        parse_model_config(fields)
    assert str(caught.value).startswith("config: ")
    assert "\n" not in str(caught.value)
