"""Handoffs that share links: bounds, a simulated closed system, and collisions counted out."""

from __future__ import annotations

import heapq
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvmodel import BadScenarioError, Scenario, evaluate
from kvmodel.congestion import Congestion, busiest, congestion, curve
from kvmodel.evaluate import amounts_of
from kvmodel.failure import failure
from kvmodel.plan import plan_of
from kvmodel.traffic import Traffic
from tests.strategies import scenarios


def of(scenario: Scenario, **traffic: Any) -> Congestion:
    return congestion(plan_of(scenario), amounts_of(scenario), Traffic(**traffic))


def simulated(n: int, busy: float, rest: float, rounds: int = 400) -> float:
    """Throughput of `n` handoffs going round a link that serves one after the other and a wait without it."""
    free, done, last = 0.0, 0, 0.0
    arrivals = [0.0] * n
    heapq.heapify(arrivals)
    while done < rounds * n:
        start = max(heapq.heappop(arrivals), free)
        free = start + busy
        heapq.heappush(arrivals, free + rest)
        done, last = done + 1, free + rest
    return done / last


@settings(max_examples=60)
@given(st.integers(1, 40), st.floats(1e-4, 1.0), st.floats(0, 2.0))
def test_throughput_is_that_of_a_closed_system(n: int, busy: float, rest: float) -> None:
    expected = min(n / (busy + rest), 1 / busy)
    assert simulated(n, busy, rest) == pytest.approx(expected, rel=0.02)


@given(scenarios(), st.integers(1, 512))
def test_no_handoff_is_faster_than_alone_and_the_links_carry_no_more_than_they_can(scenario: Scenario, n: int) -> None:
    found = of(scenario, in_flight=n)
    assert found.seconds >= found.alone_seconds
    busiest_of = max(found.link_seconds, found.receiver_seconds, found.sender_seconds)
    assert found.handoffs_per_second * busiest_of <= 1 + 1e-9 or busiest_of == 0
    if n <= found.pool_handoffs or not found.pool_handoffs:
        assert (found.seconds <= found.alone_seconds * (1 + 1e-12)) == (n <= found.knee * (1 + 1e-12))
    e = evaluate(scenario)
    fixed = e.gap_seconds - e.transfer.exposed_seconds
    assert found.alone_seconds == pytest.approx(e.transfer.seconds + fixed)


def test_one_lane_is_full_with_the_published_scenario() -> None:
    """2.68 GB over 50 GB/s: 53.7 ms of link for each 0.41 s of prefill, so 7 or 8 prefill instances fill it."""
    found, e = of(Scenario()), evaluate(Scenario())
    assert found.link_seconds == pytest.approx(0.05368709)
    assert found.sender_seconds == found.receiver_seconds == 0
    assert found.knee == 1.0
    assert found.handoffs_per_second == pytest.approx(1 / 0.05368709)
    assert found.senders_at_knee == pytest.approx(e.prefill.seconds / 0.05368709)
    assert of(Scenario(), senders=2).utilisation == pytest.approx(2 * 0.05368709 / e.prefill.seconds)


def test_fixed_time_moves_the_knee_and_not_the_throughput() -> None:
    plain, fixed = of(Scenario(engine="vllm-nixl")), plan_of(Scenario(engine="vllm-nixl")).engine
    rest = fixed.handoff_seconds + fixed.admission_seconds
    assert plain.knee == pytest.approx(plain.alone_seconds / plain.link_seconds)
    assert plain.alone_seconds - plain.link_seconds > rest


@given(scenarios(longest=32_768), st.lists(st.integers(1, 200), min_size=1, max_size=5), st.sampled_from(["aligned", "hashed"]))
def test_a_curve_is_its_points(scenario: Scenario, numbers: list[int], fabric: str) -> None:
    plan, a = plan_of(scenario), amounts_of(scenario)
    whole = curve(plan, a, Traffic(fabric=fabric), numbers)
    for i, n in enumerate(numbers):
        assert np.broadcast_to(whole.seconds, len(numbers))[i] == pytest.approx(
            congestion(plan, a, Traffic(fabric=fabric, in_flight=n)).seconds
        )


@pytest.mark.parametrize(("flows", "uplinks"), [(1, 1), (2, 2), (3, 2), (4, 4), (5, 3), (6, 4)])
def test_the_busiest_uplink_counted_out(flows: int, uplinks: int) -> None:
    loads = [max(np.bincount(choice, minlength=uplinks)) for choice in product(range(uplinks), repeat=flows)]
    assert busiest(flows, uplinks) == pytest.approx(np.mean(loads), rel=1e-9)


@pytest.mark.parametrize(("flows", "uplinks"), [(8, 8), (64, 8), (256, 16), (512, 8), (4096, 64)])
def test_the_busiest_uplink_drawn_at_random(flows: int, uplinks: int) -> None:
    drawn = np.random.default_rng(7).multinomial(flows, [1 / uplinks] * uplinks, size=40_000).max(axis=1)
    assert busiest(flows, uplinks) == pytest.approx(drawn.mean(), rel=0.02)


@given(st.integers(1, 600), st.integers(1, 64))
def test_the_busiest_uplink_holds_at_least_an_even_share(flows: int, uplinks: int) -> None:
    assert max(1.0, flows / uplinks) <= busiest(flows, uplinks) + 1e-9
    assert busiest(flows, uplinks) <= flows


def test_collisions_cost_most_with_few_handoffs() -> None:
    eight = Scenario(lanes=8)
    alone, many = of(eight, fabric="hashed", in_flight=1), of(eight, fabric="hashed", in_flight=256)
    assert alone.seconds / of(eight, in_flight=1).seconds == pytest.approx(busiest(8, 8))
    assert many.seconds / of(eight, in_flight=256).seconds < 1.2
    assert of(Scenario(), fabric="hashed") == of(Scenario())


@pytest.mark.parametrize("n", [1, 2, 3, 5, 20, 100])
def test_collisions_move_the_knee_with_them(n: int) -> None:
    scenario = Scenario(lanes=8, engine="vllm-nixl", prompt_tokens=512)
    found = of(scenario, fabric="hashed", in_flight=n)
    assert (found.seconds <= found.alone_seconds * 1.01) == (n <= found.knee * 1.02)


def test_decode_has_room_for_what_weights_and_decode_batch_leave() -> None:
    free = of(Scenario())
    plan = plan_of(Scenario())
    rank = 327_680 / 8
    left = plan.decode.usable_bytes - plan.decode.rank_weights - plan.decode.workspace.bytes(1, 1) - rank * (8192 + 500)
    assert free.pool_handoffs == left // (rank * 8192)
    assert of(Scenario(), decode_pool_gbytes=1.0).pool_handoffs == 1e9 // (rank * 8192) == 2
    assert of(Scenario(decode_tp=1)).pool_handoffs == 0
    pool = of(Scenario(), decode_pool_gbytes=1.0)
    step = evaluate(Scenario()).decode.step_seconds
    assert pool.pool_handoffs_per_second == pytest.approx(2 / (2 * 0.05368709 + step))
    many = of(Scenario(), decode_pool_gbytes=1.0, in_flight=64)
    assert many.seconds == pytest.approx(64 * (2 * 0.05368709 + step) / 2)
    assert many.handoffs_per_second == pytest.approx(pool.pool_handoffs_per_second)


def test_memory_is_reserved_from_the_first_send_on() -> None:
    serial, layer = evaluate(Scenario()), evaluate(Scenario(overlap="layer"))
    assert of(Scenario()).reserved_seconds == pytest.approx(serial.gap_seconds + serial.decode.step_seconds)
    whole = layer.prefill.seconds + layer.gap_seconds + layer.decode.step_seconds
    assert of(Scenario(overlap="layer")).reserved_seconds == pytest.approx(whole)


def test_nothing_to_move_never_fills_the_links() -> None:
    found = of(Scenario(decode_held_tokens=8192), in_flight=64)
    assert found.link_seconds == found.receiver_seconds == 0
    assert found.knee == found.senders_at_knee == np.inf
    assert found.utilisation == 0


@pytest.mark.parametrize(("field", "value"), [("in_flight", 0), ("senders", 5000), ("fabric", "mesh"), ("failure_probability", 1.0)])
def test_traffic_out_of_bounds_is_one_sentence(field: str, value: object) -> None:
    with pytest.raises(BadScenarioError, match=rf"^{field}: got .*; allowed: "):
        Traffic(**{field: value})


def test_what_the_sender_posts_does_not_fill_the_links_of_decode() -> None:
    """Mooncake pushes: 1.8 us a message is the prefill side's, and eight instances post side by side."""
    worn = Scenario(engine="vllm-mooncake", fragmentation=0.67, lanes="auto")
    one, eight = of(worn), of(worn, senders=8)
    assert one.link_seconds == pytest.approx(2_684_354_560 / 8 / 48e9, rel=0.01)
    assert one.sender_seconds == pytest.approx(evaluate(worn).transfer.messages * 1.8e-6)
    assert one.receiver_seconds == 0
    assert eight.knee == pytest.approx(min(eight.alone_seconds / eight.link_seconds, 8 * one.knee))
    assert one.senders_at_knee == pytest.approx(evaluate(worn).prefill.seconds / one.link_seconds)
    pull = of(Scenario(engine="vllm-nixl", lanes="auto"))
    assert pull.sender_seconds == 0
    assert pull.receiver_seconds > pull.link_seconds


def test_collisions_slow_the_bytes_and_not_the_posting() -> None:
    worn = Scenario(engine="vllm-mooncake", fragmentation=0.67, lanes="auto")
    aligned, hashed = of(worn, in_flight=1), of(worn, in_flight=1, fabric="hashed")
    assert hashed.link_seconds == pytest.approx(busiest(8, 8) * aligned.link_seconds)
    assert hashed.seconds == pytest.approx(aligned.seconds)  # posting hides the slower bytes


def test_attention_replicas_take_handoffs_side_by_side() -> None:
    # sglang DP attention: a request is on one replica, which has its own NIC and holds the only copy of its latent
    gpus = {"prefill_accelerator": "h200-sxm", "decode_accelerator": "h200-sxm"}
    eight = Scenario(model="deepseek-v3", engine="vllm-nixl", lanes="auto", decode_attention_dp=8, **gpus)
    size, post = 70_272 * 8192, 61 * 512 * 0.67 * 0.29e-6
    found = of(eight, in_flight=8)
    assert found.link_seconds == pytest.approx(size / 48e9 / 8)
    assert found.receiver_seconds == pytest.approx(post / 8)
    assert found.seconds == pytest.approx(evaluate(eight).transfer.seconds + 0.007)  # each of 8 on a replica of its own
    assert found.knee == pytest.approx(found.alone_seconds / found.link_seconds)
    assert found.knee > 8
    places = [of(eight, decode_pool_gbytes=gb).pool_handoffs for gb in (0.5, 0.6, 1.2)]
    assert places == [0, 8, 16]
    assert failure(plan_of(eight), amounts_of(eight), Traffic()).decode_reserved_bytes == size
    hashed = of(eight, in_flight=1, fabric="hashed")
    assert (hashed.alone_seconds, hashed.seconds) == pytest.approx((found.alone_seconds, found.alone_seconds))
    one_pipe = eight.with_changes(link="ethernet-100")
    assert of(one_pipe).link_seconds == pytest.approx(size / (12.5e9 * 0.38))  # a node's pipe is shared by its replicas
