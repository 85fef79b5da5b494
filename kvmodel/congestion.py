r"""Handoffs that share the links of one decode instance.

A handoff alone spends :math:`Z + D`: its lanes are busy for :math:`D`, the rest (latency, fixed handoff,
admission) passes without them. With :math:`N` in flight the links carry at most one handoff each
:math:`D`, so

.. math:: R(N) = \max(Z + D,\ N D), \qquad X(N) = N / R(N), \qquad N^* = (Z + D) / D

These are the asymptotic bounds of a closed system (Denning and Buzen, The Operational Analysis of
Queueing Network Models, ACM Computing Surveys 10(3), 1978, https://doi.org/10.1145/356733.356735;
checked 2026-11-29), exact where service times are equal. :math:`N^*` is the knee: more in flight only wait.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from kvmodel.capacity import decode_memory, rank_bytes
from kvmodel.handoff import fixed_seconds, handoff
from kvmodel.numeric import Num, ceil_div, maximum, where
from kvmodel.plan import Plan
from kvmodel.progress import Amounts
from kvmodel.traffic import Traffic

EXACT_FLOWS = 256
"""Up to as many flows the busiest uplink is worked out exactly; beyond, uplinks count as independent."""


@dataclass(frozen=True, slots=True)
class Congestion:
    """Handoffs in flight on one decode instance; numbers may be arrays."""

    busy_seconds: Num
    """Time one handoff occupies its lanes, the fabric's collisions included."""
    alone_seconds: Num
    """Time of a handoff with the links to itself, from the end of prefill until decode has admitted it."""
    seconds: Num
    """The same with `in_flight` of them."""
    handoffs_per_second: Num
    """Throughput at `in_flight`, one decode instance."""
    knee: Num
    """Handoffs in flight from which on more only wait."""
    senders_at_knee: Num
    """Prefill instances, each handing off as fast as it prefills, that fill the links."""
    utilisation: Num
    """Share of the time the links are busy with the asked number of senders; over 1 they fall behind."""
    pool_handoffs: Num
    """Handoffs whose cache decode has room for while it decodes its batch."""
    reserved_seconds: Num
    """Time decode memory is held for one handoff before its first token."""
    pool_handoffs_per_second: Num
    """Throughput beyond which arriving caches find no room."""

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


def congestion(plan: Plan, a: Amounts, traffic: Traffic, in_flight: Num | None = None) -> Congestion:
    """What `in_flight` handoffs at once cost (the traffic's own number unless given); any amount may be an array.

    Lanes without bytes to carry have no knee: it is infinite.
    """
    e, n = handoff(plan, a), traffic.in_flight if in_flight is None else in_flight
    fixed = fixed_seconds(plan)
    latency = plan.lane.latency * (e.kv.wire_bytes > 0)
    wire = e.transfer.seconds - latency
    busy = wire * crowding(plan, traffic, 1)
    alone = busy + latency + fixed
    seconds = maximum(alone, n * wire * crowding(plan, traffic, n))
    filled = wire * crowding(plan, traffic, 4096)
    room = room_for(plan, a, traffic)
    early = plan.overlap != "serial"
    reserved = e.gap_seconds + (e.prefill.seconds if early else 0.0)
    return Congestion(
        busy_seconds=busy,
        alone_seconds=alone,
        seconds=seconds,
        handoffs_per_second=_over(n, seconds),
        knee=_knee(plan, traffic, _over(alone, wire)),
        senders_at_knee=_over(e.prefill.seconds, filled),
        utilisation=traffic.senders * filled / e.prefill.seconds,
        pool_handoffs=room,
        reserved_seconds=reserved,
        pool_handoffs_per_second=_over(room, reserved),
    )


def _knee(plan: Plan, traffic: Traffic, load: Num) -> Num:
    """Handoffs in flight that load the busiest uplink with `load` times what one puts on an even spread."""
    if traffic.fabric == "aligned" or plan.lanes == 1:
        return load
    numbers = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256, 512])
    loads = np.array([busiest(int(n) * plan.lanes, plan.lanes) for n in numbers])
    inside = np.interp(load, loads, numbers)
    return where(load > loads[-1], load * numbers[-1] / loads[-1], inside)


def _over(a: Num, b: Num) -> Num:
    """a / b, infinite where nothing takes time."""
    return where(b > 0, a / maximum(b, 1e-300), np.inf)


def room_for(plan: Plan, a: Amounts, traffic: Traffic) -> Num:
    """Handoffs whose cache fits beside weights and decode batch on each accelerator of the decode side."""
    each = ceil_div(a.batch, plan.decode.attention_dp) * rank_bytes(plan.decode, a.prompt_tokens)
    if traffic.decode_pool_gbytes is not None:
        return traffic.decode_pool_gbytes * 1e9 // maximum(each, 1.0)
    memory = decode_memory(plan, a)
    decoding = ceil_div(a.decode_batch, plan.decode.attention_dp) * rank_bytes(plan.decode, a.prompt_tokens + a.output_tokens)
    return maximum(memory.usable_bytes - memory.weights_bytes - memory.activation_bytes - decoding, 0.0) // maximum(each, 1.0)


def crowding(plan: Plan, traffic: Traffic, n: Num) -> Num:
    """How many times longer the busiest uplink carries its share of `n` handoffs than an even spread would."""
    if traffic.fabric == "aligned" or plan.lanes == 1:
        return 1.0
    if isinstance(n, np.ndarray):
        return np.array([busiest(int(k) * plan.lanes, plan.lanes) / int(k) for k in n.ravel()]).reshape(n.shape)
    return busiest(int(n) * plan.lanes, plan.lanes) / int(n)


@lru_cache(maxsize=4096)
def busiest(flows: int, uplinks: int) -> float:
    """Mean number of flows on the fullest of `uplinks`, each flow on one of them at random.

    Exact for up to EXACT_FLOWS flows: the number of ways in which none holds more than k, from the
    coefficients of (sum of x^j / j!, j up to k)^uplinks.
    """
    even, mean = -(-flows // uplinks), 0.0
    below = even - 1
    for k in range(even, flows + 1):
        mean += k * (_none_above(k, flows, uplinks) - (_none_above(k - 1, flows, uplinks) if k > even else 0.0))
        below = k
        if 1 - _none_above(k, flows, uplinks) < 1e-9:
            break
    return max(mean + below * (1 - _none_above(below, flows, uplinks)), flows / uplinks)


@lru_cache(maxsize=16_384)
def _none_above(k: int, flows: int, uplinks: int) -> float:
    """Probability that no uplink holds more than `k` flows."""
    rate = flows / uplinks
    counts = np.arange(k + 1)
    logs = counts * np.log(rate) - rate - np.array([_log_factorial(int(j)) for j in counts])
    one = np.exp(logs)
    if flows > EXACT_FLOWS:
        return float(one.sum() ** uplinks)
    power, rest, square = np.ones(1), uplinks, one
    while rest:
        if rest & 1:
            power = np.convolve(power, square)[: flows + 1]
        square, rest = np.convolve(square, square)[: flows + 1], rest >> 1
    if len(power) <= flows:
        return 0.0
    whole = np.exp(flows * np.log(flows) - flows - _log_factorial(flows))
    return float(min(1.0, power[flows] / whole))


@lru_cache(maxsize=8192)
def _log_factorial(n: int) -> float:
    return float(np.sum(np.log(np.arange(1, n + 1))))


def curve(plan: Plan, a: Amounts, traffic: Traffic, numbers: Num) -> Congestion:
    """The congestion over numbers of handoffs in flight, at one set of plain amounts."""
    return congestion(plan, a, traffic, np.asarray(numbers))
