"""Roofline of both phases: how many FLOP a byte one layer does, and what an accelerator lets it reach."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from app.charts.layer_runs import Run, runs_of
from app.charts.marks import Label, axis_title, labels, line, rule
from app.charts.roofs import PLOT, ROW, Bounds, Roof, across_plot, foot, place, ridges, roofs_of, roofs_shown, titles
from app.charts.scale import log_axis, text_width
from app.charts.spec import Figure, Spec, Table, at, colour, four_digits
from app.charts.still import with_still_axes
from app.over import BATCHES, Over, token_positions
from kvmodel.display import bytes_text, count_text, digits, flop_text
from kvmodel.matrices import Pass, layer_total
from kvmodel.plan import placement_of

APART, LINE = 37, 16
"""Pixels between two labels, and of half of one."""
TICKS = tuple(10.0**d for d in range(-2, 8))


def roofline_table(over: Over, index: int, also: Sequence[Run] = ()) -> Table:
    """Columns of the points, their labels and the three-row table; the axes have room for runs `also` drawn."""
    runs = runs_of(over, index)
    x, y = (np.array(v) for v in ([r.layer.intensity for r in runs], [r.reached() / 1e12 for r in runs]))
    bounds = bounds_of(over, index, also)
    table: Table = {"r.x": four_digits(x.T), "r.y": four_digits(y.T)}
    texts = [_texts(runs, i) for i in range(len(over.values))]
    placed = [_places(i, x[:, i], y[:, i], said, bounds, runs) for i, said in enumerate(texts)]
    table |= {"r.text": texts, "r.left": [p[0] for p in placed], "r.top": [p[1] for p in placed]}
    for name, ends in zip(("r.left", "r.top"), bounds, strict=True):
        table[f"{name}_at"] = [[place(share, ends) for share in shares] for shares in table[name]]
    table["r.hover"] = [[_hover(run, i) for run in runs] for i in range(len(over.values))]
    for k, run in enumerate(runs):
        table |= _cells(k, run)
    return table


def _texts(runs: Sequence[Run], i: int) -> list[str]:
    rows = count_text(runs[0].at.rows[i])
    names = (f"prefill, {rows} rows", "decode, 1 row", runs[2].name.lower())
    return [f"<b>{name}</b><br>{digits(float(run.layer.intensity[i]))} FLOP/B" for name, run in zip(names, runs, strict=True)]


def _hover(run: Run, i: int) -> str:
    roofs = roofs_of(run)
    mixed = f"<br>attention in {roofs[-1].format}, the rest in {roofs[0].format}: {digits(float(run.layer.peak[i]) / 1e12)} at peak"
    return (
        f"{run.name}, one layer<br>{digits(float(run.layer.intensity[i]))} FLOP a byte: {run.bound(i)} sets the time<br>"
        f"at most {digits(float(run.reached()[i]) / 1e12)} TFLOP/s a GPU{mixed if len(roofs) > 1 else ''}"
    )


def _cells(k: int, run: Run) -> Table:
    """Texts of one row of the table."""
    layer, count = run.layer, range(len(run.at.rows))
    return {
        f"t.{k}.rows": [count_text(v) for v in run.at.rows],
        f"t.{k}.flop": [flop_text(v) for v in layer.flop],
        f"t.{k}.bytes": [bytes_text(v) for v in layer.bytes],
        f"t.{k}.each": [digits(v) for v in layer.intensity],
        f"t.{k}.bound": [run.bound(i) for i in count],
    }


def bounds_of(over: Over, index: int, also: Sequence[Run] = ()) -> Bounds:
    """Logarithms at the ends of the axes: fixed for all prompts and batches, with room above the roof and for runs `also` drawn."""
    runs, group = runs_of(over, index), over.plan.model.groups[index]
    grid, most = np.asarray(token_positions()), BATCHES[-1]
    one = np.ones_like(grid)
    wide = [
        Pass("prefill", grid, 0 * grid, one),
        Pass("prefill", grid, 0 * grid, one * most),
        *(Pass("decode", one, grid, r.at.requests[0]) for r in runs[1:]),
    ]
    found = np.concatenate(
        [
            *(layer_total(placement_of(over.scenario, p.phase), group, p).intensity for p in wide),
            *(run.layer.intensity for run in also),
        ]
    )
    runs = [*runs, *also]
    low = math.log10(min(float(found.min()), 1.0)) - 0.35
    high = max(math.log10(float(found.max())) + 0.5, math.log10(max(roof.ridge for run in runs for roof in roofs_of(run))) + 1.8)
    slow = min(run.place.accelerator.hbm_bandwidth for run in runs) / 1e12
    peak = math.log10(max(roof.peak for run in runs for roof in roofs_of(run)) / 1e12)
    return (low, high), (math.log10(slow) + low - 0.25, peak + 0.15)


def _places(i: int, x: Any, y: Any, texts: Sequence[str], bounds: Bounds, runs: Sequence[Run]) -> tuple[list[float], list[float]]:
    """Shares of the plot where the labels start and stand: right of their point and under the roof, kept apart."""
    low, high = bounds[1]
    across, bends = ([across_plot(v, bounds) for v in values] for values in (x, [float(r.ridge[i]) for r in runs]))
    down = [(high - math.log10(v)) / (high - low) * PLOT[1] for v in y]
    starts, middles, floors = [0.0] * len(runs), [0.0] * len(runs), [0.0] * len(runs)
    start, rows = foot(runs, bounds)
    for k, run in enumerate(runs):
        wide = max(text_width(part, 12) for part in texts[k].split("<br>")) * 0.92
        roofed = float(x[k]) >= float(run.ridge[i])
        beside = across[k] + 12 + wide <= PLOT[0] and not roofed
        under = max(0.0, min(max(across[k] - wide / 2, bends[k] * roofed + 6), PLOT[0] - wide))
        starts[k], middles[k] = (across[k] + 12, down[k] + 6) if beside else (under, down[k] + LINE + 12)
        floors[k] = PLOT[1] - LINE - (ROW * rows if starts[k] + wide > start else 0)
    _keep_apart(middles, floors, sorted(range(len(runs)), key=lambda k: (down[k], -across[k])))
    return [round(v / PLOT[0], 3) for v in starts], [round(1 - v / PLOT[1], 3) for v in middles]


def _keep_apart(middles: list[float], floors: Sequence[float], order: Sequence[int]) -> None:
    """Move labels down until none touches the one above, then up where the lowest would leave the plot or meet the ridges' names."""
    for above, below in pairwise(order):
        middles[below] = max(middles[below], middles[above] + APART)
    limit = PLOT[1] - float(LINE)
    for k in reversed(order):
        middles[k] = min(middles[k], limit, floors[k])
        limit = middles[k] - APART


def roofline_figure(over: Over, index: int, also: Sequence[Run] = ()) -> Figure:
    """Both phases under the roof of their accelerators; the axes have room for runs `also` drawn."""
    runs, bounds = runs_of(over, index), bounds_of(over, index, also)
    alt = "FLOP per byte of one layer in prefill and decode, under the roofline"
    return Figure("roofline", _layout(runs, bounds, 13, 400), _layout(runs, bounds, 12, 340), alt)


def _layout(runs: Sequence[Run], bounds: Bounds, size: int, height: int) -> Spec:
    (left, right), (low, high) = bounds
    roofs = roofs_shown(runs)
    points = {
        "type": "scatter",
        "mode": "markers",
        "x": at("r.x"),
        "y": at("r.y"),
        "marker": {"size": 11, "color": [colour(run.phase) for run in runs], "line": {"width": 2, "color": colour("bg")}},
        "customdata": at("r.hover"),
        "hovertemplate": "%{customdata}<extra></extra>",
        "cliponaxis": False,
    }
    names = [
        Label(at("r.text", k), at("r.left_at", k), at("r.top_at", k), f"{run.phase}_text", size, "middle right")
        for k, run in enumerate(runs)
    ]
    words = labels([*ridges(runs, bounds, size), *names])
    words["textfont"]["shadow"] = colour("halo")
    shown = [t for t in TICKS if left <= math.log10(t) <= right - 0.15]
    up = [t for t in TICKS if low <= math.log10(t) <= high]
    across = {**log_axis(1, 10, shown, [_tick(t) for t in shown]), "range": [left, right], "ticks": "outside", "ticklen": 4}
    upward = {**log_axis(1, 10, up, [_tick(t) for t in up]), "range": [low, high], "showgrid": True}
    heads = titles(runs)
    layout = {
        "height": height + 15 * (len(heads) - 1),
        "margin": {"l": 40, "r": 8, "t": 13 + 15 * len(heads), "b": 44},
        "xaxis": {**across, "title": {"text": "FLOP per byte of HBM traffic"}, "fixedrange": True},
        "yaxis": {**upward, "fixedrange": True},
        "annotations": [axis_title("<br>".join(heads), size, 40)],
        "shapes": [rule(roof.ridge, 10**low, roof.peak / 1e12, "line" if roof.tone == "ink" else roof.tone, 1, "dot") for roof in roofs],
    }
    spec = {"data": [*(_roof_line(roof, left, right) for roof in roofs), points, words], "layout": layout}
    return with_still_axes(spec, floor=10**low)


def _roof_line(roof: Roof, left: float, right: float) -> Spec:
    """The slope of memory and the peak; of attention the peak alone, dashed, from where it leaves the slope."""
    x = [roof.ridge, 10**right] if roof.attention else [10**left, roof.ridge, 10**right]
    y = [min(roof.peak, v * roof.bandwidth) / 1e12 for v in x]
    return line(four_digits(x), four_digits(y), roof.tone, 2, dash="dash" if roof.attention else "solid")


def _tick(value: float) -> str:
    return f"{value / 1e6:g}M" if value >= 1e6 else f"{value / 1e3:g}k" if value >= 1e3 else f"{value:g}"


def phases_block(over: Over, index: int) -> dict[str, Any]:
    """The plotted figures as a table, a row a point."""
    heads = ("One layer", "Rows", "FLOP", "HBM bytes", "FLOP per byte", "Bound by")
    top = {"tag": "tr", "children": [{"tag": "th", "scope": "col", "children": [h]} for h in heads]}
    body = []
    for k, run in enumerate(runs_of(over, index)):
        name = {"tag": "td", "class": f"kv-{run.phase}", "style": "white-space:normal", "children": [run.name]}
        cells = [{"tag": "td", "children": [at(f"t.{k}.{part}")]} for part in ("rows", "flop", "bytes", "each", "bound")]
        body.append({"tag": "tr", "children": [name, *cells]})
    table = {"tag": "table", "class": "kv-table", "children": [{"tag": "thead", "children": [top]}, {"tag": "tbody", "children": body}]}
    return {
        "tag": "div",
        "class": "kv-scroll",
        "tabindex": "0",
        "role": "region",
        "aria-label": "Both phases of one layer",
        "children": [table],
    }
