"""Why a scenario is infeasible: each remedy tried on the whole scenario, and the first of them found by trying all that come before it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvmodel import BadScenarioError, Scenario, evaluate
from kvmodel.evaluate import amounts_of, remedies
from kvmodel.parallel import accepted_tps, check_tp
from kvmodel.plan import plan_of
from kvmodel.reason import LONGEST, NO_REMEDY, reason_of
from kvmodel.remedies import FP8
from kvmodel.results import Remedy
from tests.strategies import WORDIEST, WORDIEST_ACCELERATORS, scenarios

ENDLESS = {"model": "deepseek-v3", "prompt_tokens": 2**20, "output_tokens": 1, "decode_tp": 64}
"""A latent of 74 GB, which each rank keeps whole: TP lowers weights alone."""


def good(scenario: Scenario, side: str, **changes: Any) -> bool:
    """Whether a side fits and engines take the layout: the whole scenario evaluated anew."""
    try:
        changed = scenario.with_changes(**changes)
        return bool(getattr(evaluate(changed).memory, side).fits and not plan_of(changed).refusal)
    except BadScenarioError:
        return False


def with_tp(side: str, tp: int, *, both: bool = False) -> dict[str, int]:
    sides = ("prefill", "decode") if both else (side,)
    return {f"{s}_tp": tp for s in sides} | {f"{s}_attention_dp": 1 for s in sides}


def smallest_tp(scenario: Scenario, side: str, low: int = 1, high: int = 64, **changes: Any) -> tuple[int, bool] | None:
    tried = ((tp, both) for tp in range(low, high + 1) for both in (False, True))
    return next((t for t in tried if good(scenario, side, **with_tp(side, t[0], both=t[1]), **changes)), None)


def expected(scenario: Scenario, side: str) -> str:
    """The first remedy of layout or format, found by evaluating every scenario on the way to it; empty where there is none."""
    node = getattr(plan_of(scenario), side).accelerator.gpus_per_node
    if getattr(scenario, f"{side}_attention_dp") > 1 and good(scenario, side, **{f"{side}_attention_dp": 1}):
        return "use attention DP 1"
    if side == "prefill" and (plan_of(scenario).chunk or 0) > 8192 and good(scenario, side, chunk_tokens=8192):
        return "use chunks of 8,192 tokens"
    if found := smallest_tp(scenario, side, high=node):
        dp = " and attention DP 1" if getattr(scenario, f"{side}_attention_dp") > 1 else ""
        return f"use TP {found[0]} on both sides" if found[1] else f"use TP {found[0]} or more{dp}"
    return next((f"use {name}" for name, changes in FP8 if good(scenario, side, **changes)), "")


def by_side(found: Sequence[Remedy]) -> dict[str, list[str]]:
    return {side: [r.use for r in found if r.side == side] for side in ("prefill", "decode")}


@pytest.mark.parametrize(
    ("changes", "remedy"),
    [
        # 141.1 GB of weights, 76.4 GB usable on each of two; 70.6 + 1.3 + 0.6
        ({"prefill_tp": 1}, "use TP 2 or more"),
        ({"prefill_tp": 1, "decode_tp": 1, "unequal_tp": "refused"}, "use TP 2 on both sides"),
        ({"decode_attention_dp": 8, "prompt_tokens": 200_000}, "use attention DP 1"),
        ({"prefill_tp": 2, "prefill_attention_dp": 2, "batch": 64}, "use TP 8 or more and attention DP 1"),
        ({"model": "phi-4", "weight_dtype": "fp32", "prefill_tp": 1, "decode_tp": 2, "batch": 32}, "use TP 2 or more"),
        # 10.5 GB of weights on each of 64 ranks beside 73.7 GB of latent, which FP8 halves
        (ENDLESS | {"prefill_tp": 64, "decode_accelerator": "b200-sxm"}, "use an FP8 cache"),
        # 812 GB of weights on 8 of 76.4 GB: halved they fit, in full they take two such nodes
        ({"model": "llama-3.1-405b", "decode_tp": 16}, "use FP8 weights"),
        ({"model": "llama-3.1-405b", "decode_tp": 16, "prefill_tp": 1}, "use TP 8 with PP 2"),
        ({"model": "deepseek-v3", "decode_tp": 16}, "use PP 2"),
        # 128 x 10.7 GB of cache, on 16 ranks but 8 heads: FP8 leaves 86 GB a rank, three stages 57
        ({"prefill_tp": 16, "batch": 128, "prompt_tokens": 32_768, "decode_tp": 64}, "use PP 3"),
        ({"batch": 1024, "prompt_tokens": 2**20, "decode_accelerator": "b200-sxm"}, "only 1 request fits"),
        (
            {"model": "llama-3.1-8b", "prefill_tp": 1, "prompt_tokens": 400_000, "chunk_tokens": 400_000},
            "use chunks of 8,192 tokens",
        ),
    ],
)
def test_the_remedy_to_try_first(changes: dict[str, Any], remedy: str) -> None:
    scenario = Scenario(**changes)
    result = evaluate(scenario)
    assert remedy in result.reason
    assert remedies(scenario)[0].use == remedy
    assert not result.feasible
    assert result.ttft_seconds > result.prefill.seconds > 0


def test_llama_405b_in_bf16_on_a_node_of_h100_has_four_ways_each_with_what_it_takes() -> None:
    # 812 GB on 8 x 76.4 GB; FP8 406, a node more for the other half of the layers, H200 8 x 135 GB, TP over both nodes
    found = remedies(Scenario(model="llama-3.1-405b", decode_tp=16))
    said = {r.use: r.cost for r in found}
    assert list(said) == ["use FP8 weights", "use PP 2", "use H200 SXM", "use TP 16 or more"]
    assert said["use PP 2"].startswith("16 GPUs; activations pass from stage to stage")
    assert said["use TP 16 or more"] == "16 GPUs; a TP group spans 2 nodes, so every all-reduce crosses the network between them"
    assert said["use FP8 weights"] == "on both sides; the weights must be quantized to it"
    assert found[3].changes == {"prefill_tp": 16, "prefill_attention_dp": 1}


@settings(max_examples=settings().max_examples // 2)
@given(scenarios(longest=1_048_576, prompt_tokens=st.integers(1, 1_048_576), batch=st.sampled_from((1, 1, 4, 64, 1024))))
def test_each_remedy_alone_makes_its_side_fit_and_both_sides_are_named(scenario: Scenario) -> None:
    result, found = evaluate(scenario), remedies(scenario)
    failing = {side for side in ("prefill", "decode") if not getattr(result.memory, side).fits}
    assert len(result.verdict) <= LONGEST + 1
    if plan_of(scenario).refusal:
        assert found == ()
        return
    assert {r.side for r in found} <= failing
    assert all(side in result.reason for side in failing)
    for remedy in found:
        assert good(scenario, remedy.side, **remedy.changes), remedy
    for side, uses in by_side(found).items():
        assert len(uses) == len(set(uses))
        if side in failing and (first := expected(scenario, side)):
            assert uses[0] == first
        if side in failing and not uses:
            assert NO_REMEDY in result.reason or len(failing) == 2
            assert not good(scenario, side, **with_tp(side, 64, both=True), prompt_tokens=1, output_tokens=1, batch=1, decode_batch=1)


def test_both_sides_are_named_with_a_remedy_each() -> None:
    alike = evaluate(Scenario(prefill_tp=1, decode_tp=1)).reason
    assert alike == "141\u202fGB of weights do not fit on 1 × H100 SXM, prefill and decode alike: use TP 2 or more on each"
    scenario = Scenario(prefill_tp=1, decode_tp=2, decode_accelerator="l40s")
    # 141.1 + 2.7 of cache and 2.2 of workspace; 141.1 + 2.8 of cache with the output
    assert evaluate(scenario).reason == (
        "146\u202fGB exceed 1 × H100 SXM (prefill): use TP 2 or more; 144\u202fGB exceed 2 × L40S (decode): use TP 4 or more"
    )
    found = remedies(scenario)
    mended = found[0].changes | next(r for r in found if r.side == "decode").changes
    assert evaluate(scenario.with_changes(**mended)).feasible


def test_larger_tp_keeps_what_the_named_one_gives() -> None:
    for model, batch in product(("llama-3-70b", "deepseek-v3", "gemma-3-27b", "nemotron-3-super"), (1, 64, 512)):
        scenario = Scenario(model=model, batch=batch, prefill_tp=1, decode_tp=1, prompt_tokens=32_768)
        named, accepted = smallest_tp(scenario, "prefill"), accepted_tps(plan_of(scenario).model, 64)
        fitting = [tp for tp in accepted if good(scenario, "prefill", **with_tp("prefill", tp, both=True))]
        assert fitting == [tp for tp in accepted if named and tp >= named[0]]
        assert accepted == tuple(tp for tp in range(1, 65) if check_tp(plan_of(scenario).model, tp).valid)


def test_what_is_too_much_is_named() -> None:
    weights = evaluate(Scenario(prefill_tp=1)).reason
    assert weights.startswith("141\u202fGB of weights do not fit on 1 × H100 SXM (prefill)")
    cache = evaluate(Scenario(prefill_tp=4, batch=64)).reason
    assert cache.startswith("141\u202fGB of weights and 172\u202fGB of cache exceed 4 × H100 SXM (prefill)")
    # 400,000 tokens in one pass of 110,592 bytes each
    long_pass = Scenario(model="llama-3.1-8b", prefill_tp=1, prompt_tokens=400_000, chunk_tokens=400_000)
    assert evaluate(long_pass).reason.startswith(
        "16.1\u202fGB of weights, 52.4\u202fGB of cache and 44.2\u202fGB of workspace exceed 1 × H100"
    )
    assert evaluate(long_pass.with_changes(chunk_tokens=2048)).feasible


@pytest.mark.parametrize("accelerator", WORDIEST_ACCELERATORS)
def test_a_reason_is_never_too_long(accelerator: str) -> None:
    for model, tp in product(WORDIEST, (1, 64)):
        scenario = Scenario(
            model=model, batch=1024, prompt_tokens=1_048_576, prefill_tp=tp, decode_tp=tp, prefill_accelerator=accelerator,
            weight_dtype="fp32", kv_dtype="int4",
        )  # fmt: skip
        plan = plan_of(scenario)
        assert len(reason_of(plan, amounts_of(scenario), scenario)) <= LONGEST
