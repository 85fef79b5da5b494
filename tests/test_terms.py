"""What one layer does: FLOP, bytes and launches counted from its dimensions, before any constant."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvmodel import Scenario, evaluate, find_model
from kvmodel.flop import layer_flop, pair_flop
from kvmodel.kernels import layer_kernels
from kvmodel.pairs import full_pairs, shape_of
from kvmodel.placement import Placement
from kvmodel.registry import derates
from kvmodel.terms import DECODE_TERMS, FIRST_BYTES, FIRST_SHARE, PREFILL_TERMS, decode_terms, first_pairs, prefill_terms
from kvmodel.work import Work
from tests.configs import A3B
from tests.strategies import MODELS
from tests.test_compute import H100, place


def test_one_layer_of_the_70b_over_8192_rows() -> None:
    # the matrix view: 855 M parameters, 14.0 TFLOP of matmul, 2.2 of attention over all S^2; causal attention does half, 1.1
    group = find_model("llama-3-70b").groups[0]
    flop = layer_flop(group, 8192)
    assert flop.token * 8192 == pytest.approx(14.0e12, rel=0.005)
    assert flop.pair * 8192**2 == pytest.approx(2.2e12, rel=0.005)
    assert flop.pair * full_pairs(8192, 0) == pytest.approx(1.1e12, rel=0.005)


def test_a_latent_attends_with_its_own_dimensions_and_absorbed_in_decode() -> None:
    group = find_model("deepseek-v3").groups[0]
    assert layer_flop(group, 7168).pair == 2 * 128 * (128 + 64 + 128)
    decode = decode_terms(place("deepseek-v3"), group)
    assert decode[6].pair * 8 * H100.peak_bf16 == pytest.approx(2 * 128 * (512 + 64 + 512))


def test_sparse_attention_reads_its_top_k_and_the_whole_indexer() -> None:
    group = find_model("deepseek-v3.2").groups[0]
    flop, read = layer_flop(group, 7168), decode_terms(place("deepseek-v3.2"), group)[2]
    assert (flop.pair, flop.capped) == (2 * 64 * 128, 2 * 128 * (512 + 64 + 512))
    # vllm#31473: prefill takes queries into the latent, "~3.36x more FLOPs than the un-absorbed approach"
    assert flop.capped / pair_flop(group, absorbed=False) == pytest.approx(3.36, rel=0.02)
    assert (read.pair * H100.hbm_bandwidth, read.capped * H100.hbm_bandwidth) == pytest.approx((132, 1152))
    assert shape_of(group).cap_tokens == 2048


def test_an_indexer_runs_in_fp8_and_whole_on_every_rank() -> None:
    # vllm#53691: every TP rank computes it in full; V4-Flash, TP 8 on H100, 8k chunks: 15.9 % of the GPU time of a 128k prefill
    scenario = Scenario(model="deepseek-v4-flash", prompt_tokens=131_072, chunk_tokens=8192)
    at, pairs = place("deepseek-v4-flash"), full_pairs(131_072, 0)
    seconds = sum(g.count * prefill_terms(at, g)[2].pair * pairs for g in at.model.groups if g.indexer)
    peak = 21 * 2 * 64 * 128 / 4 * pairs / 1978.9e12  # 21 layers, a row for four tokens
    assert seconds == pytest.approx(peak)
    fit, prefill = derates()["h100-sxm"].prefill_fp8, evaluate(scenario).prefill
    assert fit is not None
    assert fit.constants[2] * peak / prefill.high < 0.159 < fit.constants[2] * peak / prefill.low


def test_a_decode_step_reads_kv_heads_and_not_query_heads() -> None:
    # hahnyuan/LLM-Viewer#12: 32 layers, 8 KV heads of 128 for 32 query heads, 8,192 tokens: 1 GiB, not 4
    group = find_model("llama-3.1-8b").groups[0]
    read = decode_terms(place("llama-3.1-8b", tp=1), group)[2].pair * H100.hbm_bandwidth
    assert read * group.count * 8192 == pytest.approx(1_073_741_824, rel=1e-12)


def test_a_token_costs_the_experts_it_visits_in_flop_and_in_weights() -> None:
    # AlexsJones/llmfit#474: 3 of 35 B active: 24.6 TFLOP for 4,096 tokens; 6 GB of weights, 1.79 ms at 3.35 TB/s
    group, at = A3B.groups[0], Placement(A3B, H100, 1, 1, 1, "bf16", "bf16")
    assert layer_flop(group, A3B.hidden).token * group.count * 4096 == pytest.approx(2.4576e13, rel=0.005)
    terms = decode_terms(at, group)
    seconds = group.count * (terms[1].fixed + terms[8].touched * shape_of(group).touched(1))
    assert seconds == pytest.approx(1.791e-3, rel=0.005)


@pytest.mark.parametrize("model", MODELS)
def test_every_constant_but_the_last_has_its_term(model: str) -> None:
    at = place(model)
    for group in at.model.groups:
        assert len(prefill_terms(at, group)) == len(PREFILL_TERMS) - 1 == 9
        assert len(decode_terms(at, group)) == len(DECODE_TERMS) - 1 == 9


def test_latent_attention_and_experts_launch_more_kernels() -> None:
    dense, moe = find_model("llama-3-70b").groups[0], find_model("mixtral-8x7b").groups[0]
    first, later = find_model("deepseek-v3").groups
    assert [layer_kernels(group) for group in (dense, moe, first, later)] == [9, 13, 13, 20]


def test_a_routed_token_has_a_row_for_each_expert_it_visits() -> None:
    at = place("mixtral-8x7b", tp=1)
    group = at.model.groups[0]
    wide = replace(at, ep=2)
    rows = 2 * 2 * 4096 / H100.hbm_bandwidth  # two experts, 4,096 BF16 elements
    assert prefill_terms(at, group)[5].token - prefill_terms(wide, group)[5].token == pytest.approx(rows / 2)


def test_the_first_bytes_of_cache_are_read_at_a_lower_rate() -> None:
    at = place("llama-3-70b", tp=8)
    group = at.model.groups[0]
    read, first = decode_terms(at, group)[2], first_pairs(at, group)
    assert first * 512 == pytest.approx(FIRST_BYTES)  # one KV head of 128, K and V in BF16
    few, many = (read.of_step(shape_of(group), n, 1, first) * H100.hbm_bandwidth / (512 * n) for n in (1000, 10_000_000))
    assert few == pytest.approx(1 + FIRST_SHARE)
    assert many == pytest.approx(1, abs=0.01)


def test_work_adds_and_scales_field_by_field() -> None:
    one = Work(1, 2, 3, 4, 5, 6, 7)
    assert one.plus(one) == one.scaled(2)
