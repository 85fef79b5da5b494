"""What the band of a time would change of the answer: both sides of each threshold, and nothing where nothing changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kvmodel import Scenario, evaluate
from kvmodel.compute import PhaseTime
from kvmodel.display import time_text
from kvmodel.evaluate import amounts_of
from kvmodel.flips import GAP_MARK
from kvmodel.handoff import handoff
from kvmodel.plan import Plan, plan_of
from kvmodel.results import Evaluation
from kvmodel.verdict import LONGEST
from tests.strategies import scenarios


def slower(time: PhaseTime, factor: float) -> PhaseTime:
    """A time model whose every time is `factor` times as long."""
    layers = tuple(replace(g, seconds=g.seconds.scaled(factor), sweep=factor * g.sweep, multiply=factor * g.multiply) for g in time.layers)
    return replace(time, layers=layers, head_seconds=factor * time.head_seconds, head_per_request=factor * time.head_per_request)


def at(scenario: Scenario, prefill: float, step: float) -> Evaluation:
    """The scenario on accelerators whose prefill and decode step take other times: a second derivation."""
    plan: Plan = plan_of(scenario)
    sides = {
        "prefill": replace(plan.prefill, time=slower(plan.prefill.time, prefill)),
        "decode": replace(plan.decode, time=slower(plan.decode.time, step)),
    }
    return handoff(replace(plan, **sides), amounts_of(scenario))


def ends(result: Evaluation) -> list[tuple[float, float]]:
    """Factors at which a note could hold: each time at an end of its band, and both."""
    found = []
    for name in ("low", "high"):
        prefill = getattr(result.prefill, name) / result.prefill.seconds
        step = getattr(result.decode, name) / result.decode.step_seconds
        found += [(prefill, 1.0), (1.0, step), (prefill, step)]
    return found


def said(result: Evaluation) -> tuple[Any, bool]:
    return result.bound, bool(result.gap_share > GAP_MARK)


@given(scenarios(longest=200_000))
def test_a_note_stands_exactly_where_an_end_of_a_band_changes_the_answer(scenario: Scenario) -> None:
    result = evaluate(scenario)
    tried = [at(scenario, *factors) for factors in ends(result)]
    assume(all(abs(e.gap_share - GAP_MARK) > 1e-9 for e in tried))
    flips = any(said(e) != said(result) for e in tried)
    assert bool(result.band_note) == (flips and result.feasible and result.bound != "nothing")


@given(scenarios(longest=200_000, prefill_seconds=st.floats(0.01, 10.0), decode_step_seconds=st.floats(1e-3, 0.2)))
def test_what_was_measured_has_no_band_to_cross(scenario: Scenario) -> None:
    assert evaluate(scenario).band_note == ""


def edge(low: float, high: float, holds: Any) -> float:
    """The value between two at which `holds` changes."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) == holds(low) else (low, middle)
    return high


def layered(gbytes: float, **more: Any) -> Evaluation:
    return evaluate(Scenario(overlap="layer", link_gbytes_per_s=gbytes, **more))


def test_hidden_is_doubted_from_where_prefill_s_low_end_would_not_hide_it() -> None:
    # the wire of one layer against its prefill: the bandwidth at which they meet is inverse to prefill's time
    meets = edge(1.0, 400.0, lambda gbytes: layered(gbytes).bound)
    result = layered(meets * 1.01)
    low, high = (getattr(result.prefill, end) / result.prefill.seconds for end in ("low", "high"))
    assert layered(meets / low * 1.001).band_note == ""
    doubted = layered(meets / low * 0.999)
    assert doubted.bound == "hidden"
    assert doubted.band_note.startswith("Link-bound at the low end of the band: prefill ")
    assert doubted.verdict.endswith(f"; link-bound should prefill take only {time_text(doubted.prefill.low)}.")
    turned = layered(meets / high * 1.001)
    assert turned.bound == "link"
    assert turned.band_note.startswith("Hidden at the high end of the band: prefill ")
    assert turned.verdict.endswith(f"; hidden should prefill take {time_text(turned.prefill.high)}.")
    assert not layered(meets / high * 0.999).band_note.startswith("Hidden")


def serial(gbytes: float, **more: Any) -> Evaluation:
    return evaluate(Scenario(link_gbytes_per_s=gbytes, **more))


def test_the_gap_s_share_is_doubted_on_both_sides_of_its_mark() -> None:
    # gap / (prefill + gap + step) = 0.2: the gap is a quarter of prefill and step, at any end of their bands
    e = serial(50.0)
    size = e.kv.wire_bytes

    def bandwidth(prefill: float, step: float) -> float:
        return size / ((prefill + step) / 4) / 1e9

    both_low = bandwidth(e.prefill.low, e.decode.low)
    assert serial(both_low * 1.001).band_note == ""
    under = serial(both_low * 0.999)
    assert under.gap_share < 0.2
    assert under.band_note.startswith("Gap over 20\u202f% of the first token's time at the low end of the band: prefill ")
    prefill_low = serial(bandwidth(e.prefill.low, e.decode.step_seconds) * 0.999)
    assert prefill_low.verdict.endswith(
        "; gap over 20\u202f% of the first token's time at prefill's low end."
    )  # the rest of it has no room
    both_high = bandwidth(e.prefill.high, e.decode.high)
    over = serial(both_high * 1.001)
    assert over.gap_share > 0.2
    assert over.band_note.startswith("Gap under 20\u202f% of the first token's time at the high end of the band: prefill ")
    assert serial(both_high * 0.999).band_note == ""


def test_the_decode_step_alone_may_decide() -> None:
    e = serial(50.0, prefill_seconds=0.01, decode_batch=64)
    size = e.kv.wire_bytes
    crossing = size / ((0.01 + e.decode.low) / 4) / 1e9
    result = serial(crossing * 0.999, prefill_seconds=0.01, decode_batch=64)
    assert result.band_note.startswith("Gap over 20\u202f% of the first token's time at the low end of the band: decode step ")
    assert serial(crossing * 1.001, prefill_seconds=0.01, decode_batch=64).band_note == ""


@given(scenarios(longest=200_000))
def test_the_answer_carries_the_note_where_it_has_room(scenario: Scenario) -> None:
    result = evaluate(scenario)
    assert len(result.verdict) <= LONGEST
    doubted = " should " in result.verdict or result.verdict.endswith((" end.", " ends of both bands."))
    assert not doubted or result.band_note


@pytest.mark.parametrize("changes", [{"prefill_tp": 1}, {"decode_held_tokens": 8192}])
def test_no_band_decides_what_does_not_fit_or_does_not_move(changes: dict[str, Any]) -> None:
    assert evaluate(Scenario(overlap="layer", link="ethernet-100", **changes)).band_note == ""
