"""Every knob of an engine: an input for each, that replaces it and moves the result."""

from __future__ import annotations

from typing import Any

import pytest

from app.reading import KNOBS, MORE
from kvmodel import Scenario, evaluate
from kvmodel.asked import SAME_NAME, YES_NO
from kvmodel.plan import plan_of
from kvmodel.records.engine import Engine
from kvmodel.registry import engines


@pytest.mark.parametrize("name", SAME_NAME)
def test_a_scenario_may_replace_what_an_engine_has(name: str) -> None:
    words = {"mla_copies": "split", "unequal_tp": "tokens", "first_token": "prefill", "released_by": "decode", "direction": "push"}
    numbers = {"fragmentation": 0.5, "kv_split": 2, "posting_threads": 3, "outstanding_messages": 7}
    value = (words | numbers).get(name, 1)
    engine = plan_of(Scenario(engine="vllm-nixl", **{name: value})).engine
    assert getattr(engine, name) == value
    assert engine.model_copy(update={name: getattr(engines()["vllm-nixl"], name)}) == engines()["vllm-nixl"]


@pytest.mark.parametrize("name", ["gather", *YES_NO])
def test_ways_that_are_on_or_off(name: str) -> None:
    field = {"gather": "gathers"}.get(name, name)
    for answer, value in (("yes", True), ("no", False)):
        assert getattr(plan_of(Scenario(engine="tensorrt-llm", **{name: answer})).engine, field) is value


RENAMED = {"gathers": "gather"}
NO_KNOB = {
    **dict.fromkeys(("id", "name", "source", "checked", "notes"), "what the row is, and where it comes from"),
    "handoff_seconds_on": "handoff_seconds as measured on other accelerators; handoff_seconds says otherwise",
}
"""Fields of an engine that no input replaces, and why."""


def test_every_knob_of_an_engine_has_an_input_on_the_command_line_in_a_link_and_on_the_page() -> None:
    knobs = {RENAMED.get(name, name) for name in Engine.model_fields if name not in NO_KNOB}
    assert knobs - set(Scenario.model_fields) == set()
    drawn = {name for _, names in (*MORE, *KNOBS) for name in names}
    assert knobs - drawn - {"overlap"} == set()  # overlap stands at the head of the picture
    assert set(SAME_NAME) | set(YES_NO) | {"gather", "overlap", "block_tokens", "chunk_tokens"} == knobs


UNEQUAL = {"engine": "vllm-nixl", "prefill_tp": 8, "decode_tp": 4, "message_seconds": 1e-5}
MOVES: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "overlap": ({"engine": "vllm-nixl"}, "serial", "layer"),
    "direction": (UNEQUAL, "pull", "push"),
    "nominal_link": ({"engine": "vllm-mooncake"}, "no", "yes"),
    "block_tokens": ({"engine": "sglang-mooncake"}, 16, 64),
    "chunk_tokens": ({"engine": "sglang-mooncake"}, 512, 8192),
    "kv_split": ({"engine": "vllm-nixl"}, 1, 2),
    "cross_layer": ({"engine": "vllm-nixl"}, "no", "yes"),
    "fragmentation": ({"engine": "vllm-nixl"}, 0.0, 1.0),
    "message_seconds": ({"engine": "vllm-nixl"}, 1e-6, 1e-5),
    "posting_threads": ({"engine": "vllm-nixl"}, 1, 4),
    "posts_while_sending": ({"engine": "vllm-nixl"}, "no", "yes"),
    "outstanding_messages": ({"engine": "vllm-nixl"}, 1, 64),
    "gather": ({"engine": "vllm-nixl"}, "no", "yes"),
    "host_bounce": ({"engine": "vllm-nixl"}, "no", "yes"),
    "max_lanes_per_gpu": ({"engine": "vllm-nixl", "lanes": "auto", "nics_per_gpu": 4.0}, 1, 2),
    "staging_copies": ({"engine": "vllm-nixl"}, 0, 2),
    "mla_copies": ({"engine": "vllm-nixl", "model": "deepseek-v3"}, "single", "per-rank"),
    "first_token": ({"engine": "vllm-nixl"}, "prefill", "decode"),
    "released_by": ({"engine": "sglang-mooncake"}, "prefill", "decode"),
    "skips_held": ({"engine": "vllm-nixl", "decode_held_tokens": 4096}, "no", "yes"),
    "early_prefix": ({"engine": "sglang-mooncake", "prefill_held_tokens": 4096}, "no", "yes"),
    "keeps_all_chunked": ({"engine": "vllm-nixl", "model": "llama-4-scout", "prompt_tokens": 32_768}, "no", "yes"),
    "handoff_seconds": ({"engine": "vllm-nixl"}, 0.0, 0.1),
    "admission_seconds": ({"engine": "vllm-nixl"}, 0.0, 0.1),
    "handshake_seconds": ({"engine": "vllm-nixl", "contact": "first"}, 0.0, 0.1),
    "unequal_tp": (UNEQUAL, "blocks", "tokens"),
    "gathers_copied_heads": (UNEQUAL | {"prefill_tp": 16}, "no", "yes"),
    "nvfp4_equal_tp": (UNEQUAL | {"kv_dtype": "nvfp4"}, "no", "yes"),
    "same_node_only": ({"engine": "vllm-nixl"}, "no", "yes"),
    "serial_below_tokens": ({"engine": "splitwise"}, 512, 8193),
}  # fmt: skip
"""Where each knob moves the result, and between which values."""


@pytest.mark.parametrize("name", sorted({RENAMED.get(name, name) for name in Engine.model_fields if name not in NO_KNOB}))
def test_every_knob_moves_the_result(name: str) -> None:
    where, one, other = MOVES[name]
    first, second = (evaluate(Scenario(**where, **{name: value})) for value in (one, other))
    assert first.as_dict() | {"verdict": ""} != second.as_dict() | {"verdict": ""}
