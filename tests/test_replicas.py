"""Attention replicas (attention DP): a request is on one of them, its tokens are shared for the feed-forward block alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel import Scenario, evaluate, find_model
from kvmodel.allreduce import all_reduces
from kvmodel.compute import phase_time, term_times
from kvmodel.explain.explain import explain
from kvmodel.placement import Placement
from kvmodel.registry import accelerators
from tests.strategies import MODELS

H200 = accelerators()["h200-sxm"]


def place(dp: int, tp: int = 8, model: str = "deepseek-v3") -> Placement:
    return Placement(find_model(model), H200, tp, dp, 1, "bf16", "auto")


def prefill(at: Placement, name: str, batch: int) -> float:
    term = next(term for term in term_times(at, "prefill") if term.name == name)
    return float(term.time.prefill(4096, 1000, batch))


def step(at: Placement, name: str, batch: int) -> float:
    term = next(term for term in term_times(at, "decode") if term.name == name)
    return float(term.time.step(4096, batch))


@pytest.mark.parametrize("batch", [1, 5, 8])
def test_replicas_that_have_a_request_attend_as_long_as_one_rank_does(batch: int) -> None:
    alone, replicas = place(1, tp=1), place(8)
    assert prefill(replicas, "attention", batch) == pytest.approx(prefill(alone, "attention", 1))
    for name in ("attention", "KV read"):
        assert step(replicas, name, batch) == pytest.approx(step(alone, name, 1))
        assert step(replicas, name, 9) == pytest.approx(step(alone, name, 2))


def test_projections_are_the_replicas_own_and_the_experts_are_shared() -> None:
    replicas, shared = place(8), place(1)
    for name in ("expert matmul", "expert weights"):
        assert prefill(replicas, name, 3) == pytest.approx(prefill(shared, name, 3)), name
    one, eight = (prefill(replicas, "matmul", batch) for batch in (1, 8))
    assert eight == pytest.approx(prefill(shared, "matmul", 8), rel=0.02)
    # a prompt's share on one rank over its share on eight; M parameters: latent attention, shared expert with router
    assert one / prefill(shared, "matmul", 1) == pytest.approx((187.1 + 45.9 / 8) / ((187.1 + 45.9) / 8), rel=0.1)


def test_one_prompt_is_slower_on_a_replica_than_on_all_ranks_and_a_full_batch_is_faster() -> None:
    on = Scenario(model="deepseek-v3", prefill_accelerator="h200-sxm", decode_accelerator="h200-sxm", prompt_tokens=4096)
    for batch, slower in ((1, True), (8, False)):
        tensor, data = (evaluate(on.with_changes(batch=batch, prefill_attention_dp=dp)).prefill.seconds for dp in (1, 8))
        assert (data > tensor) is slower, batch


@pytest.mark.parametrize(("dp", "rings", "count"), [(1, 2, 2), (8, 1, 2), (2, 1 + 3 / 4 / 2 / (7 / 8), 3)])
def test_replicas_gather_and_scatter_the_bytes_of_one_all_reduce(dp: int, rings: float, count: int) -> None:
    at = place(dp)
    reduces = all_reduces(at, at.model.groups[0])
    assert (reduces.rings, reduces.count) == (pytest.approx(rings), count)


@given(st.sampled_from(MODELS), st.sampled_from([2, 4, 8]), st.integers(1, 40), st.integers(1, 30_000))
def test_another_request_never_makes_a_pass_shorter(model: str, dp: int, batch: int, tokens: int) -> None:
    at = replace(place(dp, model=model), weight_dtype="bf16")
    for phase in ("prefill", "decode"):
        time = phase_time(at, phase)
        one, more = (time.prefill(tokens, 0, n) if phase == "prefill" else time.step(tokens, n) for n in (batch, batch + 1))
        assert more >= one * (1 - 1e-9), phase


def test_an_explanation_names_the_replica_that_counts_and_the_nics_and_the_peak_of_attention() -> None:
    large = Scenario(model="deepseek-v3", prefill_tp=16, prefill_attention_dp=16, ep=16)
    found = explain(large, "prefill.seconds")
    assert "the one with most requests" in found.words
    given = {row.name: row.value for row in found.inputs}
    assert (given["NICs of one GPU, H100 SXM"], given["Peak in bf16 (attention), H100 SXM"]) == (50e9, 989.4e12)
