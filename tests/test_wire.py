"""Bytes, lanes and messages on the wire."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel import BadScenarioError, Scenario, evaluate, find_model
from kvmodel.lane import Lane, extra_seconds, lane_of
from kvmodel.plan import plan_of
from kvmodel.registry import accelerators, engines, links
from kvmodel.wire import copies_of, wire_ratio
from tests.plain import group_seconds, holdings, latency_of, layer_bytes, layer_messages, layer_seconds
from tests.strategies import scenarios, whole

GQA_8K = 2_684_354_560  # Llama 3 70B, 8,192 tokens, bf16


@given(scenarios())
def test_bytes_and_time_are_the_sum_over_layers_and_requests(scenario: Scenario) -> None:
    plan, result = plan_of(scenario), evaluate(scenario)
    _, known = holdings(scenario, plan)
    sizes = [layer_bytes(plan, g, scenario.prompt_tokens, known) for g in range(len(plan.wires))]
    if plan.overlap == "layer-group":
        layers, each = plan.model.sequence, scenario.group_layers or 1
        spent = [group_seconds(scenario, plan, layers[i : i + each], sizes) for i in range(0, len(layers), each)]
        busy, messages = (sum(column) for column in zip(*spent, strict=True))
    else:
        busy = sum(layer_seconds(scenario, plan, g, sizes[g]) for g in plan.model.sequence)
        messages = scenario.batch * sum(layer_messages(scenario, plan, g, scenario.prompt_tokens - known) for g in plan.model.sequence)
    latency = latency_of(scenario, plan) if result.kv.wire_bytes else 0.0
    assert result.kv.wire_bytes == pytest.approx(scenario.batch * sum(sizes[g].total for g in plan.model.sequence))
    assert result.transfer.seconds == pytest.approx(busy + latency)
    assert result.transfer.messages == pytest.approx(messages)


@pytest.mark.parametrize(("decode_tp", "copies"), [(1, 1), (4, 1), (8, 1), (16, 2), (64, 8)])
def test_heads_cross_once_up_to_their_number_then_once_a_copy(decode_tp: int, copies: int) -> None:
    # unique x max(1, decode TP / KV heads): vLLM nixl/tp_mapping.py
    assert evaluate(Scenario(decode_tp=decode_tp)).kv.wire_bytes == copies * GQA_8K


def test_a_single_decode_rank_needs_the_unique_bytes_whatever_prefill_replicates() -> None:
    # sgl-project/sglang#19086: 2 KV heads on 4 prefill ranks are stored twice and sent once
    result = evaluate(Scenario(model="qwen3-next-80b-a3b", prefill_tp=4, decode_tp=1, prompt_tokens=1000))
    assert result.kv.wire_bytes == result.kv.prompt_bytes
    assert 4 * (result.kv.prefill_rank_bytes - result.kv.state_bytes / 4) == pytest.approx(
        2 * (result.kv.prompt_bytes - result.kv.state_bytes)
    )


@pytest.mark.parametrize(("engine", "copies"), [("vllm-nixl", 16), ("sglang-mooncake", 16), ("ideal", 1)])
def test_a_latent_crosses_for_each_decode_rank_or_once(engine: str, copies: int) -> None:
    result = evaluate(Scenario(model="deepseek-v3", prompt_tokens=1000, decode_tp=16, engine=engine))
    assert result.kv.wire_bytes == copies * 70_272 * 1000


def test_attention_replicas_take_one_latent_each_request() -> None:
    dp = Scenario(model="deepseek-v3", prompt_tokens=1000, engine="vllm-nixl", decode_tp=16, decode_attention_dp=16)
    assert evaluate(dp).kv.wire_bytes == 70_272 * 1000


def test_state_is_sharded_and_crosses_once() -> None:
    spec = find_model("nemotron-3-super")
    kinds = {group.attention.kind: copies_of(group, engines()["vllm-nixl"], 8) for group in spec.groups}
    assert kinds == {"linear": 1.0, "none": 1.0, "full": 4.0}  # 2 KV heads on 8 ranks


@pytest.mark.parametrize(
    ("held", "tokens", "bytes_"),
    [(8000, 8500, 500 * 327_680), (8500, 8500, 0), (9000, 8500, 0), (0, 8500, 8500 * 327_680)],
)
def test_what_decode_holds_stays(held: int, tokens: int, bytes_: int) -> None:
    assert evaluate(Scenario(decode_held_tokens=held, prompt_tokens=tokens)).kv.wire_bytes == bytes_


def test_windows_are_sent_where_decode_lacks_them() -> None:
    # 18 full layers of 2,048 B a token, 18 windowed of 128 tokens
    wire = Scenario(model="gpt-oss-120b", prefill_tp=4, decode_tp=4, prompt_tokens=131_072, decode_held_tokens=130_048)
    assert evaluate(wire).kv.wire_bytes == 1024 * 36_864 + 4_718_592
    assert evaluate(wire.with_changes(decode_held_tokens=131_000)).kv.wire_bytes == 72 * (36_864 + 36_864)


# compression


@pytest.mark.parametrize(
    ("kv", "wire", "ratio"),
    [("bf16", "same", 1), ("bf16", "int8", 0.5), ("bf16", "fp8", 0.5), ("bf16", "int4", 0.25), ("fp8", "int4", 0.5),
     ("fp8", "fp8", 1), ("fp32", "bf16", 0.5)],
)  # fmt: skip
def test_one_byte_an_element_for_int8_and_fp8_half_for_int4(kv: str, wire: str, ratio: float) -> None:
    assert wire_ratio(kv, wire) == ratio


def test_int8_halves_every_transfer_and_adds_memory_passes() -> None:
    # KV compression: "every number in the table gets divided by 2", plus a dequantization on decode
    plain, narrow = evaluate(Scenario()), evaluate(Scenario(wire_dtype="int8"))
    assert narrow.kv.wire_bytes == plain.kv.wire_bytes / 2
    passes = 2 * (1 + 0.5) * GQA_8K / 8 / 3.35e12  # each side reads and writes its rank's share of 8
    assert narrow.transfer.seconds == pytest.approx(plain.transfer.seconds / 2 + passes)
    assert narrow.kv.prompt_bytes == plain.kv.prompt_bytes


@pytest.mark.parametrize(("kv", "wire"), [("fp8", "bf16"), ("int4", "int8"), ("fp8_ds_mla", "fp8")])
def test_a_wire_wider_than_the_cache_or_a_packed_row_is_refused(kv: str, wire: str) -> None:
    with pytest.raises(BadScenarioError, match="wire_dtype: got"):
        wire_ratio(kv, wire)


# lanes


@pytest.mark.parametrize(("lanes", "gbytes_per_s"), [("auto", 400), (1, 50), (4, 200)])
def test_lanes_share_the_bytes(lanes: object, gbytes_per_s: float) -> None:
    assert evaluate(Scenario(lanes=lanes)).transfer.seconds == pytest.approx(GQA_8K / (gbytes_per_s * 1e9))


@given(scenarios(shared_by=1, link_gbytes_per_s=None), st.integers(2, 64))
def test_handoffs_that_share_a_lane_divide_its_bandwidth(scenario: Scenario, sharing: int) -> None:
    alone, shared = evaluate(scenario), evaluate(scenario.with_changes(shared_by=sharing))
    assert shared.transfer.bandwidth_bytes_per_s == pytest.approx(alone.transfer.bandwidth_bytes_per_s / sharing)
    assert alone.transfer.seconds * (1 - 1e-12) <= shared.transfer.seconds <= alone.transfer.seconds * sharing * (1 + 1e-12)


# messages


def test_messages_are_blocks_of_each_layer() -> None:
    # layers x ceil(n / block) x kv_split x fragmentation
    vllm = evaluate(Scenario(engine="vllm-nixl", prompt_tokens=8200))
    assert vllm.transfer.messages == pytest.approx(80 * math.ceil(8200 / 16) * 0.67)
    splitwise = evaluate(Scenario(engine="splitwise", prompt_tokens=8200))
    assert splitwise.transfer.messages == 80 * math.ceil(8200 / 16) * 2
    assert evaluate(Scenario(engine="tensorrt-llm", prompt_tokens=8200)).transfer.messages == 80  # gathered: a run a layer


def test_a_window_posts_no_more_blocks_than_it_keeps() -> None:
    kept = evaluate(Scenario(model="gpt-oss-120b", engine="sglang-mooncake", prompt_tokens=6400, prefill_tp=1, decode_tp=1))
    assert kept.transfer.messages == 18 * 100 + 18 * 2  # 128 tokens are two blocks of 64


@given(whole(0, 10**12), whole(0, 10**6), st.floats(1e-8, 1e-4))
def test_posting_overlaps_the_wire_or_precedes_it(size: int, messages: int, cost: float) -> None:
    lane = Lane(bandwidth=50e9, latency=0.0, message_seconds=cost, posts_while_sending=True, extra_per_byte=0.0)
    after = replace(lane, posts_while_sending=False)
    wire, post = size / 50e9, messages * cost
    assert lane.busy(size, messages, size, 1) == pytest.approx(max(wire, post))
    assert after.busy(size, messages, size, 1) == pytest.approx(wire + post)


def test_ideal_is_nominal_and_others_take_what_the_link_achieves() -> None:
    link = links()["roce-200"]
    assert lane_of(link, engines()["ideal"], None, 0.0).bandwidth == 25e9
    real = lane_of(link, engines()["vllm-nixl"], None, 0.0)
    # 0.73 of nominal and 0.38 ms: Mooncake's whole-request transfers over 8 x 200 Gb/s read as GiB, 146 of 200 GB/s
    assert 8 * real.bandwidth == pytest.approx(146e9)
    assert real.latency == pytest.approx(0.38e-3)


def test_a_staging_copy_reads_and_writes_memory_once() -> None:
    h100, h200 = accelerators()["h100-sxm"], accelerators()["h200-sxm"]
    gathered = extra_seconds(engines()["tensorrt-llm"], 1.0, h100, h200, pcie_achieved=0.8, converts=False)
    assert gathered.per_byte == gathered.staging == pytest.approx(2 * 2 / 3.35e12)
    assert extra_seconds(engines()["ideal"], 1.0, h100, h200, pcie_achieved=0.8, converts=False).per_byte == 0.0
