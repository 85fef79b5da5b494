"""The command line: keys, numbers and refusals as they are promised to scripts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

import kvmodel
from app.cli import main, plain_numbers
from kvmodel import Scenario
from kvmodel.turn import Turn
from tests.strategies import scenarios

KEYS: dict[str, Any] = {
    "kv": ["bytes_per_token", "window_bytes_max", "state_bytes", "prompt_bytes", "prefill_rank_bytes", "decode_rank_bytes", "wire_bytes"],
    "transfer": ["lanes", "bandwidth_bytes_per_s", "messages", "seconds", "exposed_seconds"],
    "prefill": ["flop", "seconds", "low", "high"],
    "decode": ["step_seconds", "low", "high"],
    "memory": ["prefill", "decode"],
}
EVALUATE = [
    "scenario", "feasible", "reason", "kv", "transfer", "prefill", "decode", "gap_seconds", "gap_share", "ttft_seconds",
    "second_token_seconds", "tpot_seconds", "request_seconds", "bound", "memory", "verdict", "band_note", "notes",
    "remedies", "version",
]  # fmt: skip
MODEL = [
    "id", "name", "kv_bytes_per_token", "window_bytes_max", "state_bytes", "prompt_bytes", "total_params", "active_params", "assumed",
    "warnings", "notes", "rank",
]  # fmt: skip
RANK = ["tp", "kv_bytes_per_token", "window_bytes_max", "state_bytes", "prompt_bytes", "valid", "reason"]
DESIGN = ["id", "warm", "unique_bytes", "wire_bytes", "edges", "prefill_tokens", "ttft_seconds", "stall_seconds"]

Capture = pytest.CaptureFixture[str]


def strict(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def answer(capsys: Capture, *words: object) -> dict[str, Any]:
    assert main([*map(str, words), "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.count("\n") == 1
    found: dict[str, Any] = strict(out)
    return found


# evaluate


def test_evaluate_prints_every_key_and_the_published_numbers(capsys: Capture) -> None:
    found = answer(capsys, "evaluate", "--prompt-tokens", 8192)
    assert list(found) == EVALUATE
    assert {name: list(found[name]) for name in KEYS} == KEYS
    assert list(found["scenario"]) == list(Scenario.model_fields)
    assert found["kv"]["prompt_bytes"] == 2_684_354_560
    assert found["transfer"]["seconds"] == pytest.approx(0.0537, rel=0.02)
    assert found["version"] == kvmodel.__version__


@given(scenario=scenarios())
def test_what_is_printed_is_the_evaluation(scenario: Scenario) -> None:
    words = [word for name, value in scenario.changed().items() for word in (f"--{name.replace('_', '-')}", str(value))]
    with pytest.MonkeyPatch.context() as patch:
        printed: list[str] = []
        patch.setattr("builtins.print", lambda text, **_: printed.append(text))
        assert main(["evaluate", "--json", *words]) == 0
    found, result = strict(printed[0]), kvmodel.evaluate(scenario)
    assert found["scenario"] == plain_numbers(dict(scenario))
    assert found["ttft_seconds"] == pytest.approx(result.ttft_seconds)
    assert found["kv"]["wire_bytes"] == pytest.approx(result.kv.wire_bytes)
    assert (found["bound"], found["verdict"], found["feasible"]) == (result.bound, result.verdict, result.feasible)


@pytest.mark.parametrize("name", sorted(Scenario.model_fields))
def test_every_field_is_a_flag_in_both_spellings(name: str, capsys: Capture) -> None:
    value = {
        "model": "llama-3.1-8b",
        "link": "roce-400",
        "engine": "vllm-nixl",
        "overlap": "layer",
        "kv_dtype": "fp8",
        "weight_dtype": "fp8",
    }
    value |= {
        "wire_dtype": "int8",
        "prefill_accelerator": "h200-sxm",
        "decode_accelerator": "b200-sxm",
        "lanes": "auto",
        "chunk_tokens": "16",
        "achieved": "0.5",
        "fragmentation": "0.5",
        "message_seconds": "0.5",
        "gather": "yes",
        "cross_layer": "yes",
        "host_bounce": "yes",
        "mla_copies": "split",
        "posts_while_sending": "yes",
        "skips_held": "no",
        "early_prefix": "yes",
        "unequal_tp": "tokens",
        "first_token": "prefill",
        "released_by": "decode",
        "contact": "first",
        "group_layers": "8",
        "direction": "pull",
        **dict.fromkeys(("nominal_link", "keeps_all_chunked", "gathers_copied_heads", "nvfp4_equal_tp", "same_node_only"), "yes"),
    }
    text = value.get(name, "2")
    flag = "--" + name.replace("_", "-")
    spaced, joined = answer(capsys, "evaluate", flag, text), answer(capsys, "evaluate", f"{flag}={text}")
    assert spaced == joined
    assert str(spaced["scenario"][name]) == text


def test_infeasible_is_an_answer(capsys: Capture) -> None:
    found = answer(capsys, "evaluate", "--model", "llama-3.1-405b", "--prefill-tp", 1, "--decode-tp", 1)
    assert found["feasible"] is False
    # 405 B parameters in BF16 over 72 usable GB
    assert found["reason"] == "812\u202fGB of weights do not fit on 1 × H100 SXM, prefill and decode alike: use TP 8 with PP 2"
    assert {way["side"] for way in found["remedies"]} == {"prefill", "decode"}
    first = {"prefill_tp": 8, "prefill_attention_dp": 1, "prefill_pp": 2}
    assert (found["remedies"][0]["use"], found["remedies"][0]["changes"]) == ("use TP 8 with PP 2", first)
    assert found["ttft_seconds"] == pytest.approx(found["prefill"]["seconds"] + found["gap_seconds"] + found["decode"]["step_seconds"])


# the other commands


def test_critical_prints_every_key(capsys: Capture) -> None:
    found = answer(capsys, "critical", "--link", "ethernet-100", "--decode-step-seconds", "0.030")
    assert list(found)[:4] == ["decode_step_tokens", "hidden", "gap_over_share", "critical_bandwidth_bytes_per_s"]
    assert (found["feasible"], found["reason"]) == (True, "")
    assert found["decode_step_tokens"] == pytest.approx(1144, abs=2)
    assert found["hidden"]
    assert all(list(span) == ["from_tokens", "to_tokens"] for span in found["hidden"] + found["gap_over_share"])
    assert answer(capsys, "critical", "--decode-held-tokens", 2**20)["decode_step_tokens"] is None


def test_turn_prints_every_design_with_its_edges(capsys: Capture) -> None:
    found = answer(capsys, "turn", "--history-tokens", 30_000, "--delta-tokens", 2_000, "--generated-tokens", 500)["designs"]
    assert [(row["id"], row["warm"]) for row in found] == [
        ("recompute", True), ("pool", True), ("pool", False), ("sticky", True), ("pull-back", True),
    ]  # fmt: skip
    assert all(set(DESIGN) <= set(row) for row in found)
    assert all(list(edge) == ["from", "to", "bytes", "seconds"] for row in found for edge in row["edges"])
    assert {node for row in found for edge in row["edges"] for node in (edge["from"], edge["to"])} == {"agent", "prefill", "decode", "pool"}
    weights = {(row["id"], row["warm"]): row["unique_bytes"] / 1e9 for row in found}
    assert weights["recompute", True] == pytest.approx(10.49, abs=0.005)
    assert weights["pool", True] == pytest.approx(0.82, abs=0.005)
    assert weights["sticky", True] == 0


def test_turn_takes_its_own_flags_and_the_scenario_s(capsys: Capture) -> None:
    flags = {
        "history-tokens": 10_000,
        "delta-tokens": 100,
        "turns": 3,
        "pool-held-tokens": 9_000,
        "local-prefill-tokens": 0,
        "link": "roce-400",
    }
    found = answer(capsys, "turn", *(word for name, value in flags.items() for word in (f"--{name}", value)))
    asked = Turn(history_tokens=10_000, delta_tokens=100, turns=3, pool_held_tokens=9_000, local_prefill_tokens=0)
    assert found.pop("feasible")
    assert found.pop("reason") == ""
    note = "Beyond the context of Llama 3 70B: 10,100 tokens of prompt, its makers state 8,192."
    assert found.pop("notes") == [note]
    assert found == plain_numbers(kvmodel.agent_turn(Scenario(link="roce-400"), asked).as_dict())


def test_a_reader_that_stops_listening_is_no_error() -> None:
    command = f"{sys.executable} -m app.cli list models --json | head -c 10"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", '{"models":')


@pytest.mark.parametrize(("name", "bytes_"), [("llama-3-70b", 327_680), ("meta-llama/Llama-3.1-8B", 131_072), ("deepseek-v3", 70_272)])
def test_model_prints_every_key(name: str, bytes_: int, capsys: Capture) -> None:
    found = answer(capsys, "model", name, "--tp", 8, "--kv-dtype", "bf16", "--tokens", 1000)
    assert list(found)[: len(MODEL)] == MODEL
    assert [key for key in found["rank"] if key in RANK] == RANK
    assert (found["kv_bytes_per_token"], found["prompt_bytes"], found["rank"]["tp"]) == (bytes_, 1000 * bytes_, 8)
    assert found["rank"]["valid"] is True


def test_a_tp_that_engines_refuse_is_an_answer(capsys: Capture) -> None:
    rank = answer(capsys, "model", "phi-4", "--tp", 4)["rank"]
    assert (rank["valid"], rank["reason"]) == (False, "10 KV heads neither divide by TP 4 nor divide it; nearest: TP 5")


@pytest.mark.parametrize("kind", ["models", "accelerators", "links", "engines"])
def test_list_prints_what_can_be_named_with_source_and_date(kind: str, capsys: Capture) -> None:
    rows = answer(capsys, "list", kind)[kind]
    assert [row["id"] for row in rows] == sorted(row["id"] for row in rows)
    assert all(row["name"] and row["source"] and row["checked"] == row["checked"][:10] for row in rows)
    assert main(["list", kind]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [row["id"] for row in rows]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["evaluate"], ["The handoff adds 53.7\u202fms", "2.68\u202fGB (2.50\u202fGiB)", "327,680\u202fB"]),
        (["critical", "--link", "ethernet-100", "--decode-step-seconds", ".03"], ["a prompt past 1,145 tokens", "always"]),
        (["critical", "--decode-held-tokens", "1048576"], ["no prompt up to 1,048,576 outlasts a decode step", "never"]),
        (["critical", "--link", "wan-100", "--engine", "vllm-nixl"], ["Every handoff on WAN 100 (between sites) outlasts a decode step."]),
        (["turn"], ["30,000 tokens of history, 500 of them generated on decode; 2,000 new.", "pool (cold)", "819\u202fMB"]),
        (["turn", "--turns", "3"], ["Over 3 turns, unique KV:"]),
        (["model", "llama-3-70b", "--tp", "8"], ["Llama 3 70B (llama-3-70b)", "336\u202fMB (320\u202fMiB)", "70.6 B"]),
        (["list", "links"], ["ib-ndr-400", "InfiniBand NDR 400"]),
    ],
)  # fmt: skip
def test_a_readable_answer_says(words: list[str], said: list[str], capsys: Capture) -> None:
    assert main(words) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert not [phrase for phrase in said if phrase not in out]


# as a program


def run(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(root)}
    return subprocess.run(
        [sys.executable, "-m", "app.cli", *words], capture_output=True, text=True, env=environment, timeout=60, check=False
    )


def test_the_program_exits_0_with_an_answer_and_2_without(root: Path) -> None:
    good, bad = run(root, "evaluate", "--json"), run(root, "evaluate", "--prompt-tokens", "1e6")
    assert (good.returncode, good.stderr) == (0, "")
    assert strict(good.stdout)["kv"]["prompt_bytes"] == 2_684_354_560
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr == "kv-handoff: prompt_tokens: got '1e6'; allowed: a whole number from 1 to 1,048,576\n"


def test_help_lists_every_input_with_its_bounds(root: Path) -> None:
    shown = run(root, "evaluate", "--help").stdout
    assert [name for name in Scenario.model_fields if "--" + name.replace("_", "-") not in shown] == []
    assert "a whole number from 1 to 1,048,576" in shown
    assert run(root, "--version").stdout == f"kv-handoff {kvmodel.__version__}\n"
