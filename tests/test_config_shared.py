"""Configurations as published, where the shared folder of facts stands beside the checkout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kvmodel.cache import model_cache
from kvmodel.config import parse_model_config
from kvmodel.parallel import check_tp
from kvmodel.parameters import model_parameters
from kvmodel.registry import models

SHARED = Path(__file__).resolve().parents[1].parent / "shared"
FACTS = SHARED / "reference" / "models.json"
ROWS: list[dict[str, Any]] = json.loads(FACTS.read_text()) if FACTS.is_file() else []
WITH_FILE = [row for row in ROWS if row.get("hf_file")]

pytestmark = pytest.mark.skipif(not ROWS, reason="the shared folder of facts is not here")


def ids(row: dict[str, Any]) -> str:
    return str(row["name"])


@pytest.mark.parametrize("row", WITH_FILE, ids=ids)
def test_a_published_configuration_keeps_the_known_bytes_to_the_byte(row: dict[str, Any]) -> None:
    model = parse_model_config((SHARED / "hf" / row["hf_file"]).read_text()).model
    cache = model_cache(model, kv_dtype="bf16")
    assert cache.bytes_per_token == row["kv_bytes_per_token_bf16_growing"]
    assert cache.window_bytes_max == row["window_capped_bytes_max_bf16"]
    assert cache.state_bytes == row["fixed_state_bytes"]
    assert {n: cache.prompt_bytes(int(n)) for n in row["prompt_bytes_bf16"]} == row["prompt_bytes_bf16"]


@pytest.mark.parametrize("row", WITH_FILE, ids=ids)
def test_a_published_configuration_keeps_the_known_bytes_on_each_rank(row: dict[str, Any]) -> None:
    model = parse_model_config((SHARED / "hf" / row["hf_file"]).read_text()).model
    for tp, known in row["per_rank_bf16"].items():
        assert check_tp(model, int(tp)).valid == known["valid"]
        if known["valid"]:
            cache = model_cache(model, kv_dtype="bf16", tp=int(tp))
            assert {n: cache.prompt_bytes(int(n)) for n in known["prompt_bytes"]} == known["prompt_bytes"]


@pytest.mark.parametrize("row", WITH_FILE, ids=ids)
def test_a_published_configuration_counts_the_registry_s_parameters(row: dict[str, Any]) -> None:
    read = model_parameters(parse_model_config((SHARED / "hf" / row["hf_file"]).read_text()).model)
    stems = {row["hf_file"].removesuffix(".json").split("--")[-1].lower(), row["name"].split(" (")[0].lower()}
    same = [model for model in models().values() if stems & {name.lower().split("/")[-1] for name in (model.id, *model.aliases)}]
    for model in same:
        counts = model_parameters(model)
        assert read.total == pytest.approx(counts.total, rel=0.03)
        assert read.active == pytest.approx(counts.active, rel=0.03)
