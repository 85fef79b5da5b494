"""The request drawn to scale: prefill against the wire, part by part, and a magnifier on the last ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.charts.magnifier import magnifier
from app.charts.scale import NARROW, WIDE, plain_time, round_ticks, text_width
from app.charts.spec import Figure, Table, at, packed
from app.charts.strips import PANEL_BOTTOM, SCALE, Frame, Moment, bar, units, wedge
from app.charts.timeline_spec import TICKS, layout_of, padded
from kvmodel.display import bytes_text, count_text, share_text, time_text
from kvmodel.parts import MAX_DRAWN
from kvmodel.results import Evaluation

SMALL_SHARE = 0.03
"""Below this share of the first token's time the exposed transfer gets a magnifier."""
SEEN = 1 / 700
"""Share of a strip below which a run of decode's layers is drawn wider than it is."""
SEEN = 3
"""Pixels of a cell from which on it stands apart from its neighbours."""
_PANEL_TOP = 72


def is_small(result: Evaluation) -> bool:
    """Whether the exposed transfer is too small to see beside the first token's time."""
    return bool(0 < result.transfer.exposed_seconds < SMALL_SHARE * result.ttft_seconds)


def timeline_table(moments: Sequence[Moment], *, magnified: bool) -> Table:
    """Columns of the figure over the slider's positions."""
    frames = [_frame(m) | (magnifier(m) if magnified else {}) for m in moments]
    return {name: [frame[name] for frame in frames] for name in frames[0]}


def _frame(m: Moment) -> Frame:
    r, (begins, ends) = m.result, m.decode_runs
    decode_end, unit = float(ends[-1]), SCALE / m.reach
    arrived = max(m.ready + float(r.transfer.exposed_seconds), float(m.parts.wire_end[-1]) if r.kv.wire_bytes > 0 else 0.0)
    first = units(r.ttft_seconds, m.reach)
    exposed_pixels = float(r.transfer.exposed_seconds) / m.reach * NARROW
    frame: Frame = {
        "t.strip_prefill": bar(0.0, m.ready, m.whole),
        "t.strip_gap": bar(m.ready, m.decode_start, m.whole),
        "t.strip_decode": bar(m.decode_start, m.whole, m.whole),
        "t.step": bar(float(begins[-1]), decode_end, m.reach),
        "t.step_cells": _cells(begins[:-1] * unit, np.maximum(ends, begins + SEEN * m.reach)[:-1] * unit),
        "t.later": bar(decode_end, max(decode_end, min(m.whole, m.reach)), m.reach),
        "t.fixed_bar": bar(arrived, arrived + m.fixed, m.reach),
        "t.ready": units(m.ready, m.reach),
        "t.first": first,
        "t.first_place": "middle left" if first > 0.3 * SCALE else "middle right",
        "t.whole": f"<b>Whole request</b>, {time_text(r.request_seconds)} drawn to scale",
        "t.first_text": f"<b>first token {time_text(r.ttft_seconds)}</b>",
        "t.wedge": wedge(0.0, m.reach / m.whole, 44, _PANEL_TOP, PANEL_BOTTOM),
        "t.late_hatch": "/" if exposed_pixels >= 4 else "",
        "t.strip_hatch": "/" if float(r.gap_seconds) / m.whole * WIDE >= 4 else "",
    }  # fmt: skip
    return frame | _lanes(m) | _labels(m) | _ticks(m) | _says(m)


def _says(m: Moment) -> Frame:
    """What a bar says under the pointer."""
    r, p = m.result, m.parts
    parts = f"{count_text(p.total)} {p.kind}{'' if p.total == 1 else 's'}"
    mean = "" if _alike(m) else " on average"
    said = {
        "prefill": f"prefill {time_text(m.ready)}",
        "part": f"prefill of {parts}<br>{time_text(m.ready / p.total)} each, {time_text(m.ready)}",
        "wire": f"KV of {parts}<br>{bytes_text(m.layer_bytes)} each{mean}, {time_text(r.transfer.seconds)} on the wire",
        "exposed": f"exposed transfer {time_text(r.transfer.exposed_seconds)}",
        "fixed": f"fixed handoff {time_text(m.fixed)}",
        "step": f"first decode step {time_text(r.decode.step_seconds)}",
        "decode": f"decode {time_text(max(0.0, m.whole - m.decode_start))}",
    }
    return {f"t.{name}_says": f"{text}<extra></extra>" for name, text in said.items()}


def _lanes(m: Moment) -> Frame:
    """Prefill and what is exposed as bars with cuts between their cells; the hidden part of the wire cell by cell.

    After prefill ends every part is ready, so what is exposed is one piece; what crosses then and decode does not wait for is hidden too.
    """
    p, unit = m.parts, SCALE / m.reach
    moves = m.result.kv.wire_bytes > 0
    waits = float(m.result.transfer.exposed_seconds) > 0
    edge = m.ready if waits or not moves else max(m.ready, float(p.wire_end[-1]))
    low, high, ready = p.wire_start * unit, p.wire_end * unit, edge * unit
    hidden = (low < ready) & moves
    late = low[(low > ready * (1 + 1e-9)) & moves]
    late_end = float(p.wire_end[-1]) if moves else m.ready
    first, sent = low[hidden], np.maximum(np.minimum(high[hidden], ready), low[hidden] + 1)
    return {
        "t.prefill_bar": bar(0.0, m.ready, m.reach),
        "t.prefill_cuts": _cuts(p.compute_end[:-1] * unit, shown=_cell(m) * WIDE >= SEEN),
        "t.wire_bar": [round(sent[-1] - first[0]), round(first[0])] if len(first) else [0, 0],
        "t.wire_cells": _cells(first, sent),
        "t.late_bar": bar(max(edge, float(p.wire_start[0])), max(edge, late_end), m.reach),
        "t.late_cuts": _cuts(late, shown=_busy(m) * WIDE >= SEEN),
    }


def _cells(first: np.ndarray[Any, Any], last: np.ndarray[Any, Any]) -> Any:
    """Edges of boxes; the last edge twice, because their path ends there."""
    return packed(np.append(np.stack([first, last], axis=1), last[-1:]))


def _cell(m: Moment) -> float:
    """Share of a strip that one cell of prefill takes."""
    return m.ready / len(m.parts.compute_end) / m.reach


def _busy(m: Moment) -> float:
    """The same of the last cell on the wire."""
    return float(m.parts.wire_end[-1] - m.parts.wire_start[-1]) / m.reach


def _cuts(at_units: np.ndarray[Any, Any], *, shown: bool) -> Any:
    """Where a bar is cut; the first twice, because the path of the cuts starts there."""
    return packed(np.append(at_units[:1], at_units) if shown else [])


def _ticks(m: Moment) -> Frame:
    frame: Frame = {}
    cell, busy = _cell(m), _busy(m)
    for prefix, width, most in (("w", WIDE, TICKS["w"]), ("n", NARROW, TICKS["n"])):
        ticks = [t for t in round_ticks(m.reach, most) if t < 0.97 * m.reach]
        step = ticks[0] if ticks else m.reach
        frame[f"{prefix}.ticks"] = padded([units(t, m.reach) for t in ticks], TICKS[prefix], 0)
        frame[f"{prefix}.tick_text"] = padded([plain_time(t, step) for t in ticks], TICKS[prefix], "")
        frame[f"{prefix}.gap"] = 0.6 if cell * width >= SEEN else 0
        frame[f"{prefix}.wire_gap"] = 0.6 if busy * width >= SEEN else 0
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
        frame[f"{prefix}.late"], frame[f"{prefix}.late_x"], frame[f"{prefix}.late_place"] = late, units(x, m.reach), place
    if r.kv.wire_bytes <= 0:
        frame["w.wire"] = frame["n.wire"] = "<b>Wire</b>  nothing to move"
    return frame


def _wire_texts(m: Moment) -> list[str]:
    """Labels of the wire lane, longest first."""
    p, busy = m.parts, float(m.result.transfer.seconds)
    short = f"<b>Wire</b>  {bytes_text(m.layer_bytes)} a {p.kind}"
    each = f"{time_text(busy / p.total)} each"
    tail = f"{short}, {each} = {time_text(busy)}" if _alike(m) else f"{short} on average, {each}, {time_text(busy)} in all"
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


def _alike(m: Moment) -> bool:
    """Whether every part takes as long on the wire."""
    took = m.parts.wire_end - m.parts.wire_start
    return bool(took.max() - took.min() <= 2e-3 * took.max())


def _uniform(ends: np.ndarray[Any, Any]) -> bool:
    if len(ends) < 3:
        return True
    each = float(ends[-1]) / len(ends)
    return bool(np.abs(np.diff(ends) - each).max() <= 2e-3 * each)


def timeline_figure(*, magnified: bool, both: bool = False) -> Figure:
    """The figure over `timeline_table`; `both` where decode, too, runs layer by layer."""
    drawn = {"magnified": magnified, "both": both, "cells": MAX_DRAWN, "scale": SCALE}
    wide, narrow = (layout_of(prefix, size, **drawn) for prefix, size in (("w", 13), ("n", 12)))
    return Figure("timeline", wide, narrow, at("answer.text"))
