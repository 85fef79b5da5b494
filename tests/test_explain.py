"""Explanations: the very figure, terms that add up to it, formulas that give it again, remedies that do what they say."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvmodel import Scenario, Turn, UnknownNameError, agent_turn, critical_lengths, evaluate
from kvmodel.explain import Case, Explanation, explain, explained, figures_of, find_figure, formula_of
from kvmodel.registry import derates
from kvmodel.scenario import MAX_PROMPT_TOKENS
from kvmodel.terms import PREFILL_TERMS
from tests.strategies import AS_THE_ENGINE, scenarios, whole


def by_symbol(told: Explanation) -> dict[str, Any]:
    return {row.symbol: row.value for row in told.inputs if row.symbol}


def changes(told: Explanation) -> dict[str, dict[str, Any]]:
    return {remedy.change.replace("\u202f", " "): remedy.values for remedy in told.remedies}


@given(scenarios())
def test_the_figure_is_the_printed_one_and_its_terms_add_up_to_it(scenario: Scenario) -> None:
    result, case = evaluate(scenario), Case(scenario)
    for figure in figures_of("request"):
        value, formula = figure.value(case), formula_of(figure, case)
        assert value == attrgetter(figure.id)(result), figure.id
        largest = max(abs(part.value) for part in formula.parts)
        assert sum(part.value for part in formula.parts) == pytest.approx(value, rel=1e-9, abs=1e-9 * largest), figure.id
        if formula.band:
            assert formula.band[0] * (1 - 1e-12) <= value <= formula.band[1] * (1 + 1e-12), figure.id


@settings(max_examples=30)
@given(scenarios(longest=20_000), whole(0, 30_000), whole(1, 20_000))
def test_figures_of_a_turn_are_the_printed_ones_and_add_up(scenario: Scenario, history: int, delta: int) -> None:
    turn = Turn(history_tokens=history, delta_tokens=delta)
    case = Case(scenario, turn)
    printed = {design.id + ("" if design.warm else "-cold"): design for design in agent_turn(scenario, turn).designs}
    for figure in figures_of("turn"):
        design, _, name = figure.id.partition(".")
        value, parts = figure.value(case), formula_of(figure, case).parts
        assert value == getattr(printed[design], name), figure.id
        largest = max(abs(part.value) for part in parts)
        assert sum(part.value for part in parts) == pytest.approx(value, rel=1e-9, abs=1e-9 * largest), figure.id


@pytest.mark.parametrize("changed", [{}, {"link": "ethernet-25"}, {"engine": "vllm-nixl", "lanes": "auto"}])
def test_critical_lengths_are_the_printed_ones(changed: dict[str, Any]) -> None:
    scenario = Scenario(**changed)
    printed = critical_lengths(scenario)
    told = {figure.id: figure.value(Case(scenario)) for figure in figures_of("critical")}
    assert told["decode_step_tokens"] == printed.decode_step_tokens
    assert told["critical_bandwidth_bytes_per_s"] == printed.critical_bandwidth_bytes_per_s
    for name in ("hidden", "gap_over_share"):
        assert told[name] == tuple((span.from_tokens, span.to_tokens) for span in getattr(printed, name))


@pytest.mark.parametrize("model", ["llama-3-70b", "llama-2-7b", "mixtral-8x7b", "deepseek-v3"])
@pytest.mark.parametrize("kv_dtype", ["auto", "fp8"])
def test_bytes_follow_again_from_the_values_put_in(model: str, kv_dtype: str) -> None:
    scenario = Scenario(model=model, kv_dtype=kv_dtype)
    put = by_symbol(explain(scenario, "kv.bytes_per_token"))
    row = put["R"] + put["P"] if "R" in put else put["H"] * (put["K"] + put["V"])
    assert put["L"] * row * put["b"] == evaluate(scenario).kv.bytes_per_token
    put = by_symbol(explain(scenario, "kv.prompt_bytes"))
    assert put["n"] * put["B_row"] == evaluate(scenario).kv.prompt_bytes


@settings(max_examples=30)
@given(scenarios(**{**AS_THE_ENGINE, "engine": "ideal", "wire_dtype": "same"}))
def test_times_follow_again_from_the_values_put_in(scenario: Scenario) -> None:
    result, case = evaluate(scenario), Case(scenario)

    def put(name: str) -> dict[str, Any]:
        return {row.symbol: row.value for row in formula_of(find_figure(name, figures_of("request", "critical")), case).given}

    wire, first = put("transfer.seconds"), put("ttft_seconds")
    assert wire["B"] * wire.get("s", 1) / (wire["n"] * wire["W"] * wire.get("a", 1)) == pytest.approx(result.transfer.seconds, rel=1e-12)
    fixed = first["t_handoff"] + first["t_admission"]
    assert first["t_prefill"] + first["t_exposed"] + fixed + first["t_step"] == pytest.approx(result.ttft_seconds, rel=1e-12)
    if result.kv.wire_bytes:
        bandwidth = put("critical_bandwidth_bytes_per_s")
        assert bandwidth["B"] / bandwidth["t_prefill"] == pytest.approx(critical_bandwidth_of(case), rel=1e-12)


@pytest.mark.parametrize("changed", [{}, {"lanes": "auto", "shared_by": 3}, {"model": "deepseek-v3", "message_seconds": 1e-5}])
def test_a_gap_follows_again_from_the_values_put_in(changed: dict[str, Any]) -> None:
    """vLLM NIXL posts, then sends: bytes over the bandwidth reached, messages, latency once, and the fixed times."""
    told = explain(Scenario(engine="vllm-nixl", **changed), "gap_seconds")
    put = by_symbol(told)
    sends = put["B"] * put.get("s", 1) / (put["n"] * put["a"] * put["W"])
    again = sends + put["m"] * put["o"] + put["α"] + put["t_handoff"] + put["t_admission"]
    assert again == pytest.approx(told.value, rel=1e-12)


def critical_bandwidth_of(case: Case) -> Any:
    return find_figure("critical", figures_of("critical")).value(case)


def test_each_term_of_prefill_is_its_constant_times_its_time_at_peak() -> None:
    # Llama 3 70B on 8 H100: 80 layers x 9 kernels; each query sees itself and all before it, 64 heads, 2 products of 128 elements
    parts = {part.name: part for part in explain(Scenario(), "prefill").terms}
    launch, attention = (derates()["h100-sxm"].prefill_bf16.constants[PREFILL_TERMS.index(name)] for name in ("launch", "attention"))
    assert parts["Kernel launches"].how == f"{launch * 1e6:.4g} µs × 720 kernels"
    pairs = 8192 * 8193 / 2
    at_peak = 80 * pairs * 64 * 2 * 2 * 128 / (8 * 989.4e12)
    assert parts["Attention"].value == pytest.approx(attention * at_peak)
    assert parts["Attention"].how == f"{attention:.4g} × {at_peak * 1e3:.4g} ms at peak"


def test_what_halves_the_published_transfer() -> None:
    told = explain(Scenario(), "transfer.seconds")
    assert told.filled == "2.684 GB ÷ (1 × 50 GB/s)"
    assert told.goal == "Halve it"
    assert changes(told) == {
        "a prompt of 4,096 tokens": {"prompt_tokens": 4096},
        "4,096 tokens held by decode": {"decode_held_tokens": 4096},
        "FP8 KV": {"kv_dtype": "fp8"},
        "INT4 on the wire": {"wire_dtype": "int4"},  # FP8 would, but for the time to quantize
        "2 lanes": {"lanes": 2},
        "InfiniBand XDR 800 as the link": {"link": "ib-xdr-800"},
        "lanes that reach 100 GB/s": {"link_gbytes_per_s": 100.0},
    }
    assert all(remedy.share is not None and remedy.share <= 0.5 for remedy in told.remedies)


@settings(max_examples=12)
@given(scenarios(longest=20_000), st.sampled_from(["kv.wire_bytes", "transfer.seconds", "gap_seconds", "ttft_seconds"]))
def test_a_remedy_does_what_it_says_and_no_less_would(scenario: Scenario, figure: str) -> None:
    told = explain(scenario, figure)
    feasible = evaluate(scenario).feasible
    for remedy in told.remedies:
        changed = evaluate(scenario.with_changes(**remedy.values))
        assert attrgetter(figure)(changed) == remedy.value
        assert remedy.value <= told.value / 2 * (1 + 1e-9)
        assert changed.feasible or not feasible
        if remedy.input in ("prompt_tokens", "batch"):
            less = scenario.with_changes(**{remedy.input: remedy.values[remedy.input] + 1})
            assert attrgetter(figure)(evaluate(less)) > told.value / 2 or getattr(less, remedy.input) == getattr(scenario, remedy.input)
    if told.nearest:
        nearest = attrgetter(figure)(evaluate(scenario.with_changes(**told.nearest.values)))
        assert told.value / 2 < nearest < told.value


def test_what_halves_a_wait_without_a_longer_prefill_goes_before_chunks() -> None:
    """Layer by layer leaves one layer's 0.671 ms less the head's time; chunks would leave 13.4 ms and make prefill 47 ms longer."""
    assert changes(explain(Scenario(), "gap_seconds"))["overlap layer"] == {"overlap": "layer"}
    for remedy in explain(Scenario(), "gap_seconds").remedies:
        assert evaluate(Scenario(**remedy.values)).ttft_seconds < evaluate(Scenario()).ttft_seconds


def test_where_no_single_input_halves_a_figure_the_nearest_is_named() -> None:
    told = explain(Scenario(model="llama-3.1-8b"), "decode")
    assert told.remedies == ()
    assert told.nearest is not None
    assert told.nearest.share is not None
    assert 0.5 < told.nearest.share < 1


def test_more_is_better_of_a_critical_length() -> None:
    told = explain(Scenario(link="ethernet-25"), "decode_step")
    assert told.goal == "Double it"
    for remedy in told.remedies:
        again = critical_lengths(Scenario(link="ethernet-25").with_changes(**remedy.values)).decode_step_tokens
        assert again is None or again >= 2 * told.value
    never = explain(Scenario(decode_held_tokens=MAX_PROMPT_TOKENS), "decode_step")
    assert (never.value, never.remedies, never.nearest) == (None, (), None)


@pytest.mark.parametrize("engine", ["ideal", "vllm-nixl", "lmcache-pd", "sglang-mooncake", "splitwise"])
def test_every_value_says_where_it_comes_from(engine: str) -> None:
    scenario = Scenario(engine=engine, lanes="auto", wire_dtype="fp8")
    for figure in figures_of("request", "critical", "turn"):
        told = formula_of(figure, Case(scenario))
        assert told.words
        assert told.symbols
        for row in told.given:
            if row.origin in ("engine", "data", "fit"):
                assert row.source, (figure.id, row)
                assert row.checked is not None, (figure.id, row)
                assert ".toml " in row.row, (figure.id, row)
            if row.origin == "default":
                assert row.symbol != "n" or row.value in (8192, 1)


def test_what_the_reader_set_is_the_reader_s() -> None:
    scenario = Scenario(engine="vllm-nixl", achieved=0.5, prompt_tokens=1000, prefill_seconds=0.2)
    rows = {row.name: row for row in explain(scenario, "gap_seconds").inputs}
    assert (rows["Achieved share of nominal"].origin, rows["Achieved share of nominal"].value) == ("you", 0.5)
    assert rows["Fixed handoff"].origin == "engine"
    measured = explain(scenario, "prefill.seconds")
    assert [(row.name, row.origin, row.value) for row in measured.inputs] == [("Measured prefill", "you", 0.2)]
    assert measured.low is None


def test_what_stays_nominal_or_is_assumed_cites_no_row_that_says_otherwise() -> None:
    late = {row.name: row for row in explain(Scenario(latency_seconds=0.001), "transfer").inputs}
    assert (late["Achieved share of nominal"].value, late["Achieved share of nominal"].origin) == (1.0, "engine")
    assert late["Link latency"].origin == "you"
    chunked = {row.name: row for row in explain(Scenario(overlap="chunk"), "gap").inputs}
    assert (chunked["Chunk tokens"].value, chunked["Chunk tokens"].origin) == (2048, "default")
    assert {row.name: row for row in explain(Scenario(engine="lmcache-pd"), "gap").inputs}["Chunk tokens"].origin == "engine"


def test_a_figure_is_found_by_its_beginning_and_a_wrong_name_lists_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="nearest: ttft_seconds"):
        explain(Scenario(), "ttfx_seconds")
    assert explained(find_figure("exposed", figures_of("request")), Case(Scenario())).figure == "transfer.exposed_seconds"


def test_plain_values_for_json() -> None:
    tree = explain(Scenario(), "transfer.seconds").as_dict()
    assert {row["checked"] for row in tree["inputs"]} <= {None, "2026-11-29"}
    assert tree["remedies"][0]["values"] == {"prompt_tokens": 4096}
