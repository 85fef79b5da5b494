"""Who posts, whose NICs count, and what an engine's preset was measured at."""

from __future__ import annotations

import pytest

from kvmodel import Scenario, evaluate
from kvmodel.registry import transports


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


BLOCKS = 61 * 512 * 1e-5
"""Seconds to post every block of DeepSeek-V3's layers, 8192 tokens."""


@pytest.mark.parametrize(
    ("direction", "prefill", "decode", "posted"),
    [
        ("push", {}, {"decode_attention_dp": 8}, 1),  # one of 8 prefill ranks writes the latent to the replica's one rank
        ("push", {"prefill_tp": 16}, {}, 1),  # 8 of 16 ranks write, each to a rank of its own
        ("push", {"prefill_tp": 4}, {}, 2),  # each of 4 writes a copy to two
        ("pull", {"prefill_tp": 4}, {}, 1),  # each of 8 reads its own
        ("pull", {}, {"decode_attention_dp": 8}, 1),
    ],
)
def test_a_latent_is_posted_by_the_rank_that_moves_it(direction: str, prefill: dict[str, int], decode: dict[str, int], posted: int) -> None:
    # vLLM 0.33.0 nixl/tp_mapping.py and SGLang 0.5.23 disaggregation/common/conn.py: one rank of the other side is enough
    cost = {"message_seconds": 1e-5, "posts_while_sending": "no", "fragmentation": 1.0, "block_tokens": 16, "lanes": "auto"}
    asked = Scenario(model="deepseek-v3", engine="vllm-mooncake", direction=direction, **prefill, **decode, **cost)
    free = asked.with_changes(message_seconds=0.0)
    assert evaluate(asked).transfer.seconds - evaluate(free).transfer.seconds == pytest.approx(posted * BLOCKS)


@pytest.mark.parametrize(("decode_tp", "seconds"), [(16, 40_960e-5), (8, 40_960e-5), (4, 40_960e-5), (2, 40_960e-5)])
def test_only_ranks_with_heads_of_their_own_post(decode_tp: int, seconds: float) -> None:
    # 8 heads on 16 prefill ranks: each head is written by one of its two holders, or by both where decode has as many ranks
    cost = {"posts_while_sending": "no", "fragmentation": 1.0, "lanes": 8}
    asked = Scenario(engine="vllm-mooncake", prefill_tp=16, decode_tp=decode_tp, message_seconds=1e-5, **cost)
    free = asked.with_changes(message_seconds=0.0)
    assert evaluate(asked).transfer.seconds - evaluate(free).transfer.seconds == pytest.approx(seconds)


def test_a_single_reader_copies_and_converts_the_whole_latent() -> None:
    size, pcie = 70_272 * 1000, transports()["pcie"].constants.achieved * 64e9
    latent = Scenario(model="deepseek-v3", prompt_tokens=1000)  # ideal: a single rank reads
    alone = evaluate(latent).transfer.seconds
    assert evaluate(latent.with_changes(host_bounce="yes")).transfer.seconds - alone == pytest.approx(2 * size / pcie)
    assert evaluate(latent.with_changes(staging_copies=2)).transfer.seconds - alone == pytest.approx(2 * 2 * size / 3.35e12)
    narrow = evaluate(latent.with_changes(wire_dtype="fp8")).transfer.seconds
    assert narrow == pytest.approx(size / 2 / 50e9 + 2 * 1.5 * size / 3.35e12)


def test_keys_and_values_apart_are_two_runs_and_a_latent_or_a_block_of_all_layers_has_none() -> None:
    # ai-dynamo/nixl#1514: 160 descriptors for 80 layers without fragmentation; vllm-project/vllm#30207: 56 of 28 layers, or 1
    split = Scenario(engine="vllm-mooncake", kv_split=2)
    assert evaluate(split).transfer.messages == 160
    assert evaluate(split.with_changes(model="deepseek-v3")).transfer.messages == 61
    block = split.with_changes(model="llama-3.2-3b", prompt_tokens=16, fragmentation=1.0)
    assert [evaluate(block.with_changes(cross_layer=way)).transfer.messages for way in ("no", "yes")] == [56, 1]
