"""The timeline part by part: when each layer or chunk is computed and when it crosses.

`kvmodel.progress` needs only the end of the wire and finds it in closed form; a picture needs every
part. Both follow the same recursion, and a test holds them together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kvmodel.handoff import step_times
from kvmodel.layer_groups import GroupPace, sent_in_groups
from kvmodel.plan import Plan
from kvmodel.progress import Amounts, Pace, Progress, progress

MAX_DRAWN = 160
"""Parts beyond this are drawn in groups."""

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Parts:
    """Times in seconds since prefill began, one element a part, first part first."""

    kind: str
    """`layer`, `layer group` or `chunk`."""
    total: int
    """Parts there are; fewer elements mean that neighbours are drawn together."""
    compute_end: Array
    """Prefill of the part ends."""
    wire_start: Array
    """Its bytes begin to cross."""
    wire_end: Array
    """Its bytes have left; the link's latency follows."""
    layers: int = 1
    """Layers of a layer group; the last may have fewer."""
    decode_start: Array | None = None
    """Layer by layer on both sides: when decode could begin each run of layers of its first step, the engine's fixed times left out."""
    decode_end: Array | None = None
    """When it would have done the run's last layer, and must wait for the next one's cache."""

    @property
    def left(self) -> int:
        """Parts not wholly sent when the last of prefill ends."""
        ends = self.wire_end > self.compute_end[-1] * (1 + 1e-12)
        return round(float(ends.sum()) * self.total / len(ends))


def timeline_parts(plan: Plan, amounts: Amounts, limit: int = MAX_DRAWN) -> Parts:
    """The parts of one scenario's timeline; amounts are plain numbers."""
    p = progress(plan, amounts)
    if plan.overlap == "layer-group":
        return _grouped(_layer_groups(plan, amounts, p), limit)
    if plan.overlap == "serial" or amounts.prompt_tokens < plan.serial_below:
        ends = np.cumsum(_per_layer(plan, p.layer_seconds))
        x = _per_layer(plan, p.x)
        crossed = p.prefill_seconds + np.cumsum(x)
        return _grouped(Parts("layer", len(x), ends, crossed - x, crossed), limit)
    pace = Pace(plan, amounts, p)
    chunks = int(pace.chunks)
    if plan.overlap == "chunk":
        numbers = np.arange(1, chunks + 1)
        ends = np.asarray(pace.computed(numbers), dtype=float) + np.zeros(chunks)
        ends[-1] = p.prefill_seconds  # the last chunk leaves once its logits are made
        sent = np.append(np.asarray(pace.sent(numbers), dtype=float) + np.zeros(chunks), pace.total_x)
        x, kind = np.diff(sent), "chunk"
    else:
        steps = [pace.compute(j) for j in range(chunks + 1)]
        starts = [sum(w.count * t for w, t in zip(plan.wires, step, strict=True)) for step in steps]
        ends = np.concatenate(
            [
                starts[j] + np.cumsum(_per_layer(plan, [after - before for after, before in zip(steps[j + 1], steps[j], strict=True)]))
                for j in range(chunks)
            ]
        )
        x = np.concatenate([_per_layer(plan, [pace.layer_x(j, g) for g in range(len(plan.wires))]) for j in range(1, chunks + 1)])
        kind = "layer"
    start = float(pace.sent(1)) if plan.engine.early_prefix else 0.0
    wire_end = ends_in_turn(ends, x, start)
    both = _decode_runs(plan, amounts, p, wire_end) if plan.overlap == "layer-both" else (None, None)
    return _grouped(Parts(kind, len(x), ends, wire_end - x, wire_end, 1, *both), limit)


def _layer_groups(plan: Plan, amounts: Amounts, p: Progress) -> Parts:
    """Layers in groups, chunk after chunk."""
    size = int(sent_in_groups(plan, amounts, p).layers)
    pace = GroupPace(plan, amounts, p, size)
    chunks = int(pace.chunks)
    groups = [counts for counts, times in pace.groups for _ in range(times)]
    spent = [np.diff(np.asarray(done, dtype=float) + np.zeros(chunks + 1)) for done in pace.compute(np.arange(chunks + 1))]
    spans = {counts: sum(n * spent[g] for g, n in counts) for counts in pace.shares}
    xs = {counts: np.asarray(pace.group_x(np.arange(1, chunks + 1), counts)) + np.zeros(chunks) for counts in pace.shares}
    ends, x = (np.stack([by_chunk[counts] for counts in groups], axis=1).ravel() for by_chunk in (spans, xs))
    ends = np.cumsum(ends)
    early, ready = float(pace.sent(1)) if plan.engine.early_prefix else 0.0, ends
    if amounts.prompt_tokens < plan.serial_below:
        early, ready = 0.0, np.full(len(x), float(p.prefill_seconds))
        x = x * (pace.total_x / max(float(x.sum()), 1e-300))
    wire_end = ends_in_turn(ready, x, early)
    return Parts("layer group", len(x), ends, wire_end - x, wire_end, size)


def _decode_runs(plan: Plan, amounts: Amounts, p: Progress, wire_end: Array) -> tuple[Array, Array]:
    """Start and end of the layers that decode's first step runs without a break.

    A layer begins once prefill has ended, its cache has arrived and the layer before is done.
    """
    layers = plan.model.layers
    each = float(step_times(plan, amounts)[0]) / layers
    arrival = wire_end[-layers:] + plan.lane.latency if p.wire_bytes > 0 else np.zeros(layers)
    ends = ends_in_turn(np.maximum(arrival, p.prefill_seconds), np.full(layers, each), 0.0)
    starts = ends - each
    waits = starts[1:] > ends[:-1] * (1 + 1e-9)
    return starts[np.append(True, waits)], ends[np.append(waits, True)]


def ends_in_turn(ready: Array, x: Array, start: float) -> Array:
    """When each part has left, or is done, on what takes one after another and is free from `start` on."""
    total = np.cumsum(x)
    ends: Array = total + np.maximum.accumulate(np.maximum(ready - (total - x), start))
    return ends


def _per_layer(plan: Plan, by_group: list[Any]) -> Array:
    layers: Array = np.asarray(by_group, dtype=float)[np.asarray(plan.model.sequence)]
    return layers


def _grouped(parts: Parts, limit: int) -> Parts:
    size = -(-parts.total // limit)
    if size == 1:
        return parts
    last = np.minimum(np.arange(size, parts.total + size, size), parts.total) - 1
    first = np.arange(0, parts.total, size)
    return replace(parts, compute_end=parts.compute_end[last], wire_start=parts.wire_start[first], wire_end=parts.wire_end[last])
