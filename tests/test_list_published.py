"""Measured prefill and decode times beside the model's: all of them, each with a reason where it is off."""

from __future__ import annotations

import pytest

from kvmodel.registry import measurements
from tests.list_published import STATED, Listed, lines, listed

LISTED = {item.row.id: item for item in listed()}


def item(name: str) -> Listed:
    return LISTED[name]


def test_every_measured_prefill_and_decode_time_is_listed_with_a_reason() -> None:
    assert set(LISTED) == {row.id for row in measurements().values() if row.category == "prefill_decode"}
    assert all(found.why for found in LISTED.values())
    assert len(list(lines())) == len(LISTED) + 1


def test_a_reason_is_stated_for_every_series() -> None:
    assert [name for name in LISTED if not any(name.startswith(prefix) for prefix in STATED)] == []


def test_times_of_engines_of_today_are_predicted_within_a_quarter() -> None:
    today = ("fabric-lib", "tt-qwen25-72b", "vllm-llama")
    off = {name: found.error for name, found in LISTED.items() if name.startswith(today) and "cached" not in found.why}
    assert len(off) >= 14
    assert {name: error for name, error in off.items() if abs(error) > 0.26} == {}


def test_prompts_too_fast_to_be_whole_are_told() -> None:
    told = [name for name, found in LISTED.items() if "cached" in found.why]
    assert told == ["tt-qwen25-72b-prefill/2048 tokens", "tt-qwen25-72b-prefill/3072 tokens"]


def test_a_step_no_faster_than_on_half_the_ranks_is_launch_bound() -> None:
    assert item("splitwise-sim-llama2-70b-a100-tp8-decode/256 tokens").why.startswith("launch bound")
    assert not item("splitwise-sim-llama2-70b-a100-tp4-decode/256 tokens").launch_bound


def test_the_share_of_bandwidth_is_of_the_weights_a_step_reads() -> None:
    # 7.0 B parameters in 16 bits outside embedding and head, 6.44 ms at 3.35 TB/s
    assert item("vllm-llama-3-1-8b-bf16-kv-decode/no context").share == pytest.approx(6.98e9 * 2 / 3.35e12 / 6.44e-3, rel=0.01)
