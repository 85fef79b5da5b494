"""An agent's next turn: published designs, and each edge's bytes as sets of tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kvmodel import BadScenarioError, Scenario, Turn, agent_turn, evaluate, find_model
from kvmodel.cache import model_cache
from kvmodel.designs import Design, Edge
from kvmodel.evaluate import amounts_of
from kvmodel.plan import plan_of
from kvmodel.turn import designs
from tests.strategies import MODELS, OVERLAPS, scenarios, whole

TOKEN = 327_680
PUBLISHED = Turn(history_tokens=30_000, delta_tokens=2_000, generated_tokens=500)


def rows(scenario: Scenario | None = None, turn: Turn = PUBLISHED) -> dict[tuple[str, bool], Design]:
    return {(row.id, row.warm): row for row in agent_turn(scenario or Scenario(), turn).designs}


def kv(row: Design) -> list[Edge]:
    return [edge for edge in row.edges if not edge.text]


def test_rows_come_in_the_order_of_the_table() -> None:
    assert list(rows()) == [("recompute", True), ("pool", True), ("pool", False), ("sticky", True), ("pull-back", True)]


# published figures


def test_design_a_recomputes_32k_and_ships_10_gb_in_200_ms() -> None:
    row = rows()["recompute", True]
    assert row.unique_bytes == row.wire_bytes == 32_000 * TOKEN
    assert row.unique_bytes == pytest.approx(10e9, rel=0.05)
    (edge,) = kv(row)
    assert edge.seconds == pytest.approx(0.200, rel=0.05)
    assert row.prefill_tokens == 32_000


def test_design_b_moves_the_delta_and_what_was_generated() -> None:
    row = rows()["pool", True]
    assert row.unique_bytes == 2_500 * TOKEN
    assert row.unique_bytes == pytest.approx(0.8e9, rel=0.03)
    assert row.prefill_tokens == 2_000
    moved = {(edge.source, edge.target): edge for edge in kv(row)}
    assert moved["decode", "pool"].bytes == moved["pool", "prefill"].bytes == 500 * TOKEN == pytest.approx(160e6, rel=0.03)
    assert moved["prefill", "pool"].bytes == moved["pool", "decode"].bytes == 2_000 * TOKEN == pytest.approx(640e6, rel=0.03)
    assert moved["prefill", "pool"].seconds == pytest.approx(0.013, rel=0.03)


def test_a_cold_pool_feeds_any_worker_at_the_cost_of_the_history() -> None:
    moved = {(edge.source, edge.target): edge.bytes for edge in kv(rows()["pool", False])}
    assert moved["pool", "prefill"] == 30_000 * TOKEN
    assert moved["pool", "decode"] == 32_000 * TOKEN
    assert rows()["pool", False].unique_bytes == 32_000 * TOKEN


def test_design_c_moves_nothing_and_its_neighbours_stall() -> None:
    row = rows()["sticky", True]
    assert (row.unique_bytes, row.wire_bytes) == (0, 0)
    assert row.prefill_tokens == 2_000
    assert row.stall_seconds == row.prefill_seconds == row.ttft_seconds > 0
    assert {(edge.source, edge.target) for edge in row.edges if edge.text} == {("agent", "decode"), ("decode", "agent")}


def test_pulling_back_moves_each_token_where_it_is_missing() -> None:
    row = rows()["pull-back", True]
    assert {(e.source, e.target): e.bytes for e in kv(row)} == {("decode", "prefill"): 500 * TOKEN, ("prefill", "decode"): 2_000 * TOKEN}
    assert row.ttft_seconds == pytest.approx(500 * TOKEN / 50e9 + row.prefill_seconds + 2_000 * TOKEN / 50e9 + row.step_seconds)


# sticky routing: Dynamo's conditional disaggregation


@pytest.mark.parametrize(
    ("history", "delta", "local_below", "local"),
    [(30_000, 2047, 2048, True), (30_000, 2048, 2048, False), (858, 2000, 2048, True), (857, 2000, 2048, False),
        (30_000, 5000, 8192, True), (30_000, 1, 0, False)],
)  # fmt: skip
def test_decode_prefills_short_turns_of_a_longer_history_itself(history: int, delta: int, local_below: int, local: bool) -> None:
    turn = Turn(history_tokens=history, delta_tokens=delta, generated_tokens=100, local_prefill_tokens=local_below)
    found = rows(turn=turn)
    assert (found["sticky", True].wire_bytes == 0) is local
    assert (found["sticky", True].stall_seconds > 0) is local
    if not local:
        assert found["sticky", True].ttft_seconds == found["pull-back", True].ttft_seconds


# properties

turns = st.builds(
    Turn,
    history_tokens=whole(0, 40_000),
    delta_tokens=whole(1, 20_000),
    generated_tokens=whole(0, 5_000),
    prefill_held_tokens=st.one_of(st.none(), whole(0, 50_000)),
    decode_held_tokens=st.one_of(st.none(), whole(0, 50_000)),
    pool_held_tokens=st.one_of(st.none(), whole(0, 50_000)),
)
exact = scenarios(
    engine="ideal", wire_dtype="same", decode_tp=1, prefill_tp=1, decode_attention_dp=1, prefill_attention_dp=1, block_tokens=None,
    model=st.sampled_from(MODELS),
)  # fmt: skip


def spans(row: Design) -> list[tuple[int, int]]:
    return [(edge.known, edge.tokens) for edge in kv(row)]  # type: ignore[attr-defined]


@given(exact, turns)
def test_unique_bytes_count_each_token_of_each_layer_once(scenario: Scenario, turn: Turn) -> None:
    cache = model_cache(find_model(str(scenario.model)), kv_dtype=scenario.kv_dtype)
    for row in agent_turn(scenario, turn).designs:
        if row.id == "sticky" and row.stall_seconds:
            continue
        union = 0.0
        for count, layer in cache.layers:
            size = max((high for _, high in spans(row)), default=0)
            grown, window, states = np.zeros(size, bool), np.zeros(size, bool), set()
            for low, high in spans(row):
                grown[low:high] = True
                window[max(low, high - int(layer.cap_tokens)) : high] = True
                states |= {high} if high > low else set()
            union += count * (grown.sum() * (layer.growing + layer.indexer) + window.sum() * layer.capped + len(states) * layer.state)
        assert row.unique_bytes == pytest.approx(scenario.batch * union), (row.id, row.warm)


@given(scenarios(), turns)
def test_bytes_on_the_wire_are_the_sum_of_the_edges_and_text_weighs_nothing(scenario: Scenario, turn: Turn) -> None:
    for row in agent_turn(scenario, turn).designs:
        assert row.wire_bytes == pytest.approx(sum(edge.bytes for edge in row.edges))
        assert all(edge.bytes == edge.seconds == 0 for edge in row.edges if edge.text)
        assert {node for edge in row.edges for node in (edge.source, edge.target)} <= {"agent", "prefill", "decode", "pool"}
        assert [e for e in row.edges if e.source == "agent"]
        assert [e for e in row.edges if e.target == "agent"]


@given(exact, turns)
def test_each_token_crosses_at_least_once_where_it_counts(scenario: Scenario, turn: Turn) -> None:
    for row in agent_turn(scenario, turn).designs:
        assert row.unique_bytes <= row.wire_bytes * (1 + 1e-9)


@given(scenarios(overlap=st.sampled_from((None, *OVERLAPS))), turns)
def test_the_first_token_waits_for_prefill_the_wire_and_the_step(scenario: Scenario, turn: Turn) -> None:
    for row in agent_turn(scenario, turn).designs:
        assert row.ttft_seconds == pytest.approx(row.prefill_seconds + row.wait_seconds + row.step_seconds)
        assert row.wait_seconds >= -1e-12


@given(scenarios(prefill_seconds=None), turns)
def test_recomputing_is_a_handoff_of_the_whole_prompt(scenario: Scenario, turn: Turn) -> None:
    cold = turn.model_copy(update={"prefill_held_tokens": None, "decode_held_tokens": None})
    row = agent_turn(scenario, cold).designs[0]
    alone = evaluate(
        scenario.with_changes(prompt_tokens=turn.history_tokens + turn.delta_tokens, prefill_held_tokens=0, decode_held_tokens=0)
    )
    assert row.ttft_seconds == pytest.approx(alone.ttft_seconds)
    assert row.wire_bytes == pytest.approx(alone.kv.wire_bytes)
    assert row.flop == pytest.approx(alone.prefill.flop)


@given(st.integers(2, 6), whole(0, 20_000), whole(1, 5_000), whole(0, 2_000))
def test_totals_over_turns_add_up_single_turns_of_a_growing_history(count: int, history: int, delta: int, generated: int) -> None:
    turn = Turn(history_tokens=history, delta_tokens=delta, generated_tokens=generated, turns=count)
    together = agent_turn(Scenario(), turn).totals
    alone = [
        agent_turn(
            Scenario(), Turn(history_tokens=history + n * (delta + generated), delta_tokens=delta, generated_tokens=generated)
        ).designs
        for n in range(count)
    ]
    for i, total in enumerate(together):
        for name in ("unique_bytes", "wire_bytes", "flop", "ttft_seconds"):
            assert getattr(total, name) == pytest.approx(sum(getattr(row[i], name) for row in alone))


@given(scenarios(), turns, st.lists(whole(1, 30_000), min_size=1, max_size=3))
def test_an_array_of_new_tokens_gives_each_turn(scenario: Scenario, turn: Turn, deltas: list[int]) -> None:
    swept = designs(plan_of(scenario), amounts_of(scenario), turn, delta=np.array(deltas))
    for i, delta in enumerate(deltas):
        alone = agent_turn(scenario, turn.model_copy(update={"delta_tokens": delta})).designs
        for many, one in zip(swept, alone, strict=True):
            for name in ("unique_bytes", "wire_bytes", "ttft_seconds", "stall_seconds", "prefill_tokens", "flop"):
                assert np.broadcast_to(getattr(many, name), len(deltas))[i] == pytest.approx(getattr(one, name), abs=1e-9), (one.id, name)


@given(turns)
def test_a_design_prefills_what_nobody_it_reads_from_holds(turn: Turn) -> None:
    assume(turn.prefill_held_tokens is None and turn.decode_held_tokens is None and turn.pool_held_tokens is None)
    found = rows(turn=turn)
    total = turn.history_tokens + turn.delta_tokens
    assert found["recompute", True].prefill_tokens == total
    assert {found[key].prefill_tokens for key in (("pool", True), ("pool", False), ("sticky", True), ("pull-back", True))} == {
        turn.delta_tokens
    }


def test_what_each_node_holds_can_be_stated() -> None:
    stated: dict[str, Any] = {"prefill_held_tokens": 10_000, "decode_held_tokens": 20_000}
    found = rows(turn=Turn(history_tokens=30_000, delta_tokens=2_000, generated_tokens=500, **stated))
    assert {(e.source, e.target): e.bytes / TOKEN for e in kv(found["pull-back", True])} == {
        ("decode", "prefill"): 10_000,
        ("prefill", "decode"): 12_000,
    }
    assert found["pull-back", True].prefill_tokens == 12_000


def test_turns_that_outgrow_the_longest_prompt_are_refused() -> None:
    with pytest.raises(BadScenarioError, match="turns: got 200, which reach 1,059,500 tokens") as refused:
        agent_turn(Scenario(), Turn(history_tokens=500_000, delta_tokens=2_300, generated_tokens=500, turns=200))
    assert "1,048,576" in str(refused.value)


def test_an_engine_that_resends_to_decode_still_reads_back_only_what_prefill_lacks() -> None:
    """SGLang's decode keeps no prefix by default; its prefill does, and pulls the 500 tokens that decode generated."""
    scenario = Scenario(engine="sglang-mooncake", prefill_tp=8, decode_tp=8)
    plan, amounts = plan_of(scenario), amounts_of(scenario)
    assert not plan.engine.skips_held
    turn = Turn(history_tokens=32_000, delta_tokens=2048, generated_tokens=512)
    found = {(d.id, d.warm): d for d in designs(plan, amounts, turn)}
    edges = {(e.source, e.target): float(e.bytes) for e in found["pull-back", True].edges if not e.text}
    assert edges["decode", "prefill"] == 512 * 327_680
    assert edges["prefill", "decode"] == 34_048 * 327_680
    pool = {(e.source, e.target): float(e.bytes) for e in found["pool", True].edges if not e.text}
    assert pool["pool", "prefill"] == pool["decode", "pool"] == 512 * 327_680
    assert pool["prefill", "pool"] == 2048 * 327_680
    assert float(found["pull-back", True].unique_bytes) == 34_048 * 327_680
