"""`kv-handoff model`: keys, rank, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.cli import main
from kvmodel.registry import models
from tests.configs import LLAMA


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["model", *arguments, "--json"]) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def config(folder: Path, fields: dict[str, Any], name: str = "config.json") -> str:
    path = folder / name
    path.write_text(json.dumps(fields))
    return str(path)


def test_the_rank_carries_sum_and_replication(capsys: pytest.CaptureFixture[str]) -> None:
    rank = answer(capsys, "llama-3-70b", "--tp", "16", "--tokens", "1000")["rank"]
    assert rank == {
        "tp": 16,
        "kv_bytes_per_token": 40_960,
        "window_bytes_max": 0,
        "state_bytes": 0,
        "prompt_bytes": 40_960_000,
        "valid": True,
        "reason": "",
        "sum_over_ranks": 655_360_000,
        "replication_factor": 2,
    }


def test_a_refused_tp_is_an_answer_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    rank = answer(capsys, "phi-4", "--tp", "4")["rank"]
    assert (rank["valid"], rank["reason"]) == (False, "10 KV heads neither divide by TP 4 nor divide it; nearest: TP 5")


def test_replicas_and_stages_change_the_rank_and_not_the_whole(capsys: pytest.CaptureFixture[str]) -> None:
    plain, spread = (
        answer(capsys, "llama-3-70b", "--tp", "8"),
        answer(capsys, "llama-3-70b", "--tp", "8", "--attention-dp", "8", "--pp", "2"),
    )
    assert spread["prompt_bytes"] == plain["prompt_bytes"]
    assert spread["rank"]["prompt_bytes"] == plain["prompt_bytes"] / 2


def test_a_file_answers_with_its_fields(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    row = answer(capsys, config(tmp_path, LLAMA))
    assert row["kv_bytes_per_token"] == 131_072
    assert {"name": "num_key_value_heads", "value": 8, "from": "file", "path": "num_key_value_heads"} in row["fields"]
    assert "head_dim is not stated: 128, hidden size over attention heads" in row["assumed"]


def test_speculation_counts_the_draft(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = config(tmp_path, {**LLAMA, "num_nextn_predict_layers": 1})
    assert answer(capsys, path, "--speculation", "on")["kv_bytes_per_token"] == 33 * 4096


def test_packed_rows_follow_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(capsys, "deepseek-v3.2", "--kv-dtype", "fp8_ds_mla")["kv_bytes_per_token"] == 48_068
    assert answer(capsys, "llama-3-70b", "--kv-dtype", "int8_per_token_head")["kv_bytes_per_token"] == 80 * 8 * 264


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"<html>", "HTML, not JSON"),
        (b'{"a": }', "line 1, column 7"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"[]", "object"),
        (json.dumps({**LLAMA, "num_attention_heads": 0}).encode(), "num_attention_heads: got 0"),
        (json.dumps({**LLAMA, "torch_dtype": "\ud800\n"}).encode(), "torch_dtype: got"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line_and_status_two(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes, words: str
) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    assert main(["model", str(path), "--json"]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_a_name_that_cannot_be_printed_is_replaced(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert answer(capsys, config(tmp_path, {**LLAMA, "_name_or_path": "a\ud800b"}))["name"] == "a?b"


@pytest.mark.parametrize(
    ("kind", "text", "ids"),
    [
        ("models", "GPT-OSS", ["gpt-oss-120b", "gpt-oss-20b"]),
        ("models", "moonshotai", ["kimi-k2", "kimi-k2.5"]),
        ("models", "meta-llama/Meta-Llama-3-70B-Instruct", ["llama-3-70b"]),
        ("models", " command ", ["command-a", "command-r"]),
        ("links", "nvlink", ["nvlink-3", "nvlink-4", "nvlink-5"]),
        ("models", "llama-9", []),
    ],
)
def test_a_list_is_searched_by_name_family_and_repository(kind: str, text: str, ids: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", kind, "--search", text, "--json"]) == 0
    assert [row["id"] for row in json.loads(capsys.readouterr().out)[kind]] == ids
    assert main(["list", kind, "--search", text]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in said] == ids if ids else said == [f"None of the {len(models())} models is named like 'llama-9'."]


def test_the_family_finds_each_of_its_models(capsys: pytest.CaptureFixture[str]) -> None:
    for family in {spec.family for spec in models().values()}:
        main(["list", "models", "--search", family.lower(), "--json"])
        found = {row["id"] for row in json.loads(capsys.readouterr().out)["models"]}
        assert {spec.id for spec in models().values() if spec.family == family} <= found
