r"""Sending layers in groups: what a size of group hides, and the best one.

A group of :math:`k` layers leaves when prefill has made its last one, so with :math:`k` the exposed part of the
last group grows. Where the cache's blocks hold all layers side by side, a block of the whole group is one message,
so the posting of messages shrinks with :math:`k`; where each layer lies apart it does not, and single layers are best.

.. math:: busy_g = \max(ready_g,\ busy_{g-1}) + x_g
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvmodel.numeric import maximum
from kvmodel.plan import Plan
from kvmodel.progress import Amounts, cut, lane_at, layer_load, progress


@dataclass(frozen=True, slots=True)
class Grouped:
    """Layers sent in groups of one size; plain numbers."""

    layers: int
    """Layers of a group."""
    exposed_seconds: float
    """What is left after prefill ends, the link's latency included."""
    messages: float
    """Messages on the slowest lane."""


def sizes_of(plan: Plan) -> tuple[int, ...]:
    """Sizes of group worth trying: each one that makes another number of groups."""
    layers = plan.model.layers
    return tuple(sorted({-(-layers // groups) for groups in range(1, layers + 1)}))


def layer_groups(plan: Plan, a: Amounts, sizes: Sequence[int] | None = None, *, together: bool) -> tuple[Grouped, ...]:
    """Exposed transfer with layers sent in groups of each size, prefill in one pass; amounts are plain numbers.

    `together` says whether one message carries a block of all like layers of a group.
    """
    return tuple(_grouped(plan, a, size, together) for size in (sizes_of(plan) if sizes is None else sizes))


def best_group(found: Sequence[Grouped]) -> Grouped:
    """The group with the least exposed, the smallest of equals."""
    return min(found, key=lambda one: (round(one.exposed_seconds, 12), one.layers))


def _grouped(plan: Plan, a: Amounts, size: int, together: bool) -> Grouped:
    p, lane, known = progress(plan, a), lane_at(plan, a), cut(plan, a)[2]
    loads = [layer_load(plan, a, wire, known) for wire in plan.wires]
    apart = [load[1] * (wire.count if plan.engine.cross_layer else 1) for load, wire in zip(loads, plan.wires, strict=True)]
    clock = busy = messages = 0.0
    sequence = plan.model.sequence
    for start in range(0, len(sequence), size):
        group = sequence[start : start + size]
        clock += float(sum(p.layer_seconds[layer] for layer in group))
        moved = float(sum(loads[layer][0] for layer in group))
        rank = float(sum(loads[layer][2] for layer in group))
        posts = float(sum(apart[layer] for layer in (set(group) if together else group)))
        spread = float(sum(loads[layer][0] * plan.wires[layer].spread_per_byte for layer in group))
        x = float(lane.busy(moved / plan.lanes, posts, rank, a.shared_by)) + spread
        busy, messages = maximum(clock, busy) + x, messages + posts
    latency = plan.lane.latency * (p.wire_bytes > 0)
    return Grouped(size, max(0.0, busy + latency - float(p.prefill_seconds)) if p.wire_bytes > 0 else 0.0, messages)
