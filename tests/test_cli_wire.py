"""The command that says where a handoff's time goes."""

from __future__ import annotations

import json

import pytest

from app.cli import main
from kvmodel import Scenario, evaluate


def ran(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert main(["wire", *words, "--json"]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out, parse_constant=lambda word: pytest.fail(word))
    return found


@pytest.mark.parametrize("engine", ["ideal", "vllm-nixl", "layerwise-push", "splitwise", "tensorrt-llm"])
def test_terms_add_up_to_what_decode_waits(engine: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = ran(capsys, "--engine", engine)
    assert sum(term["seconds"] for term in found["terms"]) == pytest.approx(evaluate(Scenario(engine=engine)).gap_seconds)  # type: ignore[attr-defined]
    assert found["gap_seconds"] == pytest.approx(evaluate(Scenario(engine=engine)).gap_seconds)


def test_traffic_and_scenario_are_inputs(capsys: pytest.CaptureFixture[str]) -> None:
    found = ran(capsys, "--in-flight", "64", "--failure-probability", "0", "--link", "ethernet-25")
    wire = evaluate(Scenario(link="ethernet-25")).transfer.seconds
    assert found["congestion"]["seconds"] == pytest.approx(64 * wire)  # type: ignore[index]
    assert set(found["failure"]) == {"retry", "resume", "recompute"}  # type: ignore[call-overload]


def test_no_limit_is_null(capsys: pytest.CaptureFixture[str]) -> None:
    found = ran(capsys, "--decode-held-tokens", "8192")
    assert found["congestion"]["knee"] is None  # type: ignore[index]


@pytest.mark.parametrize(
    "words", [(), ("--decode-held-tokens", "8192"), ("--decode-tp", "2"), ("--recovery", "resume", "--engine", "vllm-nixl")]
)
def test_the_answer_can_be_read(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["wire", *words]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Decode waits ")
    assert "mean time to the first token" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [(("--in-flight", "x"), "in_flight: got 'x'"), (("--recovery", "hope"), "recovery: got 'hope'; allowed: retry, resume, recompute")],
)
def test_bad_input_is_one_sentence(words: tuple[str, str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["wire", *words]) == 2
    assert said in capsys.readouterr().err
