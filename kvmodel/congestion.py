r"""Handoffs that share one decode instance: its links, its posting and copying, and its memory.

A handoff alone takes :math:`Z`. Of that it occupies the links for the time of its bytes, the sending side for the
messages a push posts and the copies made there, the receiving side for those of a pull. Whatever serves one
handoff in :math:`D` carries at most one each :math:`D`, so with :math:`N` in flight

.. math:: R(N) = \max(Z,\ N D), \qquad X(N) = N / R(N), \qquad N^* = Z / D

with the largest :math:`D` of links, receiving side, and sending side over the instances that send. These are the
asymptotic bounds of a closed system (Denning and Buzen, The Operational Analysis of Queueing Network Models, ACM
Computing Surveys 10(3), 1978, https://doi.org/10.1145/356733.356735; checked 2026-11-29), exact where service
times are equal. :math:`N^*` is the knee: more in flight only wait. Beyond the caches that decode has room for,
handoffs wait for memory as well: each held place serves one handoff in the time it is held. Attention replicas of an
instance serve handoffs side by side, each over NICs of its own as far as there are any: :math:`D` is divided by them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import lru_cache, reduce
from typing import Any, NamedTuple

import numpy as np

from kvmodel.capacity import decode_memory, rank_bytes
from kvmodel.handoff import fixed_seconds, handoff
from kvmodel.layer_groups import group_load, sent_together
from kvmodel.numeric import Num, ceil_div, maximum, minimum, where
from kvmodel.plan import Plan
from kvmodel.progress import Amounts, Load, lane_at
from kvmodel.traffic import Traffic

EXACT_FLOWS = 256
"""Up to as many flows the busiest uplink is worked out exactly; beyond, uplinks count as independent."""


@dataclass(frozen=True, slots=True)
class Congestion:
    """Handoffs in flight on one decode instance; numbers may be arrays."""

    link_seconds: Num
    """Time one handoff's bytes occupy the lanes, the fabric's collisions at the asked number included."""
    sender_seconds: Num
    """Time one handoff occupies the sending side: posting of a push, staging, quantizing, copies to the host."""
    receiver_seconds: Num
    """Time one handoff occupies the receiving side: posting of a pull, staging, dequantizing, copies from the host."""
    alone_seconds: Num
    """Time of a handoff alone, from the end of prefill until decode has admitted it."""
    seconds: Num
    """The same with `in_flight` of them."""
    handoffs_per_second: Num
    """Throughput at `in_flight`, one decode instance."""
    knee: Num
    """Handoffs in flight from which on more only wait."""
    senders_at_knee: Num
    """Prefill instances, each handing off as fast as it prefills, that fill links or receiving side."""
    utilisation: Num
    """Share of the time what fills first is busy with the asked number of senders; over 1 they fall behind."""
    pool_handoffs: Num
    """Handoffs whose cache decode has room for while it decodes its batch."""
    reserved_seconds: Num
    """Time decode memory is held for one handoff alone before its first token."""
    pool_handoffs_per_second: Num
    """Throughput beyond which arriving caches find no room, with as many in flight as there is room for."""

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


class Demand(NamedTuple):
    """Seconds for which one handoff occupies each of what it shares, over the replicas that work side by side."""

    link: Num
    sender: Num
    receiver: Num


def demand(plan: Plan, a: Amounts) -> Demand:
    """What one handoff (the whole batch) occupies, and for how long."""
    lane, extra = lane_at(plan, a), plan.extra
    loads = [(times, group_load(plan, a, counts)) for times, counts in sent_together(plan, a)]
    moved, _, posted, rank, spread = (sum(times * load[part] for times, load in loads) for part in range(len(Load._fields)))
    posting, shared = posted * lane.message_seconds, rank * (extra.staging + extra.host) / 2
    push = plan.engine.direction == "push"
    return Demand(
        link=moved / plan.lanes * a.shared_by / lane.bandwidth / plan.ways,
        sender=(shared + rank * extra.quantize + (posting if push else 0.0)) / plan.prefill.attention_dp,
        receiver=(shared + rank * extra.dequantize + spread + (0.0 if push else posting)) / plan.decode.attention_dp,
    )


def congestion(plan: Plan, a: Amounts, traffic: Traffic, in_flight: Num | None = None) -> Congestion:
    """What `in_flight` handoffs at once cost (the traffic's own number unless given); any amount may be an array.

    What has nothing to carry has no knee: it is infinite.
    """
    e, n, d = handoff(plan, a), traffic.in_flight if in_flight is None else in_flight, demand(plan, a)
    alone = alone_seconds(plan, a, traffic)
    room, early = room_for(plan, a, traffic), e.prefill.seconds if plan.overlap != "serial" else 0.0
    step = e.decode.step_seconds if plan.engine.first_token == plan.engine.released_by == "decode" else 0.0
    held = _loaded(plan, traffic, d, alone, maximum(room, 1)) + early + step
    free = _loaded(plan, traffic, d, alone, n)
    seconds = where((room >= 1) & (n > room), maximum(free, n * held / maximum(room, 1)), free)
    filled = maximum(d.link * crowding(plan, traffic, 4096), d.receiver)
    return Congestion(
        link_seconds=d.link * crowding(plan, traffic, n),
        sender_seconds=d.sender,
        receiver_seconds=d.receiver,
        alone_seconds=alone,
        seconds=seconds,
        handoffs_per_second=_over(n, seconds),
        knee=maximum(
            1.0, _first(_knee(plan, traffic, _over(alone, d.link)), _over(alone, d.receiver), _over(alone * traffic.senders, d.sender))
        ),
        senders_at_knee=_over(e.prefill.seconds, filled),
        utilisation=maximum(traffic.senders * filled, d.sender) / e.prefill.seconds,
        pool_handoffs=room,
        reserved_seconds=e.gap_seconds + early + step,
        pool_handoffs_per_second=_over(room, held),
    )


def alone_seconds(plan: Plan, a: Amounts, traffic: Traffic) -> Num:
    """Time of one handoff with everything to itself, its lanes' collisions on a hashed fabric included."""
    crowd = crowding(plan, traffic, 1) / (1 if traffic.fabric == "aligned" else plan.ways)
    transfer = handoff(plan, replace(a, shared_by=a.shared_by * crowd)).transfer.seconds
    return transfer + fixed_seconds(plan)


def _loaded(plan: Plan, traffic: Traffic, d: Demand, alone: Num, n: Num) -> Num:
    """Time of each of `n` handoffs that share links and sides."""
    return maximum(maximum(alone, n * d.link * crowding(plan, traffic, n)), n * maximum(d.receiver, d.sender / traffic.senders))


def _first(*knees: Num) -> Num:
    """The smallest."""
    return reduce(minimum, knees)


def _knee(plan: Plan, traffic: Traffic, load: Num) -> Num:
    """Handoffs in flight that load the busiest uplink with `load` times what one puts on an even spread."""
    uplinks = plan.lanes * plan.ways
    if traffic.fabric == "aligned" or uplinks == 1:
        return load
    numbers = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256, 512])
    loads = np.array([busiest(int(n) * plan.lanes, uplinks) for n in numbers]) * plan.ways
    inside = np.interp(load, loads, numbers)
    return where(load > loads[-1], load * numbers[-1] / loads[-1], inside)


def _over(a: Num, b: Num) -> Num:
    """a / b, infinite where nothing takes time."""
    return where(b > 0, a / maximum(b, 1e-300), np.inf)


def room_for(plan: Plan, a: Amounts, traffic: Traffic) -> Num:
    """Handoffs whose cache fits beside weights and decode batch on each accelerator of the decode side."""
    each, replicas = maximum(rank_bytes(plan.decode, a.prompt_tokens), 1.0), plan.decode.attention_dp
    if traffic.decode_pool_gbytes is not None:
        return traffic.decode_pool_gbytes * 1e9 // each * replicas // a.batch
    memory = decode_memory(plan, a)
    decoding = ceil_div(a.decode_batch, plan.decode.attention_dp) * rank_bytes(plan.decode, a.prompt_tokens + a.output_tokens)
    left = maximum(memory.usable_bytes - memory.weights_bytes - memory.activation_bytes - decoding, 0.0)
    return left // each * replicas // a.batch


def crowding(plan: Plan, traffic: Traffic, n: Num) -> Num:
    """How many times longer the busiest uplink carries its share of `n` handoffs than an even spread would."""
    if traffic.fabric == "aligned" or plan.lanes * plan.ways == 1:
        return 1.0
    if isinstance(n, np.ndarray):
        return np.array([_crowded(int(k), plan.lanes, plan.ways) for k in n.ravel()]).reshape(n.shape)
    return _crowded(int(n), plan.lanes, plan.ways)


def _crowded(n: int, lanes: int, ways: int) -> float:
    """Beyond some thousand handoffs the spread is as good as even: what 4,096 give holds."""
    n = min(n, 4096)
    return busiest(n * lanes, lanes * ways) * ways / n


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
