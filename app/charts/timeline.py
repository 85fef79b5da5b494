"""The request drawn to scale: prefill against the wire, part by part, and a magnifier on the last ones.

Each strip has an axis of `SCALE` units from its left to its right edge, so positions are whole
numbers; the tick labels carry the times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.charts.scale import NARROW, WIDE, plain_time, round_ticks, text_width
from app.charts.spec import Figure, Table, at, packed
from app.charts.timeline_spec import ZOOM_TOP, layout_of
from kvmodel.display import bytes_text, count_text, share_text, time_text
from kvmodel.parts import MAX_DRAWN, Parts
from kvmodel.plan import Plan
from kvmodel.results import Evaluation

SCALE = 60_000
"""Units of each strip's axis."""
SMALL_SHARE = 0.03
"""Below this share of the first token's time the exposed transfer gets a magnifier."""
_PANEL_TOP, _PANEL = 72, 270

Frame = dict[str, Any]
Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Moment:
    """One position of the slider: what there is to draw."""

    plan: Plan
    result: Evaluation
    parts: Parts
    output_tokens: int
    layer_bytes: float
    """Bytes of one part on the wire, mean."""
    ready: float
    """When prefill ends."""
    decode_start: float
    """When decode's first step begins."""
    reach: float
    """Seconds at the right edge of the middle strip."""
    whole: float
    """Seconds at the right edge of the upper strip."""

    @property
    def serial(self) -> bool:
        """Whether nothing crosses before prefill has ended."""
        return bool(self.parts.wire_start[0] >= self.ready * (1 - 1e-12))

    @property
    def decode_layers(self) -> tuple[Array, Array]:
        """Start and end of what decode runs without a break until the first token: the step, or runs of its layers."""
        start, end = self.parts.decode_start, self.parts.decode_end
        if start is None or end is None:
            step = float(self.result.decode.step_seconds)
            return np.array([self.decode_start]), np.array([self.decode_start + step])
        fixed = float(self.result.gap_seconds - self.result.transfer.exposed_seconds)
        return start + fixed, end + fixed


def moment(plan: Plan, result: Evaluation, parts: Parts, output_tokens: int) -> Moment:
    """What there is to draw of one evaluation."""
    ready = float(result.prefill.seconds)
    decode_start = ready + float(result.gap_seconds)
    reach = 1.045 * max(float(result.ttft_seconds), decode_start + float(result.decode.step_seconds))
    each = float(result.kv.wire_bytes) / parts.total
    return Moment(plan, result, parts, output_tokens, each, ready, decode_start, reach, float(result.request_seconds))


def is_small(result: Evaluation) -> bool:
    """Whether the exposed transfer is too small to see beside the first token's time."""
    return bool(0 < result.transfer.exposed_seconds < SMALL_SHARE * result.ttft_seconds)


def timeline_table(moments: Sequence[Moment], *, magnified: bool) -> Table:
    """Columns of the figure over the slider's positions."""
    frames = [_frame(m) | (_zoom(m) if magnified else {}) for m in moments]
    return {name: [frame[name] for frame in frames] for name in frames[0]}


def _units(seconds: float, span: float) -> int:
    return round(min(max(seconds / span, -1.0), 2.0) * SCALE) if span > 0 else 0


def _bar(start: float, end: float, span: float) -> list[int]:
    """(length, base) of a bar, in units."""
    low, high = _units(start, span), _units(end, span)
    return [max(0, high - low), low]


def _frame(m: Moment) -> Frame:
    r, (begins, ends) = m.result, m.decode_layers
    decode_end, late_end = float(ends[-1]), max(m.ready + float(r.transfer.exposed_seconds), float(m.parts.wire_end[-1]))
    late_end = late_end if r.kv.wire_bytes > 0 else m.ready
    first = _units(r.ttft_seconds, m.reach)
    part = f"{m.parts.kind} %{{customdata}} of {count_text(m.parts.total)}"
    exposed_pixels = float(r.transfer.exposed_seconds) / m.reach * NARROW
    frame: Frame = {
        "t.strip_prefill": _bar(0.0, m.ready, m.whole),
        "t.strip_gap": _bar(m.ready, m.decode_start, m.whole),
        "t.strip_decode": _bar(m.decode_start, m.whole, m.whole),
        "t.step": _bar(float(begins[-1]), decode_end, m.reach),
        "t.step_base": packed(begins[:-1] / m.reach * SCALE),
        "t.step_x": packed(np.maximum((ends - begins)[:-1] / m.reach * SCALE, 1)),
        "t.later": _bar(decode_end, max(decode_end, min(m.whole, m.reach)), m.reach),
        "t.fixed_bar": _bar(late_end, late_end + float(r.gap_seconds - r.transfer.exposed_seconds), m.reach),
        "t.ready": _units(m.ready, m.reach),
        "t.first": first,
        "t.first_place": "middle left" if first > 0.3 * SCALE else "middle right",
        "t.whole": f"<b>Whole request</b>, {time_text(r.request_seconds)} drawn to scale",
        "t.first_text": f"<b>first token {time_text(r.ttft_seconds)}</b>",
        "t.prefill_hover": f"{part}<br>{time_text(m.ready / m.parts.total)} of prefill<extra></extra>",
        "t.wire_hover": f"KV of a {m.parts.kind}<br>{bytes_text(m.layer_bytes)} on the wire<extra></extra>",
        "t.wedge": _wedge(0.0, m.reach / m.whole, 44, _PANEL_TOP, _PANEL),
        "t.late_hatch": "/" if exposed_pixels >= 4 else "",
        "t.strip_hatch": "/" if float(r.gap_seconds) / m.whole * WIDE >= 4 else "",
    }  # fmt: skip
    return frame | _lanes(m) | _labels(m) | _ticks(m)


def _lanes(m: Moment) -> Frame:
    """Prefill and what is exposed as bars with cuts between their cells; the hidden part of the wire cell by cell.

    After prefill ends every part is ready, so what is exposed is one piece.
    """
    p, unit = m.parts, SCALE / m.reach
    moves = m.result.kv.wire_bytes > 0
    low, high, ready = p.wire_start * unit, p.wire_end * unit, m.ready * unit
    hidden = (low < ready) & moves
    late = low[(low > ready * (1 + 1e-9)) & moves]
    late_end = float(p.wire_end[-1]) if moves else m.ready
    return {
        "t.prefill_bar": _bar(0.0, m.ready, m.reach),
        "t.prefill_cuts": packed(p.compute_end[:-1] * unit),
        "t.wire_base": packed(low[hidden]),
        "t.wire_x": packed(np.maximum(np.minimum(high[hidden], ready) - low[hidden], 1)),
        "t.late_bar": _bar(max(m.ready, float(p.wire_start[0])), max(m.ready, late_end), m.reach),
        "t.late_cuts": packed(late),
    }


def _wedge(low: float, high: float, top: int, shoulder: int, bottom: int) -> str:
    a, b = round(max(0.0, low), 4), round(min(high, 1.0), 4)
    return f"M{a},{top}L{b},{top}L1,{shoulder}L1,{bottom}L0,{bottom}L0,{shoulder}Z"


def _ticks(m: Moment) -> Frame:
    frame: Frame = {}
    cell = m.ready / len(m.parts.compute_end) / m.reach
    busy = float(m.parts.wire_end[-1] - m.parts.wire_start[-1]) / m.reach
    for prefix, width, most in (("w", WIDE, 9), ("n", NARROW, 5)):
        ticks = [t for t in round_ticks(m.reach, most) if t < 0.97 * m.reach]
        step = ticks[0] if ticks else m.reach
        frame[f"{prefix}.ticks"] = [_units(t, m.reach) for t in ticks]
        frame[f"{prefix}.tick_text"] = [plain_time(t, step) for t in ticks]
        frame[f"{prefix}.gap"] = 0.6 if cell * width >= 3 else 0
        frame[f"{prefix}.wire_gap"] = 0.6 if busy * width >= 3 else 0
    return frame


def _labels(m: Moment) -> Frame:
    """The lanes' labels, shortened until they do not meet the label of what is exposed."""
    p, r = m.parts, m.result
    span = time_text(max(0.0, m.whole - m.decode_start))
    each = f", {time_text(m.ready / p.total)} each" if _uniform(p.compute_end) else ""
    size = f" of {p.layers}" if p.layers > 1 else ""
    drawn = f", drawn in {len(p.compute_end)} groups" if len(p.compute_end) < p.total else ""
    prefill = f"<b>Prefill</b>  {count_text(p.total)} {p.kind}{'' if p.total == 1 else 's'}{size}{each} = {time_text(m.ready)}"
    frame: Frame = {
        "w.decode_text": f"decode {count_text(m.output_tokens)} token{'' if m.output_tokens == 1 else 's'}, {span}",
        "n.decode_text": f"decode, {span}",
        "w.prefill": prefill + drawn,
        "n.prefill": prefill,
    }
    texts = _wire_texts(m)
    for prefix, width, size in (("w", WIDE, 13), ("n", NARROW, 12)):
        late, x, place, room = _late_label(m, width, size)
        frame[f"{prefix}.wire"] = next((text for text in texts if text_width(text, size) + 24 < room), "<b>Wire</b>")
        frame[f"{prefix}.late"], frame[f"{prefix}.late_x"], frame[f"{prefix}.late_place"] = late, _units(x, m.reach), place
    if r.kv.wire_bytes <= 0:
        frame["w.wire"] = frame["n.wire"] = "<b>Wire</b>  nothing to move"
    return frame


def _wire_texts(m: Moment) -> list[str]:
    """Labels of the wire lane, longest first."""
    p, busy = m.parts, float(m.result.transfer.seconds)
    short = f"<b>Wire</b>  {bytes_text(m.layer_bytes)} a {p.kind}"
    tail = f"{short}, {time_text(busy / p.total)} each = {time_text(busy)}"
    if m.serial:
        return [f"{tail}, all of it exposed", tail, short]
    idle = [f"{tail}; idle {share_text(1 - busy / m.decode_start)} of the time"] if busy < 0.99 * m.decode_start else []
    return [*idle, tail, short]


def _late_label(m: Moment, width: int, size: int) -> tuple[str, float, str, float]:
    """(label of the exposed part, where in seconds, its place there, pixels left of it)."""
    exposed = float(m.result.transfer.exposed_seconds)
    if exposed <= 0 or m.serial:
        return "", 0.0, "middle right", float(width)
    short = f"<b>exposed {time_text(exposed)}</b>"
    pixels = width / m.reach
    middle = m.ready + exposed / 2
    for text in (f"{short}: {count_text(m.parts.left)} {m.parts.kind}s have yet to cross when prefill ends", short):
        wide = text_width(text, size)
        if wide < exposed * pixels:
            return text, middle, "middle center", middle * pixels - wide / 2
    wide = text_width(short, size)
    if m.ready * pixels - wide > 0.2 * width:
        return short + "\u2002", m.ready, "middle left", m.ready * pixels - wide
    return short, m.ready + exposed, "middle left", (m.ready + exposed) * pixels - wide


def _uniform(ends: np.ndarray[Any, Any]) -> bool:
    if len(ends) < 3:
        return True
    each = float(ends[-1]) / len(ends)
    return bool(np.abs(np.diff(ends) - each).max() <= 2e-3 * each)


def _zoom(m: Moment) -> Frame:
    """The end of prefill, magnified until the last part can be seen."""
    p, r = m.parts, m.result
    exposed = max(float(r.transfer.exposed_seconds), 1e-9)
    serial, decode_start = m.serial, float(m.decode_layers[0][0])
    each = m.ready - float(p.compute_end[-2]) if len(p.compute_end) > 1 else m.ready
    low = max(0.0, m.ready - (2 * exposed if serial else 2.25 * each))
    high = max(m.ready + 1.4 * (exposed if serial else each), decode_start + 0.35 * (decode_start - low))
    span = high - low
    number = p.total // len(p.compute_end)
    ends = np.minimum((p.compute_end - low) / span, 1.0)
    starts = np.maximum(np.concatenate([[0.0], p.compute_end[:-1]]) - low, 0.0) / span
    show = np.flatnonzero(ends > 0)
    late_end = m.ready + float(r.transfer.exposed_seconds)
    late = _bar(max(float(p.wire_start[-1]), m.ready) - low, late_end - low, span)
    late = _bar(m.ready - low, late_end - low, span) if serial else late
    end = _units(late_end - low, span)
    name, shown = "All KV" if serial else f"KV {p.total}", time_text(r.transfer.exposed_seconds)
    frame = {
        "z.title": f"<b>{'The end of prefill' if serial else f'The last {p.kind}'}</b>, magnified {max(1, round(m.reach / span))}×",
        "z.wedge": _wedge(low / m.reach, high / m.reach, _PANEL, *ZOOM_TOP),
        "z.prefill_base": packed(starts[show] * SCALE),
        "z.prefill_x": packed((ends - starts)[show] * SCALE),
        "z.prefill_text": [f"{p.kind} {i + 1}" if number == 1 else "" for i in show.tolist()],
        "z.late": late,
        "z.late_end": end,
        "z.decode": _bar(decode_start - low, high - low, span),
        "z.decode_start": _units(decode_start - low, span),
        "z.ready": _units(m.ready - low, span),
        "w.late_text": _that_fits(end, WIDE, 13, f"{name} has no compute to hide behind: {shown} exposed", f"{shown} exposed"),
        "n.late_text": _that_fits(end, NARROW, 12, f"{name}: exposed", "exposed"),
    }
    return frame | _zoom_wire(m, low, span, number, serial) | _zoom_ticks(low, high)


def _that_fits(end: int, width: int, size: int, *texts: str) -> str:
    """The first text that has room to the right of a bar's end; empty where none has."""
    room = (SCALE - end) / SCALE * width
    return next((f"\u2002<b>{text}</b>" for text in texts if text_width(text, size) + 16 < room), "")


def _zoom_wire(m: Moment, low: float, span: float, number: int, serial: bool) -> Frame:
    """Cells of the last parts that cross before prefill ends."""
    p = m.parts
    start, end = p.wire_start[-4:] - low, np.minimum(p.wire_end[-4:], m.ready) - low
    kept = np.flatnonzero((end > np.maximum(start, 0.0)) & (start < span) & (not serial))
    first = len(p.wire_end) - len(start)
    base = np.maximum(start[kept], 0.0) / span
    texts = [f"\u2002KV {first + i + 1}" if number == 1 and first + i + 1 < p.total else "" for i in kept.tolist()]
    return {
        "z.wire_base": packed(base * SCALE),
        "z.wire_x": packed((end[kept] / span - base) * SCALE),
        "z.wire_end": packed(end[kept] / span * SCALE),
        "z.wire_text": texts,
    }


def _zoom_ticks(low: float, high: float) -> Frame:
    span = high - low
    steps = round_ticks(span, 4)
    step = steps[0] if steps else span
    first = int(low / step) + 1
    ticks = [step * i for i in range(first, int(high / step) + 1) if low + 0.02 * span < step * i < high - 0.04 * span]
    return {"z.ticks": [_units(t - low, span) for t in ticks], "z.tick_text": [plain_time(t, step) for t in ticks]}


def timeline_figure(*, magnified: bool, both: bool = False) -> Figure:
    """The figure over `timeline_table`; `both` where decode, too, runs layer by layer."""
    drawn = {"magnified": magnified, "both": both, "cells": MAX_DRAWN, "scale": SCALE}
    wide, narrow = (layout_of(prefix, size, **drawn) for prefix, size in (("w", 13), ("n", 12)))
    return Figure("timeline", wide, narrow, at("answer.text"))
