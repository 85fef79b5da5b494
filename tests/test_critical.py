"""Critical lengths: first crossings and intervals, each edge checked on both sides."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvmodel import Evaluation, Scenario, critical_lengths, evaluate
from kvmodel.critical import Interval, intervals
from kvmodel.scenario import MAX_PROMPT_TOKENS
from tests.strategies import AS_THE_ENGINE, scenarios

few = settings(max_examples=12)


def at(scenario: Scenario, tokens: int) -> Evaluation:
    return evaluate(scenario.with_changes(prompt_tokens=tokens))


def test_the_70b_outlasts_a_30_ms_step_on_100_gigabit_ethernet_past_1144_tokens() -> None:
    # 30 ms x 12.5 GB/s / 327,680 B = 1,144.4: 1,145 is the first whole number of tokens that takes a step
    found = critical_lengths(Scenario(link="ethernet-100", decode_step_seconds=0.030))
    assert found.decode_step_tokens == 1145


def test_mha_on_100_gigabit_is_hidden_then_link_bound_then_hidden_again() -> None:
    # published: hidden below some 150 tokens, link-bound to some 30k, hidden again by attention's square; each within a factor of 2
    found = critical_lengths(Scenario(model="llama-2-7b", prefill_tp=1, decode_tp=1, link="roce-100")).hidden
    assert len(found) == 2
    first, second = found
    assert (first.from_tokens, second.to_tokens) == (1, MAX_PROMPT_TOKENS)
    assert 75 <= first.to_tokens <= 300
    assert 15_000 <= second.from_tokens <= 60_000


@few
@given(scenarios())
def test_the_critical_length_is_the_shortest_that_takes_a_step(scenario: Scenario) -> None:
    tokens = critical_lengths(scenario).decode_step_tokens
    if tokens is None:
        longest = at(scenario, MAX_PROMPT_TOKENS)
        assert longest.transfer.seconds < longest.decode.step_seconds or not longest.kv.wire_bytes
        return
    here = at(scenario, tokens)
    assert here.transfer.seconds >= here.decode.step_seconds
    if tokens > 1:
        before = at(scenario, tokens - 1)
        assert before.transfer.seconds < before.decode.step_seconds or not before.kv.wire_bytes


@few
@given(scenarios())
def test_edges_of_hidden_lengths_are_hidden_and_their_neighbours_are_not(scenario: Scenario) -> None:
    layered = scenario.with_changes(overlap="layer")
    for span in critical_lengths(scenario).hidden:
        for tokens in (span.from_tokens, span.to_tokens):
            assert at(layered, tokens).bound in ("hidden", "nothing")
        for tokens in (span.from_tokens - 1, span.to_tokens + 1):
            assert not 1 <= tokens <= MAX_PROMPT_TOKENS or at(layered, tokens).bound in ("link", "exposed")  # or whole


@few
@given(scenarios())
def test_edges_of_large_gaps_are_above_20_percent_and_their_neighbours_are_not(scenario: Scenario) -> None:
    for span in critical_lengths(scenario).gap_over_share:
        assert min(at(scenario, tokens).gap_share for tokens in (span.from_tokens, span.to_tokens)) > 0.20
        for tokens in (span.from_tokens - 1, span.to_tokens + 1):
            assert not 1 <= tokens <= MAX_PROMPT_TOKENS or at(scenario, tokens).gap_share <= 0.20


@few
@given(scenarios(engine="ideal", wire_dtype="same", shared_by=1, **AS_THE_ENGINE))
def test_at_the_critical_bandwidth_the_wire_takes_as_long_as_prefill(scenario: Scenario) -> None:
    bandwidth = critical_lengths(scenario).critical_bandwidth_bytes_per_s
    here = evaluate(scenario)
    if bandwidth is None:
        assert here.kv.wire_bytes == 0
        return
    lane = bandwidth / here.transfer.lanes / 1e9
    if lane <= 1e5:
        matched = evaluate(scenario.with_changes(link_gbytes_per_s=lane))
        assert matched.transfer.seconds == pytest.approx(matched.prefill.seconds)


def test_its_own_prompt_length_does_not_move_a_critical_length() -> None:
    short, long = (critical_lengths(Scenario(link="ethernet-25", prompt_tokens=n)) for n in (128, 100_000))
    assert (short.decode_step_tokens, short.hidden, short.gap_over_share) == (long.decode_step_tokens, long.hidden, long.gap_over_share)


def test_no_handoff_of_a_prompt_that_decode_holds_matters() -> None:
    found = critical_lengths(Scenario(decode_held_tokens=MAX_PROMPT_TOKENS, decode_step_seconds=0.02))
    assert found.decode_step_tokens is None
    assert found.critical_bandwidth_bytes_per_s is None
    assert found.hidden == (Interval(1, MAX_PROMPT_TOKENS),)
    assert found.gap_over_share == ()


@given(st.lists(st.integers(1, 4096), max_size=8), st.lists(st.integers(41, 139), max_size=4, unique=True), st.booleans())
def test_intervals_find_every_change_up_to_4096_and_any_a_tenth_apart_beyond(near: list[int], far: list[int], first: bool) -> None:
    turns = sorted({*near, *(round(100 * 1.1**n) for n in far)})
    turns = [n for n in turns if 1 < n <= MAX_PROMPT_TOKENS]

    def holds(tokens: np.ndarray) -> np.ndarray:
        return (np.searchsorted(turns, tokens, side="right") % 2 == 0) == first

    found = intervals(holds)
    edges = [1, *turns, MAX_PROMPT_TOKENS + 1]
    assert found == tuple(Interval(a, b - 1) for i, (a, b) in enumerate(pairwise(edges)) if (i % 2 == 0) == first and a < b)
    assert all(bisect_right(turns, span.from_tokens) == bisect_right(turns, span.to_tokens) for span in found)
