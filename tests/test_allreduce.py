"""All-reduces: bytes and waits by length of the message and number of ranks."""

from __future__ import annotations

import pytest

from kvmodel import find_model
from kvmodel.allreduce import ONE_SHOT_BYTES, STARTUP_BYTES, all_reduces, short_tokens
from kvmodel.pairs import shape_of
from kvmodel.terms import decode_terms, prefill_terms
from kvmodel.work import Work
from tests.strategies import MODELS
from tests.test_compute import place


@pytest.mark.parametrize("model", MODELS)
def test_without_tensor_parallelism_nothing_is_reduced(model: str) -> None:
    alone, eight = place(model, tp=1), place(model, tp=8)
    for group in alone.model.groups:
        for terms in (prefill_terms, decode_terms):
            assert terms(alone, group)[3] == terms(alone, group)[4] == Work()
        assert decode_terms(eight, group)[4].fixed == (group.attention.kind != "none") + (group.ffn is not None)


def test_an_all_reduce_moves_twice_the_activations_but_a_rank_s_share() -> None:
    group = find_model("llama-3-70b").groups[0]
    per_token = prefill_terms(place("llama-3-70b"), group)[3].token * 450e9
    assert per_token == pytest.approx(2 * (2 * 7 / 8) * 8192 * 2)  # two a layer, ring: 2 (p - 1)/p of 8,192 BF16 elements


def test_ranks_beyond_a_node_reduce_over_the_nics() -> None:
    group = find_model("llama-3-70b").groups[0]
    within, across = (prefill_terms(place("llama-3-70b", tp=tp), group)[3].token for tp in (8, 16))
    assert across / within == pytest.approx(450 / 50 * (15 / 16) / (7 / 8))


def test_short_messages_are_read_from_all_the_others_and_long_ones_go_round() -> None:
    at = place("llama-3-70b")
    group, limit = at.model.groups[0], short_tokens(at, "decode")
    term = decode_terms(at, group)[3]
    assert limit == ONE_SHOT_BYTES / 16_384  # 64 tokens of 8,192 BF16 elements

    def moved(tokens: float) -> float:
        return (term.token * tokens + term.bends(shape_of(group), tokens, limit)) * 450e9

    assert moved(1) == pytest.approx(2 * 7 * 16_384)
    assert moved(1065) - moved(1064) == pytest.approx(2 * 2 * 7 / 8 * 16_384)


def test_waits_grow_with_the_ranks_and_with_the_message_up_to_a_length() -> None:
    group = find_model("llama-3-70b").groups[0]
    two, eight = (all_reduces(place("llama-3-70b", tp=tp), group) for tp in (2, 8))
    assert eight.waits == 3 * two.waits == 6
    limit = short_tokens(place("llama-3-70b"), "prefill")
    assert limit * 16_384 == STARTUP_BYTES
    whole = [eight.startup.fixed + eight.startup.bends(shape_of(group), n, limit) for n in (0, limit, 2 * limit)]
    assert whole == pytest.approx([0.3 * 6, 6, 6])


def test_an_all_reduce_across_nodes_is_slower_by_as_much_as_the_nics() -> None:
    group = find_model("llama-3-70b").groups[0]
    within, across = (all_reduces(place("llama-3-70b", tp=tp), group) for tp in (8, 16))
    assert (within.slower, across.slower) == (1, 9)  # 450 GB/s of NVLink over 50 GB/s
    assert across.waits == 9 * within.waits
    assert all_reduces(place("llama-3-70b", "gb200", tp=16), group).slower == 1  # 72 share one fabric
