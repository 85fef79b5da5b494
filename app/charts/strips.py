"""What the timeline draws at one position of a slider, and times as lengths on a strip.

Each strip has an axis of `SCALE` units from its left to its right edge, so positions are whole
numbers; the tick labels carry the times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kvmodel.parts import Array, Parts
from kvmodel.plan import Plan
from kvmodel.results import Evaluation

SCALE = 60_000
"""Units of each strip's axis."""
PANEL_BOTTOM = 270
"""Pixels from the top to the end of the lanes' panel."""

Frame = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Moment:
    """One position of the slider: what there is to draw."""

    plan: Plan
    result: Evaluation
    parts: Parts
    output_tokens: int
    layer_bytes: float
    """Bytes of one part on the wire, mean."""
    ready: float
    """When prefill ends."""
    decode_start: float
    """When decode's first step begins."""
    reach: float
    """Seconds at the right edge of the middle strip."""
    whole: float
    """Seconds at the right edge of the upper strip."""

    @property
    def serial(self) -> bool:
        """Whether nothing crosses before prefill has ended."""
        return bool(self.parts.wire_start[0] >= self.ready * (1 - 1e-12))

    @property
    def fixed(self) -> float:
        """Seconds that the engine adds to any handoff."""
        return float(self.result.gap_seconds - self.result.transfer.exposed_seconds)

    @property
    def decode_runs(self) -> tuple[Array, Array]:
        """Start and end of what decode runs without a break until the first token: the step, or runs of its layers."""
        start, end = self.parts.decode_start, self.parts.decode_end
        if start is None or end is None:
            return np.array([self.decode_start]), np.array([self.decode_start + float(self.result.decode.step_seconds)])
        return start + self.fixed, end + self.fixed


def moment(plan: Plan, result: Evaluation, parts: Parts, output_tokens: int) -> Moment:
    """What there is to draw of one evaluation."""
    ready = float(result.prefill.seconds)
    decode_start = ready + float(result.gap_seconds)
    reach = 1.045 * max(float(result.ttft_seconds), decode_start + float(result.decode.step_seconds))
    each = float(result.kv.wire_bytes) / parts.total
    return Moment(plan, result, parts, output_tokens, each, ready, decode_start, reach, float(result.request_seconds))


def units(seconds: float, span: float) -> int:
    """A time as a place on a strip that shows `span` seconds, not far outside it."""
    return round(min(max(seconds / span, -1.0), 2.0) * SCALE) if span > 0 else 0


def bar(start: float, end: float, span: float) -> list[int]:
    """(length, base) of a bar, in units."""
    low, high = units(start, span), units(end, span)
    return [max(0, high - low), low]


def wedge(low: float, high: float, top: int, shoulder: int, bottom: int) -> str:
    """Outline that joins a stretch of one strip to the panel that shows it larger."""
    a, b = round(max(0.0, low), 4), round(min(high, 1.0), 4)
    return f"M{a},{top}L{b},{top}L1,{shoulder}L1,{bottom}L0,{bottom}L0,{shoulder}Z"
