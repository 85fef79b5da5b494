"""Files and bad input on the command line: read, or refused in a sentence that names what came."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cli import main, read_flags
from kvmodel import BadScenarioError

Capture = pytest.CaptureFixture[str]

LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "intermediate_size": 14_336, "vocab_size": 128_256, "torch_dtype": "bfloat16", "max_position_embeddings": 131_072,
}  # fmt: skip


def answer(capsys: Capture, *words: object) -> dict[str, Any]:
    assert main([*map(str, words), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def refusal(capsys: Capture, *words: object) -> str:
    assert main([*map(str, words)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert 1 <= len(err.splitlines()) <= 3
    assert "Traceback" not in err
    return err


# configuration files


def written(folder: Path, fields: object, name: str = "config.json") -> Path:
    path = folder / name
    path.write_text(fields if isinstance(fields, str) else json.dumps(fields), encoding="utf-8")
    return path


def test_a_plain_configuration_is_read_from_a_file(tmp_path: Path, capsys: Capture) -> None:
    found = answer(capsys, "model", written(tmp_path, LLAMA))
    assert found["kv_bytes_per_token"] == 2 * 32 * 8 * 128 * 2
    assert found["total_params"] == pytest.approx(8.03e9, rel=0.01)
    assert any("head_dim" in text for text in found["assumed"])


def test_a_configuration_can_be_evaluated(tmp_path: Path, capsys: Capture) -> None:
    found = answer(capsys, "evaluate", "--model", written(tmp_path, LLAMA, "mine.json"), "--prefill-tp", 1, "--decode-tp", 1)
    assert found["kv"]["prompt_bytes"] == 8192 * 131_072


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("", "empty"),
        ("<html><body>404</body></html>", "HTML"),
        ("[1, 2]", "object"),
        ('{"hidden_size": 4096', "JSON"),
        ({**LLAMA, "num_hidden_layers": 0}, "num_hidden_layers"),
        ({**LLAMA, "num_attention_heads": "many"}, "num_attention_heads"),
        ({**LLAMA, "num_key_value_heads": 7}, "num_key_value_heads"),
        ({k: v for k, v in LLAMA.items() if k != "num_hidden_layers"}, "layers"),
    ],
)
def test_an_unusable_configuration_is_refused(content: object, word: str, tmp_path: Path, capsys: Capture) -> None:
    assert word in refusal(capsys, "model", written(tmp_path, content))


@pytest.mark.parametrize("content", [b"\xff\xfe\x00\x01binary", b"\xef\xbb\xbf{}", b"\x00" * 10])
def test_bytes_that_are_no_configuration_are_refused(content: bytes, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    assert refusal(capsys, "model", path)


def test_a_file_that_is_too_large_or_absent_is_refused(tmp_path: Path, capsys: Capture) -> None:
    assert "2,000,000" in refusal(capsys, "model", written(tmp_path, " " * 2_000_001))
    assert "cannot read" in refusal(capsys, "model", tmp_path / "absent.json")
    assert "cannot read" in refusal(capsys, "evaluate", "--model", tmp_path / "absent.json")


# refusals


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (["evaluate", "--prompt-tokens", "-5"], "prompt_tokens"),
        (["evaluate", "--prompt-tokens", "8,192"], "prompt_tokens"),
        (["evaluate", "--prompt-tokens", "1e6"], "prompt_tokens"),
        (["evaluate", "--prompt-tokens", "NaN"], "prompt_tokens"),
        (["evaluate", "--prefill-seconds", "0,8"], "prefill_seconds"),
        (["evaluate", "--model", "llama-9"], "llama-9"),
        (["evaluate", "--link", "carrier-pigeon"], "carrier-pigeon"),
        (["evaluate", "--engine", "x" * 5000], "xxx"),
        (["evaluate", "--prefill-tp", "0"], "prefill_tp"),
        (["evaluate", "--kv-dtype", "fp7"], "fp7"),
        (["evaluate", "--kv-dtype", "fp8_ds_mla"], "kv_dtype"),
        (["evaluate", "--wire-dtype", "fp32"], "wire_dtype"),
        (["evaluate", "--engine", "splitwise", "--overlap", "layer-both"], "overlap"),
        (["evaluate", "--prompt"], "--prompt"),
        (["evaluate", "--prompt-tokens"], "prompt_tokens"),
        (["evaluate", "8192"], "8192"),
        (["critical", "--link", "none"], "none"),
        (["critical", "--batch", "0"], "batch"),
        (["turn", "--history-tokens", "1e6"], "history_tokens"),
        (["turn", "--turns", "200", "--delta-tokens", "10000"], "turns"),
        (["turn", "--delta-tokens", "0"], "delta_tokens"),
        (["model", "llama-9"], "llama-9"),
        (["model", "llama-3-70b", "--tp", "0"], "tp"),
        (["model", "llama-3-70b", "--tokens", "8,192"], "tokens"),
        (["model", "llama-3-70b", "--kv-dtype", "fp7"], "fp7"),
        (["model"], "ID|config.json"),
        (["list", "gpus"], "gpus"),
        (["list", "models", "--all"], "--all"),
        (["explain"], "explain"),
        ([], "COMMAND"),
    ],
)
def test_bad_input_names_what_came(words: list[str], word: str, capsys: Capture) -> None:
    assert word in refusal(capsys, *words)


@given(st.sampled_from(("evaluate", "critical", "turn", "model", "list")), st.lists(st.text(max_size=12), max_size=4))
def test_no_words_make_a_traceback(command: str, words: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("builtins.print", lambda *_, **__: None)
        if not {"-h", "--help"} & set(words):
            assert main([command, *words]) in (0, 2)


def test_the_last_of_a_repeated_flag_counts() -> None:
    assert read_flags(["--batch", "2", "--batch=3"], ["batch"]) == {"batch": "3"}
    with pytest.raises(BadScenarioError, match="'--bat'"):
        read_flags(["--bat", "2"], ["batch"])
