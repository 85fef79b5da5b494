"""The end of prefill, magnified: what of the transfer nothing hides, where it is too small to see."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.charts.scale import NARROW, WIDE, plain_time, round_ticks, text_width
from app.charts.strips import PANEL_BOTTOM, SCALE, Frame, Moment, bar, units, wedge
from app.charts.timeline_spec import ZOOM_PARTS, ZOOM_SENT, ZOOM_TICKS, ZOOM_TOP, padded
from kvmodel.display import time_text


def magnifier(m: Moment) -> Frame:
    """The end of prefill, magnified until the last part can be seen."""
    p, r = m.parts, m.result
    exposed = max(float(r.transfer.exposed_seconds), 1e-9)
    serial, decode_start = m.serial, float(m.decode_runs[0][0])
    each = m.ready - float(p.compute_end[-2]) if len(p.compute_end) > 1 else m.ready
    low = max(0.0, m.ready - (2 * exposed if serial else 2.25 * each))
    high = max(m.ready + 1.4 * (exposed if serial else each), decode_start + 0.35 * (decode_start - low))
    span = high - low
    number = p.total // len(p.compute_end)
    ends = np.minimum((p.compute_end - low) / span, 1.0)
    starts = np.maximum(np.concatenate([[0.0], p.compute_end[:-1]]) - low, 0.0) / span
    show = np.flatnonzero(ends > 0)[-ZOOM_PARTS:]
    late_end = m.ready + float(r.transfer.exposed_seconds)
    late = bar(max(float(p.wire_start[-1]), m.ready) - low, late_end - low, span)
    late = bar(m.ready - low, late_end - low, span) if serial else late
    end = units(late_end - low, span)
    name, shown = "All KV" if serial else f"KV {p.total}", time_text(r.transfer.exposed_seconds)
    frame = {
        "z.title": f"<b>{'The end of prefill' if serial else f'The last {p.kind}'}</b>, magnified {max(1, round(m.reach / span))}×",
        "z.wedge": wedge(low / m.reach, high / m.reach, PANEL_BOTTOM, *ZOOM_TOP),
        "z.part_base": _whole(starts[show], ZOOM_PARTS),
        "z.part": _whole((ends - starts)[show], ZOOM_PARTS),
        "z.part_middle": _whole((ends + starts)[show] / 2, ZOOM_PARTS),
        "z.late": late,
        "z.late_end": end,
        "z.decode": bar(decode_start - low, high - low, span),
        "z.decode_start": units(decode_start - low, span),
        "z.decode_text": "first decode step\u2002" if decode_start + float(r.decode.step_seconds) >= high else "decode\u2002",
        "z.ready": units(m.ready - low, span),
        "w.late_text": _that_fits(end, WIDE, 13, f"{name} has no compute to hide behind: {shown} exposed", f"{shown} exposed"),
        "n.late_text": _that_fits(end, NARROW, 12, f"{name}: exposed", "exposed"),
    }
    for prefix, width, size in (("w", WIDE, 13), ("n", NARROW, 12)):
        texts = [f"{p.kind} {i + 1}" if number == 1 else "" for i in show.tolist()]
        rooms = ((ends - starts)[show] * width).tolist()
        fit = [text if text_width(text, size) + 6 < room else "" for text, room in zip(texts, rooms, strict=True)]
        frame[f"{prefix}.part_text"] = padded(fit, ZOOM_PARTS, "")
    return frame | _zoom_wire(m, low, span, number, serial) | _zoom_ticks(low, high)


def _whole(shares: np.ndarray[Any, Any], most: int) -> list[int]:
    """Shares of an axis in its units, filled up."""
    return padded(np.round(shares * SCALE).astype(int).tolist(), most, 0)


def _that_fits(end: int, width: int, size: int, *texts: str) -> str:
    """The first text that has room to the right of a bar's end; empty where none has."""
    room = (SCALE - end) / SCALE * width
    return next((f"\u2002<b>{text}</b>" for text in texts if text_width(text, size) + 16 < room), "")


def _zoom_wire(m: Moment, low: float, span: float, number: int, serial: bool) -> Frame:
    """Cells of the last parts that cross before prefill ends."""
    p = m.parts
    start, end = p.wire_start[-ZOOM_SENT:] - low, np.minimum(p.wire_end[-ZOOM_SENT:], m.ready) - low
    kept = np.flatnonzero((end > np.maximum(start, 0.0)) & (start < span) & (not serial))
    first = len(p.wire_end) - len(start)
    base = np.maximum(start[kept], 0.0) / span
    texts = [f"\u2002KV {first + i + 1}" if number == 1 and first + i + 1 < p.total else "" for i in kept.tolist()]
    return {
        "z.sent_base": _whole(base, ZOOM_SENT),
        "z.sent": _whole(end[kept] / span - base, ZOOM_SENT),
        "z.sent_end": _whole(end[kept] / span, ZOOM_SENT),
        "z.sent_text": padded(texts, ZOOM_SENT, ""),
    }


def _zoom_ticks(low: float, high: float) -> Frame:
    span = high - low
    steps = round_ticks(span, 4)
    step = steps[0] if steps else span
    first = int(low / step) + 1
    ticks = [step * i for i in range(first, int(high / step) + 1) if low + 0.02 * span < step * i < high - 0.04 * span]
    return {
        "z.ticks": padded([units(t - low, span) for t in ticks], ZOOM_TICKS, 0),
        "z.tick_text": padded([plain_time(t, step) for t in ticks], ZOOM_TICKS, ""),
    }
