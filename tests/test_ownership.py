"""Who holds which heads and who sends them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel.ownership import flows, heads_of_rank

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


@pytest.mark.parametrize(("kv_heads", "prefill_tp", "decode_tp", "senders"), [(2, 4, 1, 2), (8, 8, 4, 8), (8, 4, 16, 4), (4, 8, 8, 4)])
def test_replicas_of_a_head_send_it_once(kv_heads: int, prefill_tp: int, decode_tp: int, senders: int) -> None:
    assert len({flow.prefill_rank for flow in flows(kv_heads, prefill_tp, decode_tp)}) == senders


@given(DEGREES, DEGREES, DEGREES)
def test_heads_that_cross_are_the_copies_of_the_wire(kv_heads: int, prefill_tp: int, decode_tp: int) -> None:
    crossing = sum(flow.last - flow.first + 1 for flow in flows(kv_heads, prefill_tp, decode_tp))
    assert crossing == max(kv_heads, decode_tp)
