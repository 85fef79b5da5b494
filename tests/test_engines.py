"""What each engine is said to do, the ways a scenario may change it, and the handoffs it refuses."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel import BadScenarioError, Scenario, Turn, agent_turn, evaluate, find_model, sweep
from kvmodel.evaluate import amounts_of
from kvmodel.parts import timeline_parts
from kvmodel.plan import plan_of
from kvmodel.registry import engines, links, transports
from kvmodel.wire import rank_slices
from tests.strategies import scenarios

PROMPT = {"prompt_tokens": 8192, "prefill_seconds": 0.4, "decode_step_seconds": 0.02}

SAID: dict[str, dict[str, Any]] = {
    "ideal": {"overlap": "serial", "nominal_link": True, "block_tokens": 1, "mla_copies": "single", "handoff_seconds": 0.0},
    "vllm-nixl": {"overlap": "serial", "direction": "pull", "block_tokens": 16, "first_token": "decode", "released_by": "decode",
                  "skips_held": True, "max_lanes_per_gpu": 2, "gathers_copied_heads": False, "nvfp4_equal_tp": True},
    "vllm-mooncake": {"overlap": "serial", "direction": "push", "block_tokens": 16, "first_token": "decode", "skips_held": True},
    "sglang-mooncake": {"overlap": "chunk", "direction": "push", "first_token": "prefill", "released_by": "decode", "early_prefix": True,
                        "skips_held": False, "unequal_tp": "tokens", "mla_copies": "per-rank"},
    "tensorrt-llm": {"overlap": "serial", "gathers": True, "block_tokens": 32, "first_token": "prefill"},
    "layerwise-push": {"overlap": "layer", "direction": "push", "block_tokens": 16, "first_token": "decode"},
    "lmcache-pd": {"overlap": "chunk", "block_tokens": 256, "staging_copies": 2, "skips_held": True, "unequal_tp": "refused"},
    "nvlink-cuda-ipc": {"overlap": "serial", "direction": "pull", "block_tokens": 16, "same_node_only": True},
    "splitwise": {"overlap": "layer", "direction": "push", "first_token": "prefill", "released_by": "prefill", "serial_below_tokens": 512},
    "distserve": {"overlap": "serial", "direction": "pull", "first_token": "prefill", "released_by": "prefill", "same_node_only": True},
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(engines()))
def test_an_engine_is_what_its_sources_say(name: str) -> None:
    engine = engines()[name]
    assert {key: getattr(engine, key) for key in SAID[name]} == SAID[name]


def test_descriptors_over_cuda_ipc_are_dear() -> None:
    # vllm-project/vllm#55434: some 20 times those of RDMA
    ipc, rdma = engines()["nvlink-cuda-ipc"].message_seconds, links()["ib-ndr-400"].message_seconds
    assert ipc is not None
    assert 10 * rdma < ipc < 40 * rdma


# Splitwise


@pytest.mark.parametrize(("gpu", "link", "left_over"), [("a100-sxm", "ib-hdr-200", 8e-3), ("h100-sxm", "ib-ndr-400", 5e-3)])
@pytest.mark.parametrize("tokens", [1024, 4096, 8192])
def test_splitwise_leaves_a_constant_whatever_the_prompt(gpu: str, link: str, left_over: float, tokens: int) -> None:
    # section VI-A: around 8 ms on A100 with 200 Gb/s and 5 ms on H100 with 400 Gb/s, whatever the prompt
    sides = {"prefill_accelerator": gpu, "decode_accelerator": gpu, "prefill_tp": 8, "decode_tp": 8, "lanes": "auto", "link": link}
    result = evaluate(Scenario(model="llama-2-70b", engine="splitwise", prompt_tokens=tokens, **sides))
    assert result.bound == "hidden"
    assert result.gap_seconds == pytest.approx(left_over, rel=0.15)


def test_splitwise_sends_short_prompts_whole() -> None:
    short, long_ = (evaluate(Scenario(engine="splitwise", prompt_tokens=n)) for n in (511, 512))
    assert (short.bound, long_.bound) == ("exposed", "hidden")
    assert short.transfer.exposed_seconds == short.transfer.seconds
    assert long_.transfer.exposed_seconds < long_.transfer.seconds / 10
    asked = evaluate(Scenario(engine="splitwise", prompt_tokens=511, overlap="layer"))
    assert asked.transfer.exposed_seconds < short.transfer.exposed_seconds
    swept = sweep(Scenario(engine="splitwise"), prompt_tokens=[511, 512])
    assert list(swept.bound) == ["exposed", "hidden"]
    assert swept.transfer.exposed_seconds[0] == short.transfer.exposed_seconds


def test_a_short_prompt_of_splitwise_is_drawn_as_it_is_sent() -> None:
    scenario = Scenario(engine="splitwise", prompt_tokens=511)
    parts = timeline_parts(plan_of(scenario), amounts_of(scenario))
    assert parts.wire_start[0] >= parts.compute_end[-1]


def test_prefill_releases_the_first_token_and_the_second_waits_for_the_gap() -> None:
    result = evaluate(Scenario(engine="splitwise", **PROMPT))
    assert result.ttft_seconds == 0.4
    assert result.second_token_seconds == pytest.approx(0.4 + result.gap_seconds + 0.02)


# one's own ways


def test_a_token_that_decode_makes_is_not_released_by_prefill() -> None:
    with pytest.raises(BadScenarioError, match=r"^released_by: got 'prefill', which cannot release a token that decode makes"):
        plan_of(Scenario(released_by="prefill"))
    both = Scenario(engine="vllm-nixl", first_token="prefill", released_by="prefill")
    assert evaluate(both).ttft_seconds == pytest.approx(evaluate(both).prefill.seconds)
    with pytest.raises(BadScenarioError, match="overlap: got 'layer-both'"):
        plan_of(Scenario(first_token="prefill", overlap="layer-both"))


def test_a_first_token_made_by_prefill_saves_a_decode_step() -> None:
    made, again = evaluate(Scenario(first_token="prefill")), evaluate(Scenario())
    assert again.ttft_seconds - made.ttft_seconds == pytest.approx(again.decode.step_seconds)


def test_a_link_may_reach_another_share_and_another_latency() -> None:
    result = evaluate(Scenario(engine="tensorrt-llm", achieved=0.5, latency_seconds=0.002, gather="no", fragmentation=0.0))
    assert result.transfer.seconds == pytest.approx(result.kv.wire_bytes / 25e9 + 0.002)


def test_an_ideal_link_stays_ideal_but_for_what_is_asked() -> None:
    assert evaluate(Scenario(achieved=0.5)).transfer.seconds == pytest.approx(2_684_354_560 / 25e9)
    assert evaluate(Scenario(latency_seconds=0.5)).transfer.seconds == pytest.approx(2_684_354_560 / 50e9 + 0.5)
    assert evaluate(Scenario(achieved=1.0, latency_seconds=0.0)).transfer == evaluate(Scenario()).transfer


@given(scenarios(gather=None, staging_copies=None, cross_layer=None))
def test_gathering_sends_a_run_a_layer_for_two_passes_through_memory(scenario: Scenario) -> None:
    plain, gathered = (evaluate(scenario.with_changes(gather=way)) for way in ("no", "yes"))
    assert gathered.kv == plain.kv
    assert gathered.transfer.messages <= plain.transfer.messages
    sides = plan_of(scenario).prefill.accelerator, plan_of(scenario).decode.accelerator
    passes = 2 * 2 / min(side.hbm_bandwidth for side in sides) * plain.kv.wire_bytes
    passes /= min(side.attention_ranks for side in (plan_of(scenario).prefill, plan_of(scenario).decode))
    assert gathered.transfer.seconds <= plain.transfer.seconds + passes * (1 + 1e-9) + 1e-12


def test_gathering_pays_where_small_writes_are_dear() -> None:
    small = Scenario(engine="nvlink-cuda-ipc", link="nvlink-4", fragmentation=1.0, lanes="auto")
    assert evaluate(small.with_changes(gather="yes")).transfer.seconds < evaluate(small).transfer.seconds / 10


def test_going_through_the_host_adds_two_copies_and_shares_its_memory() -> None:
    eight = Scenario(lanes="auto")
    through = evaluate(eight.with_changes(host_bounce="yes"))
    pcie = transports()["pcie"].constants.achieved * 64e9
    memory = transports()["transfer-engine"].constants.host_bandwidth
    size = through.kv.wire_bytes
    assert through.transfer.seconds == pytest.approx(size / min(400e9, memory) + 2 * size / 8 / pcie)


def test_each_node_has_host_memory_of_its_own() -> None:
    two = Scenario(lanes="auto", prefill_tp=16, decode_tp=16, host_bounce="yes", model="llama-3.1-405b")
    assert plan_of(two).lane.bandwidth == plan_of(two.with_changes(prefill_tp=8, decode_tp=8)).lane.bandwidth
    narrow = plan_of(two.with_changes(decode_tp=8))  # the side with one node holds 8 lanes back
    assert narrow.lane.bandwidth == plan_of(two.with_changes(prefill_tp=8, decode_tp=8)).lane.bandwidth
    assert plan_of(two.with_changes(lanes=16, decode_tp=8)).lane.bandwidth == narrow.lane.bandwidth / 2


@pytest.mark.parametrize(
    ("prefill", "decode", "partners"), [(8, 8, 1), (8, 2, 4), (4, 8, 2), (4, 16, 4), (2, 3, 2), (16, 8, 1), (16, 4, 2), (16, 16, 1)]
)
def test_a_rank_exchanges_heads_with_those_of_the_wider_side_that_have_different_ones(prefill: int, decode: int, partners: int) -> None:
    # 8 KV heads: ranks beyond them hold copies, which are read once and written each
    assert rank_slices(find_model("llama-3-70b").groups[0], prefill, decode) == partners
    assert rank_slices(find_model("deepseek-v3").groups[0], prefill, decode) == 1


def test_a_pool_is_no_rank_that_gathers_parts() -> None:
    latent = Scenario(model="deepseek-v3", lanes="auto", mla_copies="split")
    rows = agent_turn(latent, Turn(history_tokens=30_000, delta_tokens=2_000, generated_tokens=500)).designs
    edges = {(e.source, e.target): e for row in rows if row.id == "pool" and row.warm for e in row.edges}
    write, fetch = edges["prefill", "pool"], edges["pool", "decode"]
    assert write.seconds == pytest.approx(write.bytes / 400e9)
    assert fetch.seconds == pytest.approx(fetch.bytes / 400e9 + fetch.bytes * 7 / 8 / 450e9)


@given(scenarios(outstanding_messages=None), st.integers(1, 64))
def test_waiting_for_messages_never_helps_and_ends_with_enough_in_flight(scenario: Scenario, few: int) -> None:
    free, waits, more = (evaluate(scenario.with_changes(outstanding_messages=n)).transfer.seconds for n in (None, few, 2 * few))
    assert free * (1 - 1e-12) <= more * (1 + 1e-12)
    assert more <= waits * (1 + 1e-12)


def test_one_message_at_a_time_pays_the_latency_of_each() -> None:
    one = Scenario(engine="vllm-mooncake", fragmentation=1.0, message_seconds=0.0, outstanding_messages=1, latency_seconds=1e-5)
    result, free = evaluate(one), evaluate(one.with_changes(outstanding_messages=None))
    assert result.transfer.seconds - free.transfer.seconds == pytest.approx(40_960 * 1e-5)


def test_a_first_contact_waits_for_the_handshake() -> None:
    warm, first = (evaluate(Scenario(engine="vllm-nixl", contact=contact, **PROMPT)) for contact in ("warm", "first"))
    assert first.gap_seconds - warm.gap_seconds == pytest.approx(5.0)
    assert first.ttft_seconds - warm.ttft_seconds == pytest.approx(5.0)
    assert first.transfer == warm.transfer


def test_a_latent_in_parts_crosses_once_and_is_gathered_inside_the_node() -> None:
    latent = Scenario(model="deepseek-v3", prompt_tokens=1000, lanes="auto", mla_copies="split")
    result, size = evaluate(latent), 70_272 * 1000
    assert result.kv.wire_bytes == size
    assert result.transfer.lanes == 8
    assert result.transfer.seconds == pytest.approx(size / 400e9 + size * 7 / 8 / 450e9)


def test_narrowing_on_top_of_an_fp8_cache() -> None:
    stored = Scenario(kv_dtype="fp8")
    narrow = evaluate(stored.with_changes(wire_dtype="int4"))
    assert narrow.kv.wire_bytes == evaluate(stored).kv.wire_bytes / 2
    assert narrow.kv.prompt_bytes == evaluate(stored).kv.prompt_bytes


# unequal TP


def test_wider_decode_takes_slices_of_every_block() -> None:
    # vLLM: head-major blocks are read a slice of heads at a time; no run forms across blocks
    equal, wider = (evaluate(Scenario(engine="vllm-nixl", prefill_tp=4, decode_tp=tp)) for tp in (4, 8))
    assert equal.transfer.messages == pytest.approx(80 * 512 * 0.67)
    assert wider.transfer.messages == 80 * 512 * 2
    assert wider.kv.wire_bytes == equal.kv.wire_bytes


def test_sglang_sends_each_token_slot_apart_where_tp_differs() -> None:
    # sglang disaggregation/mooncake/conn.py: a slice for every token of every layer, unless its staging buffer is on
    unequal = Scenario(engine="sglang-mooncake", prefill_tp=8, decode_tp=4)
    assert evaluate(unequal).transfer.messages == 80 * 8192 * 2
    assert evaluate(unequal.with_changes(decode_tp=8)).transfer.messages == 80 * 128
    assert evaluate(unequal.with_changes(gather="yes")).transfer.messages == 80 * 2
    latent = unequal.with_changes(model="deepseek-v3")
    assert evaluate(latent).transfer.messages == 61 * 128  # a latent has no heads to slice


def test_a_window_has_no_more_token_slots_than_it_keeps() -> None:
    result = evaluate(Scenario(model="gpt-oss-120b", engine="sglang-mooncake", prompt_tokens=6400, prefill_tp=2, decode_tp=1))
    assert result.transfer.messages == 18 * 6400 * 2 + 18 * 128 * 2


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"engine": "vllm-nixl", "prefill_tp": 16, "decode_tp": 8},
            "over decode TP 8 with 8 KV heads copied is refused by vLLM NIXL",
        ),
        ({"engine": "nvlink-cuda-ipc", "link": "nvlink-4", "prefill_tp": 16, "decode_tp": 4}, "use prefill TP 8 or less"),
        (
            {"engine": "vllm-nixl", "prefill_tp": 8, "decode_tp": 4, "kv_dtype": "nvfp4"},
            "an NVFP4 cache between prefill TP 8 and",
        ),
        ({"engine": "lmcache-pd", "prefill_tp": 4}, "LMCache PD refuses prefill TP 4 with decode TP 8"),
        ({"engine": "distserve"}, "InfiniBand NDR 400 joins nodes, but DistServe needs both sides inside one"),
        ({"engine": "nvlink-cuda-ipc", "link": "roce-400"}, "joins nodes, but vLLM NIXL over CUDA IPC needs"),
    ],
)
def test_a_refused_handoff_has_a_reason_and_still_has_times(changes: dict[str, Any], words: str) -> None:
    result = evaluate(Scenario(**changes))
    assert not result.feasible
    assert words in result.reason
    assert result.transfer.seconds > 0.01


@pytest.mark.parametrize(
    "changes",
    [
        {"engine": "vllm-nixl", "prefill_tp": 8, "decode_tp": 4},
        {"engine": "vllm-nixl", "prefill_tp": 8, "decode_tp": 16},
        {"engine": "vllm-nixl", "model": "deepseek-v3", "prefill_tp": 16, "decode_tp": 8, "prefill_accelerator": "b200-sxm"},
        {"engine": "vllm-nixl", "prefill_tp": 8, "decode_tp": 8, "kv_dtype": "nvfp4"},
        {"engine": "ideal", "prefill_tp": 16, "decode_tp": 8},
        {"engine": "distserve", "link": "nvlink-4"},
    ],
)
def test_what_an_engine_takes_is_not_refused(changes: dict[str, Any]) -> None:
    assert plan_of(Scenario(**changes)).refusal == ""
