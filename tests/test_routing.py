"""Tokens sent to their experts and back: copies, rates, and the throughput of the deployments that do so."""

from __future__ import annotations

import pytest

from kvmodel import Scenario, evaluate, find_model
from kvmodel.allreduce import Across, across_of, all_reduces
from kvmodel.bands import step_band
from kvmodel.compute import phase_time
from kvmodel.placement import Placement
from kvmodel.records.model import Moe
from kvmodel.registry import accelerators
from kvmodel.routing import copies, routed_seconds

LMSYS = "https://lmsys.org/blog/2025-05-05-large-scale-ep/"
"""DeepSeek-V3 on 12 nodes of 8 H100: prompts of 2,000 tokens, prefill on 4 nodes, decode on 9 with 256 requests a GPU."""


def place(ranks: int, *, ep: int, gpu: str = "h100-sxm") -> Placement:
    return Placement(find_model("deepseek-v3"), accelerators()[gpu], ranks, ranks, ep, "bf16", "auto")


def experts(at: Placement) -> Moe:
    ffn = at.model.groups[1].ffn
    assert isinstance(ffn, Moe)
    return ffn


def test_a_token_goes_to_no_more_holders_than_it_has_experts_or_there_are() -> None:
    assert copies(1, 8) == 0
    assert copies(2, 10**6) == pytest.approx(1)
    assert copies(10**6, 8) == pytest.approx(8, rel=1e-4)


def test_tokens_cross_nodes_at_the_rate_deepep_was_measured_to_have() -> None:
    # https://github.com/deepseek-ai/DeepEP, EP 8 x 4, CX7: 8,192 tokens there in FP8 at 61 GB/s, copies to one's own node counted
    at = place(32, ep=32)
    there = 8192 * 7168 * (copies(4, 8) / 3 * 4) / 61e9
    assert 32 * 8192 * routed_seconds(at, experts(at)) / 3 == pytest.approx(there, rel=0.12)


def test_prefill_with_whole_experts_is_as_fast_as_published() -> None:
    # 52.3k to 54.5k input tokens a second and node
    large = Scenario(model="deepseek-v3", prefill_tp=32, prefill_attention_dp=32, ep=32, batch=256, prompt_tokens=2000)
    prefill, tokens = evaluate(large).prefill, 256 * 2000 / 4
    assert tokens / prefill.seconds == pytest.approx(52_300, rel=0.1), LMSYS
    assert prefill.low < tokens / 54_500 < prefill.high


def test_decode_with_whole_experts_is_as_fast_as_published() -> None:
    # 22.3k output tokens a second and node; on 8 nodes here in place of 9
    time, requests = phase_time(place(64, ep=64), "decode"), 256 * 64
    step = time.step(2050, requests)
    assert requests / 8 / step == pytest.approx(22_300, rel=0.1), LMSYS
    low, high = step_band(time, step, 2050, requests)
    assert low < requests / 8 / 22_300 < high


def test_experts_are_sent_to_only_where_ranks_keep_their_own_tokens() -> None:
    routed, gathered = place(16, ep=16), place(16, ep=1)
    assert (across_of(routed), across_of(gathered), across_of(place(8, ep=8))) == (Across.ROUTED, Across.NICS, None)
    group = routed.model.groups[1]
    assert all_reduces(routed, group).rings == 0 < all_reduces(routed, group).routed
    assert all_reduces(gathered, group).routed == all_reduces(routed, group, Across.HIDDEN).routed == 0
    dense = routed.model.groups[0]
    assert (all_reduces(routed, dense).rings, all_reduces(routed, dense).routed) == (1, 0)
