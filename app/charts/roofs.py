"""Roofs of the roofline: what an accelerator reaches in each format, and their names at the plot's foot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from app.charts.layer_runs import Run
from app.charts.marks import Label
from app.charts.scale import text_width
from kvmodel.display import digits
from kvmodel.matrices import native_format, peak_of

PLOT = (318, 268)
"""Pixels of the plot that labels are placed for."""
ROW = 15
"""Pixels of a ridge's name."""
Bounds = tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Roof:
    """What one accelerator reaches in one format."""

    tone: str
    """`ink` where both sides have the same roofs, else the phase."""
    side: str
    format: str
    peak: float
    bandwidth: float
    attention: bool
    """Whether it is attention's alone."""

    @property
    def ridge(self) -> float:
        """FLOP a byte from which arithmetic, not memory, sets the time."""
        return self.peak / self.bandwidth

    @property
    def name(self) -> str:
        """The ridge in words."""
        whose = "" if self.tone == "ink" else f"{self.side} "
        return f"{whose}{'attention' if self.attention else 'ridge'} {digits(self.ridge)}"


def roofs_of(run: Run, tone: str = "ink") -> list[Roof]:
    """Roofs of a side's accelerator, the highest first: the weights' format, and BF16 for attention where that is another."""
    place, gpu = run.place, run.place.accelerator
    formats = list(dict.fromkeys((native_format(gpu, place.matmul_dtype), "bf16")))
    return [Roof(tone, run.phase, name, peak_of(gpu, name), gpu.hbm_bandwidth, k > 0) for k, name in enumerate(formats)]


def roofs_shown(runs: Sequence[Run]) -> list[Roof]:
    """Those of both sides where their accelerators or formats differ, each in its colour; else once."""
    first, second = runs[0], runs[1]
    same = (first.place.accelerator.id, first.place.peak) == (second.place.accelerator.id, second.place.peak)
    return roofs_of(first) if same else [*roofs_of(first, "prefill"), *roofs_of(second, "decode")]


def across_plot(intensity: float, bounds: Bounds) -> float:
    """Pixels from the plot's left edge."""
    left, right = bounds[0]
    return (math.log10(intensity) - left) / (right - left) * PLOT[0]


def foot(runs: Sequence[Run], bounds: Bounds) -> tuple[float, int]:
    """(pixels from the left at which the ridges' names start, how many there are): right of the last ridge, inside the plot."""
    roofs = roofs_shown(runs)
    wide = max(text_width(roof.name, 12) for roof in roofs)
    return min(max(across_plot(roof.ridge, bounds) for roof in roofs) + 6, PLOT[0] - wide), len(roofs)


def place(share: float, ends: tuple[float, float]) -> float:
    """The value at a share of a logarithmic axis."""
    return float(f"{10 ** (ends[0] + share * (ends[1] - ends[0])):.4g}")


def ridges(runs: Sequence[Run], bounds: Bounds, size: int) -> list[Label]:
    """The ridges by name, one above the other at the foot of the plot, the first on top."""
    (start, rows), roofs = foot(runs, bounds), roofs_shown(runs)
    fills = ["muted" if roof.tone == "ink" else f"{roof.tone}_text" for roof in roofs]
    left, up = place(start / PLOT[0], bounds[0]), [place(ROW * (rows - k - 0.45) / PLOT[1], bounds[1]) for k in range(rows)]
    return [Label(roof.name, left, y, fill, size, "middle right") for roof, fill, y in zip(roofs, fills, up, strict=True)]


def titles(runs: Sequence[Run]) -> list[str]:
    """The axis in words, and what the dashed roofs are."""
    roofs = roofs_shown(runs)
    formats = " and ".join(dict.fromkeys(roof.format for roof in roofs if not roof.attention))
    gpus = " and ".join(dict.fromkeys(run.place.accelerator.name for run in runs))
    head = f"TFLOP/s per {gpus}, {formats} dense"
    return [head, "dashed: bf16, in which attention runs"] if any(roof.attention for roof in roofs) else [head]
