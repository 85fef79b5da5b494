"""Published measurements beside the model: time against bytes with the model's curves, and what is left between them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import median
from typing import Any

from app.charts.marks import axis_title, disc, line, note, words
from app.charts.scale import log_axis, spread, text_width, time_axis
from app.charts.spec import Figure, Spec, Table, at, colour, four_digits
from app.over import Over
from kvmodel import registry
from kvmodel.display import bytes_text, digits, rate_text, time_text
from kvmodel.records.measurement import Measurement
from kvmodel.records.transport import Transport
from kvmodel.transport import predicted_seconds

YOURS, ALL = "yours", "all"
SYMBOLS = {"circle": "●", "square": "■", "diamond": "◆", "cross": "✚", "x": "✖", "triangle-up": "▲", "star": "★", "hexagon": "⬢"}
"""A mark for each transport, and the same as a character."""
SHORT = {
    "connector": "engine",
    "efa": "EFA",
    "nccl": "NCCL",
    "nvlink": "NVLink",
    "pcie": "PCIe",
    "rdma": "RDMA",
    "tcp": "TCP",
    "transfer-engine": "transfer engine",
}
"""Transports as the key names them."""
ROW = 16
"""Pixels between two names."""
NARROWEST = {False: 544, True: 262}
"""Pixels that the plot is at least wide in the wide and the narrow layout: names keep their room there."""
CURVES = 6
"""Most curves in one picture."""
CLOSE = 0.25
"""Within this share of the model counts as close."""


@dataclass(frozen=True, slots=True)
class Point:
    """One measured transfer and what the model says of it."""

    row: Measurement
    transport: Transport
    bytes: float
    seconds: float
    modelled: float

    @property
    def ratio(self) -> float:
        """Measured over modelled time."""
        return self.seconds / self.modelled

    @property
    def above_ideal(self) -> float | None:
        """Measured time over bytes at nominal bandwidth."""
        return None if self.row.ideal_seconds is None else self.seconds / self.row.ideal_seconds


@lru_cache(maxsize=1)
def points() -> tuple[Point, ...]:
    """Every published row with bytes, a time and a transport."""
    found = []
    for row in registry.measurements().values():
        if row.transport is None or row.bytes is None or row.time is None:
            continue
        transport = registry.transports()[row.transport]
        modelled = predicted_seconds(row, transport)
        if modelled is not None:
            found.append(Point(row, transport, row.bytes, row.time, modelled))
    return tuple(sorted(found, key=lambda p: (p.transport.id, p.row.id)))


def links_measured() -> tuple[str, ...]:
    """Links beside which rows were measured."""
    return tuple(sorted({p.row.near for p in points() if p.row.near}))


def engines_measured() -> tuple[str, ...]:
    """Engines that measured rows resemble."""
    return tuple(sorted({p.row.engine for p in points() if p.row.engine}))


def kept(link: str, engine: str) -> tuple[Point, ...]:
    """The rows near a link and of an engine; `all` keeps every one."""
    return tuple(p for p in points() if link in (ALL, p.row.near) and engine in (ALL, p.row.engine))


def sentence(shown: Sequence[Point], where: str) -> list[list[str]]:
    """The answer: how close the model is to what was measured, and how far arithmetic alone."""
    if not shown:
        return [[f"No published transfer with its bytes and its time is on record here {where}.", ""]]
    close = sum(abs(p.modelled / p.seconds - 1) <= CLOSE for p in shown)
    above = [p.above_ideal for p in shown if p.above_ideal is not None]
    if not above:
        return [[f"The model is within 25\u202f% of {close} of {len(shown)} published transfers {where}.", ""]]
    return [
        [f"The model is within 25\u202f% of {close} of {len(shown)} published transfers {where}; bytes over bandwidth is ", ""],
        [f"{digits(median(above))} times", "exposed"],
        [" too fast in the median.", ""],
    ]


def curves_of(shown: Sequence[Point]) -> list[tuple[Point, int]]:
    """One row of each group that shares a transport and a nominal rate, and its size; the largest groups first."""
    groups: dict[tuple[Any, ...], list[Point]] = {}
    for p in shown:
        groups.setdefault((p.transport.id, p.row.nominal, p.row.nics, p.row.host_memory), []).append(p)
    ordered = sorted(groups.values(), key=len, reverse=True)
    return [(group[0], len(group)) for group in ordered[:CURVES]]


def _curve(point: Point, low: float, high: float) -> tuple[list[float], list[float]]:
    """The transport's time for whole transfers of one message a NIC, from `low` to `high` bytes."""
    sizes = [low * (high / low) ** (i / 40) for i in range(41)]
    rows = [point.row.model_copy(update={"bytes": b, "messages": None, "message_bytes": None, "steady": False}) for b in sizes]
    return sizes, [predicted_seconds(row, point.transport) or 0.0 for row in rows]


def measured_figure(shown: Sequence[Point], reach: Sequence[tuple[float, float]]) -> Figure:
    """Time against bytes: points as published, the model's curves through them, your scenario among them.

    `reach` holds (bytes, seconds) that your scenario can come to, so that it stays on the picture.
    """
    alt = f"{len(shown)} published transfers, time against bytes, with the model's curves; the table below lists them"
    return Figure("measured", _layout(shown, reach, narrow=False), _layout(shown, reach, narrow=True), alt)


def _span(values: Sequence[float]) -> tuple[float, float]:
    return 10.0 ** math.floor(math.log10(min(values)) - 0.1), 10.0 ** math.ceil(math.log10(max(values)) + 0.1)


def _layout(shown: Sequence[Point], reach: Sequence[tuple[float, float]], *, narrow: bool) -> Spec:
    size = 12 if narrow else 13
    low, high = _span([p.bytes for p in shown] + [b for b, _ in reach if b] or [1e6, 1e9])
    drawn = [(point, *_curve(point, low, high)) for point, _ in curves_of(shown)]
    fast, slow = _span([p.seconds for p in shown] + [t for _, t in reach if t] + [times[-1] for _, _, times in drawn] or [1e-4, 1.0])
    data: list[Spec] = [line(sizes, four_digits(times), "other", 1.25) for _, sizes, times in drawn]
    data += _markers(shown, [p.seconds for p in shown])
    ends = [(times[0], _rate_name(point)) for point, _, times in drawn]
    before = _room(math.log10(high / low), [text for _, text in ends], size, narrow=narrow)
    axis, key = _bytes_axis(low, high, 4 if narrow else 9), _key(shown, size, narrow=narrow)
    above = {"xref": "paper", "yref": "paper", "yanchor": "bottom", "align": "left", "yshift": 4}
    layout = {
        "height": 420 + ROW * len(key),
        "margin": {"l": 60, "r": 36, "t": 8 + ROW * len(key), "b": 44},
        "xaxis": {**axis, "range": [math.log10(low) - before, math.log10(high)], "title": {"text": "bytes moved"}, "fixedrange": True},
        "yaxis": {**time_axis(fast, slow), "fixedrange": True, "showgrid": True},
        "annotations": [*_you(size), note("<br>".join(key), 0, 1, "body", size, **above)],
    }
    data.append(_ends(ends, low, (math.log10(slow) - math.log10(fast)) / 368, size))
    return {"data": data, "layout": layout}


def _room(decades: float, texts: Sequence[str], size: int, *, narrow: bool) -> float:
    """Decades that the longest of some names takes before so many of an axis."""
    pixels = max((text_width(text, size) for text in texts), default=0.0) + 14
    return decades * pixels / (NARROWEST[narrow] - pixels)


def _you(size: int) -> list[Spec]:
    over = {"bgcolor": colour("bg"), "borderpad": 3, "xanchor": "right", "yshift": 20}
    return [note(at("m.text"), at("m.x"), at("m.y"), "ink", size, **over), disc(at("m.x"), at("m.y"))]


def you_table(over: Over) -> Table:
    """Columns of your scenario on the picture, over a slider's positions; off it where nothing moves."""
    moved = [(row.kv.wire_bytes, row.transfer.seconds) for row in over.rows]
    return {
        "m.x": [round(math.log10(b), 4) if b else -9.0 for b, _ in moved],
        "m.y": [round(math.log10(max(t, 1e-9)), 4) for _, t in moved],
        "m.text": [f"<b>you: {bytes_text(b)}, {time_text(t)}</b>" if b else "" for b, t in moved],
    }


def _mark(transport: str) -> str:
    return list(SYMBOLS.values())[sorted(registry.transports()).index(transport)]


def _rate_name(point: Point) -> str:
    return f"{_mark(point.transport.id)} {rate_text(point.row.nominal or point.transport.usual_bandwidth)}"


def _ends(ends: Sequence[tuple[float, str]], x: float, per_pixel: float, size: int) -> Spec:
    """Marks and nominal rates before the curves' starts, where no measurement lies."""
    placed = sorted(ends, reverse=True)
    heights = spread([math.log10(y) for y, _ in placed], ROW * per_pixel)
    return words([x] * len(placed), [10**y for y in heights], [f"{text}\u2002" for _, text in placed], "muted", size, place="middle left")


def _key(shown: Sequence[Point], size: int, *, narrow: bool) -> list[str]:
    """What the marks are, in lines that the plot is wide enough for."""
    lines: list[str] = []
    for name in sorted({p.transport.id for p in shown}):
        word = f"{_mark(name)} {SHORT.get(name, name)}"
        longer = f"{lines[-1]}\u2003{word}" if lines else word
        lines[-1:] = [longer] if text_width(longer, size) <= NARROWEST[narrow] else [*lines[-1:], word]
    return lines


def _markers(shown: Sequence[Point], values: Sequence[float]) -> list[Spec]:
    """One trace a transport, each with its own symbol; a click opens the page that prints the number."""
    traces = []
    for index, transport in enumerate(sorted(registry.transports())):
        mine = [(p, v) for p, v in zip(shown, values, strict=True) if p.transport.id == transport]
        if not mine:
            continue
        marker = {"symbol": list(SYMBOLS)[index], "size": 9, "color": colour("wire"), "line": {"width": 1, "color": colour("bg")}}
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": four_digits([p.bytes for p, _ in mine]),
                "y": four_digits([v for _, v in mine]),
                "marker": marker,
                "customdata": [[_hover(p), p.row.source] for p, _ in mine],
                "hovertemplate": "%{customdata[0]}<extra></extra>",
            }
        )
    return traces


def _hover(p: Point) -> str:
    ideal = "" if p.row.ideal_seconds is None else f", bytes over bandwidth {time_text(p.row.ideal_seconds)}"
    return f"{p.row.id}<br>{bytes_text(p.bytes)} in {time_text(p.seconds)}<br>model {time_text(p.modelled)}{ideal}<br>click: its source"


def _bytes_axis(low: float, high: float, most: int) -> dict[str, object]:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    step = -(-len(decades) // most)
    ticks = [10.0**d for d in decades if d % step == 0]
    return {**log_axis(low, high, ticks, [_short(t) for t in ticks]), "ticks": "outside", "ticklen": 4, "tickangle": 0}


def _short(count: float) -> str:
    unit, size = next((u, s) for u, s in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0)) if count >= s or u == "B")
    return f"{count / size:g}\u202f{unit}"


def residual_figure(shown: Sequence[Point]) -> Figure:
    """Measured over modelled time against bytes, and over bytes at nominal bandwidth as rings."""
    alt = "Measured over modelled time of each published transfer; 1 is a perfect prediction"
    return Figure("residuals", _residuals(shown, 9), _residuals(shown, 4), alt)


def _residuals(shown: Sequence[Point], most: int) -> Spec:
    low, high = _span([p.bytes for p in shown] or [1e6, 1e9])
    ideal = [(p.bytes, p.above_ideal) for p in shown if p.above_ideal is not None]
    top = 10.0 ** math.ceil(math.log10(max([v for _, v in ideal] + [p.ratio for p in shown] + [2.0])))
    bottom = 10.0 ** math.floor(math.log10(min([p.ratio for p in shown] + [0.5])))
    rings = {"size": 7, "color": colour("clear"), "line": {"width": 1.25, "color": colour("other")}}
    ticks = [t for t in (0.01, 0.1, 0.25, 0.5, 1, 2, 4, 10, 100, 1000) if bottom <= t <= top]
    band = {"type": "rect", "xref": "paper", "x0": 0, "x1": 1, "yref": "y", "y0": 1 / (1 + CLOSE), "y1": 1 / (1 - CLOSE)}
    layout = {
        "height": 320,
        "margin": {"l": 60, "r": 16, "t": 28, "b": 44},
        "annotations": [axis_title("measured ÷ modelled time; rings: ÷ bytes over bandwidth", 12, 60)],
        "xaxis": {**_bytes_axis(low, high, most), "title": {"text": "bytes moved"}, "fixedrange": True},
        "yaxis": {**log_axis(bottom, top, ticks, [f"{t:g}×" for t in ticks]), "fixedrange": True, "showgrid": True},
        "shapes": [{**band, "layer": "below", "line": {"width": 0}, "fillcolor": colour("panel")}],
    }
    hollow = {"type": "scatter", "mode": "markers", "x": four_digits([b for b, _ in ideal]), "y": four_digits([v for _, v in ideal])}
    return {"data": [{**hollow, "marker": rings, "hoverinfo": "skip"}, *_markers(shown, [p.ratio for p in shown])], "layout": layout}
