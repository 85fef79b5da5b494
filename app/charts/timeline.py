"""The request drawn to scale: prefill against the wire, part by part, and a magnifier on the last ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.charts.scale import NARROW, WIDE, plain_time, round_ticks, text_width, ticks_between
from app.charts.spec import Figure, Spec, Table, at, colour, decimals, four_digits
from kvmodel.display import bytes_text, count_text, share_text, time_text
from kvmodel.parts import Parts
from kvmodel.plan import Plan
from kvmodel.results import Evaluation

SMALL_SHARE = 0.03
"""Below this share of the first token's time the exposed transfer gets a magnifier."""

_PANEL, _MAGNIFIED, _HEIGHT = 270, 470, {False: 296, True: 478}
_BAR1, _PREFILL, _WIRE, _DECODE = (33, 22), (133, 18), (179, 18), (221, 18)
_ZOOM_PREFILL, _ZOOM_WIRE, _ZOOM_DECODE = (343, 22), (377, 22), (411, 22)
_HATCH = {"shape": "/", "fillmode": "overlay", "fgcolor": colour("bg"), "fgopacity": 0.55, "size": 5, "solidity": 0.22}


@dataclass(frozen=True, slots=True)
class Moment:
    """One position of the slider: what there is to draw."""

    plan: Plan
    result: Evaluation
    parts: Parts
    output_tokens: int
    layer_bytes: float
    """Bytes of one part on the wire, mean."""

    @property
    def ready(self) -> float:
        """When prefill ends."""
        return float(self.result.prefill.seconds)

    @property
    def decode_start(self) -> float:
        """When decode's first step begins."""
        return self.ready + float(self.result.gap_seconds)

    @property
    def reach(self) -> float:
        """Right edge of the middle strip."""
        return 1.045 * max(float(self.result.ttft_seconds), self.decode_start + float(self.result.decode.step_seconds))


def is_small(result: Evaluation) -> bool:
    """Whether the exposed transfer is too small to see beside the first token's time."""
    return 0 < result.transfer.exposed_seconds < SMALL_SHARE * result.ttft_seconds


def timeline_table(moments: Sequence[Moment], *, magnified: bool) -> Table:
    """Columns of the figure over the slider's positions."""
    frames = [_frame(m, magnified) for m in moments]
    return {name: [frame[name] for frame in frames] for name in frames[0]}


def _frame(m: Moment, magnified: bool) -> dict[str, Any]:
    r = m.result
    frame: dict[str, Any] = {
        "t.request": four_digits([0, max(r.request_seconds, m.reach)]),
        "t.reach": four_digits([0, m.reach]),
        "t.strip": four_digits([[m.ready], [r.gap_seconds], [max(0.0, r.request_seconds - m.decode_start)], [m.decode_start]]),
        "t.ready": four_digits(m.ready),
        "t.first": four_digits(r.ttft_seconds),
        "t.whole": f"<b>Whole request</b>, {time_text(r.request_seconds)} drawn to scale",
        "t.first_text": f"<b>first token {time_text(r.ttft_seconds)}</b>",
        "t.first_anchor": "right" if r.ttft_seconds > 0.3 * m.reach else "left",
        "t.decode": four_digits([[m.decode_start], [r.decode.step_seconds], [m.decode_start + r.decode.step_seconds], [m.reach]]),
        "t.prefill_hover": _prefill_hover(m),
        "t.wire_hover": f"KV of a {m.parts.kind}<br>{bytes_text(m.layer_bytes)} on the wire<extra></extra>",
    }
    frame |= _lanes(m)
    frame["t.wedge"] = _wedge(0.0, m.reach / max(r.request_seconds, m.reach), 44, 72, _PANEL)
    for prefix, width, size in (("w", WIDE, 13), ("n", NARROW, 12)):
        frame |= {f"{prefix}.{name}": value for name, value in _sized(m, width, size).items()}
    if magnified:
        frame |= _zoom(m)
    return frame


def _prefill_hover(m: Moment) -> str:
    each = m.ready / m.parts.total
    return f"{m.parts.kind} %{{customdata}} of {count_text(m.parts.total)}<br>{time_text(each)} of prefill<extra></extra>"


def _lanes(m: Moment) -> dict[str, Any]:
    """Cells of the prefill and wire lanes; cells on the wire after prefill ends are exposed."""
    p = m.parts
    starts = np.concatenate([[0.0], p.compute_end[:-1]])
    hidden_end = np.minimum(p.wire_end, m.ready)
    hidden = hidden_end > p.wire_start
    exposed_start = np.maximum(p.wire_start, m.ready)
    exposed = p.wire_end > exposed_start * (1 + 1e-12)
    moves = m.result.kv.wire_bytes > 0
    cells = {"t.prefill_y": len(starts), "t.wire_y": int(hidden.sum()), "t.late_y": int(exposed.sum())}
    places = {"t.prefill_y": _PREFILL[0], "t.wire_y": _WIRE[0], "t.late_y": _WIRE[0]}
    return {
        **{name: [places[name]] * count for name, count in cells.items()},
        "t.prefill_base": four_digits(starts),
        "t.prefill_x": four_digits(p.compute_end - starts),
        "t.wire_base": four_digits(p.wire_start[hidden]) if moves else [],
        "t.wire_x": four_digits((hidden_end - p.wire_start)[hidden]) if moves else [],
        "t.late_base": four_digits(exposed_start[exposed]) if moves else [],
        "t.late_x": four_digits((p.wire_end - exposed_start)[exposed]) if moves else [],
    }


def _wedge(low: float, high: float, top: int, shoulder: int, bottom: int) -> str:
    a, b = decimals([low, min(high, 1.0)], 4)
    return f"M{a},{top}L{b},{top}L1,{shoulder}L1,{bottom}L0,{bottom}L0,{shoulder}Z"


def _sized(m: Moment, width: int, size: int) -> dict[str, Any]:
    """What depends on the pixels there are: gaps between cells, hatching, ticks, labels."""
    narrow, p = width == NARROW, m.parts
    pixel = m.reach / width
    cell = m.ready / len(p.compute_end) / pixel
    wire_cell = float(np.mean(p.wire_end - p.wire_start)) / pixel
    ticks = [t for t in round_ticks(m.reach, 5 if narrow else 9) if t < 0.97 * m.reach]
    step = ticks[0] if ticks else m.reach
    labels = _labels(m, width, size)
    return {
        "gap": 0.6 if cell >= 3 else 0,
        "wire_gap": 0.6 if wire_cell >= 3 else 0,
        "late_hatch": "/" if m.result.transfer.exposed_seconds / pixel >= 4 else "",
        "strip_hatch": "/" if m.result.gap_seconds / max(m.result.request_seconds, m.reach) * width >= 4 else "",
        "ticks": four_digits(ticks),
        "tick_text": [plain_time(t, step) for t in ticks],
        "tick_y": [252] * len(ticks),
        "decode_text": _decode_text(m, narrow),
        **labels,
    }


def _decode_text(m: Moment, narrow: bool) -> str:
    span = time_text(max(0.0, m.result.request_seconds - m.decode_start))
    return f"decode, {span}" if narrow else f"decode {count_text(m.output_tokens)} tokens, {span}"


def _labels(m: Moment, width: int, size: int) -> dict[str, Any]:
    """The lanes' labels, shortened until they do not meet the label of what is exposed."""
    p, r, narrow = m.parts, m.result, width == NARROW
    each = f", {time_text(m.ready / p.total)} each" if _uniform(p.compute_end) else ""
    drawn = f", drawn in {len(p.compute_end)} groups" if len(p.compute_end) < p.total else ""
    prefill = f"<b>Prefill</b>  {count_text(p.total)} {p.kind}s{each} = {time_text(m.ready)}{'' if narrow else drawn}"
    if r.kv.wire_bytes <= 0:
        return {"prefill": prefill, "wire": "<b>Wire</b>  nothing to move", "late": "", "late_x": 0.0, "late_anchor": "left"}
    busy = r.transfer.seconds
    tail = f"{bytes_text(m.layer_bytes)} a {p.kind}, {time_text(busy / p.total)} each = {time_text(busy)}"
    if m.plan.overlap == "serial":
        late = "" if narrow else ", all of it exposed"
        return {"prefill": prefill, "wire": f"<b>Wire</b>  {tail}{late}", "late": "", "late_x": 0.0, "late_anchor": "left"}
    late, x, anchor, room = _late_label(m, width, size)
    idle = share_text(max(0.0, 1 - busy / m.decode_start)) if busy < m.decode_start else ""
    texts = [f"<b>Wire</b>  {tail}; idle {idle} of the time"] if idle else []
    texts += [f"<b>Wire</b>  {tail}", f"<b>Wire</b>  {bytes_text(m.layer_bytes)} a {p.kind}", "<b>Wire</b>"]
    wire = next((text for text in texts if text_width(text, size) + 24 < room), texts[-1])
    return {"prefill": prefill, "wire": wire, "late": late, "late_x": four_digits(x), "late_anchor": anchor}


def _late_label(m: Moment, width: int, size: int) -> tuple[str, float, str, float]:
    """(label of the exposed part, where, its anchor, pixels left of it)."""
    exposed = float(m.result.transfer.exposed_seconds)
    if exposed <= 0:
        return "", 0.0, "left", width
    short = f"<b>exposed {time_text(exposed)}</b>"
    long = f"{short}: {count_text(m.parts.left)} {m.parts.kind}s have yet to cross when prefill ends"
    pixels, span = width / m.reach, exposed * width / m.reach
    middle = (m.ready + exposed / 2) * pixels
    for text in (long, short):
        half = text_width(text, size) / 2
        if 2 * half < span:
            return text, m.ready + exposed / 2, "center", middle - half
    if m.ready * pixels - 2 * half > 0.2 * width:
        return short + "\u2002", m.ready, "right", m.ready * pixels - 2 * half
    return short, m.ready + exposed, "right", (m.ready + exposed) * pixels - 2 * half


def _uniform(ends: np.ndarray[Any, Any]) -> bool:
    each = np.diff(ends, prepend=0.0)
    return bool(np.ptp(each[:-1]) <= 1e-3 * each.max()) if len(each) > 1 else True


def _zoom(m: Moment) -> dict[str, Any]:
    """The end of prefill, magnified until the exposed part is as wide as a label."""
    p, r = m.parts, m.result
    exposed = max(float(r.transfer.exposed_seconds), 1e-12)
    each = m.ready - float(p.compute_end[-2]) if len(p.compute_end) > 1 else m.ready
    serial = m.plan.overlap == "serial"
    low = max(0.0, m.ready - (2 * exposed if serial else 2.25 * each))
    high = max(m.ready + 1.4 * (exposed if serial else each), m.decode_start + 0.35 * (m.decode_start - low))
    span = high - low
    starts = np.concatenate([[0.0], p.compute_end[:-1]])
    show = np.flatnonzero(p.compute_end > low)
    base = np.maximum(starts[show], low)
    cross = np.flatnonzero((p.wire_end > low) & (p.wire_start < high) & (not serial))
    before = np.minimum(p.wire_end, m.ready)
    kept = cross[-4:][before[cross[-4:]] > p.wire_start[cross[-4:]]]
    last = [len(p.wire_end) - 1] if len(cross) else []
    number = p.total / len(p.compute_end)
    ticks = [t for t in ticks_between(low, high, 4) if low + 0.02 * span < t < high - 0.04 * span]
    step = span / 4
    step = ticks[1] - ticks[0] if len(ticks) > 1 else step
    late_start = m.ready if serial else max(float(p.wire_start[-1]), m.ready)
    late_end = m.ready + float(r.transfer.exposed_seconds)
    name = "all KV" if serial else f"KV {p.total}"
    return {
        "z.range": [round(low, 9), round(high, 9)],
        "z.title": f"<b>The last {p.kind if not serial else 'moments of prefill'}</b>, magnified {max(1, round(m.reach / span))}×",
        "z.wedge": _wedge_from(low / m.reach, high / m.reach),
        "z.prefill_y": [_ZOOM_PREFILL[0]] * len(show),
        "z.wire_y": [_ZOOM_WIRE[0]] * len(kept),
        "z.prefill_base": decimals(base, 9),
        "z.prefill_x": decimals(p.compute_end[show] - base, 9),
        "z.prefill_text": [f"{p.kind} {round((i + 1) * number)}" for i in show] if number == 1 else ["" for _ in show],
        "z.wire_base": decimals(np.maximum(p.wire_start[kept], low), 9),
        "z.wire_x": decimals(before[kept] - np.maximum(p.wire_start[kept], low), 9),
        "z.wire_end": decimals(p.wire_end[kept], 9),
        "z.wire_text": [f" KV {i + 1}" if number == 1 and i + 1 < p.total else "" for i in kept],
        "z.late": [[round(late_start, 9)], [round(late_end - late_start, 9)]] if serial or last else [[], []],
        "z.late_end": round(late_end, 9),
        "w.late_text": f" <b>{name} has no compute to hide behind: {time_text(r.transfer.exposed_seconds)} exposed</b>",
        "n.late_text": f" <b>{name}: exposed</b>",
        "z.decode": [[round(m.decode_start, 9)], [round(max(0.0, high - m.decode_start), 9)]],
        "z.decode_start": round(m.decode_start, 9),
        "z.ticks": decimals(ticks, 9),
        "z.tick_text": [plain_time(t, step) for t in ticks],
        "z.tick_y": [446] * len(ticks),
    }


def _wedge_from(low: float, high: float) -> str:
    a, b = decimals([max(0.0, low), min(high, 1.0)], 4)
    return f"M{a},{_PANEL}L{b},{_PANEL}L1,298L1,{_MAGNIFIED}L0,{_MAGNIFIED}L0,298Z"


def timeline_figure(*, parts: int, magnified: bool) -> Figure:
    """The figure over `timeline_table`; `parts` is the number of cells of the prefill lane."""
    return Figure("timeline", _layout(parts, magnified, "w", 13), _layout(parts, magnified, "n", 12), at("answer.text"))


def _bar(axis: str, place: tuple[int, int], x: Spec, base: Spec, fill: str, **more: Any) -> Spec:
    centre, thickness = place
    marker = {"color": colour(fill), "line": {"width": more.pop("gap", 0), "color": colour("panel")}}
    if "hatch" in more:
        marker["pattern"] = {**_HATCH, "shape": more.pop("hatch")}
    return {
        "type": "bar",
        "orientation": "h",
        "xaxis": axis,
        "x": x,
        "base": base,
        "y": more.pop("y", [centre]),
        "width": thickness,
        "marker": marker,
        "hoverinfo": "skip",
        "cliponaxis": True,
        **more,
    }


def _layout(parts: int, magnified: bool, prefix: str, size: int) -> Spec:
    def own(name: str) -> Spec:
        return at(f"{prefix}.{name}")

    hover = {"hoverinfo": "all"}
    data = [
        _bar("x", _BAR1, at("t.strip", 0), 0, "prefill"),
        _bar("x", _BAR1, at("t.strip", 1), at("t.strip", 0), "exposed", hatch=own("strip_hatch")),
        _bar("x", _BAR1, at("t.strip", 2), at("t.strip", 3), "decode", opacity=0.55),
        _bar("x2", _PREFILL, at("t.prefill_x"), at("t.prefill_base"), "prefill", y=at("t.prefill_y"), gap=own("gap"), customdata=list(range(1, parts + 1)),
             hovertemplate=at("t.prefill_hover"), **hover),
        _bar("x2", _WIRE, at("t.wire_x"), at("t.wire_base"), "wire", y=at("t.wire_y"), gap=own("wire_gap"), hovertemplate=at("t.wire_hover"), **hover),
        _bar("x2", _WIRE, at("t.late_x"), at("t.late_base"), "exposed", y=at("t.late_y"), gap=own("wire_gap"), hatch=own("late_hatch"),
             hovertemplate=at("t.wire_hover"), **hover),
        _bar("x2", _DECODE, at("t.decode", 1), at("t.decode", 0), "decode"),
        _bar("x2", _DECODE, at("t.decode", 3), at("t.decode", 2), "decode", opacity=0.55),
        _words("x2", own("ticks"), own("tick_y"), own("tick_text"), "muted", size),
    ]  # fmt: skip
    notes = [
        _note(at("t.whole"), 10, size, "body", x=0.001),
        _note(own("decode_text"), 10, size, "decode_text", x=0.999, anchor="right"),
        _note("<b>To the first token</b>", 90, size, "body", x=0.009),
        _note(at("t.first_text"), 90, size, "ink", x=at("t.first"), ref="x2", anchor=at("t.first_anchor")),
        _note(own("prefill"), 112, size, "prefill_text", x=0.009),
        _note(own("wire"), 158, size, "wire_text", x=0.009),
        _note(own("late"), 158, size, "exposed_text", x=own("late_x"), ref="x2", anchor=own("late_anchor")),
        _note("<b>Decode</b>", 204, size, "decode_text", x=0.009),
    ]
    shapes = [
        _area(at("t.wedge")),
        _rule(at("t.ready"), 118, 240, "muted", dash="dot", width=1),
        _rule(at("t.first"), 102, 240, "ink", dash="solid", width=1.5),
    ]
    layout: dict[str, Any] = {
        "height": _HEIGHT[magnified],
        "margin": {"l": 0, "r": 0, "t": 8, "b": 0},
        "barmode": "overlay",
        "yaxis": {"range": [_HEIGHT[magnified] - 8, 0], "visible": False, "showgrid": False, "fixedrange": True},
        "xaxis": _hidden_axis(at("t.request")),
        "xaxis2": {**_hidden_axis(at("t.reach")), "overlaying": "x"},
    }
    if magnified:
        zoom_data, zoom_notes, zoom_shapes = _zoom_spec(prefix, size)
        data, notes, shapes = data + zoom_data, notes + zoom_notes, shapes + zoom_shapes
        layout["xaxis3"] = {**_hidden_axis(at("z.range")), "overlaying": "x"}
    return {"data": data, "layout": {**layout, "annotations": notes, "shapes": shapes}}


def _zoom_spec(prefix: str, size: int) -> tuple[list[Spec], list[Spec], list[Spec]]:
    data = [
        _bar("x3", _ZOOM_PREFILL, at("z.prefill_x"), at("z.prefill_base"), "prefill", y=at("z.prefill_y"), gap=1, text=at("z.prefill_text"),
             textposition="inside", insidetextanchor="middle", textfont={"size": size, "color": colour("bg")}, constraintext="both",
             textangle=0),
        _bar("x3", _ZOOM_WIRE, at("z.wire_x"), at("z.wire_base"), "wire", y=at("z.wire_y")),
        _bar("x3", _ZOOM_WIRE, at("z.late", 1), at("z.late", 0), "exposed", hatch="/"),
        _bar("x3", _ZOOM_DECODE, at("z.decode", 1), at("z.decode", 0), "decode"),
        _words("x3", at("z.wire_end"), at("z.wire_y"), at("z.wire_text"), "wire_text", size, "middle right"),
        _words("x3", at("z.ticks"), at("z.tick_y"), at("z.tick_text"), "muted", size),
    ]  # fmt: skip
    notes = [
        _note(at("z.title"), 314, size, "body", x=0.009),
        _note(at(f"{prefix}.late_text"), 377, size, "exposed_text", x=at("z.late_end"), ref="x3"),
        _note("first decode step ", 411, size, "decode_text", x=at("z.decode_start"), ref="x3", anchor="right"),
    ]
    return data, notes, [_area(at("z.wedge")), _rule(at("t.ready"), 328, 430, "muted", dash="dot", width=1, ref="x3")]


def _hidden_axis(limits: Spec) -> Spec:
    return {"range": limits, "visible": False, "fixedrange": True}


def _words(axis: str, x: Spec, y: Spec, text: Spec, fill: str, size: int, position: str = "middle center") -> Spec:
    return {
        "type": "scatter",
        "mode": "text",
        "xaxis": axis,
        "x": x,
        "y": y,
        "text": text,
        "textposition": position,
        "textfont": {"size": min(size, 12), "color": colour(fill)},
        "hoverinfo": "skip",
    }


def _note(text: Spec, y: int, size: int, fill: str, *, x: Spec, ref: str = "paper", anchor: Spec = "left") -> Spec:
    return {
        "text": text,
        "x": x,
        "xref": ref,
        "xanchor": anchor,
        "y": y,
        "yref": "y",
        "yanchor": "middle",
        "showarrow": False,
        "borderpad": 0,
        "font": {"size": size, "color": colour(fill)},
    }


def _area(path: Spec) -> Spec:
    return {"type": "path", "path": path, "xref": "paper", "yref": "y", "layer": "below", "line": {"width": 0}, "fillcolor": colour("panel")}


def _rule(x: Spec, top: int, bottom: int, fill: str, *, dash: str, width: float, ref: str = "x2") -> Spec:
    line = {"color": colour(fill), "width": width, "dash": dash}
    return {"type": "line", "xref": ref, "yref": "y", "x0": x, "x1": x, "y0": top, "y1": bottom, "line": line}
