"""Marks that several figures share: lines, labels, bars, rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.charts.spec import Spec, colour

HATCH = {"fillmode": "overlay", "fgcolor": colour("bg"), "fgopacity": 0.55, "size": 5, "solidity": 0.22}
"""Pattern of what is exposed: never told by colour alone."""


def hatched(fill: str) -> Spec:
    """Marker of hatched bars, all in one colour: Plotly knows no hatching over a list of colours."""
    return {"color": colour(fill), "pattern": {**HATCH, "shape": "/"}}


def line(x: Spec, y: Spec, tone: str, width: float, *, dash: str = "solid", **more: Any) -> Spec:
    """A line through points."""
    hover = {} if "hovertemplate" in more else {"hoverinfo": "skip"}
    stroke = {"width": width, "color": colour(tone), "dash": dash}
    return {"type": "scatter", "mode": "lines", "x": x, "y": y, "line": stroke, **hover, **more}


def rings(x: Sequence[Any], y: Sequence[Any], size: float, width: float, fill: str) -> Spec:
    """Hollow markers."""
    marker = {"size": size, "color": colour("bg"), "line": {"width": width, "color": colour(fill)}}
    return {"type": "scatter", "mode": "markers", "x": list(x), "y": list(y), "marker": marker, "hoverinfo": "skip"}


def hollow(tones: str | Sequence[str]) -> dict[str, Any]:
    """Marker of a pinned scenario's bars: their outline alone."""
    edge = colour(tones) if isinstance(tones, str) else [colour(tone) for tone in tones]
    return {"color": colour("bg"), "line": {"width": 1.5, "color": edge}}


def hollow_bars(x: Spec, rows: Sequence[float], tones: str | Sequence[str], *, base: Spec = 0, pitch: float = 1.0, **axes: str) -> Spec:
    """A pinned scenario's bars: thin, hollow, under those of rows that are `pitch` apart."""
    place = {"y": [row + 0.32 * pitch for row in rows], "width": 0.12 * pitch}
    bar = {"type": "bar", "orientation": "h", "x": x, "base": base, **place, "marker": hollow(tones)}
    return {**bar, "hoverinfo": "skip", **axes}


@dataclass(frozen=True, slots=True)
class Label:
    """A label at a point of the axes; `place` says on which side of it, `fill` is a colour by name or a placeholder for one."""

    text: Spec
    x: Spec
    y: Spec
    fill: Spec
    size: int
    place: Spec = "middle center"


def labels(items: Sequence[Label], **axes: str) -> Spec:
    """Labels in one trace: far cheaper to redraw than annotations."""
    return {
        "type": "scatter",
        "mode": "text",
        "x": [item.x for item in items],
        "y": [item.y for item in items],
        "text": [item.text for item in items],
        "textposition": [item.place for item in items],
        "textfont": {
            "size": [item.size for item in items],
            "color": [colour(item.fill) if isinstance(item.fill, str) else item.fill for item in items],
        },
        "hoverinfo": "skip",
        "cliponaxis": False,
        **axes,
    }


def words(x: Spec, y: Spec, text: Spec, fill: Spec, size: int, *, place: Spec = "middle right", **axes: str) -> Spec:
    """A column or row of labels, as many as the table has."""
    font = {"size": size, "color": colour(fill) if isinstance(fill, str) else fill}
    return {
        "type": "scatter",
        "mode": "text",
        "x": x,
        "y": y,
        "text": text,
        "textposition": place,
        "textfont": font,
        "hoverinfo": "skip",
        "cliponaxis": False,
        **axes,
    }


def note(text: Spec, x: Spec, y: Spec, fill: str, size: int, **more: Any) -> Spec:
    """An annotation; keywords override: anchor, yref, shifts, background."""
    base = {"xref": "x", "yref": "y", "xanchor": "left", "yanchor": "middle", "showarrow": False, "borderpad": 1}
    return {**base, "text": text, "x": x, "y": y, "font": {"size": size, "color": colour(fill)}, **more}


def axis_title(text: Spec, size: int, left: int) -> Spec:
    """What an axis of amounts shows, above it and level with its ticks; `left` is the plot's left margin in pixels."""
    place = {"xref": "paper", "yref": "paper", "yanchor": "bottom", "align": "left", "xshift": 4 - left, "yshift": 6}
    return note(text, 0.0, 1.0, "muted", size, **place)


def disc(x: Spec, y: Spec) -> Spec:
    """Where you are, at a point in the axes' own units (their logarithms on log axes).

    An annotation, because moving one does not make Plotly draw the lines again.
    """
    return note("●", x, y, "ink", 21, xanchor="center", borderpad=0)


def rule(x: Spec, y0: Spec, y1: Spec, fill: str, width: float, dash: str = "solid", **more: Any) -> Spec:
    """A vertical line."""
    stroke = {"color": colour(fill), "width": width, "dash": dash}
    return {"type": "line", "xref": "x", "yref": "y", "x0": x, "x1": x, "y0": y0, "y1": y1, "line": stroke, **more}


def outlined(path: Spec, fill: str, line: str, width: float = 1) -> Spec:
    """A filled path with a stroke behind the data, in the axes' own units: all that is drawn alike in one."""
    stroke = {"color": colour(line), "width": width}
    return {"type": "path", "path": path, "layer": "below", "fillcolor": colour(fill), "line": stroke}


def area(path: Spec, fill: str = "panel", xref: str = "paper") -> Spec:
    """A filled path behind the data."""
    return {"type": "path", "path": path, "xref": xref, "yref": "y", "layer": "below", "line": {"width": 0}, "fillcolor": colour(fill)}
