"""Why a scenario is infeasible: each remedy against every scenario it could have named, evaluated one by one."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvmodel import BadScenarioError, Scenario, evaluate
from kvmodel.parallel import accepted_tps, check_tp
from kvmodel.plan import plan_of
from kvmodel.reason import FORMATS, LONGEST
from kvmodel.registry import accelerators, models
from tests.strategies import scenarios

ENDLESS = {"model": "deepseek-v3", "prompt_tokens": 2**20, "output_tokens": 1, "decode_tp": 64}
"""A latent of 74 GB, which each rank keeps whole: TP lowers weights alone."""


def side_of(reason: str) -> str:
    return "prefill" if "(prefill)" in reason else "decode"


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


def smallest_tp(scenario: Scenario, side: str, **changes: Any) -> tuple[int, bool] | None:
    tried = ((tp, both) for tp in range(1, 65) for both in (False, True))
    return next((t for t in tried if good(scenario, side, **with_tp(side, t[0], both=t[1]), **changes)), None)


def expected(scenario: Scenario, side: str) -> str:
    """The remedy, found by evaluating every scenario on the way to it."""
    if getattr(scenario, f"{side}_attention_dp") > 1 and good(scenario, side, **{f"{side}_attention_dp": 1}):
        return "use attention DP 1"
    if found := smallest_tp(scenario, side):
        dp = " and attention DP 1" if getattr(scenario, f"{side}_attention_dp") > 1 else ""
        return f"use TP {found[0]} on both sides" if found[1] else f"use TP {found[0]} or more{dp}"
    gpus = sorted(accelerators().values(), key=lambda gpu: gpu.hbm_visible)
    choices = (FORMATS, [(gpu.name, {f"{side}_accelerator": gpu.id}) for gpu in gpus])
    for choice in choices:
        for name, changes in choice:
            if good(scenario, side, **changes):
                return f"use {name}"
        for name, changes in choice:
            if found := smallest_tp(scenario, side, **changes):
                return f"use {name} and TP {found[0]}{' on both sides' if found[1] else ''}"
    most = getattr(evaluate(scenario).memory, side).batch_fits
    if most:
        return "only 1 request fits" if most == 1 else f"only {most} requests fit"
    one = expected(scenario.with_changes(batch=1, decode_batch=1), side) if scenario.batch > 1 or scenario.decode_batch > 1 else ""
    return f"{one} for one request" if one.startswith("use ") else "no TP, format or accelerator alone would do"


@pytest.mark.parametrize(
    ("changes", "remedy"),
    [
        # 141.1 GB of weights, 76.4 GB usable on each of two; 70.6 + 1.3 + 0.6
        ({"prefill_tp": 1}, "use TP 2 or more"),
        ({"prefill_tp": 1, "decode_tp": 1, "unequal_tp": "refused"}, "use TP 2 on both sides"),
        ({"decode_attention_dp": 8, "prompt_tokens": 200_000}, "use attention DP 1"),
        ({"prefill_tp": 2, "prefill_attention_dp": 2, "batch": 64}, "use TP 8 or more and attention DP 1"),
        ({"model": "phi-4", "weight_dtype": "fp32", "prefill_tp": 1, "decode_tp": 1, "batch": 32}, "use TP 2 or more"),
        # 10.5 GB of weights on each of 64 ranks beside 73.7 GB of latent, which FP8 halves
        (ENDLESS | {"prefill_tp": 64}, "use an FP8 cache"),
        (ENDLESS | {"prefill_tp": 8}, "use INT4 weights and cache"),
        (ENDLESS | {"prefill_tp": 16}, "use an INT4 cache"),
        (ENDLESS | {"prefill_tp": 64, "kv_dtype": "int4", "batch": 4}, "use RTX PRO 6000 Blackwell Server Edition"),
        (ENDLESS | {"prefill_tp": 8, "kv_dtype": "int4", "batch": 4, "prefill_accelerator": "l40s"}, "use B200 SXM"),
        ({"batch": 1024, "prompt_tokens": 2**20}, "only 1 request fits"),
        ({"model": "llama-2-7b", "prompt_tokens": 2**20, "batch": 1024, "prefill_tp": 1}, "use TP 8 or more for one request"),
        (
            {"model": "llama-2-7b", "prompt_tokens": 2**20, "kv_dtype": "fp32", "chunk_tokens": 2**20, "prefill_accelerator": "l40s"},
            "use an FP8 cache and TP 32",
        ),
    ],
)
def test_each_remedy(changes: dict[str, Any], remedy: str) -> None:
    scenario = Scenario(**changes)
    result = evaluate(scenario)
    assert result.reason.split(": ")[1] == remedy == expected(scenario, side_of(result.reason))
    assert not result.feasible
    assert result.ttft_seconds > result.prefill.seconds > 0


@settings(max_examples=settings().max_examples // 3)
@given(scenarios(longest=1_048_576, prompt_tokens=st.integers(1, 1_048_576), batch=st.sampled_from((1, 1, 4, 64, 1024))))
def test_the_remedy_is_the_first_that_would_do(scenario: Scenario) -> None:
    reason = evaluate(scenario).reason
    if reason and not plan_of(scenario).refusal:
        assert reason.split(": ")[1] == expected(scenario, side_of(reason))


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


@pytest.mark.parametrize("accelerator", sorted(accelerators()))
def test_a_reason_is_never_too_long(accelerator: str) -> None:
    for model, tp in product(sorted(models()), (1, 64)):
        scenario = Scenario(
            model=model, batch=1024, prompt_tokens=1_048_576, prefill_tp=tp, decode_tp=tp, prefill_accelerator=accelerator,
            weight_dtype="fp32", kv_dtype="int4",
        )  # fmt: skip
        assert len(evaluate(scenario).reason) <= LONGEST
