"""The pinned request in another's timeline: hollow bars under its own, with the pinned first token in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from app.charts.marks import hollow, words
from app.charts.scale import NARROW, WIDE, text_width
from app.charts.spec import Figure, Spec, Table, at
from app.charts.timeline import SCALE, Moment
from kvmodel.display import time_text

_ROWS = (146, 192, 192, 234)
"""Pixels from the top of the timeline, below the rows of prefill, wire and decode."""
_TONES = ("prefill", "wire", "exposed", "decode")


FARTHEST = 4.0
"""How many times its own length a timeline may get for the sake of a pinned request."""


def beside(own: Moment, pinned: Moment) -> Moment:
    """A moment whose strip reaches as far as the pinned one's, if that is not far longer."""
    return replace(own, reach=max(own.reach, min(pinned.reach, FARTHEST * own.reach)))


def timeline_pin_table(pinned: Moment, moments: Sequence[Moment]) -> Table:
    """Where the pinned request's spans stand on each moment's axis, cut at its right edge, and its first token in words."""
    first, after = float(pinned.parts.wire_start[0]), pinned.ready + float(pinned.result.transfer.exposed_seconds)
    sent = pinned.result.kv.wire_bytes > 0
    start = np.array([0.0, min(first, pinned.ready), pinned.ready, pinned.decode_start])
    end = np.array([pinned.ready, pinned.ready if sent else 0.0, after, pinned.decode_start + float(pinned.result.decode.step_seconds)])
    told = time_text(pinned.result.ttft_seconds)
    texts = {"w": f"\u2002pinned, hollow: first token {told}\u2002", "n": f"\u2002pinned, hollow: {told}\u2002"}
    table: Table = {"t.pin": [], **{f"{width}.pin_text": [text] * len(moments) for width, text in texts.items()}}
    table |= {"w.pin_at": [], "n.pin_at": []}
    for m in moments:
        low, high = (np.clip(np.round(edge / m.reach * SCALE), 0, SCALE).astype(int) for edge in (start, end))
        table["t.pin"].append([(np.maximum(high - low, 0)).tolist(), low.tolist()])
        lines = [m.ready / m.reach, float(m.result.ttft_seconds) / m.reach]
        for width, pixels, size in (("w", WIDE, 13), ("n", NARROW, 12)):
            share = text_width(texts[width], size) / pixels
            table[f"{width}.pin_at"].append(round(_clear(high[-1] / SCALE, share, lines) * SCALE))
    return table


def _clear(after: float, share: float, lines: Sequence[float]) -> float:
    """Where a label of `share` of the width begins: after the pinned bars, else where none of the lines crosses it."""
    starts = [s for s in (after, lines[0] - share, *lines, 0.0) if 0 <= s <= 1 - share]
    return next((s for s in starts if not any(s + 1e-3 < line < s + share - 1e-3 for line in lines)), 0.0)


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

    def more(spec: Spec, width: str) -> Spec:
        text = words([at(f"{width}.pin_at")], [_ROWS[-1] + 3], [at(f"{width}.pin_text")], "muted", 12)
        return {**spec, "data": [*spec["data"], bars, text]}

    return replace(figure, wide=more(figure.wide, "w"), narrow=more(figure.narrow, "n"))
