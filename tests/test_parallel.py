"""Which TP degrees engines accept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel import Scenario, evaluate, find_model
from kvmodel.parallel import check_tp
from kvmodel.records.model import Linear, NoAttention
from kvmodel.registry import models


@pytest.mark.parametrize(
    ("model", "tp", "valid"),
    [
        ("llama-3-70b", 8, True), ("llama-3-70b", 16, True), ("llama-3-70b", 64, True),
        ("llama-3-70b", 3, False), ("llama-3-70b", 128, False),
        ("falcon-7b", 1, True), ("falcon-7b", 8, False), ("falcon-7b", 71, True),
        ("phi-4", 4, False), ("phi-4", 5, True), ("deepseek-v3", 16, True),
        ("qwen2.5-7b", 8, False), ("qwen2.5-7b", 4, True), ("nemotron-3-super", 4, True),
    ],
)  # fmt: skip
def test_heads_must_divide(model: str, tp: int, valid: bool) -> None:
    # 64 query heads and 8 KV heads; 71 and 1; 40 and 10; 28 and 4: vLLM model_executor/models/llama.py
    check = check_tp(find_model(model), tp)
    assert check.valid is valid
    assert bool(check.reason) is not valid


@given(st.sampled_from(sorted(models())), st.integers(1, 64))
def test_a_degree_is_valid_exactly_where_every_rank_gets_whole_heads(model: str, tp: int) -> None:
    def even(a: object) -> bool:
        if isinstance(a, NoAttention):
            return True
        heads = a.heads if isinstance(a, Linear) else a.q_heads  # type: ignore[attr-defined]
        stored = a.groups if isinstance(a, Linear) else getattr(a, "kv_heads", 1)
        return heads % tp == 0 and (stored % tp == 0 or tp % stored == 0)

    spec = find_model(model)
    assert check_tp(spec, tp).valid is all(even(group.attention) for group in spec.groups)


@given(st.sampled_from(sorted(models())), st.integers(1, 64))
def test_the_nearest_degree_is_valid_and_none_is_nearer(model: str, tp: int) -> None:
    spec = find_model(model)
    nearest = check_tp(spec, tp).nearest
    assert check_tp(spec, nearest).valid
    assert not any(check_tp(spec, other).valid for other in range(1, 2 * tp) if abs(other - tp) < abs(nearest - tp))


def test_a_refused_layout_is_an_answer_with_times_and_a_remedy() -> None:
    result = evaluate(Scenario(model="phi-4", prefill_tp=4, decode_tp=4))
    assert not result.feasible
    assert result.reason == "10 KV heads neither divide by TP 4 nor divide it on both sides: use TP 5"
    assert result.ttft_seconds == pytest.approx(result.prefill.seconds + result.transfer.exposed_seconds + result.decode.step_seconds)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"engine": "lmcache-pd", "prefill_tp": 4}, "LMCache PD refuses prefill TP 4 with decode TP 8"),
        ({"prefill_tp": 8, "prefill_attention_dp": 3}, "prefill TP 8 does not divide into 3 attention replicas"),
        (
            {"prefill_attention_dp": 3, "decode_tp": 3},
            "prefill TP 8 does not divide into 3 attention replicas; decode's layout is refused too",
        ),
        (
            {"model": "phi-4", "prefill_tp": 4, "decode_tp": 5},
            "10 KV heads neither divide by TP 4 nor divide it on the prefill side: use TP 5",
        ),
        ({"model": "llama-3.2-3b", "decode_pp": 64}, "64 decode pipeline stages for 28 layers"),
        ({"model": "falcon-7b", "decode_tp": 1}, "71 attention heads do not divide by TP 8 on the prefill side"),
    ],
)
def test_what_an_engine_refuses_is_said(changes: dict[str, object], words: str) -> None:
    result = evaluate(Scenario(**changes))
    assert not result.feasible
    assert words in result.reason


@pytest.mark.parametrize(("dp", "replicas"), [(8, 1), (4, 2), (1, 8)])
def test_attention_replicas_each_hold_whole_requests(dp: int, replicas: int) -> None:
    result = evaluate(Scenario(decode_tp=8, decode_attention_dp=dp))
    assert result.kv.decode_rank_bytes == result.kv.prompt_bytes / replicas
