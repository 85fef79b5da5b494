"""Where values come from: the file, the class, other fields; formats; warnings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kvmodel.cache import model_cache
from kvmodel.config import Field, parse_model_config, with_value
from tests.configs import LLAMA


def field(fields: dict[str, Any], name: str) -> Field:
    return next(item for item in parse_model_config(fields).fields if item.name == name)


def test_a_stated_value_carries_its_path() -> None:
    nested = {"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "num_hidden_layers": 6, "hidden_size": 640}}
    assert field(nested, "num_hidden_layers") == Field("num_hidden_layers", 6, "file", "text_config.num_hidden_layers")
    assert field({**LLAMA, "num_hidden_layers": None, "n_layer": 4}, "num_hidden_layers").path == "n_layer"


def test_a_class_default_is_assumed_and_says_of_which_class() -> None:
    parsed = parse_model_config({"model_type": "gemma3_text", "num_hidden_layers": 6, "hidden_size": 640})
    assert "num_key_value_heads is not stated: 4, the class default of gemma3_text" in parsed.assumed
    assert next(f for f in parsed.fields if f.name == "num_key_value_heads").origin == "class default"


def test_a_derived_value_says_from_what() -> None:
    assert field(LLAMA, "head_dim") == Field("head_dim", 128, "derived", "head_dim")
    assert "head_dim is not stated: 128, hidden size over attention heads" in parse_model_config(LLAMA).assumed


def test_the_fields_of_a_file_given_back_reproduce_its_bytes() -> None:
    fields = {"model_type": "qwen3", "hidden_size": 2560, "num_hidden_layers": 36, "num_attention_heads": 32}
    parsed = parse_model_config(fields)
    stated = {f.path: f.value for f in parsed.fields}
    again = parse_model_config({**fields, **stated})
    assert model_cache(again.model).prompt_bytes(8192) == model_cache(parsed.model).prompt_bytes(8192)
    assert not again.assumed


def test_fields_that_size_the_weights_are_told_from_those_that_size_the_cache() -> None:
    sizes = {f.name: f.sizes_cache for f in parse_model_config({**LLAMA, "intermediate_size": 14336}).fields}
    assert sizes["num_key_value_heads"]
    assert not sizes["intermediate_size"]


def test_the_name_of_a_model_decides_nothing() -> None:
    named = parse_model_config({**LLAMA, "_name_or_path": "deepseek-ai/DeepSeek-V3", "architectures": ["DeepseekV3ForCausalLM"]})
    assert model_cache(named.model).bytes_per_token == 131_072


@pytest.mark.parametrize(
    ("quantization", "weight", "expert", "kv"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8", None, None),
        ({"quant_method": "awq", "bits": 4}, "int4", None, None),
        ({"quant_method": "gptq", "bits": 8}, "int8", None, None),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "int4", None, None),
        ({"quant_method": "mxfp4"}, "bf16", "mxfp4", None),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_scheme": {"num_bits": 8, "type": "float"}}, "nvfp4", None, "fp8"),
        ({"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}, "fp8", None, "fp8"),
        ({"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "NVFP4"}}, "nvfp4", None, "nvfp4"),
        ({"quant_method": "compressed-tensors", "kv_cache_scheme": None,
          "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int", "group_size": 32}}},
          "ignore": ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*"]}, "bf16", "int4", None),
        ({"quant_method": "compressed-tensors", "kv_cache_scheme": {"num_bits": 8, "type": "int"},
          "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float"}}}}, "fp8", None, "int8"),
        ({"quant_method": "fp8", "kv_cache_scheme": "static"}, "fp8", None, "fp8"),
        (
            {
                "quant_method": "quark",
                "global_quant_config": {"input_tensors": {"dtype": "fp8_e4m3"}, "weight": {"dtype": "fp4"}},
                "kv_cache_quant_config": {"*k_proj": {"output_tensors": {"dtype": "fp8_e4m3"}}},
            },
            "mxfp4",
            None,
            "fp8",
        ),
        ({}, "bf16", None, None),
    ],
)  # fmt: skip
def test_weights_and_cache_have_formats_of_their_own(quantization: dict[str, Any], weight: str, expert: str | None, kv: str | None) -> None:
    model = parse_model_config({**LLAMA, "torch_dtype": "bfloat16", "quantization_config": quantization}).model
    assert (model.weight_dtype, model.expert_dtype, model.kv_dtype) == (weight, expert, kv)


def test_a_cache_scheme_halves_the_cache() -> None:
    scheme = {"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_scheme": {"num_bits": 8, "type": "float", "dynamic": False}}
    assert model_cache(parse_model_config({**LLAMA, "quantization_config": scheme}).model).bytes_per_token == 65_536


@pytest.mark.parametrize(
    ("stated", "dtype"), [("torch.float16", "fp16"), ("bfloat16", "bf16"), ("float32", "fp32"), ("auto", "bf16"), (None, "bf16")]
)
def test_the_dtype_of_the_file_counts(stated: str | None, dtype: str) -> None:
    assert parse_model_config({**LLAMA, "torch_dtype": stated}).model.dtype == dtype


def test_prediction_layers_are_named_and_not_counted() -> None:
    plain, speculating = parse_model_config(LLAMA), parse_model_config({**LLAMA, "num_nextn_predict_layers": 1})
    assert model_cache(plain.model) == model_cache(speculating.model)
    assert any("num_nextn_predict_layers 1" in warning and "speculation" in warning for warning in speculating.warnings)


def test_under_speculation_prediction_layers_keep_a_cache() -> None:
    # Qwen3.5: 16 of 64 layers see everything, 4 KV heads of 256; one more under speculation (17 x 4,096 B).
    text = {"model_type": "qwen3_5_text", "hidden_size": 5120, "num_hidden_layers": 64, "num_attention_heads": 24, "num_key_value_heads": 4}
    plain = parse_model_config({**text, "mtp_num_hidden_layers": 1})
    speculating = parse_model_config({**text, "mtp_num_hidden_layers": 1}, speculation=True)
    assert model_cache(plain.model).bytes_per_token == 65_536
    assert model_cache(speculating.model).bytes_per_token == 69_632


def test_the_draft_of_deepseek_v4_keeps_a_window() -> None:
    v4 = {"model_type": "deepseek_v4", "num_hidden_layers": 2, "compress_ratios": [128, 4, 0], "num_nextn_predict_layers": 1}
    plain, speculating = (model_cache(parse_model_config(v4, speculation=on).model) for on in (False, True))
    assert speculating.bytes_per_token == plain.bytes_per_token
    assert speculating.window_bytes_max - plain.window_bytes_max == 128 * 1024


def test_a_value_stated_at_its_path_is_taken() -> None:
    nested = {"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "num_hidden_layers": 6, "hidden_size": 640}}
    path = next(f.path for f in parse_model_config(nested).fields if f.name == "num_key_value_heads")
    again = parse_model_config(with_value(nested, path, 1))
    assert Field("num_key_value_heads", 1, "file", "text_config.num_key_value_heads") in again.fields


def test_the_layers_of_a_text_model_beside_images_may_be_its_class_s() -> None:
    text = {"model_type": "llama", "max_position_embeddings": 4096}
    parsed = parse_model_config({"model_type": "llava", "text_config": text, "vision_config": {"num_hidden_layers": 24}})
    assert parsed.model.layers == 32
    assert "num_hidden_layers is not stated: 32, the class default of llama" in parsed.assumed


def test_a_cache_that_does_not_grow_is_said_to() -> None:
    parsed = parse_model_config({"model_type": "mamba", "hidden_size": 768, "num_hidden_layers": 2})
    assert any("no layer's cache grows" in warning for warning in parsed.warnings)


@pytest.mark.parametrize("text", ["\ufeff{}", '{"time_step_limit": [0.0, Infinity], "x": NaN, "y": -Infinity}'])
def test_byte_order_marks_and_infinities_are_read_over(text: str) -> None:
    mark, extra = ("\ufeff" if text.startswith("\ufeff") else ""), json.loads(text.lstrip("\ufeff"))
    assert model_cache(parse_model_config(mark + json.dumps({**LLAMA, **extra})).model).bytes_per_token == 131_072


def test_the_width_of_llama_params_follows_its_multiple() -> None:
    # Llama 3 8B: 14,336 = 1.3 x 2/3 x 4 x 4,096 rounded up to a multiple of 1,024.
    params = {"dim": 4096, "n_layers": 32, "n_heads": 32, "n_kv_heads": 8, "multiple_of": 1024, "ffn_dim_multiplier": 1.3}
    assert field(params, "intermediate_size").value == 14_336


def test_layers_alike_are_one_group_and_keep_their_order() -> None:
    types = ["sliding_attention", "full_attention", "full_attention"]
    sizes = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "sliding_window": 8}
    model = parse_model_config({"model_type": "qwen3", **sizes, "layer_types": types}).model
    assert [(group.name, group.count) for group in model.groups] == [("sliding", 1), ("full", 2)]
    assert model.sequence == (0, 1, 1)
