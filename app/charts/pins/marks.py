"""What overlays share: more traces, shapes and labels in both layouts of a figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from app.charts.marks import Label, labels
from app.charts.spec import Figure, Spec, colour

OVER_FILLS = {"color": colour("ink"), "width": 1.5, "dash": "dash"}
"""Stroke of a pinned scenario's outlines, which lie on coloured areas."""


def with_pin(figure: Figure, more: Callable[[Spec, str], Spec]) -> Figure:
    """The figure with both layouts completed: `more` gets one and its prefix, `w` or `n`."""
    return replace(figure, wide=more(figure.wide, "w"), narrow=more(figure.narrow, "n"))


def added(spec: Spec, *, data: Sequence[Spec] = (), shapes: Sequence[Spec] = (), **layout: Spec) -> Spec:
    """The layout with more traces and shapes, and what else of it changes."""
    drawn = {**spec["layout"], **layout}
    if shapes:
        drawn["shapes"] = [*drawn.get("shapes", ()), *shapes]
    return {**spec, "data": [*spec["data"], *data], "layout": drawn}


def said(spec: Spec, items: Sequence[Label]) -> Spec:
    """The layout with more labels in the trace that holds all of its words."""
    more, at = labels(items), max(i for i, trace in enumerate(spec["data"]) if trace.get("mode") == "text")
    words = spec["data"][at]
    font = {name: [*words["textfont"][name], *more["textfont"][name]] for name in ("size", "color")}
    joined = {**words, **{name: [*words[name], *more[name]] for name in ("x", "y", "text", "textposition")}, "textfont": font}
    return {**spec, "data": [joined if i == at else trace for i, trace in enumerate(spec["data"])]}


def outline(path: Spec) -> Spec:
    """A dashed outline above what is drawn now."""
    return {"type": "path", "path": path, "xref": "x", "yref": "y", "fillcolor": colour("clear"), "line": OVER_FILLS}
