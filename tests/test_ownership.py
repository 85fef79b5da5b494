"""Who holds which heads and who sends them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel.ownership import flows, heads_of_rank, replicas, stage_edges, stage_flows

DEGREES = st.sampled_from([1, 2, 4, 8, 16, 32])


@given(DEGREES, DEGREES)
def test_ranks_together_hold_every_head_equally_often(kv_heads: int, tp: int) -> None:
    held = [head for rank in range(tp) for head in range(heads_of_rank(kv_heads, tp, rank)[0], heads_of_rank(kv_heads, tp, rank)[1] + 1)]
    assert sorted(set(held)) == list(range(kv_heads))
    assert {held.count(head) for head in held} == {max(1, tp // kv_heads)}


@given(DEGREES, DEGREES, DEGREES)
def test_every_decode_rank_receives_just_the_heads_it_holds(kv_heads: int, prefill_tp: int, decode_tp: int) -> None:
    received: dict[int, list[int]] = {}
    for flow in flows(kv_heads, prefill_tp, decode_tp):
        source = heads_of_rank(kv_heads, prefill_tp, flow.prefill_rank)
        assert source[0] <= flow.first <= flow.last <= source[1]
        received.setdefault(flow.decode_rank, []).extend(range(flow.first, flow.last + 1))
    for rank in range(decode_tp):
        low, high = heads_of_rank(kv_heads, decode_tp, rank)
        assert received[rank] == list(range(low, high + 1))


@pytest.mark.parametrize(("kv_heads", "prefill_tp", "decode_tp", "senders"), [(2, 4, 1, 2), (8, 8, 4, 8), (8, 4, 16, 4), (4, 8, 8, 8)])
def test_copies_of_a_head_go_to_their_counterparts_and_else_once(kv_heads: int, prefill_tp: int, decode_tp: int, senders: int) -> None:
    assert len({flow.prefill_rank for flow in flows(kv_heads, prefill_tp, decode_tp)}) == senders


@given(DEGREES, DEGREES, DEGREES)
def test_heads_that_cross_are_the_copies_of_the_wire(kv_heads: int, prefill_tp: int, decode_tp: int) -> None:
    crossing = sum(flow.last - flow.first + 1 for flow in flows(kv_heads, prefill_tp, decode_tp))
    assert crossing == max(kv_heads, decode_tp)


@given(DEGREES, DEGREES)
def test_replicas_share_out_all_ranks_evenly(tp: int, attention_dp: int) -> None:
    ranks = [rank for first, last in replicas(tp, min(tp, attention_dp)) for rank in range(first, last + 1)]
    assert ranks == list(range(tp))
    assert len({last - first for first, last in replicas(tp, attention_dp)}) == 1


@given(st.integers(1, 128), st.integers(1, 64), st.integers(1, 64))
def test_every_layer_crosses_once_from_the_stage_that_holds_it_to_the_one_that_will(layers: int, prefill_pp: int, decode_pp: int) -> None:
    crossing = stage_flows(layers, prefill_pp, decode_pp)
    assert [layer for flow in crossing for layer in range(flow.first, flow.last + 1)] == list(range(1, layers + 1))
    for flow in crossing:
        for pp, stage in ((prefill_pp, flow.prefill_stage), (decode_pp, flow.decode_stage)):
            low, high = stage_edges(layers, pp)[stage : stage + 2]
            assert low < flow.first <= flow.last <= high


def test_two_stages_send_to_one_and_one_to_two() -> None:
    # 32 layers, PP 2 to PP 1 (vllm-project/vllm#43366)
    assert [(f.first, f.last, f.prefill_stage, f.decode_stage) for f in stage_flows(32, 1, 2)] == [(1, 16, 0, 0), (17, 32, 0, 1)]
    assert [(f.first, f.prefill_stage, f.decode_stage) for f in stage_flows(6, 2, 3)] == [(1, 0, 0), (3, 0, 1), (4, 1, 1), (5, 1, 2)]
