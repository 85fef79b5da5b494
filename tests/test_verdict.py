"""The answer in a sentence: each template with its numbers, one coloured quantity, at most 125 characters."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel import Scenario, evaluate
from kvmodel.capacity import decode_memory, prefill_memory
from kvmodel.display import NARROW_SPACE
from kvmodel.evaluate import amounts_of
from kvmodel.plan import plan_of
from kvmodel.reason import reason_of
from kvmodel.verdict import answer, plain
from tests.strategies import OVERLAPS, WORDIEST, WORDIEST_ACCELERATORS, scenarios

LONGEST = 125
MEASURED = {"prefill_seconds": 0.4, "decode_step_seconds": 0.020}


def spaced(text: str) -> str:
    """A sentence with a narrow space before each unit, as the page sets it."""
    for unit in ("ms", "s", "µs", "GB", "B", "%"):
        text = text.replace(f"~{unit}", NARROW_SPACE + unit)
    return text


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        # 53.687 ms of 0.4 + 0.0537 + 0.02 s, and of 0.4 + 0.0537 + 500 x 0.02 = 10.4537 s: half a percent, as published
        (MEASURED, "The handoff adds 53.7~ms of 474~ms to the first token, 0.514~% of the whole request."),
        ({"decode_held_tokens": 8192}, "Decode already holds this prompt: 0~B to move."),
        # the last of 80 layers: 0.671 ms
        ({**MEASURED, "overlap": "layer"}, "The wire hides behind prefill: of 53.7~ms on the link, decode waits for 0.671~ms."),
        # 2,684,354,560 B / 1.25 GB/s = 2.147 s; layer by layer 80 x - 79 c = 2.147 - 0.395
        (
            {**MEASURED, "link": "ethernet-10"},
            "Nothing is hidden: 2.15~s of 2.57~s to the first token is the wire; layer by layer, decode would wait 1.75~s.",
        ),
        # with 0.1 s of fixed handoff behind the bytes: 2.147 + 0.1, and so much of the wait layer by layer
        (
            {**MEASURED, "link": "ethernet-10", "handoff_seconds": 0.1},
            "Nothing is hidden: 2.25~s of 2.67~s to the first token is the handoff; layer by layer, decode would wait 1.85~s.",
        ),
        # where prefill releases the first token, the wire is no part of its time
        (
            {"prefill_seconds": 0.4, "link": "ethernet-10", "released_by": "prefill", "first_token": "prefill"},
            "Nothing is hidden: after the first token, the second waits 2.15~s for the wire; layer by layer, decode would wait 1.75~s.",
        ),
        # four chunks of 2,048, less full passes: 394 ms in place of 347; the last chunk is a fourth of 53.7 ms, 40.3 ms less
        (
            {"overlap": "chunk"},
            "Chunks hide the wire but for 13.4~ms and make prefill 47.1~ms longer: the first token comes 6.82~ms later than sent whole.",
        ),
        # where prefill releases the first token, it is the next one that the last chunk delays
        (
            {"overlap": "chunk", "released_by": "prefill", "first_token": "prefill"},
            "Chunks hide the wire but for 13.4~ms and make prefill 47.1~ms longer: the second token comes 6.82~ms later than sent whole.",
        ),
        # 33.55 ms a layer behind 10 ms: (800 - 10) / 33.55 = 23 have crossed
        (
            {"prefill_seconds": 0.8, "link_gbytes_per_s": 1.0, "overlap": "layer"},
            "Link-bound: 57 of 80 layers have yet to cross when prefill ends, and decode waits 1.89~s.",
        ),
        # two chunks of 0.2 s, each 0.19 s on the wire: 0.19 of 0.61 s
        (
            {**MEASURED, "prompt_tokens": 4096, "chunk_tokens": 2048, "overlap": "chunk", "link_gbytes_per_s": 2048 * 327_680 / 0.19e9},
            "Once prefill ends, decode waits for 31.1~% of the first token's time: past the 20~% mark.",
        ),
        # 4 ms of dispatch and admission; TTFT 0.4 + 0.02 + 4 ms and the last layer's
        (
            {"prefill_seconds": 0.3, "decode_step_seconds": 0.020, "overlap": "layer", "engine": "layerwise-push", "lanes": 8},
            "The bytes hide; the 4.00~ms of fixed handoff does not, and it is 1.23~% of the first token's time.",
        ),
        # 5 + 2 ms and 11 us, against 0.87 ms of bytes at 48 GB/s
        ({**MEASURED, "engine": "vllm-nixl", "prompt_tokens": 128}, "At 128 tokens the fixed cost, 7.01~ms, outweighs the bytes."),
        # 141.1 GB, of which 0.9 x 80 GB fit a GPU: 70.6 + 1.3 GB at TP 2
        (
            {"prefill_tp": 1, "decode_tp": 8},
            "141~GB of weights do not fit on 1 × H100 SXM (prefill): use TP 2 or more.",
        ),
        # 64 x 2.68 GB of prompts and 35.3 GB of weights a rank
        (
            {"prefill_tp": 4, "batch": 64},
            "141~GB of weights and 172~GB of cache exceed 4 × H100 SXM (prefill): use TP 8 or more.",
        ),
        (
            {"model": "phi-4", "prefill_tp": 4, "decode_tp": 1},
            "10 KV heads neither divide by TP 4 nor divide it on the prefill side: use TP 5.",
        ),
    ],
)  # fmt: skip
def test_each_sentence(changes: dict[str, Any], sentence: str) -> None:
    assert evaluate(Scenario(**changes)).verdict == spaced(sentence)


@given(scenarios(longest=1_048_576, overlap=st.sampled_from((None, *OVERLAPS))))
def test_a_sentence_is_short_ends_once_and_colours_one_quantity(scenario: Scenario) -> None:
    result = evaluate(scenario)
    parts = answer(plan_of(scenario), amounts_of(scenario), scenario, result)
    assert plain(parts) == result.verdict
    assert len(result.verdict) <= LONGEST
    assert result.verdict[0].isupper() or result.verdict[0].isdigit()
    assert result.verdict.endswith(".")
    coloured = [part[1] for part in parts if part[1]]
    assert coloured in ([["exposed"], ["wire"]] if result.feasible else [[]])
    assert [len(part) for part in parts if part[1]] == [3] * len(coloured)  # it names the figure that explains it


@pytest.mark.parametrize("accelerator", WORDIEST_ACCELERATORS)
@pytest.mark.parametrize("tp", [1, 8, 64])
def test_the_longest_names_still_make_a_short_sentence(accelerator: str, tp: int) -> None:
    for model in WORDIEST:
        scenario = Scenario(
            model=model, batch=1024 if tp == 8 else 1, prompt_tokens=1_048_576, prefill_tp=tp, decode_tp=tp, prefill_pp=1,
            prefill_accelerator=accelerator, decode_accelerator=accelerator, weight_dtype="fp32",
        )  # fmt: skip
        assert len(evaluate(scenario).verdict) <= LONGEST


@given(scenarios(longest=1_048_576))
def test_a_reason_stands_exactly_where_a_scenario_is_infeasible(scenario: Scenario) -> None:
    result, plan, amounts = evaluate(scenario), plan_of(scenario), amounts_of(scenario)
    fits = prefill_memory(plan, amounts).fits and decode_memory(plan, amounts).fits
    assert result.feasible == (fits and not plan.refusal)
    assert bool(result.reason) is (not result.feasible)
    assert reason_of(plan, amounts, scenario) == result.reason


@given(scenarios(longest=1_048_576, prefill_pp=1, decode_pp=1))
def test_the_tp_that_a_reason_names_fits_that_side(scenario: Scenario) -> None:
    reason = evaluate(scenario).reason
    if ": use TP " in reason and "or more" in reason:
        side = "prefill" if "(prefill)" in reason else "decode"
        tp = int(reason.split(": use TP ")[1].split()[0])
        better = scenario.with_changes(**{f"{side}_tp": tp, f"{side}_attention_dp": 1})
        plan, amounts = plan_of(better), amounts_of(better)
        assert (prefill_memory if side == "prefill" else decode_memory)(plan, amounts).fits
        assert not getattr(plan, side).refusal


def test_replicas_that_do_not_fit_are_told_to_shard() -> None:
    scenario = Scenario(decode_tp=8, decode_attention_dp=8, decode_batch=1, prompt_tokens=200_000)
    reason = evaluate(scenario).reason
    assert reason.endswith("(decode): use attention DP 1")
    assert evaluate(scenario.with_changes(decode_attention_dp=1)).feasible


def test_messages_that_outweigh_the_bytes_are_named_and_not_called_fixed() -> None:
    result = evaluate(Scenario(engine="nvlink-cuda-ipc", link="nvlink-4", prompt_tokens=32_768))
    bare = result.kv.wire_bytes / result.transfer.bandwidth_bytes_per_s
    assert result.verdict.startswith("Messages, not bytes, fill the wire: ")
    assert f"{result.transfer.messages:,.0f} a rank" in result.verdict
    assert result.transfer.seconds > 2 * bare


def test_copies_through_the_host_are_not_called_messages() -> None:
    result = evaluate(Scenario(engine="vllm-nixl", host_bounce="yes", prefill_tp=1, decode_tp=1, model="llama-3.1-8b", fragmentation=0.0))
    bare = result.kv.wire_bytes / result.transfer.bandwidth_bytes_per_s
    assert result.transfer.seconds > 2 * bare
    assert "essages" not in result.verdict


TCP = {"link": "ethernet-100", "prefill_seconds": 0.4, "decode_step_seconds": 0.020}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        # 2.684 GB / 12.5 GB/s, of which TCP in the kernel carries 38 %
        ({}, "Nothing is hidden: 215~ms of 635~ms to the first token is the wire; real engines get at most 38.0~% of the link’s rate."),
        (
            {"overlap": "layer"},
            "The wire hides behind prefill: of 215~ms on the link, decode waits for 2.68~ms; engines get at most 38.0~% of the rate.",
        ),
        (
            {"prompt_tokens": 1024},
            "The handoff adds 26.8~ms of 447~ms to the first token, 0.257~% of the whole request; engines get at most 38.0~% of the rate.",
        ),
    ],
)
def test_a_link_at_its_full_rate_says_how_much_of_it_engines_reach(changes: dict[str, Any], sentence: str) -> None:
    assert evaluate(Scenario(**TCP, **changes)).verdict == spaced(sentence)


@pytest.mark.parametrize(
    "changes", [{"link": "roce-100"}, {"engine": "vllm-nixl"}, {"link_gbytes_per_s": 12.5}, {"decode_held_tokens": 8192}]
)
def test_it_is_not_said_of_what_engines_reach_or_what_was_measured(changes: dict[str, Any]) -> None:
    assert "engines get" not in evaluate(Scenario(**{**TCP, **changes})).verdict
