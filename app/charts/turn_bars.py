"""Bars of a turn: time to the first token, stacked, and unique KV moved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.charts.marks import HATCH, hollow_bars, words
from app.charts.spec import Figure, Spec, Table, at, colour, four_digits
from app.charts.turn import BARS, TITLES, TurnRow
from kvmodel.designs import Design
from kvmodel.display import bytes_text, shared_time_unit, time_text


def bars_table(rows: Sequence[TurnRow], pinned: TurnRow | None = None) -> Table:
    """Columns of the bars over a slider's positions; axes reach to the pinned turn's too."""
    others = [pinned.by_key[key] for key in BARS] if pinned else []
    frames = [_frame(row, others) for row in rows]
    return {name: [frame[name] for frame in frames] for name in frames[0]}


def _frame(row: TurnRow, others: Sequence[Design]) -> dict[str, Any]:
    found = [row.by_key[key] for key in BARS]
    totals = [d.ttft_seconds for d in found]
    longest = max(d.ttft_seconds for d in (*found, *others))
    most = max(1.0, *(d.unique_bytes for d in (*found, *others)))
    waits = [max(0.0, d.wait_seconds) for d in found]
    unit = shared_time_unit(*totals)
    stalls = [f"  stalls its neighbours {time_text(d.stall_seconds)}" if d.stall_seconds else "" for d in found]
    return {
        "t.prefill": four_digits([d.prefill_seconds for d in found]),
        "t.wait": four_digits(waits),
        "t.step": four_digits([d.step_seconds for d in found]),
        "t.step_base": four_digits([d.prefill_seconds + wait for d, wait in zip(found, waits, strict=True)]),
        "t.ttft": four_digits(totals),
        "t.ttft_text": [f"\u2002<b>{time_text(v, unit)}</b>{stall}" for v, stall in zip(totals, stalls, strict=True)],
        "t.bytes": four_digits([d.unique_bytes for d in found]),
        "t.bytes_text": [f"\u2002<b>{bytes_text(d.unique_bytes)}</b>" for d in found],
        "t.wide": four_digits([0, longest * 1.3]),
        "t.narrow": four_digits([0, longest * 1.55]),
        "t.bytes_range": four_digits([0, most * 1.32]),
    }


def bars_figure(pinned: TurnRow | None = None) -> Figure:
    """Time to the first token, stacked, and unique KV moved; the pinned turn's below, hollow."""
    return Figure(
        "turn-bars", _layout(pinned, narrow=False), _layout(pinned, narrow=True), "Time to first token and unique KV moved, by design"
    )


def _bar(x: Spec, fill: str, **more: Any) -> Spec:
    marker = {"color": colour(fill), **more.pop("marker", {})}
    rows = list(range(len(BARS)))
    return {"type": "bar", "orientation": "h", "x": x, "y": rows, "width": 0.42, "marker": marker, "hoverinfo": "skip", **more}


def _below(pinned: TurnRow | None, second: dict[str, str]) -> list[Spec]:
    if pinned is None:
        return []
    others, rows = [pinned.by_key[key] for key in BARS], list(range(len(BARS)))
    return [
        hollow_bars(four_digits([d.ttft_seconds for d in others]), rows, "muted"),
        hollow_bars(four_digits([d.unique_bytes for d in others]), rows, "wire", **second),
    ]


def _layout(pinned: TurnRow | None, *, narrow: bool) -> Spec:
    size, rows = 12 if narrow else 13, list(range(len(BARS)))
    second = {"xaxis": "x2", "yaxis": "y2"}
    data = [
        _bar(at("t.prefill"), "prefill"),
        _bar(at("t.wait"), "exposed", base=at("t.prefill"), marker={"pattern": {**HATCH, "shape": "/"}}),
        _bar(at("t.step"), "decode", base=at("t.step_base")),
        words(at("t.ttft"), rows, at("t.ttft_text"), "ink", size),
        _bar(at("t.bytes"), "wire", **second),
        words(at("t.bytes"), rows, at("t.bytes_text"), "wire_text", size, **second),
        *_below(pinned, second),
    ]
    axis = {"showticklabels": False, "zeroline": True, "zerolinecolor": colour("line"), "fixedrange": True}
    names = {"tickvals": rows, "ticktext": [TITLES[key] for key in BARS], "ticklabelstandoff": 6}
    names |= {"range": [len(rows) - 0.5, -0.5], "showgrid": False, "fixedrange": True, "tickfont": {"color": colour("body"), "size": size}}
    across, down = ([0, 1], [0, 1]) if narrow else ([0, 0.58], [0.66, 1])
    upper, lower = ([0.55, 1], [0, 0.45]) if narrow else ([0, 1], [0, 1])
    layout = {
        "height": 470 if narrow else 250,
        "margin": {"l": 134 if narrow else 150, "r": 0, "t": 26, "b": 0},
        "barmode": "overlay",
        "xaxis": {**axis, "range": at("t.narrow" if narrow else "t.wide"), "domain": across},
        "xaxis2": {**axis, "range": at("t.bytes_range"), "domain": down, "anchor": "y2"},
        "yaxis": {**names, "domain": upper},
        "yaxis2": {**names, "domain": lower, "anchor": "x2", "showticklabels": narrow},
        "annotations": [_head("Time to first token", 0.0, 1.0, size), _head("Unique KV moved this turn", down[0], lower[1], size)],
    }
    return {"data": data, "layout": layout}


def _head(text: str, x: float, y: float, size: int) -> Spec:
    place = {"x": x, "y": y, "xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom", "yshift": 4}
    return {"text": f"<b>{text}</b>", **place, "showarrow": False, "font": {"size": size, "color": colour("body")}}
