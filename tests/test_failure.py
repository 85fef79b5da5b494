"""Handoffs that fail: the means against drawn failures, and the memory held."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel import Scenario, evaluate
from kvmodel.evaluate import amounts_of
from kvmodel.failure import Failure, failure, prefill_on_decode
from kvmodel.plan import plan_of
from kvmodel.traffic import Traffic
from tests.strategies import scenarios

RECOVERIES = ("retry", "resume", "recompute")


def of(scenario: Scenario, **traffic: Any) -> Failure:
    return failure(plan_of(scenario), amounts_of(scenario), Traffic(**traffic))


def drawn(scenario: Scenario, p: float, detection: float, recovery: str, requests: int = 40_000) -> tuple[float, float]:
    """(mean TTFT of the requests that failed at first, mean bytes sent in vain) of requests played one by one."""
    draw = np.random.default_rng(11)
    e, plan = evaluate(scenario), plan_of(scenario)
    local = prefill_on_decode(plan, amounts_of(scenario), scenario.prompt_tokens) - e.decode.step_seconds
    whole, waits, wasted = e.transfer.seconds, [], []
    for _ in range(requests):
        share = draw.random()
        clock = max(0.0, e.transfer.exposed_seconds - (1 - share) * whole) + detection
        lost, missing = (0.0 if recovery == "resume" else share), 1 - share
        if recovery == "recompute":
            clock += local
        while recovery != "recompute":
            length = missing if recovery == "resume" else 1.0
            if draw.random() >= p:
                clock += length * whole
                break
            done = draw.random()
            clock += done * length * whole + detection
            if recovery == "resume":
                missing -= done * missing
            else:
                lost += done
        waits.append(e.ttft_seconds - e.transfer.exposed_seconds + clock)
        wasted.append(lost * e.kv.wire_bytes)
    return float(np.mean(waits)), float(np.mean(wasted))


@pytest.mark.parametrize("overlap", ["serial", "layer"])
@pytest.mark.parametrize("recovery", RECOVERIES)
def test_means_are_those_of_requests_played_one_by_one(recovery: str, overlap: str) -> None:
    scenario = Scenario(link="ethernet-25", overlap=overlap)
    for p, detection in ((0.05, 0.2), (0.5, 1.0)):
        found = of(scenario, recovery=recovery, failure_probability=p, detection_seconds=detection)
        waited, wasted = drawn(scenario, p, detection, recovery)
        assert found.failed_ttft_seconds == pytest.approx(waited, rel=0.02)
        assert found.expected_ttft_seconds == pytest.approx((1 - p) * found.ttft_seconds + p * waited, rel=0.02)
        assert found.resent_bytes == pytest.approx(p * wasted, rel=0.03)


@given(scenarios(), st.sampled_from(RECOVERIES))
def test_no_failures_cost_nothing(scenario: Scenario, recovery: str) -> None:
    found = of(scenario, recovery=recovery, failure_probability=0.0)
    assert found.expected_ttft_seconds == found.ttft_seconds
    assert found.resent_bytes == 0
    assert found.decode_reserved_seconds >= evaluate(scenario).gap_seconds


@given(scenarios(), st.floats(0.001, 0.9), st.floats(0, 100))
def test_resuming_is_never_slower_than_sending_all_again(scenario: Scenario, p: float, detection: float) -> None:
    asked = {"failure_probability": p, "detection_seconds": detection}
    again, rest = of(scenario, recovery="retry", **asked), of(scenario, recovery="resume", **asked)
    assert rest.expected_ttft_seconds <= again.expected_ttft_seconds * (1 + 1e-12)
    assert rest.resent_bytes == 0
    assert again.expected_ttft_seconds >= again.ttft_seconds * (1 - 1e-12)


def test_recompute_makes_the_first_token_itself() -> None:
    """53.7 ms of wire and 0.41 s of prefill: a failed request takes prefill twice, half a transfer and the detection."""
    e = evaluate(Scenario())
    found = of(Scenario(), recovery="recompute", detection_seconds=1.0)
    assert found.failed_ttft_seconds == pytest.approx(2 * e.prefill.seconds + e.transfer.seconds / 2 + 1.0, rel=1e-6)


def test_where_prefill_releases_the_first_token_the_second_one_waits() -> None:
    scenario = Scenario(engine="splitwise")
    assert of(scenario).ttft_seconds == evaluate(scenario).second_token_seconds


def test_memory_waits_as_long_as_the_request_or_the_lease() -> None:
    found = of(Scenario(), failure_probability=0.0)
    assert found.prefill_held_bytes == 2_684_354_560
    assert found.prefill_held_seconds == pytest.approx(0.05368709)
    assert found.prefill_worst_seconds == 30.0
    assert found.decode_reserved_bytes == 2_684_354_560
    assert of(Scenario(link="wan-100"), lease_seconds=0.0).prefill_worst_seconds == pytest.approx(
        evaluate(Scenario(link="wan-100")).transfer.seconds
    )


def test_recompute_frees_the_cache_of_prefill_when_the_failure_is_known() -> None:
    p, detection, e = 0.3, 0.05, evaluate(Scenario())
    draw = np.random.default_rng(3)
    failed = draw.random(40_000) < p
    held = np.where(failed, draw.random(40_000) * e.transfer.seconds + detection, e.transfer.seconds)
    found = of(Scenario(), recovery="recompute", failure_probability=p, detection_seconds=detection)
    assert found.prefill_held_seconds == pytest.approx(held.mean(), rel=0.02)


def test_a_handoff_without_bytes_does_not_fail() -> None:
    found = of(Scenario(decode_held_tokens=8192), failure_probability=0.5)
    assert found.expected_ttft_seconds == found.failed_ttft_seconds == found.ttft_seconds


@given(st.lists(st.integers(1, 100_000), min_size=1, max_size=6), st.sampled_from(RECOVERIES))
def test_arrays_are_their_elements(tokens: list[int], recovery: str) -> None:
    plan, scenario = plan_of(Scenario()), Scenario()
    whole = failure(plan, amounts_of(scenario, prompt_tokens=np.array(tokens)), Traffic(recovery=recovery))
    for i, n in enumerate(tokens):
        one = failure(plan, amounts_of(scenario, prompt_tokens=n), Traffic(recovery=recovery))
        assert whole.expected_ttft_seconds[i] == pytest.approx(one.expected_ttft_seconds, rel=1e-12)
        assert whole.prefill_held_seconds[i] == pytest.approx(one.prefill_held_seconds, rel=1e-12)


def test_each_rank_with_a_copy_keeps_it() -> None:
    # MLA: every rank of TP 8 holds the whole latent; under attention DP one rank does
    copies = Scenario(model="deepseek-v3", decode_attention_dp=8, prompt_tokens=1000)
    found = failure(plan_of(copies), amounts_of(copies), Traffic())
    assert (found.prefill_held_bytes, found.decode_reserved_bytes) == (8 * 70_272_000, 70_272_000)
    staged = Scenario(prefill_pp=2, decode_tp=4)
    found = failure(plan_of(staged), amounts_of(staged), Traffic())
    assert (found.prefill_held_bytes, found.decode_reserved_bytes) == (2_684_354_560, 2_684_354_560)
