"""Prefill and decode times: counted work, chunks, the fit they come from, and what no accelerator can beat."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel import Scenario, evaluate, find_model
from kvmodel.cache import model_cache
from kvmodel.compute import head_terms, mean_capped, phase_time, weight_bytes
from kvmodel.placement import Placement
from kvmodel.plan import plan_of
from kvmodel.registry import accelerators, derates
from tests.strategies import MODELS, scenarios, whole

H100 = accelerators()["h100-sxm"]


def place(model: str, accelerator: str = "h100-sxm", tp: int = 8, weights: str = "auto", kv: str = "bf16") -> Placement:
    return Placement(find_model(model), accelerators()[accelerator], tp, 1, 1, kv, weights)


@st.composite
def placements(draw: st.DrawFn) -> Placement:
    """Any model on any accelerator that has constants of its own, over up to 16 ranks."""
    model, gpu = draw(st.sampled_from(MODELS)), draw(st.sampled_from(sorted(derates())))
    return place(model, gpu, draw(st.sampled_from([1, 2, 4, 8, 16])), draw(st.sampled_from(["bf16", "fp8"])))


def test_prefill_flop_of_the_70b_by_hand() -> None:
    n = 8192
    layer = 2 * (2 * 8192 * 8192 + 2 * 8192 * 1024 + 3 * 8192 * 28_672) * n + 4 * 64 * 128 * n * (n + 1) / 2
    head = 2 * 128_256 * 8192  # the last token's logits
    assert evaluate(Scenario(prompt_tokens=n)).prefill.flop == pytest.approx(80 * layer + head)


@given(whole(1, 4000), st.floats(1, 4000), whole(0, 3000))
def test_the_mean_of_a_capped_context_is_the_mean_over_the_steps(context: int, cap: float, steps: int) -> None:
    steps += 1
    assert mean_capped(context, steps, cap) == pytest.approx(np.minimum(context + np.arange(1, steps + 1), cap).mean())


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


@given(placements(), st.sampled_from(["new", "held", "batch"]), whole(1, 200_000), whole(0, 200_000), whole(1, 64), whole(1, 5000))
def test_more_tokens_more_cached_ones_and_more_requests_take_no_less_time(
    at: Placement, what: str, new: int, held: int, batch: int, more: int
) -> None:
    time, amount = phase_time(at, "prefill"), {"new": new, "held": held, "batch": batch}
    before, after = time.prefill(**amount), time.prefill(**{**amount, what: amount[what] + more})
    assert 0 < before <= after * (1 + 1e-12)


@given(placements(), st.sampled_from(["context", "batch"]), whole(1, 500_000), whole(1, 512), whole(1, 5000))
def test_more_context_and_more_requests_take_no_less_of_a_step(at: Placement, what: str, context: int, batch: int, more: int) -> None:
    time, amount = phase_time(at, "decode"), {"context": context, "batch": batch}
    before, after = time.step(**amount), time.step(**{**amount, what: amount[what] + more})
    assert 0 < before <= after * (1 + 1e-12)


@given(placements(), whole(1, 100_000), whole(1, 64))
def test_a_batch_costs_no_more_than_its_requests_one_by_one(at: Placement, tokens: int, batch: int) -> None:
    prefill, decode = phase_time(at, "prefill"), phase_time(at, "decode")
    assert prefill.prefill(tokens, 0, batch) <= batch * prefill.prefill(tokens, 0, 1) * (1 + 1e-9)
    assert decode.step(tokens, batch) <= batch * decode.step(tokens, 1) * (1 + 1e-9)


def test_reading_weights_and_multiplying_with_them_overlap() -> None:
    layer = phase_time(place("llama-3-70b"), "prefill").layers[0]
    few, many = layer.bends(1) - layer.seconds.bends(layer.shape, 1, layer.short_tokens), layer.multiply * 1e6
    assert few == pytest.approx(layer.sweep, rel=1e-3)
    assert layer.bends(1e6) - layer.seconds.bends(layer.shape, 1e6, layer.short_tokens) == pytest.approx(many, rel=1e-3)


@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_arrays_and_numbers_take_the_same_time(phase: str) -> None:
    time, tokens = phase_time(place("deepseek-v3", "h200-sxm", tp=16), phase), np.array([1, 300, 8192, 100_000])
    of = (lambda n: time.prefill(n, 7, 3)) if phase == "prefill" else (lambda n: time.step(n, 3))
    assert of(tokens) == pytest.approx([of(int(n)) for n in tokens], rel=1e-12)


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


def test_nvfp4_weights_are_unpacked_to_bf16_where_tensor_cores_have_no_fp4() -> None:
    # sgl-project/sglang#19652, NVFP4 on Hopper: "Weight-only FP4 compression will be used leveraging the Marlin kernel"
    packed, plain = (phase_time(place("llama-3-70b", "h100-sxm", weights=w), "prefill") for w in ("nvfp4", "bf16"))
    assert packed.prefill(8192, 0, 1) == pytest.approx(plain.prefill(8192, 0, 1), rel=0.02)
    packed, plain = (phase_time(place("llama-3-70b", "h100-sxm", weights=w), "decode") for w in ("nvfp4", "bf16"))
    assert packed.step(1024, 1) < plain.step(1024, 1)
    assert (packed.rough, plain.rough) == ("no measurements of NVFP4 weights unpacked to BF16: achieved fractions of BF16", "")
    assert packed.error == pytest.approx(plain.error + 0.15)


def test_formats_without_measurements_say_so() -> None:
    assert "FP8 weights on a100-sxm" in phase_time(place("llama-3-70b", "a100-sxm", weights="fp8"), "prefill").rough
    assert "experts in this format" in phase_time(place("mixtral-8x7b", "h100-sxm", weights="bf16"), "decode").rough
    assert phase_time(place("deepseek-v3", "h200-sxm", weights="fp8"), "decode").rough == ""
