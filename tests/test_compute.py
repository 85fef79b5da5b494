"""Prefill and decode times: counted work, chunks, the fit they come from, and what no accelerator can beat."""

from __future__ import annotations

import csv
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel import Scenario, evaluate, find_model
from kvmodel.cache import model_cache
from kvmodel.compute import head_terms, mean_capped, phase_time, weight_bytes
from kvmodel.pairs import full_pairs, shape_of
from kvmodel.plan import plan_of
from kvmodel.registry import accelerators, derates
from kvmodel.terms import Placement, decode_terms, layer_flop, prefill_terms
from tests.configs import A3B
from tests.strategies import MODELS, scenarios, whole

H100 = accelerators()["h100-sxm"]


def place(model: str, accelerator: str = "h100-sxm", tp: int = 8, weights: str = "auto", kv: str = "bf16") -> Placement:
    return Placement(find_model(model), accelerators()[accelerator], tp, 1, 1, kv, weights)


# counted work


@given(whole(1, 4000), whole(1, 4000), whole(0, 3000))
def test_the_mean_of_a_capped_context_is_the_mean_over_the_steps(context: int, cap: int, steps: int) -> None:
    steps += 1
    assert mean_capped(context, steps, float(cap)) == pytest.approx(np.minimum(context + np.arange(1, steps + 1), cap).mean())


def test_one_layer_of_the_70b_over_8192_rows() -> None:
    # the matrix view: 855 M parameters, 14.0 TFLOP of matmul, 2.2 of attention over all S^2; causal attention does half, 1.1
    group = find_model("llama-3-70b").groups[0]
    flop = layer_flop(group, 8192)
    assert flop.token * 8192 == pytest.approx(14.0e12, rel=0.005)
    assert flop.pair * 8192**2 == pytest.approx(2.2e12, rel=0.005)
    assert flop.pair * full_pairs(8192, 0) == pytest.approx(1.1e12, rel=0.005)


def test_prefill_flop_of_the_70b_by_hand() -> None:
    n = 8192
    layer = 2 * (2 * 8192 * 8192 + 2 * 8192 * 1024 + 3 * 8192 * 28_672) * n + 4 * 64 * 128 * n * (n + 1) / 2
    head = 2 * 128_256 * 8192  # the last token's logits
    assert evaluate(Scenario(prompt_tokens=n)).prefill.flop == pytest.approx(80 * layer + head)


def test_a_latent_attends_with_its_own_dimensions_and_absorbed_in_decode() -> None:
    group = find_model("deepseek-v3").groups[0]
    assert layer_flop(group, 7168).pair == 2 * 128 * (128 + 64 + 128)
    decode = decode_terms(place("deepseek-v3"), group)
    assert decode[6].pair * 8 * H100.peak_bf16 == pytest.approx(2 * 128 * (512 + 64 + 512))


def test_sparse_attention_reads_its_top_k_and_the_whole_indexer() -> None:
    group = find_model("deepseek-v3.2").groups[0]
    flop, read = layer_flop(group, 7168), decode_terms(place("deepseek-v3.2"), group)[2]
    assert (flop.pair, flop.capped) == (2 * 64 * 128, 2 * 128 * (128 + 64 + 128))
    assert (read.pair * H100.hbm_bandwidth, read.capped * H100.hbm_bandwidth) == pytest.approx((132, 1152))
    assert shape_of(group).cap_tokens == 2048


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
    seconds = group.count * (terms[1].fixed + terms[9].touched * shape_of(group).touched(1))
    assert seconds == pytest.approx(1.791e-3, rel=0.005)


# times


@given(scenarios(prefill_seconds=None), whole(16, 20_000))
def test_chunks_cost_what_their_passes_cost(scenario: Scenario, chunk: int) -> None:
    time, n, batch = plan_of(scenario).prefill.time, scenario.prompt_tokens, scenario.batch
    if n / chunk > 300:
        return
    cuts = [*range(0, n, chunk), n]
    passes = sum(time.prefill(b - a, a, batch) - time.head(batch) for a, b in pairwise(cuts))
    assert time.prefill(n, 0, batch, chunk) == pytest.approx(passes + time.head(batch))
    assert time.prefill(n, 0, batch, chunk) >= time.prefill(n, 0, batch) * (1 - 1e-9)


@given(scenarios(output_tokens=whole(1, 400)))
def test_time_per_output_token_is_the_mean_of_the_steps(scenario: Scenario) -> None:
    time, n = plan_of(scenario).decode.time, scenario.output_tokens
    steps = [time.step(scenario.prompt_tokens + k, scenario.decode_batch) for k in range(1, max(n, 2))]
    mean = time.mean_step(scenario.prompt_tokens, n, scenario.decode_batch)
    assert mean == pytest.approx(np.mean(steps))


@given(scenarios(prefill_seconds=None, decode_step_seconds=None), whole(1, 50_000))
def test_longer_prompts_take_longer(scenario: Scenario, more: int) -> None:
    short, long = evaluate(scenario), evaluate(scenario.with_changes(prompt_tokens=scenario.prompt_tokens + more))
    held = scenario.prefill_held_tokens >= scenario.prompt_tokens
    assert long.prefill.seconds >= short.prefill.seconds * (1 - 1e-9) or held
    assert long.decode.step_seconds >= short.decode.step_seconds * (1 - 1e-9)


@given(scenarios(model=st.sampled_from(MODELS), prefill_seconds=None, prefill_held_tokens=0))
def test_prefill_does_not_beat_the_tensor_cores(scenario: Scenario) -> None:
    side, result = plan_of(scenario).prefill, evaluate(scenario)
    gpu = side.accelerator
    fastest = max(gpu.peak_bf16, gpu.peak_fp8 or 0.0, gpu.peak_nvfp4 or 0.0)
    assert result.prefill.seconds >= result.prefill.flop / (side.tp * fastest)


@pytest.mark.parametrize("accelerator", ["a100-sxm", "h100-sxm", "h200-sxm", "b200-sxm", "gb200"])
def test_a_decode_step_does_not_beat_memory(accelerator: str) -> None:
    for model in ("llama-2-7b", "llama-3-70b", "deepseek-v3", "gpt-oss-120b"):
        for weights in ("bf16", "fp8"):
            for batch, context in ((1, 512), (32, 8192), (256, 131_072)):
                on = Scenario(model=model, decode_accelerator=accelerator, decode_tp=1, weight_dtype=weights)
                step = evaluate(on.with_changes(decode_batch=batch, prompt_tokens=context)).decode.step_seconds
                read = batch * model_cache(find_model(model)).prompt_bytes(context)
                assert step >= read / accelerators()[accelerator].hbm_bandwidth, (model, weights, batch)


@pytest.mark.parametrize("model", MODELS)
def test_without_tensor_parallelism_nothing_is_reduced(model: str) -> None:
    alone, eight = place(model, tp=1), place(model, tp=8)
    for group in alone.model.groups:
        assert prefill_terms(alone, group)[3].token == prefill_terms(alone, group)[4].fixed == 0
        assert prefill_terms(eight, group)[4].fixed == (group.attention.kind != "none") + (group.ffn is not None)


def test_an_all_reduce_moves_twice_the_activations_but_a_rank_s_share() -> None:
    group = find_model("llama-3-70b").groups[0]
    per_token = prefill_terms(place("llama-3-70b"), group)[3].token * 450e9
    assert per_token == pytest.approx(2 * (2 * 7 / 8) * 8192 * 2)  # two a layer, ring: 2 (p - 1)/p of 8,192 BF16 elements


def test_ranks_beyond_a_node_reduce_over_the_nics() -> None:
    group = find_model("llama-3-70b").groups[0]
    within, across = (prefill_terms(place("llama-3-70b", tp=tp), group)[3].token for tp in (8, 16))
    assert across / within == pytest.approx(450 / 50 * (15 / 16) / (7 / 8))


def test_the_head_is_swept_once_and_computed_for_each_request() -> None:
    sweep, per_request, flop = head_terms(place("llama-3-70b"))
    assert flop == 2 * 128_256 * 8192
    assert (sweep, per_request) == pytest.approx((flop / 8 / 3.35e12, flop / 8 / 989.4e12))


@pytest.mark.parametrize(
    ("model", "dtype", "bytes_"),
    [("llama-3-70b", "auto", 141.1e9), ("llama-3-70b", "fp8", 72.7e9), ("llama-3.1-8b", "auto", 16.06e9), ("gpt-oss-120b", "auto", 65e9)],
)
def test_weights_take_their_parameters_times_their_format(model: str, dtype: str, bytes_: float) -> None:
    # 70.6 B and 8.03 B parameters in BF16; FP8 leaves two tables of 1.05 B in BF16; gpt-oss-120b is published as 65 GB of MXFP4
    assert weight_bytes(find_model(model), dtype) == pytest.approx(bytes_, rel=0.01)


# bands


def test_the_band_is_the_fit_error_and_above_it_what_the_tables_lack() -> None:
    result, fit = evaluate(Scenario()), derates()["h100-sxm"]
    assert result.prefill.low * (1 + fit.prefill_bf16.p90_error) == pytest.approx(result.prefill.seconds)
    # the operator tables read 14 to 22 % below measured TTFT at 8k tokens
    assert result.prefill.high * 0.78 * (1 - fit.prefill_bf16.p90_error) == pytest.approx(result.prefill.seconds)
    assert result.decode.high * (1 - fit.decode_bf16.p90_error) == pytest.approx(result.decode.step_seconds)


def test_a_model_with_experts_has_the_band_of_experts() -> None:
    fit = derates()["h200-sxm"].decode_fp8
    assert fit is not None
    assert phase_time(place("deepseek-v3", "h200-sxm"), "decode").error == fit.experts_p90_error
    assert fit.experts_p90_error > fit.p90_error


def test_an_accelerator_without_measurements_of_its_own_says_so_and_widens_its_band() -> None:
    own, borrowed = (phase_time(place("llama-3-70b", gpu), "prefill") for gpu in ("h200-sxm", "mi300x"))
    assert own.rough == ""
    assert borrowed.rough == "no measurements of Instinct MI300X: achieved fractions of h200-sxm"
    assert borrowed.error == pytest.approx(own.error + 0.15)
    assert "NVFP4" in phase_time(place("llama-3-70b", "b200-sxm", weights="nvfp4"), "prefill").rough


# the fit's own data, when it lies beside the checkout

SYSTEMS = {"a100_sxm": "a100-sxm", "h100_sxm": "h100-sxm", "h200_sxm": "h200-sxm", "b200_sxm": "b200-sxm", "gb200": "gb200"}
FORMATS = {"bf16": ("bf16", "bf16"), "fp8_static": ("fp8", "fp8"), "fp8_block+kvbf16": ("fp8", "bf16")}


def test_times_of_dense_models_stay_within_the_stated_error_of_the_grid(shared: Path) -> None:
    errors: dict[tuple[str, str], list[float]] = defaultdict(list)
    with (shared / "measured" / "compute_grid.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            gpu, tokens, batch = SYSTEMS[row["system"]], int(row["isl"]), int(row["batch"])
            if row["dtype"] not in FORMATS or "DeepSeek" in row["model"] or not 256 <= tokens <= 16_384:
                continue
            if float(row["mem_gib"]) * 2**30 > 0.9 * accelerators()[gpu].hbm_bytes or (row["phase"] == "prefill" and batch > 8):
                continue
            weights, kv = FORMATS[row["dtype"]]
            time = phase_time(place(row["model"], gpu, int(row["tp"]), weights, kv), row["phase"])
            modelled = time.prefill(tokens, 0, batch) if row["phase"] == "prefill" else time.step(tokens, batch)
            errors[gpu, f"{row['phase']}_{weights}"].append(abs(modelled * 1e3 / float(row["latency_ms"]) - 1))
    assert len(errors) == 18
    for (gpu, phase), found in errors.items():
        fit = getattr(derates()[gpu], phase)
        assert len(found) == fit.rows
        assert np.quantile(found, 0.9) <= 1.2 * fit.p90_error, (gpu, phase)
