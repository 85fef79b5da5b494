"""Arrows as paths: a thick one whose width says an amount, and a thin one."""

from __future__ import annotations

import math

Place = tuple[float, float]


def thick_arrow(start: Place, end: Place, width: float) -> str:
    """A filled arrow `width` pixels wide, its head wider."""
    (x0, y0), (x1, y1) = start, end
    length = math.hypot(x1 - x0, y1 - y0)
    ux, uy = (x1 - x0) / length, (y1 - y0) / length
    half, wing = width / 2, max(5.5, width * 0.85)
    head = min(max(9.0, width * 0.8), 0.6 * length)
    bx, by = x1 - ux * head, y1 - uy * head
    points = [
        (x0 - uy * half, y0 + ux * half),
        (bx - uy * half, by + ux * half),
        (bx - uy * wing, by + ux * wing),
        (x1, y1),
        (bx + uy * wing, by - ux * wing),
        (bx + uy * half, by - ux * half),
        (x0 + uy * half, y0 - ux * half),
    ]
    return "M" + "L".join(f"{round(x, 1)},{round(y, 1)}" for x, y in points) + "Z"


def thin_arrow(x0: float, y0: float, x1: float, y1: float) -> str:
    """A stroke with a small filled head."""
    length = math.hypot(x1 - x0, y1 - y0)
    ux, uy = (x1 - x0) / length, (y1 - y0) / length
    bx, by = x1 - 7 * ux, y1 - 7 * uy
    head = [(bx - 3 * uy, by + 3 * ux), (x1, y1), (bx + 3 * uy, by - 3 * ux)]
    return f"M{x0:.1f},{y0:.1f}L{bx:.1f},{by:.1f}M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in head) + "Z"
