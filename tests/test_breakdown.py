"""Where the time goes: the terms of a transfer and of a gap add up to them, and each is what it says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from kvmodel import Scenario, evaluate, sweep
from kvmodel.breakdown import NAMES, gap_terms, message_bytes, transfer_terms
from kvmodel.evaluate import amounts_of
from kvmodel.plan import plan_of
from kvmodel.registry import accelerators, links, transports
from tests.strategies import scenarios

GQA_8K = 2_684_354_560  # Llama 3 70B, 8,192 tokens, bf16


def transfer(scenario: Scenario) -> dict[str, float]:
    return {term.id: term.seconds for term in transfer_terms(plan_of(scenario), amounts_of(scenario))}


def gap(scenario: Scenario) -> dict[str, float]:
    return {term.id: term.seconds for term in gap_terms(plan_of(scenario), amounts_of(scenario))}


@given(scenarios())
def test_the_terms_of_a_transfer_add_up_to_it(scenario: Scenario) -> None:
    terms, whole = transfer(scenario), evaluate(scenario).transfer.seconds
    assert sum(terms.values()) == pytest.approx(whole, rel=1e-12, abs=1e-15)
    assert all(seconds >= -1e-12 * whole for seconds in terms.values())


@given(scenarios())
def test_the_terms_of_the_gap_add_up_to_it(scenario: Scenario) -> None:
    terms, result = gap(scenario), evaluate(scenario)
    assert sum(terms.values()) == pytest.approx(result.gap_seconds, rel=1e-9, abs=1e-12 * (1 + result.transfer.seconds))
    assert list(terms) == list(NAMES)


def test_terms_of_a_sweep_are_arrays() -> None:
    scenario = Scenario(engine="vllm-nixl")
    plan, lengths = plan_of(scenario), np.array([128, 8192])
    total = sum(term.seconds for term in transfer_terms(plan, amounts_of(scenario, prompt_tokens=lengths)))
    np.testing.assert_allclose(total, sweep(scenario, prompt_tokens=lengths).transfer.seconds, rtol=1e-12)


def test_ideal_is_bytes_alone() -> None:
    terms = transfer(Scenario())
    assert terms.pop("bytes") == pytest.approx(GQA_8K / 50e9)
    assert set(terms.values()) == {0.0}


def test_every_term_is_what_its_name_says() -> None:
    h100 = accelerators()["h100-sxm"]
    every = Scenario(
        engine="tensorrt-llm", decode_tp=16, shared_by=2, wire_dtype="int8", host_bounce="yes", achieved=0.8, latency_seconds=1e-3,
        lanes=8, message_seconds=1e-5, outstanding_messages=None, contact="first", handshake_seconds=7, handoff_seconds=0.25,
        admission_seconds=0.125,
    )  # fmt: skip
    terms, lane_bytes = gap(every), GQA_8K / 2 / 8
    ceiling = transports()["transfer-engine"].constants.host_bandwidth / 8
    pcie = transports()["pcie"].constants.achieved * h100.host_bandwidth
    rank = 2 * GQA_8K / 8
    assert terms["bytes"] == pytest.approx(lane_bytes / 50e9)
    assert terms["copies"] == pytest.approx(lane_bytes / 50e9)  # 8 KV heads on 16 ranks
    assert terms["achieved"] == pytest.approx(2 * lane_bytes * (1 / 40e9 - 1 / 50e9))
    assert terms["ceiling"] == pytest.approx(2 * lane_bytes * (1 / ceiling - 1 / 40e9))
    assert terms["sharing"] == pytest.approx(2 * lane_bytes / ceiling)
    assert terms["staging"] == pytest.approx(rank * 2 * 2 * 0.5 / 3.35e12)
    assert terms["host"] == pytest.approx(rank * 0.5 * 2 / pcie)
    assert terms["quantize"] == terms["dequantize"] == pytest.approx(rank * 1.5 / 3.35e12)
    assert terms["latency"] == pytest.approx(1e-3)
    assert (terms["handshake"], terms["handoff"], terms["admission"]) == (7, 0.25, 0.125)
    assert terms["hidden"] == 0.0  # serial


def test_what_hides_is_taken_off() -> None:
    layered = Scenario(engine="layerwise-push", prefill_seconds=2.0)
    result, terms = evaluate(layered), gap(layered)
    assert terms["hidden"] == pytest.approx(result.transfer.exposed_seconds - result.transfer.seconds)
    assert terms["hidden"] < -0.9 * result.transfer.seconds


def test_what_was_measured_loses_nothing_to_the_link() -> None:
    terms = transfer(Scenario(engine="vllm-mooncake", link_gbytes_per_s=10.0, message_seconds=0.0))
    assert terms["bytes"] == pytest.approx(GQA_8K / 10e9)
    assert terms["achieved"] == terms["ceiling"] == 0.0


def test_posting_counts_as_far_as_it_is_not_hidden() -> None:
    # 80 layers x 512 blocks, all apart: 40,960 messages a rank
    one = Scenario(engine="vllm-mooncake", fragmentation=1.0, message_seconds=1e-5)
    sends = GQA_8K / (50e9 * links()["ib-ndr-400"].achieved)
    assert transfer(one)["posting"] == pytest.approx(40_960 * 1e-5 - sends)
    assert transfer(one.with_changes(engine="vllm-nixl"))["posting"] == pytest.approx(40_960 * 1e-5)  # posts first, then sends
    assert transfer(one.with_changes(posting_threads=64))["posting"] == 0.0


def test_a_message_has_its_mean_size() -> None:
    scenario = Scenario(engine="vllm-mooncake", fragmentation=1.0)
    # a block of 16 tokens of a rank's head, keys and values: 8 KiB whatever the lanes (serving_systems, table of messages)
    for lanes in (1, 8, "auto"):
        on = scenario.with_changes(lanes=lanes)
        assert message_bytes(plan_of(on), amounts_of(on)) == pytest.approx(8192)
    sliced = scenario.with_changes(decode_tp=4)  # two prefill ranks send a slice each of what a decode rank holds
    assert message_bytes(plan_of(sliced), amounts_of(sliced)) == pytest.approx(8192)
    for way in ("per-rank", "single"):
        latent = scenario.with_changes(model="deepseek-v3", mla_copies=way, decode_tp=16)
        assert message_bytes(plan_of(latent), amounts_of(latent)) == pytest.approx(16 * 576 * 2)
    held = scenario.with_changes(decode_held_tokens=8192)
    assert message_bytes(plan_of(held), amounts_of(held)) == 0.0


@pytest.mark.parametrize("engine", ["sglang-mooncake", "lmcache-pd"])
def test_nothing_hidden_is_nothing(engine: str) -> None:
    """One chunk holds the whole prompt: rounding is no time that hides."""
    for decode_tp in (4, 8):
        scenario = Scenario(engine=engine, decode_tp=decode_tp)
        terms = {term.id: term.seconds for term in gap_terms(plan_of(scenario), amounts_of(scenario))}
        assert terms["hidden"] == 0
