"""Axes whose ticks stay where they are, drawn as labels and one path: Plotly draws its own anew at every change of the data."""

from __future__ import annotations

import math
from typing import Any

from app.charts.marks import Label, labels, outlined
from app.charts.spec import Spec

SIZE = 13
"""Points of ticks and titles, as the template has them."""


def with_still_axes(spec: Spec, *, floor: float, upward: bool = True) -> Spec:
    """A figure whose visible axes are ticks in the muted tone, a grid of the upward one's where it has any, and the title below.

    The labels stand before a figure's own words, which overlays add to. `floor` is where the axis across stands, in the
    units of the one upward; `upward` is false where that is not shown.
    """
    layout = spec["layout"]
    across, up = layout["xaxis"], layout["yaxis"]
    (left, right), (middle, below) = _ends(across), (_middle(across), "bottom center")
    words = [Label(text, x, floor, "muted", SIZE, below) for x, text in _ticks(across)]
    words.append(Label(f"\u00a0<br>{across['title']['text']}", middle, floor, "muted", SIZE, below))
    grid = []
    if upward:
        words += [Label(text, left, y, "muted", SIZE, "middle left") for y, text in _ticks(up)]
        grid = [outlined("".join(f"M{left:.6g},{y:.6g}H{right:.6g}" for y, _ in _ticks(up)), "clear", "grid")]
    hidden = {"visible": False, "showgrid": False}
    still: dict[str, Any] = {"xaxis": {**_bare(across), **hidden}, "yaxis": {**_bare(up), **hidden}}
    last = spec["data"][-1]
    data = [*spec["data"][:-1], labels(words), last] if last.get("mode") == "text" else [*spec["data"], labels(words)]
    return {"data": data, "layout": {**layout, **still, "shapes": [*grid, *layout.get("shapes", [])]}}


def _bare(axis: Spec) -> Spec:
    return {name: value for name, value in axis.items() if name in ("type", "range", "fixedrange")}


def _ends(axis: Spec) -> tuple[float, float]:
    low, high = axis["range"]
    return (10.0**low, 10.0**high) if axis.get("type") == "log" else (low, high)


def _middle(axis: Spec) -> float:
    low, high = _ends(axis)
    return math.sqrt(low * high) if axis.get("type") == "log" else (low + high) / 2


def _ticks(axis: Spec) -> list[tuple[float, str]]:
    values = axis["tickvals"]
    return list(zip(values, axis.get("ticktext", [f"{value:,g}" for value in values]), strict=True))
