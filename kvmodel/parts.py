"""The timeline part by part: when each layer or chunk is computed and when it crosses.

`kvmodel.progress` needs only the end of the wire and finds it in closed form; a picture needs every
part. Both follow the same recursion, and a test holds them together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kvmodel.plan import Plan
from kvmodel.progress import Amounts, Pace, progress

MAX_DRAWN = 160
"""Parts beyond this are drawn in groups."""

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Parts:
    """Times in seconds since prefill began, one element a part, first part first."""

    kind: str
    """`layer` or `chunk`."""
    total: int
    """Parts there are; fewer elements mean that neighbours are drawn together."""
    compute_end: Array
    """Prefill of the part ends."""
    wire_start: Array
    """Its bytes begin to cross."""
    wire_end: Array
    """Its bytes have left; the link's latency follows."""

    @property
    def left(self) -> int:
        """Parts not wholly sent when the last of prefill ends."""
        ends = self.wire_end > self.compute_end[-1] * (1 + 1e-12)
        return round(float(ends.sum()) * self.total / len(ends))


def timeline_parts(plan: Plan, amounts: Amounts, limit: int = MAX_DRAWN) -> Parts:
    """The parts of one scenario's timeline; amounts are plain numbers."""
    p = progress(plan, amounts)
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
    total = np.cumsum(x)
    wire_end = total + np.maximum.accumulate(np.maximum(ends - (total - x), start))
    return _grouped(Parts(kind, len(x), ends, wire_end - x, wire_end), limit)


def _per_layer(plan: Plan, by_group: list[Any]) -> Array:
    layers: Array = np.asarray(by_group, dtype=float)[np.asarray(plan.model.sequence)]
    return layers


def _grouped(parts: Parts, limit: int) -> Parts:
    size = -(-parts.total // limit)
    if size == 1:
        return parts
    last = np.minimum(np.arange(size, parts.total + size, size), parts.total) - 1
    first = np.arange(0, parts.total, size)
    return Parts(parts.kind, parts.total, parts.compute_end[last], parts.wire_start[first], parts.wire_end[last])
