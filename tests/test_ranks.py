"""Shares of ranks under tensor parallelism, attention replicas and pipeline stages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel.cache import model_cache
from kvmodel.config import parse_model_config
from kvmodel.ranks import rank_share, stage_caches
from kvmodel.registry import find_model

MLA = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128}


def test_heads_beyond_their_number_are_copied() -> None:
    # Two KV heads of 256 over 15 layers (sgl-project/sglang#19086): 30,720 B a token, half of it on each of four ranks.
    model = parse_model_config({"num_hidden_layers": 15, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 256}).model
    share = rank_share(model, kv_dtype="bf16", tokens=1, tp=4)
    assert model_cache(model).bytes_per_token == 30_720
    assert (share.cache.bytes_per_token, share.sum_over_ranks, share.replication) == (15_360, 61_440, 2)


def test_sharded_heads_are_stored_once() -> None:
    # Qwen3-235B at TP 4 (vllm-project/vllm#21348): 192,512 B a token, a quarter on each rank.
    share = rank_share(find_model("qwen3-235b-a22b"), kv_dtype="bf16", tokens=367_404, tp=4)
    assert (share.cache.bytes_per_token, share.replication) == (48_128, 1)
    assert share.cache.prompt_bytes(367_404) / 2**30 == pytest.approx(16.468, abs=0.005)


def test_a_latent_is_whole_on_every_rank() -> None:
    share = rank_share(find_model("deepseek-v3"), kv_dtype="bf16", tokens=1, tp=8)
    assert (share.cache.bytes_per_token, share.sum_over_ranks) == (70_272, 562_176)


def test_an_attention_replica_holds_whole_requests() -> None:
    share = rank_share(find_model("llama-3-70b"), kv_dtype="bf16", tokens=1000, tp=8, attention_dp=8)
    assert share.cache.bytes_per_token == 327_680
    assert share.replication == 1


def test_stages_split_layers_and_ranks_split_heads() -> None:
    # Two stages towards two ranks (vllm-project/vllm#43366): four flows of 32,768 B a token.
    model = parse_model_config({"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128}).model
    stages = stage_caches(model, kv_dtype="bf16", tp=2, pp=2)
    assert [stage.bytes_per_token for stage in stages] == [32_768, 32_768]


def test_an_uneven_pipeline_is_judged_by_its_fullest_stage() -> None:
    share = rank_share(find_model("deepseek-v3"), kv_dtype="bf16", tokens=1, tp=1, pp=2)
    assert share.cache.bytes_per_token == 31 * 1152
    assert share.sum_over_ranks == 61 * 1152


@pytest.mark.parametrize(
    ("layout", "reason"),
    [
        ({"tp": 4}, "10 KV heads neither divide by TP 4 nor divide it; nearest: TP 5"),
        ({"tp": 8, "attention_dp": 3}, "TP 8 does not divide into 3 attention replicas"),
        ({"tp": 1, "pp": 41}, "41 pipeline stages for 40 layers"),
        ({"tp": 8, "attention_dp": 2}, "nearest: TP 10"),
    ],
)
def test_a_refused_layout_says_why_and_is_still_computed(layout: dict[str, int], reason: str) -> None:
    share = rank_share(find_model("phi-4"), kv_dtype="bf16", tokens=8192, **layout)
    assert not share.valid
    assert reason in share.reason
    assert share.cache.prompt_bytes(8192) > 0


@given(tp=st.sampled_from([1, 2, 4, 8, 16]), pp=st.integers(1, 16), tokens=st.integers(1, 100_000))
def test_stages_together_hold_what_one_stage_would(tp: int, pp: int, tokens: int) -> None:
    model = find_model("nemotron-3-super")
    stages = stage_caches(model, kv_dtype="bf16", tp=tp, pp=pp)
    whole = stage_caches(model, kv_dtype="bf16", tp=tp, pp=1)[0]
    assert sum(stage.prompt_bytes(tokens) for stage in stages) == pytest.approx(whole.prompt_bytes(tokens))
    assert sum(stage.state_bytes for stage in stages) == pytest.approx(whole.state_bytes)
