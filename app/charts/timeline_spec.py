"""The timeline's traces and layout: one axis, rows in pixels from the top, positions from the table.

Redrawing costs by trace and by subplot, so all strips share one axis and bars alike share a trace.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from app.charts.marks import HATCH, Label, area, labels, rule, words
from app.charts.spec import Spec, at, colour

ZOOM_TOP = (298, 470)
"""Top and bottom of the magnifier's panel."""
HEIGHT = {False: 296, True: 478}
STRIP, PREFILL, WIRE, DECODE = (33, 22), (133, 18), (179, 18), (221, 18)
ZOOM_PREFILL, ZOOM_WIRE, ZOOM_DECODE = (343, 22), (377, 22), (411, 22)
"""Centre and thickness of each row."""
MOST_ROW_LABELS = 24
Own = Callable[[str], Spec]
Text = tuple[Spec, Spec, int, str, Spec]
"""Text, x, y, colour, place."""
Block = tuple[str, tuple[int, int], str, float, Spec]
"""Column of (length, base), row, colour, opacity, hatching."""


def layout_of(prefix: str, size: int, *, magnified: bool, both: bool, cells: int, scale: int) -> Spec:
    """Traces and layout of one width; `prefix` names its columns, `cells` is the most there can be in a lane.

    `both` draws runs of decode's layers before the last one.
    """

    def own(name: str) -> Spec:
        return at(f"{prefix}.{name}")

    data = [_blocks(magnified), *_lanes(own, cells), _row(own("ticks"), 252, own("tick_text"), "muted", "middle center")]
    data += [_bar(DECODE, at("t.step_x"), at("t.step_base"), "decode", cells=cells)] if both else []
    texts = _texts(own, scale)
    shapes = [area(at("t.wedge")), rule(at("t.ready"), 118, 240, "muted", 1, "dot"), rule(at("t.first"), 102, 240, "ink", 1.5)]
    if magnified:
        data += _zoom(size)
        texts += _zoom_texts(own, scale)
        shapes += [area(at("z.wedge")), rule(at("z.ready"), 328, 430, "muted", 1, "dot")]
    layout = {
        "height": HEIGHT[magnified],
        "margin": {"l": 0, "r": 0, "t": 8, "b": 0},
        "barmode": "overlay",
        "xaxis": {"range": [0, scale], "visible": False, "fixedrange": True},
        "yaxis": {"range": [HEIGHT[magnified] - 8, 0], "visible": False, "showgrid": False, "fixedrange": True},
        "shapes": shapes,
    }
    return {"data": [*data, labels([Label(text, x, y, fill, size, place) for text, x, y, fill, place in texts])], "layout": layout}


def _blocks(magnified: bool) -> Spec:
    """Single bars: the upper strip, the decode row, and the magnifier's last part and decode step."""
    rows: list[Block] = [
        ("t.strip_prefill", STRIP, "prefill", 1.0, ""),
        ("t.strip_gap", STRIP, "exposed", 1.0, at("t.strip_hatch")),
        ("t.strip_decode", STRIP, "decode", 0.55, ""),
        ("t.prefill_bar", PREFILL, "prefill", 1.0, ""),
        ("t.late_bar", WIRE, "exposed", 1.0, at("t.late_hatch")),
        ("t.fixed_bar", WIRE, "other", 1.0, ""),
        ("t.step", DECODE, "decode", 1.0, ""),
        ("t.later", DECODE, "decode", 0.55, ""),
    ]
    if magnified:
        rows += [("z.late", ZOOM_WIRE, "exposed", 1.0, "/"), ("z.decode", ZOOM_DECODE, "decode", 1.0, "")]
    return {
        "type": "bar",
        "orientation": "h",
        "x": [at(name, 0) for name, *_ in rows],
        "base": [at(name, 1) for name, *_ in rows],
        "y": [place[0] for _, place, *_ in rows],
        "width": [place[1] for _, place, *_ in rows],
        "marker": {
            "color": [colour(fill) for _, _, fill, _, _ in rows],
            "opacity": [opacity for _, _, _, opacity, _ in rows],
            "pattern": {**HATCH, "shape": [hatch for *_, hatch in rows]},
        },
        "hoverinfo": "skip",
    }


def _lanes(own: Own, cells: int) -> list[Spec]:
    numbers = {"customdata": list(range(1, cells + 1)), "hovertemplate": at("t.prefill_hover")}
    return [
        _bar(WIRE, at("t.wire_x"), at("t.wire_base"), "wire", gap=own("wire_gap"), hovertemplate=at("t.wire_hover"), cells=cells),
        _cuts(PREFILL, at("t.prefill_cuts"), own("gap"), cells, **numbers),
        _cuts(WIRE, at("t.late_cuts"), own("wire_gap"), cells, hovertemplate=at("t.wire_hover")),
    ]


def _cuts(place: tuple[int, int], x: Spec, width: Spec, cells: int, **more: Any) -> Spec:
    """Thin gaps between the cells of a bar."""
    marker = {"symbol": "line-ns", "size": place[1], "line": {"width": width, "color": colour("panel")}}
    return {"type": "scatter", "mode": "markers", "x": x, "y": [place[0]] * cells, "marker": marker, **more}


def _texts(own: Own, scale: int) -> list[Text]:
    edge = round(0.008 * scale)
    return [
        (at("t.whole"), 0, 10, "body", "middle right"),
        (own("decode_text"), scale, 10, "decode_text", "middle left"),
        ("<b>To the first token</b>", edge, 90, "body", "middle right"),
        (own("prefill"), edge, 112, "prefill_text", "middle right"),
        (own("wire"), edge, 158, "wire_text", "middle right"),
        ("<b>Decode</b>", edge, 204, "decode_text", "middle right"),
        (at("t.first_text"), at("t.first"), 90, "ink", at("t.first_place")),
        (own("late"), own("late_x"), 158, "exposed_text", own("late_place")),
    ]


def _zoom(size: int) -> list[Spec]:
    inside = {"text": at("z.prefill_text"), "textposition": "inside", "insidetextanchor": "middle", "textangle": 0, "constraintext": "both"}
    font = {"size": size, "color": colour("bg")}
    return [
        _bar(ZOOM_PREFILL, at("z.prefill_x"), at("z.prefill_base"), "prefill", gap=1, cells=8, textfont=font, **inside),
        _bar(ZOOM_WIRE, at("z.wire_x"), at("z.wire_base"), "wire", cells=8),
        _row(at("z.wire_end"), 377, at("z.wire_text"), "wire_text", "middle right"),
        _row(at("z.ticks"), 446, at("z.tick_text"), "muted", "middle center"),
    ]


def _zoom_texts(own: Own, scale: int) -> list[Text]:
    return [
        (at("z.title"), round(0.008 * scale), 314, "body", "middle right"),
        (own("late_text"), at("z.late_end"), 377, "exposed_text", "middle right"),
        ("first decode step\u2002", at("z.decode_start"), 411, "decode_text", "middle left"),
    ]


def _bar(place: tuple[int, int], x: Spec, base: Spec, fill: str, **more: Any) -> Spec:
    centre, thickness = place
    marker: dict[str, Any] = {"color": colour(fill), "line": {"width": more.pop("gap", 0), "color": colour("panel")}}
    if "hatch" in more:
        marker["pattern"] = {**HATCH, "shape": more.pop("hatch")}
    hover = {} if "hovertemplate" in more else {"hoverinfo": "skip"}
    rows = [centre] * more.pop("cells", 1)
    return {"type": "bar", "orientation": "h", "x": x, "base": base, "y": rows, "width": thickness, "marker": marker, **hover, **more}


def _row(x: Spec, y: int, text: Spec, fill: str, place: str) -> Spec:
    return words(x, [y] * MOST_ROW_LABELS, text, fill, 12, place=place)
