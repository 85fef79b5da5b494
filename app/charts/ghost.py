"""The pinned request in another's timeline: hollow bars under its own, with the pinned first token in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from app.charts.marks import hollow, words
from app.charts.spec import Figure, Spec, Table, at
from app.charts.timeline import SCALE, Moment
from kvmodel.display import time_text

_ROWS = (146, 192, 192, 234)
"""Pixels from the top of the timeline, below the rows of prefill, wire and decode."""
_TONES = ("prefill", "wire", "exposed", "decode")


def timeline_pin_table(pinned: Moment, moments: Sequence[Moment]) -> Table:
    """Where the pinned request's spans stand on each moment's axis, cut at its right edge."""
    first, after = float(pinned.parts.wire_start[0]), pinned.ready + float(pinned.result.transfer.exposed_seconds)
    sent = pinned.result.kv.wire_bytes > 0
    start = np.array([0.0, min(first, pinned.ready), pinned.ready, pinned.decode_start])
    end = np.array([pinned.ready, pinned.ready if sent else 0.0, after, pinned.decode_start + float(pinned.result.decode.step_seconds)])
    told = f"pinned, hollow: first token {time_text(pinned.result.ttft_seconds)}"
    table: Table = {"t.pin": [], "t.pin_at": [], "t.pin_place": [], "t.pin_text": [f"\u2002{told}\u2002"] * len(moments)}
    for moment in moments:
        low, high = (np.clip(np.round(edge / moment.reach * SCALE), 0, SCALE).astype(int) for edge in (start, end))
        room = high[-1] < 0.6 * SCALE
        table["t.pin"].append([(np.maximum(high - low, 0)).tolist(), low.tolist()])
        table["t.pin_at"].append(int(high[-1] if room else low[-1]))
        table["t.pin_place"].append("middle right" if room else "middle left")
    return table


def with_timeline_pin(figure: Figure) -> Figure:
    """The timeline with the pinned request's spans below its own."""
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": at("t.pin", 0),
        "base": at("t.pin", 1),
        "y": list(_ROWS),
        "width": 4,
        "marker": hollow(list(_TONES)),
        "hoverinfo": "skip",
    }
    text = words([at("t.pin_at")], [_ROWS[-1] + 3], [at("t.pin_text")], "muted", 12, place=[at("t.pin_place")])
    return _with_traces(figure, [bars, text])


def _with_traces(figure: Figure, traces: Sequence[Spec]) -> Figure:
    def more(spec: Spec) -> Spec:
        return {**spec, "data": [*spec["data"], *traces]}

    return replace(figure, wide=more(figure.wide), narrow=more(figure.narrow))
