"""Bytes and parameters of configurations of each family (`golden/config_families.toml`)."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from kvmodel.cache import model_cache
from kvmodel.config import parse_model_config, with_value
from kvmodel.parameters import model_parameters

CASES: dict[str, dict[str, Any]] = {
    case["name"]: case for case in tomllib.loads((Path(__file__).parent / "golden" / "config_families.toml").read_text())["case"]
}


@pytest.mark.parametrize("name", CASES)
def test_a_family_keeps_the_bytes_its_fields_say(name: str) -> None:
    case = CASES[name]
    cache = model_cache(parse_model_config(case["fields"]).model, kv_dtype="bf16")
    assert (cache.bytes_per_token, cache.window_bytes_max, cache.state_bytes) == (case["growing"], case["window"], case["state"])


def test_the_text_and_the_mapping_of_a_file_are_read_alike() -> None:
    for case in CASES.values():
        assert parse_model_config(case["fields"]) == parse_model_config(json.loads(case["fields"]))


@pytest.mark.parametrize("name", CASES)
def test_assumptions_stated_at_their_paths_change_nothing_and_leave_none(name: str) -> None:
    fields = json.loads(CASES[name]["fields"])
    parsed = parse_model_config(fields)
    for field in parsed.fields:
        if field.origin != "file":
            fields = with_value(fields, field.path, field.value)
    again = parse_model_config(fields)
    assert model_cache(again.model) == model_cache(parsed.model)
    assert model_parameters(again.model) == model_parameters(parsed.model)
    assert not again.assumed


@pytest.mark.parametrize(
    ("fields", "billions"),
    [
        (
            {
                "model_type": "mixtral",
                "hidden_size": 4096,
                "num_hidden_layers": 32,
                "num_attention_heads": 32,
                "num_key_value_heads": 8,
                "intermediate_size": 14336,
                "num_local_experts": 8,
                "num_experts_per_tok": 2,
                "vocab_size": 32000,
            },
            46.7,
        ),
        (
            {
                "model_type": "dbrx",
                "d_model": 6144,
                "n_layers": 40,
                "n_heads": 48,
                "vocab_size": 100352,
                "attn_config": {"kv_n_heads": 8},
                "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4},
            },
            132,
        ),
        ({"model_type": "longcat_flash", "num_layers": 28}, 560),
        ({"model_type": "deepseek_v4", "num_hidden_layers": 43}, 284),
        ({"model_type": "opt", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "ffn_dim": 16384}, 6.7),
        (
            {
                "model_type": "qwen",
                "hidden_size": 4096,
                "num_hidden_layers": 32,
                "num_attention_heads": 32,
                "kv_channels": 128,
                "intermediate_size": 22016,
                "vocab_size": 151936,
            },
            7.7,
        ),
        ({"model_type": "minimax_m2", "num_hidden_layers": 62}, 229),
    ],
)
def test_parameters_are_within_three_percent_of_the_published_count(fields: dict[str, Any], billions: float) -> None:
    # Counts from the models' pages on huggingface.co: Mixtral 8x7B, DBRX, LongCat-Flash, DeepSeek-V4-Flash, OPT 6.7B, Qwen 7B, MiniMax-M2.
    assert model_parameters(parse_model_config(fields).model).total / 1e9 == pytest.approx(billions, rel=0.03)
