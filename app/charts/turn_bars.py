"""Bars of a turn: time to the first token, stacked, and unique KV moved.

Both panels share one axis of `SCALE` units and bars alike share a trace, because redrawing costs by trace and by
subplot; rows are pixels from the top.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.charts.marks import Label, hatched, hollow_bars, labels, rule
from app.charts.spec import Figure, Spec, Table, at, colour
from app.charts.turn import BARS, TITLES, TurnRow
from kvmodel.designs import Design
from kvmodel.display import bytes_text, shared_time_unit, time_text

SCALE = 60_000
"""Units of the axis, from the left of the first panel to the right edge."""


@dataclass(frozen=True, slots=True)
class Panels:
    """Where the two panels stand: left edges and widths in units, their first rows' centres and the rows' pitch in pixels."""

    time: tuple[int, int]
    bytes: tuple[int, int]
    room: float
    """How much longer than the longest bar of time its panel is: room for the words."""
    tops: tuple[float, float]
    pitch: float
    height: int
    left: int


PANELS = {
    "w": Panels((0, 34_800), (39_600, 20_400), 1.3, (48, 48), 44.8, 250, 150),
    "n": Panels((0, SCALE), (0, SCALE), 1.55, (46, 290), 40, 470, 134),
}
BYTES_ROOM = 1.32


def bars_table(rows: Sequence[TurnRow], pinned: TurnRow | None = None) -> Table:
    """Columns of the bars over a slider's positions; axes reach to the pinned turn's too."""
    others = [pinned.by_key[key] for key in BARS] if pinned else []
    frames = [_frame(row, others) for row in rows]
    return {name: [frame[name] for frame in frames] for name in frames[0]}


def _frame(row: TurnRow, others: Sequence[Design]) -> dict[str, Any]:
    found = [row.by_key[key] for key in BARS]
    unit = shared_time_unit(*(d.ttft_seconds for d in found))
    stalls = [f"  stalls its neighbours {time_text(d.stall_seconds)}" if d.stall_seconds and row.beside else "" for d in found]
    frame: dict[str, Any] = {
        "t.ttft_text": [f"\u2002<b>{time_text(d.ttft_seconds, unit)}</b>{stall}" for d, stall in zip(found, stalls, strict=True)],
        "t.bytes_text": [f"\u2002<b>{bytes_text(d.unique_bytes)}</b>" for d in found],
        "t.prefill_says": [_says("prefill", time_text(d.prefill_seconds)) for d in found],
        "t.wait_says": [_says("transfer that nothing hides", time_text(max(0.0, d.wait_seconds))) for d in found],
        "t.step_says": [_says("first decode step", time_text(d.step_seconds)) for d in found],
        "t.bytes_says": [_says("unique KV moved", bytes_text(d.unique_bytes)) for d in found],
    }
    for prefix, panels in PANELS.items():
        frame |= _bars(prefix, panels, found, others)
    return frame


def _says(what: str, amount: str) -> str:
    return f"{what} {amount}<extra></extra>"


def _bars(prefix: str, panels: Panels, found: Sequence[Design], others: Sequence[Design]) -> dict[str, list[int]]:
    """Lengths, bases and ends of the bars in units; the pinned turn's after those of time and of bytes."""
    time = panels.time[1] / (panels.room * max(d.ttft_seconds for d in (*found, *others)))
    moved = panels.bytes[1] / (BYTES_ROOM * max(1.0, *(d.unique_bytes for d in (*found, *others))))
    start, ends = panels.time[0], [d.ttft_seconds for d in found]
    computed = [d.prefill_seconds for d in found]
    waited = [d.prefill_seconds + max(0.0, d.wait_seconds) for d in found]

    def lengths(low: Sequence[float], high: Sequence[float], scale: float) -> list[int]:
        return [round(b * scale) - round(a * scale) for a, b in zip(low, high, strict=True)]

    none = [0.0] * len(found)
    return {
        f"{prefix}.prefill": lengths(none, computed, time),
        f"{prefix}.wait": lengths(computed, waited, time),
        f"{prefix}.wait_base": [start + round(v * time) for v in computed],
        f"{prefix}.step": lengths(waited, [w + d.step_seconds for w, d in zip(waited, found, strict=True)], time),
        f"{prefix}.step_base": [start + round(v * time) for v in waited],
        f"{prefix}.end": [start + round(v * time) for v in ends],
        f"{prefix}.bytes": lengths(none, [d.unique_bytes for d in found], moved),
        f"{prefix}.pin": [*(round(d.ttft_seconds * time) for d in others), *(round(d.unique_bytes * moved) for d in others)],
        f"{prefix}.bytes_end": [panels.bytes[0] + round(d.unique_bytes * moved) for d in found],
    }


def bars_figure(*, pinned: bool = False) -> Figure:
    """Time to the first token, stacked, and unique KV moved; a pinned turn's below, hollow."""
    alt = "Time to first token and unique KV moved, by design"
    return Figure("turn-bars", _layout("w", pinned=pinned), _layout("n", pinned=pinned), alt)


def _layout(prefix: str, *, pinned: bool) -> Spec:
    panels, narrow, every = PANELS[prefix], prefix == "n", range(len(BARS))
    size = 12 if narrow else 13
    times, moved = ([top + panels.pitch * i for i in every] for top in panels.tops)
    plain = [
        *((at(f"{prefix}.prefill", i), panels.time[0], times[i], "prefill", at("t.prefill_says", i)) for i in every),
        *((at(f"{prefix}.step", i), at(f"{prefix}.step_base", i), times[i], "decode", at("t.step_says", i)) for i in every),
        *((at(f"{prefix}.bytes", i), panels.bytes[0], moved[i], "wire", at("t.bytes_says", i)) for i in every),
    ]
    thick = 0.42 * panels.pitch
    bars = {
        **_bar([x for x, *_ in plain], [base for _, base, *_ in plain], [y for _, _, y, *_ in plain], thick),
        "marker": {"color": [colour(fill) for *_, fill, _ in plain]},
        "hovertemplate": [says for *_, says in plain],
    }
    waits = {
        **_bar(at(f"{prefix}.wait"), at(f"{prefix}.wait_base"), times, thick),
        "marker": hatched("exposed"),
        "hovertemplate": at("t.wait_says"),
    }
    words = [
        *_heads(panels, size),
        *(Label(at("t.ttft_text", i), at(f"{prefix}.end", i), times[i], "ink", size, "middle right") for i in every),
        *(Label(at("t.bytes_text", i), at(f"{prefix}.bytes_end", i), moved[i], "wire_text", size, "middle right") for i in every),
        *(Label(f"{TITLES[BARS[i]]}\u2002", 0, y, "body", size, "middle left") for y, i in _named(times, moved)),
    ]
    half = panels.pitch / 2
    edges = [rule(left, rows[0] - half, rows[-1] + half, "line", 1) for left, rows in ((panels.time[0], times), (panels.bytes[0], moved))]
    layout = {
        "height": panels.height,
        "margin": {"l": panels.left, "r": 0, "t": 0, "b": 0},
        "barmode": "overlay",
        "xaxis": {"range": [0, SCALE], "visible": False, "fixedrange": True},
        "yaxis": {"range": [panels.height, 0], "visible": False, "showgrid": False, "fixedrange": True},
        "shapes": edges,
    }
    return {"data": [bars, waits, *([_below(prefix, panels, times, moved)] if pinned else []), labels(words)], "layout": layout}


def _below(prefix: str, panels: Panels, times: Sequence[float], moved: Sequence[float]) -> Spec:
    """The pinned turn's bars, hollow."""
    tones = ["muted"] * len(BARS) + ["wire"] * len(BARS)
    bases = [panels.time[0]] * len(BARS) + [panels.bytes[0]] * len(BARS)
    return hollow_bars(at(f"{prefix}.pin"), [*times, *moved], tones, base=bases, pitch=panels.pitch)


def _bar(x: Spec, base: Spec, y: Spec, width: float) -> Spec:
    return {"type": "bar", "orientation": "h", "x": x, "base": base, "y": y, "width": width}


def _heads(panels: Panels, size: int) -> list[Label]:
    heads = ((panels.time[0], panels.tops[0], "Time to first token"), (panels.bytes[0], panels.tops[1], "Unique KV moved this turn"))
    return [Label(f"<b>{text}</b>", x, top - 0.5 * panels.pitch - 12, "body", size, "middle right") for x, top, text in heads]


def _named(times: Sequence[float], moved: Sequence[float]) -> list[tuple[float, int]]:
    """Rows that carry a design's name: both panels' where they stand one above the other."""
    rows = list(enumerate(times)) + (list(enumerate(moved)) if moved[0] != times[0] else [])
    return [(y, i) for i, y in rows]
