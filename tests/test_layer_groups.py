"""Layers sent in groups: the ends that are known otherwise, bounds, and which size is best when."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel import Scenario, evaluate
from kvmodel.evaluate import amounts_of
from kvmodel.layer_groups import Grouped, best_group, layer_groups, sizes_of
from kvmodel.plan import plan_of
from tests.strategies import scenarios

NOT_ASKED = {"early_prefix": "no", "serial_below_tokens": None, "first_token": None, "released_by": None}


def groups(scenario: Scenario, *, together: bool = False) -> tuple[Grouped, ...]:
    return layer_groups(plan_of(scenario), amounts_of(scenario), together=together)


@given(scenarios(longest=32_768))
def test_single_layers_are_the_layer_overlap_and_one_group_is_the_whole_after_prefill(scenario: Scenario) -> None:
    layer = scenario.with_changes(overlap="layer", engine="vllm-mooncake", chunk_tokens=None, cross_layer="no", **NOT_ASKED)
    found, whole, plan = groups(layer), evaluate(layer), plan_of(layer)
    assert found[0].layers == 1
    assert found[0].exposed_seconds == pytest.approx(whole.transfer.exposed_seconds, rel=1e-9, abs=1e-12)
    head = 0.0 if scenario.prefill_seconds is not None else plan.prefill.time.head(scenario.batch)
    after = max(0.0, whole.transfer.seconds - head) if whole.kv.wire_bytes else 0.0
    assert found[-1].layers == plan.model.layers
    assert found[-1].exposed_seconds <= after * (1 + 1e-9) + 1e-9  # one kind of layer may post while another sends
    if len(plan.wires) == 1:
        assert found[-1].exposed_seconds == pytest.approx(after, rel=1e-6, abs=1e-9)


@given(scenarios(longest=32_768), st.booleans())
def test_nothing_is_hidden_that_prefill_leaves_no_time_for(scenario: Scenario, together: bool) -> None:
    apart = scenario.with_changes(cross_layer="no")
    e = evaluate(apart)
    for one in groups(apart, together=together):
        assert 0 <= one.exposed_seconds <= e.transfer.seconds * (1 + 1e-9) + 1e-9
        assert one.messages <= e.transfer.messages * (1 + 1e-9)


@given(scenarios(longest=32_768))
def test_where_layers_lie_apart_single_layers_are_best(scenario: Scenario) -> None:
    scenario = scenario.with_changes(cross_layer="no")
    found = groups(scenario)
    best = best_group(found)
    assert best.exposed_seconds == pytest.approx(min(g.exposed_seconds for g in found), abs=1e-12)
    if plan_of(scenario).engine.posts_while_sending is False:
        assert found[0].exposed_seconds <= best.exposed_seconds * (1 + 1e-6) + 1e-9


def test_where_blocks_hold_all_layers_a_group_saves_posting() -> None:
    """Small blocks at 8 us a message: 512 messages a layer cost 4.1 ms, more than prefill's 4.4 ms can hide with the bytes."""
    dear = Scenario(engine="vllm-nixl", message_seconds=2e-5, posting_threads=1, fragmentation=1.0, overlap="layer")
    apart, together = groups(dear), groups(dear, together=True)
    assert best_group(apart).layers == 1
    best = best_group(together)
    assert best.layers > 1
    assert best.exposed_seconds < together[0].exposed_seconds / 2
    assert together[-1].messages == pytest.approx(together[0].messages / 80)


def test_sizes_are_those_that_make_another_number_of_groups() -> None:
    sizes = sizes_of(plan_of(Scenario()))
    assert sizes[0] == 1
    assert sizes[-1] == 80
    assert len({-(-80 // size) for size in sizes}) == len(sizes)


def test_nothing_to_move_leaves_nothing_exposed() -> None:
    assert {g.exposed_seconds for g in groups(Scenario(decode_held_tokens=8192))} == {0.0}
