"""All-reduces: bytes and waits by length of the message and number of ranks."""

from __future__ import annotations

import pytest

from kvmodel import find_model
from kvmodel.allreduce import ONE_SHOT_BYTES, STARTUP_BYTES, Across, across_of, all_reduces, short_tokens
from kvmodel.pairs import shape_of
from kvmodel.registry import derates
from kvmodel.terms import ALL_REDUCE, PREFILL_TERMS, decode_terms, prefill_terms
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


def test_ranks_beyond_a_node_reduce_over_all_its_nics() -> None:
    group = find_model("llama-3-70b").groups[0]
    within, across = (prefill_terms(place("llama-3-70b", tp=tp), group)[3].token for tp in (8, 16))
    assert across / within == pytest.approx(450 / 400 * (15 / 16) / (7 / 8))  # 8 NICs of 50 GB/s


@pytest.mark.parametrize(("mebibytes", "milliseconds"), [(1, 0.088), (10, 0.157), (100, 0.647), (1024, 4.520)])
def test_an_all_reduce_over_two_nodes_takes_what_nccl_was_measured_to_take(mebibytes: int, milliseconds: float) -> None:
    # https://github.com/drmysore/nebius-h100-16gpu-benchmark: 2 x 8 H100, InfiniBand, NCCL 2.20.5; bus 304 GB/s at 100 MiB, 435 at 1 GiB
    at = place("llama-3-70b", tp=16)
    group, tokens = at.model.groups[0], mebibytes * 2**20 / 16_384
    k = dict(zip(PREFILL_TERMS, derates()["h100-sxm"].prefill_bf16.constants, strict=True))
    terms = dict(zip(PREFILL_TERMS, prefill_terms(at, group), strict=False))
    seconds = all_reduces(at, group).network
    for name in ALL_REDUCE:
        term = terms[name]
        seconds += k[name] * (term.fixed + term.token * tokens + term.bends(shape_of(group), tokens, short_tokens(at, "prefill")))
    assert seconds / 2 == pytest.approx(milliseconds * 1e-3, rel=0.2)


def test_a_long_all_reduce_over_two_nodes_uses_more_of_the_bus_than_one_nic_and_no_more_than_all() -> None:
    bus = 2 * 15 / 16 * 2 * 16_384 / all_reduces(place("llama-3-70b", tp=16), find_model("llama-3-70b").groups[0]).ring
    assert bus == pytest.approx(8 * 50e9)


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


def test_a_model_with_experts_reduces_across_nodes_as_the_tables_extrapolate() -> None:
    within, across = (place("deepseek-v3", tp=tp) for tp in (8, 16))
    group = within.model.groups[0]
    near, far, nics = all_reduces(within, group), all_reduces(across, group), all_reduces(across, group, Across.NICS)
    assert (near.slower, far.slower, nics.slower) == (1, 9, 1.125)  # 450 GB/s of NVLink over 50 GB/s, over 400
    assert (far.waits, far.short_waits, far.network) == (9 * near.waits, 9 * near.short_waits, 0)
    assert (nics.waits, nics.short_waits) == (2 * 4, 2)
    assert nics.network == 2 * 45e-6


def test_ranks_of_one_fabric_do_not_leave_the_node() -> None:
    at = place("llama-3-70b", "gb200", tp=16)  # 72 share one fabric
    reduces = all_reduces(at, at.model.groups[0])
    assert across_of(at) is None
    assert (reduces.slower, reduces.network) == (1, 0)
    assert all_reduces(at, at.model.groups[0], Across.TABLES) == reduces
