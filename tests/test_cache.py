"""Bytes of the cache: whole, on a rank, and what completes a partly held prompt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel import BadScenarioError, UnknownNameError, find_model
from kvmodel.cache import LayerCache, kv_dtype_of, kv_heads_per_rank, layer_cache, model_cache, state_bytes
from kvmodel.dtypes import BYTES_PER_ELEMENT
from kvmodel.parallel import check_tp
from kvmodel.records.model import Full, LayerGroup, Linear, Mla
from kvmodel.registry import models
from tests.strategies import whole

ids = st.sampled_from(sorted(models()))


def heads(layers: int, kv_heads: int, head_dim: int) -> LayerGroup:
    attention = Full(q_heads=64, kv_heads=kv_heads, k_dim=head_dim, v_dim=head_dim)
    return LayerGroup(count=layers, attention=attention)


def per_token(group: LayerGroup, tp: int = 1) -> float:
    return group.count * layer_cache(group, kv_dtype="bf16", tp=tp).growing


# cited figures


@pytest.mark.parametrize(
    ("model", "dtype", "bytes_"),
    [
        ("llama-3-70b", "bf16", 2 * 80 * 8 * 128 * 2),
        ("llama-2-7b", "bf16", 2 * 32 * 32 * 128 * 2),
        ("llama-3.1-8b", "bf16", 2 * 32 * 8 * 128 * 2),
        ("llama-3.1-8b", "fp8", 2 * 32 * 8 * 128),
        ("llama-3.1-8b", "nvfp4", 2 * 32 * 8 * (128 / 2 + 128 / 16)),  # d/2 + d/16 a slot: vLLM utils/torch_utils.py
        ("deepseek-v3", "bf16", 61 * (512 + 64) * 2),
        ("deepseek-v3", "fp8", 61 * (512 + 64)),
        ("deepseek-v3", "fp8_ds_mla", 61 * 656),  # 512 fp8 + 4 fp32 scales + 64 bf16: vLLM flashmla_sparse.py
        ("deepseek-v3", "nvfp4_ds_mla", 61 * 352),
        ("deepseek-v3.2", "bf16", 61 * (576 * 2 + 132)),  # the indexer's 128 bytes and its scale, whatever the dtype
        ("deepseek-v3.2", "fp8", 61 * (576 + 132)),
        ("deepseek-v4-pro", "bf16", 30 * (512 * 2 + 132) / 4 + 31 * 512 * 2 / 128),  # a row and an index key for 4 tokens, a row for 128
        ("deepseek-v4-pro", "fp8_ds_mla", 30 * (584 + 132) / 4 + 31 * 584 / 128),  # vLLM deepseek_v4/attention.py
        ("deepseek-v4-flash", "bf16", 21 * (512 * 2 + 132) / 4 + 20 * 512 * 2 / 128),
        ("gpt-oss-120b", "bf16", 18 * 8 * (64 + 64) * 2),
        ("gemma-3n-e4b", "bf16", 4 * 2 * (256 + 256) * 2),  # the last 15 layers own nothing
        ("qwen3-next-80b-a3b", "bf16", 12 * 2 * (256 + 256) * 2),
    ],
)
def test_growing_bytes_per_token(model: str, dtype: str, bytes_: float) -> None:
    assert model_cache(find_model(model), kv_dtype=dtype).bytes_per_token == bytes_


@pytest.mark.parametrize(
    ("model", "windows"),
    [
        ("gpt-oss-120b", 18 * 128 * 2048),
        ("gemma-3-27b", 52 * 1024 * 16 * 256 * 2),
        ("llama-4-scout", 36 * 8192 * 8 * 256 * 2),
        # 128 rows a layer; FP32 key and weight of 8 tokens of 2 x (512 + 128) elements, or of 128 tokens of 512, are not merged yet
        ("deepseek-v4-pro", 61 * 128 * 1024 + 30 * 8 * 2 * 640 * 8 + 31 * 128 * 512 * 8),
        ("deepseek-v4-flash", 43 * 128 * 1024 + 21 * 8 * 2 * 640 * 8 + 20 * 128 * 512 * 8),
        ("llama-3-70b", 0),
    ],
)
def test_bytes_of_full_windows(model: str, windows: float) -> None:
    assert model_cache(find_model(model)).window_bytes_max == windows


def test_merged_rows_keep_about_a_tenth_of_what_one_row_a_token_keeps() -> None:
    # its page states 10 % of DeepSeek-V3.2's cache at 1M tokens; FP8 index keys, where it counts FP4 ones, make it 12 %
    merged, plain = (
        model_cache(find_model(name), kv_dtype="fp8_ds_mla").prompt_bytes(10**6) for name in ("deepseek-v4-pro", "deepseek-v3.2")
    )
    assert merged / plain == pytest.approx(0.10, abs=0.02)


def test_an_engine_that_keeps_all_of_chunked_attention_has_no_window() -> None:
    # vLLM's hybrid manager is off by default for Llama 4 (config/vllm.py)
    cache = model_cache(find_model("llama-4-scout"), keeps_all_chunked=True)
    assert (cache.window_bytes_max, cache.bytes_per_token) == (0, 48 * 8 * 256 * 2)


@pytest.mark.parametrize(
    ("model", "state"),
    [
        # conv (heads x dim + 2 G N)(k - 1) in bf16 + ssm heads x dim x N in fp32: vLLM mamba_utils.py
        ("nemotron-3-super", 40 * ((128 * 64 + 2 * 8 * 128) * 3 * 2 + 128 * 64 * 128 * 4)),
        ("qwen3-next-80b-a3b", 36 * ((2 * 128 * 16 + 128 * 32) * 3 * 2 + 32 * 128 * 128 * 2)),
        ("jamba-1.5-mini", 28 * 8192 * (3 + 16) * 2),
        ("llama-3-70b", 0),
    ],
)
def test_bytes_of_a_fixed_state(model: str, state: float) -> None:
    assert model_cache(find_model(model)).state_bytes == state


@pytest.mark.parametrize(
    ("variant", "expected"),
    [("kda", 3 * 4 * 8 * 3 * 2 + 4 * 8 * 8 * 4), ("lightning", 4 * 8 * 8 * 4)],
)
def test_bytes_of_rarer_states(variant: Any, expected: float) -> None:
    assert state_bytes(Linear(variant=variant, heads=4, head_dim=8, state_dim=8, conv_kernel=4)) == expected


def test_groups_of_a_mamba2_state_are_replicated_where_ranks_do_not_divide_them() -> None:
    linear = Linear(variant="mamba2", heads=128, head_dim=64, state_dim=128, groups=8, conv_kernel=4)
    channels = 128 * 64 + 2 * 16 * 128  # 8 groups on 16 ranks: one each
    assert state_bytes(linear, 16) == channels / 16 * 3 * 2 + 128 / 16 * 64 * 128 * 4


# ranks


def test_a_rank_of_four_holds_a_quarter_and_k_and_v_both_count() -> None:
    # vllm-project/vllm#21348: 94 layers, 4 KV heads, TP 4, 367,404 tokens: 8.234 GiB of K and as much of V
    group = heads(94, 4, 128)
    assert per_token(group) == 192_512
    assert per_token(group, tp=4) == 48_128
    assert per_token(group, tp=4) * 367_404 / 2**30 == pytest.approx(16.468, abs=0.005)


def test_heads_beyond_their_number_are_copied_not_cut() -> None:
    # sgl-project/sglang#19086: 15 layers, 2 KV heads of 256, TP 4: four ranks hold two copies
    group = heads(15, 2, 256)
    assert kv_heads_per_rank(2, 4) == 1
    assert per_token(group) == 30_720
    assert per_token(group, tp=4) == 15_360
    assert 4 * per_token(group, tp=4) == 61_440


def test_a_latent_is_whole_on_every_rank() -> None:
    # vllm-project/vllm#47929, deepseek-ai/DeepSeek-V3#283: 8 ranks hold 8 copies, not 8,784 bytes each
    rank = model_cache(find_model("deepseek-v3"), kv_dtype="bf16", tp=8).bytes_per_token
    assert rank == 70_272
    assert 8 * rank == 562_176


def test_a_pool_sized_by_a_rank_holds_four_times_the_tokens_at_tp_4() -> None:
    # huggingface/transformers#48566
    spec = find_model("qwen3-32b")
    whole_, rank = (model_cache(spec, kv_dtype="bf16", tp=tp).bytes_per_token for tp in (1, 4))
    assert (whole_, rank) == (262_144, 65_536)


def test_stages_times_ranks_make_four_equal_flows() -> None:
    # vllm-project/vllm#43366: PP 2 to TP 2, half the layers times half the heads
    assert per_token(heads(16, 8, 128), tp=2) == 32_768
    assert 4 * per_token(heads(16, 8, 128), tp=2) == per_token(heads(32, 8, 128)) == 131_072


# properties


@given(ids, st.sampled_from((1, 2, 4, 8, 16, 32)), whole(1, 200_000))
def test_ranks_together_hold_at_least_the_whole_cache(model: str, tp: int, tokens: int) -> None:
    spec = find_model(model)
    all_, rank = model_cache(spec), model_cache(spec, tp=tp)
    assert tp * rank.prompt_bytes(tokens) >= all_.prompt_bytes(tokens) * (1 - 1e-12)
    assert rank.prompt_bytes(tokens) <= all_.prompt_bytes(tokens) * (1 + 1e-12)


@given(ids, st.sampled_from((2, 4, 8)))
def test_heads_that_divide_are_held_once(model: str, tp: int) -> None:
    spec = find_model(model)
    once = all(
        getattr(g.attention, "kv_heads", 0) % tp == 0 and not isinstance(g.attention, Linear | Mla) and not g.indexer for g in spec.groups
    )
    if once and check_tp(spec, tp).valid:
        assert tp * model_cache(spec, tp=tp).prompt_bytes(5000) == model_cache(spec).prompt_bytes(5000)


layers = st.builds(
    LayerCache,
    growing=st.sampled_from((0.0, 1152.0)),
    indexer=st.sampled_from((0.0, 132.0)),
    capped=st.sampled_from((0.0, 2048.0)),
    cap_tokens=whole(1, 5000).map(float),
    state=st.sampled_from((0.0, 4096.0)),
)


@given(layers, whole(0, 20_000), st.data())
def test_what_completes_a_prompt_is_what_a_list_of_tokens_says(layer: LayerCache, tokens: int, data: st.DataObject) -> None:
    known = data.draw(whole(0, tokens))
    missing = range(known, tokens)
    in_window = [t for t in missing if t >= tokens - layer.cap_tokens]
    expected = len(missing) * (layer.growing + layer.indexer) + len(in_window) * layer.capped + (layer.state if missing else 0)
    assert layer.moved(tokens, known) == expected
    assert layer.moved(np.array([tokens]), np.array([known]))[0] == expected


@given(layers, whole(0, 20_000), st.data())
def test_two_sendings_carry_at_least_one(layer: LayerCache, tokens: int, data: st.DataObject) -> None:
    first = data.draw(whole(0, tokens))
    assert layer.moved(first, 0) + layer.moved(tokens, first) >= layer.held(tokens)


@given(ids, whole(1, 200_000))
def test_the_next_token_adds_the_marginal_bytes_and_no_more_than_the_average(model: str, tokens: int) -> None:
    cache = model_cache(find_model(model))
    marginal = cache.marginal_bytes(tokens)
    assert marginal == pytest.approx(cache.prompt_bytes(tokens + 1) - cache.prompt_bytes(tokens))
    assert cache.bytes_per_token <= marginal <= cache.prompt_bytes(tokens) / tokens * (1 + 1e-12)


@given(ids, st.sampled_from(("bf16", "fp8", "int4", "nvfp4")), whole(1, 100_000))
def test_a_narrower_format_shrinks_what_has_elements_and_leaves_state_and_indexer(model: str, dtype: str, tokens: int) -> None:
    spec = find_model(model)
    wide, narrow = model_cache(spec, kv_dtype="fp32"), model_cache(spec, kv_dtype=dtype)
    unmerged = sum(n * min(tokens, layer.tail_tokens) * layer.tail for n, layer in wide.layers)
    fixed = wide.state_bytes + unmerged + tokens * sum(n * layer.indexer for n, layer in wide.layers)
    assert narrow.prompt_bytes(tokens) - fixed == pytest.approx((wide.prompt_bytes(tokens) - fixed) * BYTES_PER_ELEMENT[dtype] / 4)


# formats


def test_fp8_weights_do_not_mean_an_fp8_cache() -> None:
    spec = find_model("deepseek-v3")
    assert (spec.weight_dtype, kv_dtype_of(spec, "auto")) == ("fp8", "bf16")
    assert kv_dtype_of(find_model("llama-2-7b"), "auto") in ("fp16", "bf16")
    stated = spec.model_copy(update={"kv_dtype": "fp8"})
    assert kv_dtype_of(stated, "auto") == "fp8"


@pytest.mark.parametrize("dtype", ["fp8_ds_mla", "nvfp4_ds_mla"])
def test_a_packed_row_is_refused_where_there_are_heads_or_other_dimensions(dtype: str) -> None:
    with pytest.raises(BadScenarioError, match=f"kv_dtype: got '{dtype}', a packed MLA row"):
        model_cache(find_model("llama-3-70b"), kv_dtype=dtype)
    odd = LayerGroup(count=1, attention=Mla(q_heads=8, latent=256, rope=64, nope=64, v_dim=64))
    with pytest.raises(BadScenarioError, match=r"256 \+ 64"):
        layer_cache(odd, kv_dtype=dtype)


# published models, when their facts lie beside the checkout


def test_every_published_model_weighs_what_its_configuration_says(shared: Path) -> None:
    compared = 0
    for row in json.loads((shared / "reference" / "models.json").read_text()):
        try:
            spec = find_model(row["name"])
        except UnknownNameError:
            continue
        compared += 1
        cache = model_cache(spec, kv_dtype="bf16")
        assert cache.bytes_per_token == row["kv_bytes_per_token_bf16_growing"], spec.id
        assert (cache.state_bytes, cache.window_bytes_max) == (row["fixed_state_bytes"], row["window_capped_bytes_max_bf16"]), spec.id
        assert {n: cache.prompt_bytes(int(n)) for n in row["prompt_bytes_bf16"]} == row["prompt_bytes_bf16"], spec.id
        for tp, rank in row["per_rank_bf16"].items():
            assert check_tp(spec, int(tp)).valid == bool(rank.get("valid")), (spec.id, tp)
            if rank.get("valid"):
                held = model_cache(spec, kv_dtype="bf16", tp=int(tp))
                assert {n: held.prompt_bytes(int(n)) for n in rank["prompt_bytes"]} == rank["prompt_bytes"], (spec.id, tp)
    assert compared >= 45
