"""The timeline drawn part by part against the evaluation and against the plain recursion."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kvmodel import Scenario, evaluate
from kvmodel.evaluate import amounts_of
from kvmodel.parts import MAX_DRAWN, Parts, timeline_parts
from kvmodel.plan import plan_of
from tests.plain import holdings, walk
from tests.strategies import OVERLAPS, scenarios

ALL = 10**7


def drawn(scenario: Scenario, limit: int = ALL) -> Parts:
    return timeline_parts(plan_of(scenario), amounts_of(scenario), limit=limit)


def few_chunks(scenario: Scenario) -> bool:
    plan = plan_of(scenario)
    new = scenario.prompt_tokens - holdings(scenario, plan)[0]
    return plan.chunk is None or new <= 300 * max(1, plan.chunk // scenario.batch)


@given(scenarios(overlap=st.sampled_from(OVERLAPS)))
def test_the_last_part_arrives_when_the_evaluation_says(scenario: Scenario) -> None:
    assume(few_chunks(scenario))
    result, walked, parts = evaluate(scenario), walk(scenario), drawn(scenario)
    assume(result.kv.wire_bytes > 0)
    near = 1e-9 * (result.prefill.seconds + result.transfer.seconds)
    left = max(0.0, parts.wire_end[-1] + walked.alpha - result.prefill.seconds)
    exposed = walked.exposed() if scenario.overlap == "layer-both" else result.transfer.exposed_seconds
    assert left == pytest.approx(exposed, abs=near)


@given(scenarios(overlap=st.sampled_from(OVERLAPS[1:]), serial_below_tokens=None))
def test_every_part_is_ready_and_has_crossed_as_walked(scenario: Scenario) -> None:
    assume(few_chunks(scenario))
    walked, parts = walk(scenario), drawn(scenario)
    near = 1e-9 * max(walked.prefill_end, parts.wire_end[-1])
    assert parts.total == len(walked.parts)
    assert parts.compute_end == pytest.approx(np.array([part.ready for part in walked.parts]), abs=near)
    assert parts.wire_end == pytest.approx(np.array(walked.wire_ends()), abs=near)
    assert parts.wire_end - parts.wire_start == pytest.approx(np.array([part.x for part in walked.parts]), abs=near)


@given(scenarios(overlap=st.sampled_from(OVERLAPS)), st.integers(1, 200))
def test_parts_drawn_together_keep_the_ends_of_the_timeline(scenario: Scenario, limit: int) -> None:
    assume(few_chunks(scenario))
    fine, coarse = drawn(scenario), drawn(scenario, limit)
    assert len(coarse.wire_end) <= limit
    assert coarse.total == fine.total
    assert coarse.wire_start[0] == fine.wire_start[0]
    assert (coarse.wire_end[-1], coarse.compute_end[-1]) == (fine.wire_end[-1], fine.compute_end[-1])
    assert np.all(np.diff(coarse.wire_end) >= 0)


@given(scenarios(overlap="layer-both"))
def test_decode_layer_by_layer_takes_a_step_in_all_and_ends_at_the_first_token(scenario: Scenario) -> None:
    assume(few_chunks(scenario) and scenario.prompt_tokens >= plan_of(scenario).serial_below)
    result, parts = evaluate(scenario), drawn(scenario)
    assert parts.decode_start is not None
    assert parts.decode_end is not None
    spans = parts.decode_end - parts.decode_start
    assert spans.sum() == pytest.approx(result.decode.step_seconds)
    assert parts.decode_start[0] >= result.prefill.seconds * (1 - 1e-9)
    assert np.all(parts.decode_start[1:] > parts.decode_end[:-1])
    last = result.prefill.seconds + result.transfer.exposed_seconds + result.decode.step_seconds
    assert parts.decode_end[-1] == pytest.approx(last, rel=1e-9)


def test_groups_of_layers_leave_together() -> None:
    parts = drawn(Scenario(prefill_seconds=0.8, overlap="layer-group", group_layers=30))
    assert (parts.kind, parts.total, parts.layers) == ("layer group", 3, 30)
    assert parts.compute_end == pytest.approx([0.3, 0.6, 0.8])
    assert parts.wire_start == pytest.approx([0.3, 0.6, 0.8])
    assert parts.wire_end - parts.wire_start == pytest.approx(np.array([30, 30, 20]) * 33_554_432 / 50e9)


def test_serial_sends_layer_after_layer_once_prefill_is_done() -> None:
    parts = drawn(Scenario(prefill_seconds=0.8))
    x = 33_554_432 / 50e9
    assert parts.kind == "layer"
    assert parts.wire_start == pytest.approx(0.8 + np.arange(80) * x)
    assert parts.compute_end == pytest.approx(0.01 * np.arange(1, 81))
    assert parts.left == 80


@pytest.mark.parametrize(("gbytes_per_s", "left"), [(50.0, 1), (4.0, 1), (1.0, 57), (0.01, 80)])
def test_parts_left_are_those_not_wholly_sent_when_prefill_ends(gbytes_per_s: float, left: int) -> None:
    # at 1 GB/s a layer takes 33.55 ms: (0.8 - 0.01) / 0.03355 = 23 layers have crossed
    assert drawn(Scenario(prefill_seconds=0.8, overlap="layer", link_gbytes_per_s=gbytes_per_s)).left == left


def test_a_timeline_of_many_parts_is_drawn_in_groups() -> None:
    many = Scenario(overlap="layer", chunk_tokens=512, prompt_tokens=8192)
    parts = timeline_parts(plan_of(many), amounts_of(many))
    assert parts.total == 80 * 16
    assert len(parts.wire_end) == MAX_DRAWN
