"""Bytes by KV format, by kind of layer, by rank."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kvmodel
from kvmodel.cache import LayerCache, head_bytes, layer_cache, model_cache
from kvmodel.config import parse_model_config
from kvmodel.errors import BadScenarioError
from kvmodel.parallel import check_tp
from kvmodel.records.model import Compressed, Full, Indexer, LayerGroup, Linear, Mla, ModelSpec, Sliding
from kvmodel.registry import find_model, models

SHAPE = {"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8}
MLA = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128}
INDEX = {"index_head_dim": 128, "index_n_heads": 64, "index_topk": 2048}
V4 = {"model_type": "deepseek_v4", "num_hidden_layers": 61, "compress_ratios": [128] + [128, 4] * 30}


def spec(fields: dict[str, object]) -> ModelSpec:
    return parse_model_config(fields).model


LLAMA = spec({"model_type": "llama", **SHAPE})
V3 = spec({"model_type": "deepseek_v3", "num_hidden_layers": 61, **MLA})
V32 = spec({"model_type": "deepseek_v32", "num_hidden_layers": 61, **MLA, **INDEX})
PRO = spec(V4)


@pytest.mark.parametrize(
    ("kv_dtype", "bytes_per_head"),
    [
        # 128 elements of a key and 128 of a value; scales of a per-token-head format are two FP32 (vLLM 0.33.0, triton_attn.py).
        ("fp32", 1024), ("bf16", 512), ("fp16", 512), ("fp8", 256), ("int8", 256), ("int4", 128), ("nvfp4", 144),
        ("fp8_per_token_head", 264), ("int8_per_token_head", 264), ("int4_per_token_head", 136),
    ],
)  # fmt: skip
def test_a_head_takes_the_bytes_of_its_format(kv_dtype: str, bytes_per_head: float) -> None:
    assert head_bytes(128, 128, kv_dtype) == bytes_per_head
    assert model_cache(LLAMA, kv_dtype=kv_dtype).bytes_per_token == 32 * 8 * bytes_per_head


@pytest.mark.parametrize(
    ("model", "kv_dtype", "bytes_per_token"),
    [
        (V3, "bf16", 61 * 1152),
        (V3, "fp8", 61 * 576),
        (V3, "nvfp4", 61 * 324),
        (V3, "fp8_ds_mla", 61 * 656),
        (V3, "nvfp4_ds_mla", 61 * 352),
        (V32, "bf16", 61 * (1152 + 132)),
        (V32, "fp8", 61 * (576 + 132)),
        (V32, "fp8_ds_mla", 48_068),
        (PRO, "bf16", 30 * (256 + 33) + 31 * 8),
        (PRO, "fp8", 30 * (128 + 33) + 31 * 4),
        (PRO, "fp8_ds_mla", 5_511.4375),
    ],
)
def test_a_row_without_heads_takes_the_bytes_of_its_format(model: ModelSpec, kv_dtype: str, bytes_per_token: float) -> None:
    assert model_cache(model, kv_dtype=kv_dtype).bytes_per_token == bytes_per_token


@pytest.mark.parametrize(
    ("model", "kv_dtype"),
    [(LLAMA, "fp8_ds_mla"), (V3, "int8_per_token_head"), (PRO, "int4_per_token_head"), (PRO, "nvfp4_ds_mla")],
)
def test_a_format_that_does_not_fit_the_cache_is_refused(model: ModelSpec, kv_dtype: str) -> None:
    with pytest.raises(BadScenarioError, match="kv_dtype: got"):
        model_cache(model, kv_dtype=kv_dtype)


def test_a_packed_row_of_other_dimensions_is_refused() -> None:
    narrow = LayerGroup(count=1, attention=Mla(q_heads=4, latent=256, rope=32, nope=64, v_dim=64))
    with pytest.raises(BadScenarioError, match="a row of 512 \\+ 64 elements; this model's is 256 \\+ 32"):
        layer_cache(narrow, kv_dtype="fp8_ds_mla")


def test_a_compressed_cache_counts_window_and_compressor() -> None:
    # 61 windows of 128 rows; 30 layers wait for 8 tokens of 8,192 + 2,048 B, 31 for 128 of 4,096 B (vLLM 0.33.0, compressor.py).
    cache = model_cache(PRO, kv_dtype="fp8_ds_mla")
    assert cache.window_bytes_max == 61 * 128 * 584 + 30 * 8 * 10_240 + 31 * 128 * 4096
    assert cache.prompt_bytes(8192) == 68_420_096
    assert cache.prompt_bytes(4) == 4 * cache.bytes_per_token + 4 * (61 * 584 + 30 * 10_240 + 31 * 4096)


def test_compression_on_the_wire_leaves_indexer_and_compressor_as_they_are() -> None:
    same, narrow = (kvmodel.evaluate(kvmodel.Scenario(model=PRO, wire_dtype=wire)) for wire in ("same", "fp8"))
    rows = 8192 * (30 * 256 + 31 * 8) + 61 * 128 * 1024
    assert same.kv.wire_bytes - narrow.kv.wire_bytes == rows / 2


def test_a_format_with_scales_cannot_be_narrowed_on_the_wire() -> None:
    with pytest.raises(BadScenarioError, match="wire_dtype"):
        kvmodel.evaluate(kvmodel.Scenario(kv_dtype="int8_per_token_head", wire_dtype="int4"))


def test_a_state_beside_attention_is_kept_whatever_the_prompt() -> None:
    state = Linear(variant="mamba2", heads=8, head_dim=64, state_dim=128, conv_kernel=4)
    attention = Full(q_heads=8, kv_heads=2, k_dim=64, v_dim=64)
    both = layer_cache(LayerGroup(count=1, attention=attention, state=state), kv_dtype="bf16")
    assert both == LayerCache(growing=512, state=(512 + 256) * 3 * 2 + 8 * 64 * 128 * 4)


def test_a_short_convolution_keeps_only_its_last_inputs() -> None:
    conv = LayerGroup(count=1, attention=Linear(variant="conv", heads=2048, head_dim=1, state_dim=1, conv_kernel=3))
    assert layer_cache(conv, kv_dtype="bf16") == LayerCache(state=2048 * 2 * 2)


@pytest.mark.parametrize("model", [V3, V32, PRO], ids=["MLA", "indexer", "compressed"])
def test_rows_without_heads_are_whole_on_every_rank(model: ModelSpec) -> None:
    assert model_cache(model, tp=8).prompt_bytes(8192) == model_cache(model).prompt_bytes(8192)


def test_states_are_sharded_and_groups_that_do_not_divide_are_copied() -> None:
    # Nemotron 3 Super: 40 layers, 8 groups; at TP 16 each rank holds one group, as if there were 16.
    nemotron = find_model("nemotron-3-super")
    assert model_cache(nemotron, tp=8).state_bytes == 21_278_720
    assert model_cache(nemotron, tp=16).state_bytes == 10_670_080


@pytest.mark.parametrize(
    ("name", "tp", "reason", "nearest"),
    [
        ("phi-4", 4, "10 KV heads neither divide by TP 4", 5),
        ("qwen2.5-7b", 8, "28 attention heads do not divide by TP 8", 4),
        ("falcon-7b", 2, "71 attention heads", 1),
        ("llama-3.2-3b", 16, "24 attention heads", 8),
        ("qwen3.5-27b", 16, "24 attention heads", 8),
    ],
)
def test_a_refused_tp_says_why_and_names_the_nearest(name: str, tp: int, reason: str, nearest: int) -> None:
    check = check_tp(find_model(name), tp)
    assert not check.valid
    assert reason in check.reason
    assert check.nearest == nearest


def test_key_heads_of_a_delta_state_must_divide() -> None:
    delta = {"linear_num_value_heads": 32, "linear_num_key_heads": 16}
    wide = {"hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 128}
    model = spec({"model_type": "qwen3_next", **wide, **delta, "num_hidden_layers": 4})
    assert check_tp(model, 16).valid
    assert "key heads" in check_tp(model, 32).reason


@given(name=st.sampled_from(sorted(models())), tp=st.integers(1, 64), tokens=st.integers(1, 200_000))
def test_ranks_together_hold_at_least_the_whole_cache(name: str, tp: int, tokens: int) -> None:
    model = find_model(name)
    whole, rank = model_cache(model).prompt_bytes(tokens), model_cache(model, tp=tp).prompt_bytes(tokens)
    assert rank <= whole * (1 + 1e-12)
    assert tp * rank >= whole * (1 - 1e-12)


@given(tokens=st.integers(1, 4096), more=st.integers(0, 4096))
def test_a_longer_prompt_never_takes_less(tokens: int, more: int) -> None:
    for model in (PRO, find_model("gpt-oss-120b"), find_model("qwen3.5-27b")):
        cache = model_cache(model)
        assert cache.prompt_bytes(tokens + more) >= cache.prompt_bytes(tokens)


def test_a_receiver_that_holds_everything_is_sent_nothing() -> None:
    indexer = Indexer(bytes_per_token=33, heads=64, dim=128, top_k=1024)
    groups = [
        LayerGroup(count=1, attention=Sliding(q_heads=4, kv_heads=2, k_dim=64, v_dim=64, window=128)),
        LayerGroup(count=1, attention=Compressed(q_heads=4, row=512, window=128, ratio=4, overlap=True), indexer=indexer),
    ]
    for group in groups:
        cache = layer_cache(group, kv_dtype="bf16")
        assert cache.moved(1000, 1000) == 0
        assert cache.moved(1000, 0) == cache.held(1000)
