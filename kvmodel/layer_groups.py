r"""Sending layers in groups: what a size of group hides, and the best one.

A group of :math:`k` layers leaves when prefill has made its last one, so with :math:`k` the exposed part of the
last group grows. Where the cache's blocks hold all layers side by side, a block of the whole group is one message,
so the posting of messages shrinks with :math:`k`; where each layer lies apart it does not, and single layers are best.

.. math:: busy_g = \max(ready_g,\ busy_{g-1}) + x_g

Groups follow one another within each prefill chunk, as single layers do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from typing import Any

import numpy as np

from kvmodel.numeric import Num, maximum, where
from kvmodel.plan import Plan
from kvmodel.progress import Amounts, Load, Pace, Progress, cut, layer_load, load_seconds, progress, sent_whole
from kvmodel.timeline import Run, WireState, advance

Counts = tuple[tuple[int, int], ...]
"""(layer group of the model, layers of it) of what leaves together."""


@dataclass(frozen=True, slots=True)
class Grouped:
    """Layers sent in groups of one size; numbers, or arrays where amounts are."""

    layers: Num
    """Layers of a group."""
    exposed_seconds: Num
    """What is left after prefill ends, the link's latency included."""
    seconds: Num
    """All groups on the slowest lane, nothing overlapped, the latency included."""
    messages: Num
    """Messages on the slowest lane."""
    in_step: Any
    """Whether nothing but the last group is left when prefill ends."""


def sizes_of(plan: Plan) -> tuple[int, ...]:
    """Sizes of group worth trying: each one that makes another number of groups."""
    layers = plan.model.layers
    return tuple(sorted({-(-layers // groups) for groups in range(1, layers + 1)}))


def groups_of(plan: Plan, size: int) -> tuple[tuple[Counts, int], ...]:
    """(what leaves together, how many times in a row), first group first."""
    return _groups(plan.model.sequence, size)


@lru_cache(maxsize=1024)
def _groups(sequence: tuple[int, ...], size: int) -> tuple[tuple[Counts, int], ...]:
    parts = [tuple(sorted(Counter(sequence[i : i + size]).items())) for i in range(0, len(sequence), size)]
    return tuple((counts, len(list(alike))) for counts, alike in groupby(parts))


def group_load(plan: Plan, a: Amounts, counts: Counts, layers: Sequence[Load] | None = None) -> Load:
    """What a group of layers puts on the wire; `layers` is what one layer of each kind does, where that is known."""
    known = cut(plan, a)[2]
    moved = messages = posted = rank = spread = 0.0
    for index, count in counts:
        wire = plan.wires[index]
        load = layer_load(plan, a, wire, known) if layers is None else layers[index]
        times = where(sent_whole(plan, a), count, 1) if wire.joined else count
        moved, rank, spread = moved + count * load.moved, rank + count * load.rank_bytes, spread + count * load.spread
        messages, posted = messages + times * load.messages, posted + times * load.posted
    return Load(moved, messages, posted, rank, spread)


class GroupPace(Pace):
    """How far prefill and wire are where layers leave in groups of one size."""

    def __init__(self, plan: Plan, a: Amounts, p: Progress, size: int) -> None:
        super().__init__(plan, a, p)
        self.groups = groups_of(plan, size)
        layers = [layer_load(plan, a, wire, p.known) for wire in plan.wires]
        loads = {counts: group_load(plan, a, counts, layers) for counts, _ in self.groups}
        busy = {counts: load_seconds(plan, a, load) for counts, load in loads.items()}
        self.shares = {counts: _share(x, sum(n * p.x[g] for g, n in counts)) for counts, x in busy.items()}
        self.messages = sum(times * loads[counts].messages for counts, times in self.groups)
        self.total_x = sum(times * busy[counts] for counts, times in self.groups)
        self.total_token_x = sum(times * self.shares[counts] * sum(n * self.token_x[g] for g, n in counts) for counts, times in self.groups)

    def group_x(self, j: Num, counts: Counts) -> Num:
        """Wire time of one group's part of chunk `j`."""
        return self.shares[counts] * sum(n * self.layer_x(j, g) for g, n in counts)

    def layers_of(self, j: Num, state: WireState, alpha: Num, decode_layer: Num | None) -> WireState:
        """The state after the layers of chunk `j`."""
        before, after = self.compute(j - 1), self.compute(j)
        layer_x = [self.layer_x(j, g) for g in range(len(self.plan.wires))]
        spans = {counts: sum(n * (after[g] - before[g]) for g, n in counts) for counts in self.shares}
        xs = {counts: share * sum(n * layer_x[g] for g, n in counts) for counts, share in self.shares.items()}
        clock = sum(wire.count * t for wire, t in zip(self.plan.wires, before, strict=True))
        for counts, times in self.groups:
            run = Run(times, clock + spans[counts], spans[counts], xs[counts])
            state = advance(state, run, latency=alpha, decode_layer=decode_layer)
            clock = clock + times * spans[counts]
        return state


def _share(busy: Num, layer_by_layer: Num) -> Num:
    """Wire time of a group over that of its layers one by one."""
    return busy / maximum(layer_by_layer, 1e-300)


def grouped(plan: Plan, a: Amounts, p: Progress, size: int) -> Grouped:
    """The transfer with layers sent in groups of a size."""
    pace = GroupPace(plan, a, p, size)
    moves, alpha = p.wire_bytes > 0, plan.lane.latency * (p.wire_bytes > 0)
    state = pace.layers_of(pace.chunks, WireState(pace.before_last_chunk(), 0.0), alpha, None)
    exposed = maximum(state.busy + alpha - p.prefill_seconds, 0.0) * moves
    head = 0.0 if a.prefill_seconds is not None else p.scale * plan.prefill.time.head(a.batch)
    last = pace.group_x(pace.chunks, pace.groups[-1][0])
    in_step = state.busy <= (p.prefill_seconds - head) * (1 + 1e-12) + last * (1 + 1e-9)
    return Grouped(size + 0 * p.new, exposed, pace.total_x + alpha, pace.messages, in_step)


def _gain(plan: Plan) -> bool:
    """Whether layers that leave together may take less time on the wire than one by one.

    They do where they share messages, or where one kind posts or waits while another sends.
    """
    lane = plan.lane
    beside = bool(lane.message_seconds and lane.posts_while_sending) or lane.outstanding is not None
    return any(wire.joined for wire in plan.wires) or (beside and len(plan.wires) > 1)


def sent_in_groups(plan: Plan, a: Amounts, p: Progress, sizes: Sequence[int] | None = None) -> Grouped:
    """The transfer in groups of the size asked for, or else of that with the least exposed, the smallest of equals.

    Layers that gain nothing by leaving together leave least exposed one by one, whatever the amounts.
    """
    if sizes is None:
        sizes = (plan.group_layers,) if plan.group_layers else sizes_of(plan) if _gain(plan) else (1,)
    best = grouped(plan, a, p, sizes[0])
    for size in sizes[1:]:
        other = grouped(plan, a, p, size)
        better = other.exposed_seconds < best.exposed_seconds * (1 - 1e-9) - 1e-12
        best = Grouped(*(where(better, getattr(other, name), getattr(best, name)) for name in Grouped.__slots__))
    return best


def settled(plan: Plan, a: Amounts) -> list[Plan]:
    """The plan with the size of group it takes, one for each element of the amounts; itself where layers leave in no groups.

    What asks a plan many questions at the same amounts looks for the size once.
    """
    if plan.overlap != "layer-group" or plan.group_layers is not None:
        return [plan] * int(np.size(a.prompt_tokens))
    layers = sent_in_groups(plan, a, progress(plan, a)).layers
    return [replace(plan, group_layers=int(size)) for size in np.ravel(layers)]


def sent_together(plan: Plan, a: Amounts) -> list[tuple[Num, Counts]]:
    """(how many times, what leaves together), the size of group an array where amounts are."""
    if plan.overlap != "layer-group":
        return [(wire.count, ((index, 1),)) for index, wire in enumerate(plan.wires)]
    layers = plan.group_layers or sent_in_groups(plan, a, progress(plan, a)).layers
    sizes = np.unique(np.asarray(layers)).tolist()
    return [((layers == size) * times, counts) for size in sizes for counts, times in groups_of(plan, size)]


def posted_by_a_rank(plan: Plan, a: Amounts) -> Num:
    """Messages that each rank of the side that moves the bytes posts, whole batch."""
    return sum(times * group_load(plan, a, counts).posted for times, counts in sent_together(plan, a))
