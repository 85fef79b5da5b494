"""Workspace of a pass and the batch that fits: measured peaks, another tool's estimate, and batches tried one by one."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel.memory import (
    LOGIT_BYTES,
    PASS_TOKENS,
    Workspace,
    attention_width,
    ffn_width,
    most,
    most_decoded,
    most_prompts,
    pass_tokens,
    workspace,
)
from kvmodel.placement import Placement
from kvmodel.registry import accelerators, find_model, models


def place(model: str, tp: int = 1, *, dp: int = 1, ep: int = 1) -> Placement:
    return Placement(find_model(model), accelerators()["h100-sxm"], tp, dp, ep, "bf16", "auto")


def test_a_dense_layer_keeps_the_residual_the_block_s_ends_and_gate_up_and_their_product() -> None:
    # Llama 3 70B: hidden 8,192, FFN 28,672; at TP 8 each rank has 3,584 columns
    assert workspace(place("llama-3-70b")).token == 2 * (3 * 8192 + 3 * 28_672)
    assert workspace(place("llama-3-70b", 8)).token == 2 * (3 * 8192 + 3 * 3584)
    # Llama 3.1 8B: 32 query and 8 KV heads of 128: q + o + k + v
    assert attention_width(place("llama-3.1-8b"), find_model("llama-3.1-8b").groups[0]) == (32 * 2 + 8 * 2) * 128


def test_routed_experts_keep_a_row_for_each_expert_a_token_visits() -> None:
    model = find_model("deepseek-v3")  # hidden 7,168; 8 of 256 experts of 2,048, one shared expert of 2,048
    group = next(g for g in model.groups if g.ffn and g.ffn.kind == "moe")
    assert ffn_width(place("deepseek-v3", 8), group) == 8 * (7168 + 2048 / 8) + 3 * 2048 / 8
    # over 32 ranks of expert parallelism whole experts: 4,096 columns of gate and up are narrower than a row of 7,168
    assert ffn_width(place("deepseek-v3", 8, ep=32), group) == pytest.approx(8 / 32 * (7168 + 2048) + 3 * 2048 / 8)


def test_attention_replicas_split_their_tokens_and_logits_but_not_what_they_gather() -> None:
    alone, replicas = workspace(place("llama-3-70b", 8)), workspace(place("llama-3-70b", 8, dp=4))
    assert replicas.request == alone.request / 4
    assert alone.token - replicas.token == pytest.approx(2 * 8192 * 3 / 4)


def test_decode_absorbs_the_projections_of_mla_and_keeps_wider_heads() -> None:
    group = find_model("deepseek-v3").groups[0]
    prefill, decode = (attention_width(place("deepseek-v3"), group, absorbed=absorbed) for absorbed in (False, True))
    assert prefill == 128 * 2 * (192 + 128)
    assert decode == 128 * (192 + 576 + 512 + 128)
    sparse = find_model("deepseek-v3.2").groups[0]
    assert attention_width(place("deepseek-v3.2"), sparse) == decode  # whose queries read rows of their own in prefill too


@pytest.mark.parametrize("tp", [1, 2])
def test_a_sampler_that_sorts_explains_a_peak_that_tp_does_not_lower(tp: int) -> None:
    # Llama 3 8B, 8,192 tokens and 256 requests: 1.26 GiB at TP 1 and 2 alike, of a vLLM whose sampler sorted
    # (https://github.com/vllm-project/vllm/pull/10511): 41 bytes a logit; what does not sort needs less
    w, measured = workspace(place("llama-3.1-8b", tp)), 1.26 * 2**30
    sorting = Workspace(w.token, w.request * 41 / LOGIT_BYTES)
    assert sorting.bytes(8192, 256) == pytest.approx(measured, rel=0.01)
    assert 0.4 * measured < w.bytes(8192, 256) < measured


@pytest.mark.parametrize(("tp", "hiddens"), [(1, 14.0), (2, 8.5), (4, 6.5), (8, 6.5)])
def test_another_tool_s_estimate_for_llama_is_within_its_own_margin(tp: int, hiddens: float) -> None:
    # aiconfigurator's sglang_backend.py counts 2 bytes x tokens x hidden x c; its c for SGLang is 20 to 30 % over that for TensorRT-LLM
    ours = workspace(place("llama-3-70b", tp)).token / (2 * 8192)
    assert hiddens / 1.3 / 1.25 <= ours <= hiddens


def test_logits_take_as_many_bytes_as_an_engine_asked_for() -> None:
    # https://github.com/vllm-project/vllm/issues/27508: 786 MiB for 1,024 requests of gpt-oss in FP32
    assert 1024 * find_model("gpt-oss-120b").vocab * 4 == pytest.approx(786 * 2**20, rel=1e-3)
    assert workspace(place("gpt-oss-120b")).request == find_model("gpt-oss-120b").vocab * LOGIT_BYTES


@pytest.mark.parametrize("model", sorted(models()))
def test_every_model_keeps_something_and_no_more_at_a_higher_tp(model: str) -> None:
    widths = [workspace(place(model, tp)) for tp in (1, 2, 4, 8, 16, 32, 64)]
    assert all(w.token > 2 * 3 * find_model(model).hidden for w in widths)
    assert [w.token for w in widths] == sorted((w.token for w in widths), reverse=True)
    assert len({w.request for w in widths}) == 1


counts = st.integers(1, 200)
sizes = st.integers(0, 50)


def tried(room: int, need: object, most_tried: int = 3000) -> int:
    """The largest number of requests whose need is within the room, one after the other."""
    best = 0
    for batch in range(1, most_tried):
        if need(batch) > room:  # type: ignore[operator]
            return best
        best = batch
    return best


@given(st.integers(0, 2000), st.integers(1, 50), sizes, st.sampled_from((1, 2, 3, 8)))
def test_the_most_that_fit_are_found_without_trying(room: int, slope: int, each: int, replicas: int) -> None:
    assert most(float(room), slope, each, replicas) == tried(room, lambda b: slope * b + each * math.ceil(b / replicas))


@given(
    st.integers(0, 3000), st.integers(1, 5), st.integers(1, 30), sizes, st.integers(1, 40), st.integers(1, 60), st.sampled_from((1, 2, 8))
)
def test_the_batch_of_prompts_is_the_largest_whose_pass_fits(
    room: int, token: int, request: int, each: int, new: int, limit: int, replicas: int
) -> None:
    w = Workspace(token, request)

    def need(batch: int) -> float:
        in_pass = min(new * batch, max(limit, batch))
        return max(token * in_pass, request * batch) + each * math.ceil(batch / replicas)

    assert most_prompts(w, float(room), each, new, limit, replicas) == tried(room, need)
    assert all(pass_tokens(new, b, limit) == min(new * b, max(limit, b)) for b in (1, 7, 100))


@given(st.integers(0, 3000), st.integers(1, 5), st.integers(1, 30), sizes, st.sampled_from((1, 2, 8)))
def test_the_decode_batch_is_the_largest_whose_step_fits(room: int, token: int, request: int, each: int, replicas: int) -> None:
    w = Workspace(token, request)
    need = lambda b: max(token, request) * b + each * math.ceil(b / replicas)  # noqa: E731
    assert most_decoded(w, float(room), each, replicas) == tried(room, need)


def test_a_negative_room_holds_nothing() -> None:
    assert most(-5.0, 1.0, 1.0, 8) == 0
    assert most_prompts(Workspace(1.0, 1.0), -5.0, 1.0, 10, PASS_TOKENS, 1) == 0
