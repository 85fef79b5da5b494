"""Layers sent in groups: the ends that are known otherwise, bounds, and which size is best when."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from kvmodel import Scenario, evaluate, sweep
from kvmodel.congestion import congestion
from kvmodel.evaluate import amounts_of
from kvmodel.failure import failure
from kvmodel.layer_groups import sent_in_groups, sent_together, settled, sizes_of
from kvmodel.plan import plan_of
from kvmodel.progress import progress
from kvmodel.traffic import Traffic
from tests.strategies import scenarios

DEAR = Scenario(engine="vllm-nixl", message_seconds=2e-5, posting_threads=1, fragmentation=1.0, overlap="layer-group")
"""Small blocks at 20 us a message: 512 messages a layer cost more than prefill's 4.4 ms a layer can hide."""


def size_of(scenario: Scenario) -> int:
    plan, amounts = plan_of(scenario), amounts_of(scenario)
    return int(sent_in_groups(plan, amounts, progress(plan, amounts)).layers)


@given(scenarios(longest=32_768, overlap="layer-group", group_layers=1))
def test_groups_of_one_are_layer_by_layer(scenario: Scenario) -> None:
    groups, layers = evaluate(scenario), evaluate(scenario.with_changes(overlap="layer"))
    near = 1e-9 * (layers.transfer.seconds + layers.prefill.seconds)
    assert groups.transfer.exposed_seconds == pytest.approx(layers.transfer.exposed_seconds, abs=near)
    assert groups.transfer.seconds == pytest.approx(layers.transfer.seconds, rel=1e-9)
    assert groups.transfer.messages == pytest.approx(layers.transfer.messages)
    assert groups.bound == layers.bound


@given(scenarios(longest=32_768, overlap="layer-group", group_layers=100, chunk_tokens=None, engine="vllm-mooncake", early_prefix="no"))
def test_one_group_of_all_layers_in_one_pass_is_the_whole_after_prefill(scenario: Scenario) -> None:
    groups, whole, plan = evaluate(scenario), evaluate(scenario.with_changes(overlap="serial")), plan_of(scenario)
    head = 0.0 if scenario.prefill_seconds is not None else plan.prefill.time.head(scenario.batch)
    assert groups.bound == whole.bound
    assert groups.transfer.seconds <= whole.transfer.seconds * (1 + 1e-9)  # one kind of layer may post while another sends
    if scenario.prompt_tokens >= plan.serial_below and whole.kv.wire_bytes:
        after = max(0.0, groups.transfer.seconds - head)
        assert groups.transfer.exposed_seconds == pytest.approx(after, rel=1e-6, abs=1e-9)


@given(scenarios(longest=32_768, overlap="layer-group", serial_below_tokens=None, model="gemma-3-27b", cross_layer="yes"))
def test_the_size_found_leaves_no_more_exposed_than_any_other(scenario: Scenario) -> None:
    best = evaluate(scenario.with_changes(group_layers=None)).transfer
    assert best.exposed_seconds <= evaluate(scenario).transfer.exposed_seconds * (1 + 1e-8) + 1e-10
    assert best == evaluate(scenario.with_changes(group_layers=size_of(scenario.with_changes(group_layers=None)))).transfer


def test_where_layers_lie_apart_single_layers_are_best() -> None:
    assert size_of(DEAR) == 1
    exposed = [evaluate(DEAR.with_changes(group_layers=size)).transfer.exposed_seconds for size in sizes_of(plan_of(DEAR))]
    assert exposed == sorted(exposed)
    assert evaluate(DEAR).transfer == evaluate(DEAR.with_changes(overlap="layer")).transfer


def test_where_blocks_hold_all_layers_a_group_saves_posting() -> None:
    joined = DEAR.with_changes(cross_layer="yes")
    single, best = evaluate(joined.with_changes(group_layers=1)).transfer, evaluate(joined).transfer
    assert single == evaluate(DEAR).transfer  # a layer that leaves alone has its messages to itself
    assert size_of(joined) > 1
    assert best.exposed_seconds < single.exposed_seconds / 2
    assert evaluate(joined.with_changes(group_layers=80)).transfer.messages == pytest.approx(single.messages / 80)
    assert best.messages == pytest.approx(single.messages / 80 * -(-80 // size_of(joined)))


def test_slices_between_unequal_tp_share_no_messages() -> None:
    # vLLM reads a slice of the heads of every block: no run forms across blocks, nor layers
    unequal = DEAR.with_changes(cross_layer="yes", prefill_tp=8, decode_tp=4, group_layers=8)
    assert evaluate(unequal).transfer.messages == evaluate(unequal.with_changes(group_layers=1)).transfer.messages


def test_the_best_size_follows_the_prompt() -> None:
    joined, tokens = DEAR.with_changes(cross_layer="yes"), [512, 8192, 65_536]
    plan, amounts = plan_of(joined), amounts_of(joined, prompt_tokens=np.array(tokens))
    sent = sent_in_groups(plan, amounts, progress(plan, amounts))
    assert list(sent.layers) == [size_of(joined.with_changes(prompt_tokens=n)) for n in tokens]
    assert len(set(sent.layers)) > 1
    assert sum(times * sum(n for _, n in counts) for times, counts in sent_together(plan, amounts)) == pytest.approx([80, 80, 80])
    swept = sweep(joined, prompt_tokens=tokens)
    assert list(swept.transfer.exposed_seconds) == [evaluate(joined.with_changes(prompt_tokens=n)).transfer.exposed_seconds for n in tokens]


def test_sizes_are_those_that_make_another_number_of_groups() -> None:
    sizes = sizes_of(plan_of(Scenario()))
    assert sizes[0] == 1
    assert sizes[-1] == 80
    assert len({-(-80 // size) for size in sizes}) == len(sizes)


def test_nothing_to_move_leaves_nothing_exposed() -> None:
    assert evaluate(DEAR.with_changes(decode_held_tokens=8192)).transfer.exposed_seconds == 0.0


@pytest.mark.parametrize("overlap", ["layer", "layer-group", "layer-both"])
def test_a_short_prompt_sent_whole_shares_the_messages_of_its_blocks(overlap: str) -> None:
    short = DEAR.with_changes(cross_layer="yes", prompt_tokens=500, serial_below_tokens=512)
    whole, layers = (evaluate(short.with_changes(overlap=way)) for way in ("serial", overlap))
    assert layers.transfer == whole.transfer
    assert layers.bound == "exposed"
    beyond = short.with_changes(overlap=overlap, group_layers=1, prompt_tokens=512)
    assert evaluate(beyond).transfer.messages == 80 * 32


def test_a_size_looked_for_once_answers_as_one_looked_for_each_time() -> None:
    joined, tokens = DEAR.with_changes(cross_layer="yes"), [512, 8192, 65_536]
    plans = settled(plan_of(joined), amounts_of(joined, prompt_tokens=np.array(tokens)))
    for plan, n in zip(plans, tokens, strict=True):
        amounts = amounts_of(joined, prompt_tokens=n)
        assert failure(plan, amounts, Traffic()) == failure(plan_of(joined), amounts, Traffic())
        assert congestion(plan, amounts, Traffic()) == congestion(plan_of(joined), amounts, Traffic())
    assert settled(plan_of(Scenario()), amounts_of(Scenario())) == [plan_of(Scenario())]
