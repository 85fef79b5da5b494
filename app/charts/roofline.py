"""Roofline of both phases: how many FLOP a byte one layer does, and what an accelerator lets it reach."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from app.charts.marks import line, note, rule
from app.charts.scale import log_axis, text_width
from app.charts.spec import Figure, Spec, Table, at, colour, four_digits
from app.over import BATCHES, Over, token_positions
from kvmodel.display import bytes_text, count_text, digits, flop_text
from kvmodel.evaluate import amounts_of
from kvmodel.matrices import Amount, Pass, layer_total
from kvmodel.placement import Placement
from kvmodel.plan import placement_of
from kvmodel.progress import cut

COMPARED = 32
"""Decode batch shown beside a single row where the scenario has no batch of its own."""
PLOT = (318, 268)
"""Pixels of the plot that labels are placed for."""
APART, LINE = 37, 16
"""Pixels between two labels, and of half of one."""
Bounds = tuple[tuple[float, float], tuple[float, float]]
TICKS = tuple(10.0**d for d in range(-2, 8))


@dataclass(frozen=True, slots=True)
class Run:
    """One layer in one pass, over a slider's positions."""

    name: str
    place: Placement
    at: Pass
    """The pass; its numbers are arrays."""
    layer: Amount

    @property
    def phase(self) -> str:
        """`prefill` or `decode`."""
        return self.at.phase

    @property
    def ridge(self) -> float:
        """FLOP a byte from which arithmetic, not memory, sets the time."""
        return self.place.peak / self.place.accelerator.hbm_bandwidth

    def reached(self) -> Any:
        """FLOP/s of one accelerator under its roof."""
        return np.minimum(self.place.peak, self.layer.intensity * self.place.accelerator.hbm_bandwidth)

    def bound(self, index: int) -> str:
        """What sets the time at a position."""
        return "compute" if self.layer.intensity[index] >= self.ridge else "HBM"


def passes_of(over: Over) -> tuple[tuple[str, Pass], ...]:
    """Prefill of the scenario's requests, a decode step of one row, and one of a batch; arrays over the positions."""
    a, size = amounts_of(over.scenario, **{over.field: np.asarray(over.values)}), len(over.values)
    new, held, _ = (np.broadcast_to(np.asarray(v), size) for v in cut(over.plan, a))
    batch, context, one = np.broadcast_to(a.batch, size), np.broadcast_to(a.prompt_tokens, size), np.ones(size, dtype=np.int64)
    together = over.scenario.decode_batch if over.scenario.decode_batch > 1 else COMPARED
    return (
        ("Prefill", Pass("prefill", new, held, batch)),
        ("Decode", Pass("decode", one, context, one)),
        (f"Decode, batch {count_text(together)}", Pass("decode", one, context, one * together)),
    )


def runs_of(over: Over, index: int) -> list[Run]:
    """One layer of a group in the three passes."""
    group = over.plan.model.groups[index]
    found = []
    for name, one in passes_of(over):
        place = placement_of(over.scenario, one.phase)
        found.append(Run(name, place, one, layer_total(place, group, one)))
    return found


def roofline_table(over: Over, index: int) -> Table:
    """Columns of the points, their labels and the three-row table."""
    runs = runs_of(over, index)
    x, y = (np.array(v) for v in ([r.layer.intensity for r in runs], [r.reached() / 1e12 for r in runs]))
    bounds = bounds_of(over, index)
    table: Table = {"r.x": four_digits(x.T), "r.y": four_digits(y.T)}
    texts = [_texts(runs, i) for i in range(len(over.values))]
    placed = [_places(x[:, i], y[:, i], said, bounds, runs) for i, said in enumerate(texts)]
    table |= {"r.text": texts, "r.left": [p[0] for p in placed], "r.top": [p[1] for p in placed]}
    table["r.hover"] = [[_hover(run, i) for run in runs] for i in range(len(over.values))]
    for k, run in enumerate(runs):
        table |= _cells(k, run)
    return table


def _texts(runs: Sequence[Run], i: int) -> list[str]:
    rows = count_text(runs[0].at.rows[i])
    names = (f"prefill, {rows} rows", "decode, 1 row", runs[2].name.lower())
    return [f"<b>{name}</b><br>{digits(float(run.layer.intensity[i]))} FLOP/B" for name, run in zip(names, runs, strict=True)]


def _hover(run: Run, i: int) -> str:
    return (
        f"{run.name}, one layer<br>{digits(float(run.layer.intensity[i]))} FLOP a byte: {run.bound(i)} sets the time<br>"
        f"at most {digits(float(run.reached()[i]) / 1e12)} TFLOP/s a GPU"
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


def bounds_of(over: Over, index: int) -> Bounds:
    """Logarithms at the ends of the axes: fixed for all prompts and batches, with room above the roof."""
    runs, group = runs_of(over, index), over.plan.model.groups[index]
    grid, most = np.asarray(token_positions()), BATCHES[-1]
    one = np.ones_like(grid)
    wide = [
        Pass("prefill", grid, 0 * grid, one),
        Pass("prefill", grid, 0 * grid, one * most),
        *(Pass("decode", one, grid, r.at.requests[0]) for r in runs[1:]),
    ]
    found = np.concatenate([layer_total(placement_of(over.scenario, p.phase), group, p).intensity for p in wide])
    low = math.log10(min(float(found.min()), 1.0)) - 0.35
    high = max(math.log10(float(found.max())) + 0.5, math.log10(max(run.ridge for run in runs)) + 1.8)
    slow = min(run.place.accelerator.hbm_bandwidth for run in runs) / 1e12
    peak = math.log10(max(run.place.peak for run in runs) / 1e12)
    return (low, high), (math.log10(slow) + low - 0.25, peak + 0.15)


def _places(x: Any, y: Any, texts: Sequence[str], bounds: Bounds, runs: Sequence[Run]) -> tuple[list[float], list[float]]:
    """Shares of the plot where the labels start and stand: right of their point and under the roof, kept apart."""
    (left, right), (low, high) = bounds
    across, ridges = ([(math.log10(v) - left) / (right - left) * PLOT[0] for v in values] for values in (x, [r.ridge for r in runs]))
    down = [(high - math.log10(v)) / (high - low) * PLOT[1] for v in y]
    starts, middles = [0.0] * len(runs), [0.0] * len(runs)
    for k, run in enumerate(runs):
        wide = max(text_width(part, 12) for part in texts[k].split("<br>")) * 0.92
        roofed = float(x[k]) >= run.ridge
        beside = across[k] + 12 + wide <= PLOT[0] and not roofed
        under = max(0.0, min(max(across[k] - wide / 2, ridges[k] * roofed + 6), PLOT[0] - wide))
        starts[k], middles[k] = (across[k] + 12, down[k] + 6) if beside else (under, down[k] + LINE + 12)
    _keep_apart(middles, sorted(range(len(runs)), key=lambda k: (down[k], -across[k])))
    return [round(v / PLOT[0], 3) for v in starts], [round(1 - v / PLOT[1], 3) for v in middles]


def _keep_apart(middles: list[float], order: Sequence[int]) -> None:
    """Move labels down until none touches the one above, then up where the lowest leaves the plot."""
    for above, below in pairwise(order):
        middles[below] = max(middles[below], middles[above] + APART)
    limit = PLOT[1] - float(LINE)
    for k in reversed(order):
        middles[k] = min(middles[k], limit)
        limit = middles[k] - APART


def roofline_figure(over: Over, index: int) -> Figure:
    """Both phases under the roof of their accelerators."""
    runs, bounds = runs_of(over, index), bounds_of(over, index)
    alt = "FLOP per byte of one layer in prefill and decode, under the roofline"
    return Figure("roofline", _layout(runs, bounds, 13, 400), _layout(runs, bounds, 12, 340), alt)


def _layout(runs: Sequence[Run], bounds: Bounds, size: int, height: int) -> Spec:
    (left, right), (low, high) = bounds
    roofs = _roofs(runs)
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
    placed = {"xref": "paper", "yref": "paper", "align": "left", "bgcolor": colour("bg")}
    names = [note(at("r.text", k), at("r.left", k), at("r.top", k), f"{run.phase}_text", size, **placed) for k, run in enumerate(runs)]
    shown = [t for t in TICKS if left <= math.log10(t) <= right - 0.15]
    up = [t for t in TICKS if low <= math.log10(t) <= high]
    across = {**log_axis(1, 10, shown, [_tick(t) for t in shown]), "range": [left, right], "ticks": "outside", "ticklen": 4}
    upward = {**log_axis(1, 10, up, [_tick(t) for t in up]), "range": [low, high], "showgrid": True}
    layout = {
        "height": height,
        "margin": {"l": 40, "r": 8, "t": 28, "b": 44},
        "xaxis": {**across, "title": {"text": "FLOP per byte of HBM traffic"}, "fixedrange": True},
        "yaxis": {**upward, "fixedrange": True},
        "annotations": [_title(runs, size), *(_ridge(run, tone, size) for run, tone in roofs), *names],
        "shapes": [rule(run.ridge, 10**low, run.place.peak / 1e12, "line", 1, "dash") for run, _ in roofs],
    }
    return {"data": [*(_roof(run, tone, left, right) for run, tone in roofs), points], "layout": layout}


def _roofs(runs: Sequence[Run]) -> list[tuple[Run, str]]:
    """One roof where both sides have the same accelerator and format, else one each in its colour."""
    first, second = runs[0], runs[1]
    same = (first.place.accelerator.id, first.place.peak) == (second.place.accelerator.id, second.place.peak)
    return [(first, "ink")] if same else [(first, "prefill"), (second, "decode")]


def _roof(run: Run, tone: str, left: float, right: float) -> Spec:
    bandwidth = run.place.accelerator.hbm_bandwidth
    x = [10**left, run.ridge, 10**right]
    return line(four_digits(x), four_digits([min(run.place.peak, v * bandwidth) / 1e12 for v in x]), tone, 2)


def _ridge(run: Run, tone: str, size: int) -> Spec:
    """The ridge's number, at the foot of its line."""
    fill, anchor = {"ink": ("muted", "right"), "prefill": ("prefill_text", "right"), "decode": ("decode_text", "left")}[tone]
    shift = {"yref": "paper", "xanchor": anchor, "yanchor": "bottom", "xshift": -5 if anchor == "right" else 5}
    return note(f"ridge {digits(run.ridge)}", math.log10(run.ridge), 0.01, fill, size, **shift)


def _title(runs: Sequence[Run], size: int) -> Spec:
    roofs = _roofs(runs)
    formats = " and ".join(dict.fromkeys(run.place.matmul_dtype for run, _ in roofs))
    gpus = " and ".join(dict.fromkeys(run.place.accelerator.name for run, _ in roofs))
    over = {"xref": "paper", "yref": "paper", "yanchor": "bottom", "xshift": -36, "yshift": 6}
    return note(f"TFLOP/s per {gpus}, {formats} dense", 0.0, 1.0, "muted", size, **over)


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
