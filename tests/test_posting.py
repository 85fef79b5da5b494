"""Who posts, whose NICs count, and what an engine's preset was measured at."""

from __future__ import annotations

import pytest

from kvmodel import Scenario, evaluate


def test_the_side_that_moves_the_bytes_posts_with_all_its_ranks() -> None:
    # 4 to 8 ranks: each of 8 that read posts 512 blocks of its own heads a layer; 8 to 4: each of 8 that write does
    cost = {"message_seconds": 1e-5, "posting_threads": 1, "posts_while_sending": "no", "lanes": "auto"}
    pull = evaluate(Scenario(engine="vllm-nixl", prefill_tp=4, decode_tp=8, **cost))
    push = evaluate(Scenario(engine="vllm-mooncake", prefill_tp=8, decode_tp=4, **cost))
    for found, engine in ((pull, "vllm-nixl"), (push, "vllm-mooncake")):
        assert found.transfer.messages == 80 * 512 * 2
        other = {"prefill_tp": 4, "decode_tp": 8} if engine == "vllm-nixl" else {"prefill_tp": 8, "decode_tp": 4}
        free = evaluate(Scenario(engine=engine, **other, **{**cost, "message_seconds": 0.0}))
        assert found.transfer.seconds - free.transfer.seconds == pytest.approx(80 * 512 * 1e-5)
    slow = evaluate(Scenario(engine="vllm-nixl", prefill_tp=8, decode_tp=4, **cost))
    free = evaluate(Scenario(engine="vllm-nixl", prefill_tp=8, decode_tp=4, **{**cost, "message_seconds": 0.0}))
    assert slow.transfer.seconds - free.transfer.seconds == pytest.approx(80 * 512 * 2 * 1e-5)


def test_a_request_under_attention_dp_has_the_nics_of_its_own_ranks() -> None:
    gpus = {"prefill_accelerator": "h200-sxm", "decode_accelerator": "h200-sxm"}
    asked = Scenario(model="deepseek-v3", engine="sglang-mooncake", prefill_attention_dp=8, decode_attention_dp=8, lanes="auto", **gpus)
    assert evaluate(asked).transfer.lanes == 1
    assert evaluate(asked.with_changes(prefill_attention_dp=1, decode_attention_dp=1)).transfer.lanes == 8


def test_the_preset_of_vllm_mooncake_meets_its_published_table() -> None:
    for tokens, measured in ((1024, 1.50e-3), (8192, 8.84e-3), (32_768, 31.65e-3)):
        found = evaluate(Scenario(model="qwen3-8b", engine="vllm-mooncake", link="roce-200", lanes="auto", prompt_tokens=tokens))
        assert found.transfer.seconds == pytest.approx(measured, rel=0.1)


def test_another_format_of_the_same_width_is_converted_too() -> None:
    stored = Scenario(kv_dtype="fp8", lanes="auto")
    assert evaluate(stored.with_changes(wire_dtype="int8")).transfer.seconds > evaluate(stored).transfer.seconds
    assert evaluate(stored.with_changes(wire_dtype="fp8")).transfer.seconds == evaluate(stored).transfer.seconds
