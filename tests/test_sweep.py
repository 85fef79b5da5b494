"""`sweep` against `evaluate`, element by element."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvmodel import BadScenarioError, Scenario, evaluate, sweep
from kvmodel.progress import AMOUNTS
from kvmodel.scenario import MAX_PROMPT_TOKENS, bounds
from kvmodel.structure import STRUCTURE
from tests.strategies import OVERLAPS, field, scenarios, whole

NUMERIC = tuple(name for name in Scenario.model_fields if bounds(Scenario, name)[1] is not None)
STRUCTURAL = tuple(name for name in NUMERIC if name in STRUCTURE)

SPANS: dict[str, st.SearchStrategy[Any]] = {
    "lanes": st.integers(1, 64),
    "ep": st.integers(1, 64),
    "block_tokens": whole(1, 1024),
    "chunk_tokens": whole(64, 65_536),
    "prompt_tokens": whole(1, MAX_PROMPT_TOKENS),
    "decode_step_seconds": st.floats(1e-3, 1.0),
    "link_gbytes_per_s": st.floats(0.1, 900.0),
}


def leaves(node: Any, path: str = "") -> dict[str, Any]:
    if not is_dataclass(node):
        return {path: node}
    return {p: leaf for f in fields(node) for p, leaf in leaves(getattr(node, f.name), f"{path}.{f.name}").items()}


def assert_equal_at(swept: Any, index: tuple[int, ...], alone: Any) -> None:
    for (path, array), value in zip(leaves(swept).items(), leaves(alone).values(), strict=True):
        if path in (".reason", ".verdict", ".band_note", ".notes"):
            assert array in ("", ())
        elif isinstance(value, str | bool | np.bool_):
            assert array[index] == value, path
        else:
            assert array[index] == pytest.approx(value, rel=1e-9, abs=1e-12), path


@pytest.mark.parametrize("name", NUMERIC)
@settings(max_examples=settings().max_examples // 5)
@given(data=st.data())
def test_a_sweep_over_any_number_is_an_evaluation_of_each(name: str, data: st.DataObject) -> None:
    scenario = data.draw(scenarios(overlap=st.sampled_from((None, *OVERLAPS))))
    values = data.draw(st.lists(SPANS.get(name, field(name)), min_size=1, max_size=4))
    swept = sweep(scenario, **{name: values})
    for i, value in enumerate(values):
        assert_equal_at(swept, (i,), evaluate(scenario.with_changes(**{name: value})))


@given(scenarios(), st.lists(whole(1, 100_000), min_size=1, max_size=3), st.lists(st.integers(1, 64), min_size=1, max_size=3), st.data())
def test_arrays_of_two_fields_broadcast(scenario: Scenario, prompts: list[int], batches: list[int], data: st.DataObject) -> None:
    ranks = data.draw(st.lists(st.sampled_from((1, 2, 8)), min_size=len(prompts), max_size=len(prompts)))
    swept = sweep(scenario, prompt_tokens=prompts, prefill_tp=ranks, batch=np.array(batches)[:, None])
    assert swept.ttft_seconds.shape == (len(batches), len(prompts))
    for i, batch in enumerate(batches):
        for j, prompt in enumerate(prompts):
            alone = evaluate(scenario.with_changes(prompt_tokens=prompt, prefill_tp=ranks[j], batch=batch))
            assert_equal_at(swept, (i, j), alone)


@given(scenarios(), st.lists(whole(1, 100_000), min_size=1, max_size=4))
def test_a_row_of_a_sweep_reads_as_plain_numbers(scenario: Scenario, prompts: list[int]) -> None:
    row = sweep(scenario, prompt_tokens=prompts).at(len(prompts) - 1)
    assert not any(isinstance(leaf, np.ndarray | np.generic) for leaf in leaves(row).values())
    alone = evaluate(scenario.with_changes(prompt_tokens=prompts[-1]))
    assert row.ttft_seconds == pytest.approx(alone.ttft_seconds)


def test_every_number_of_a_scenario_can_be_swept() -> None:
    assert set(AMOUNTS) <= set(NUMERIC)
    assert set(STRUCTURAL) == {
        "prefill_tp", "decode_tp", "prefill_pp", "decode_pp", "ep", "prefill_attention_dp", "decode_attention_dp",
        "lanes", "block_tokens", "chunk_tokens", "achieved", "latency_seconds", "message_seconds", "posting_threads",
        "outstanding_messages", "kv_split", "fragmentation", "staging_copies", "max_lanes_per_gpu", "handoff_seconds", "admission_seconds",
        "handshake_seconds", "group_layers", "serial_below_tokens", "nics_per_gpu",
    }  # fmt: skip
    assert set(NUMERIC) == set(AMOUNTS) | set(STRUCTURAL)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({}, "no array"),
        ({"model": ["llama-3-70b"]}, "'model'"),
        ({"prompt": [1]}, "'prompt'"),
        ({"prompt_tokens": [1, 0]}, "got 0"),
        ({"prompt_tokens": [1.5]}, "whole numbers"),
        ({"prompt_tokens": ["8192"]}, "whole numbers"),
        ({"prompt_tokens": []}, "empty"),
        ({"prompt_tokens": [1, 2], "batch": [1, 2, 3]}, "broadcast"),
        ({"prompt_tokens": [[1], [1, 2]]}, "ragged"),
        ({"prompt_tokens": [2**20 + 1]}, "got 1048577"),
        ({"prefill_seconds": [0.0]}, "got 0"),
        ({"prefill_seconds": [np.nan]}, "nan"),
        ({"chunk_tokens": [8]}, "got 8"),
    ],
)
def test_what_cannot_be_swept_is_refused_by_name(arrays: dict[str, Any], words: str) -> None:
    with pytest.raises(BadScenarioError, match=words):
        sweep(Scenario(), **arrays)


def test_a_sweep_has_a_limit() -> None:
    with pytest.raises(BadScenarioError, match="allowed: up to 20,000,000"):
        sweep(Scenario(), prompt_tokens=np.ones((5000, 1), int), batch=np.ones((1, 5000), int))


@given(scenarios())
def test_a_sweep_of_the_scenario_itself_is_its_evaluation(scenario: Scenario) -> None:
    assert_equal_at(sweep(scenario, prompt_tokens=[scenario.prompt_tokens]), (0,), evaluate(scenario))
