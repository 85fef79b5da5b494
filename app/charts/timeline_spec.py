"""The timeline's traces and layout: one axis, rows in pixels from the top, positions from the table.

Redrawing costs by trace, by subplot and by mark, so all strips share one axis, bars alike share a trace, all
words are one trace, and the cells of a lane are one path.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from app.charts.marks import HATCH, Label, area, labels, rule
from app.charts.spec import Spec, at, colour

ZOOM_TOP = (298, 470)
"""Top and bottom of the magnifier's panel."""
HEIGHT = {False: 296, True: 478}
STRIP, PREFILL, WIRE, DECODE = (33, 22), (133, 18), (179, 18), (221, 18)
READY = ((118, 150), (168, 240))
"""Where the line at prefill's end runs: not through the words between the lanes."""
ZOOM_PREFILL, ZOOM_WIRE, ZOOM_DECODE = (343, 22), (377, 22), (411, 22)
"""Centre and thickness of each row."""
TICKS = {"w": 9, "n": 5}
"""Most ticks below the lanes, by layout."""
ZOOM_TICKS, ZOOM_PARTS, ZOOM_SENT = 7, 10, 4
"""Most ticks, parts of prefill and parts on the wire in the magnifier."""
Own = Callable[[str], Spec]
Text = tuple[Spec, Spec, int, str, Spec]
"""Text, x, y, colour, place."""
Block = tuple[Spec, Spec, tuple[int, int], str, float, Spec]
"""Length, base, row, colour, opacity, what is said of it under the pointer."""


def layout_of(prefix: str, size: int, *, magnified: bool, both: bool, cells: int, scale: int) -> Spec:
    """Traces and layout of one width; `prefix` names its columns, `cells` is the most there can be in a lane.

    `both` draws runs of decode's layers before the last one.
    """

    def own(name: str) -> Spec:
        return at(f"{prefix}.{name}")

    data = [_blocks(magnified), _exposed(magnified), *_lanes(own, cells)]
    data += [_boxes(DECODE, at("t.step_cells"), cells, 0, "decode")] if both else []
    words = [Label(text, x, y, fill, size, place) for text, x, y, fill, place in _texts(own, scale)]
    words += _ticks(f"{prefix}.tick", TICKS[prefix], 252)
    ready = [rule(at("t.ready"), top, bottom, "muted", 1, "dot") for top, bottom in READY]
    shapes = [area(at("t.wedge")), *ready, rule(at("t.first"), 102, 240, "ink", 1.5)]
    if magnified:
        words += [Label(text, x, y, fill, size, place) for text, x, y, fill, place in _zoom_texts(own, scale)]
        words += [
            *(Label(at(f"{prefix}.part_text", i), at("z.part_middle", i), ZOOM_PREFILL[0], "bg", size) for i in range(ZOOM_PARTS)),
            *(Label(at("z.sent_text", i), at("z.sent_end", i), ZOOM_WIRE[0], "wire_text", 12, "middle right") for i in range(ZOOM_SENT)),
            *_ticks("z.tick", ZOOM_TICKS, 446),
        ]
        shapes += [area(at("z.wedge")), rule(at("z.ready"), 328, 430, "muted", 1, "dot")]
    layout = {
        "height": HEIGHT[magnified],
        "margin": {"l": 0, "r": 0, "t": 8, "b": 0},
        "barmode": "overlay",
        "xaxis": {"range": [0, scale], "visible": False, "fixedrange": True},
        "yaxis": {"range": [HEIGHT[magnified] - 8, 0], "visible": False, "showgrid": False, "fixedrange": True},
        "shapes": shapes,
    }
    return {"data": [*data, labels(words)], "layout": layout}


def _blocks(magnified: bool) -> Spec:
    """Single bars, each in a colour of its own: the upper strip, the lanes, and the magnifier's parts and decode step."""

    def pair(name: str) -> tuple[Spec, Spec]:
        return at(name, 0), at(name, 1)

    rows: list[Block] = [
        (*pair("t.strip_prefill"), STRIP, "prefill", 1.0, at("t.prefill_says")),
        (*pair("t.strip_decode"), STRIP, "decode", 0.55, at("t.decode_says")),
        (*pair("t.prefill_bar"), PREFILL, "prefill", 1.0, at("t.part_says")),
        (*pair("t.wire_bar"), WIRE, "clear", 0.0, at("t.wire_says")),
        (*pair("t.fixed_bar"), WIRE, "other", 1.0, at("t.fixed_says")),
        (*pair("t.step"), DECODE, "decode", 1.0, at("t.step_says")),
        (*pair("t.later"), DECODE, "decode", 0.55, at("t.decode_says")),
    ]
    if magnified:
        rows += [(*pair("z.decode"), ZOOM_DECODE, "decode", 1.0, at("t.step_says"))]
        rows += [(at("z.part", i), at("z.part_base", i), ZOOM_PREFILL, "prefill", 1.0, at("t.part_says")) for i in range(ZOOM_PARTS)]
        rows += [(at("z.sent", i), at("z.sent_base", i), ZOOM_WIRE, "wire", 1.0, at("t.wire_says")) for i in range(ZOOM_SENT)]
    marker = {
        "color": [colour(fill) for *_, fill, _, _ in rows],
        "opacity": [opacity for *_, opacity, _ in rows],
        "line": {"width": [1 if row == ZOOM_PREFILL else 0 for _, _, row, *_ in rows], "color": colour("panel")},
    }
    lengths = [(length, base, row) for length, base, row, *_ in rows]
    return {**_bars(lengths), "marker": marker, "hovertemplate": [says for *_, says in rows]}


def _exposed(magnified: bool) -> Spec:
    """What nothing hides, hatched where it is wide enough to see: never told by colour alone."""
    rows = [(at(name, 0), at(name, 1), row) for name, row in (("t.strip_gap", STRIP), ("t.late_bar", WIRE))]
    hatch: list[Spec] = [at("t.strip_hatch"), at("t.late_hatch")]
    if magnified:
        rows.append((at("z.late", 0), at("z.late", 1), ZOOM_WIRE))
        hatch.append("/")
    marker = {"color": colour("exposed"), "pattern": {**HATCH, "shape": hatch}}
    return {**_bars(rows), "marker": marker, "hovertemplate": at("t.exposed_says")}


def _bars(rows: list[tuple[Spec, Spec, tuple[int, int]]]) -> Spec:
    return {
        "type": "bar",
        "orientation": "h",
        "x": [length for length, _, _ in rows],
        "base": [base for _, base, _ in rows],
        "y": [row[0] for _, _, row in rows],
        "width": [row[1] for _, _, row in rows],
    }


def _lanes(own: Own, cells: int) -> list[Spec]:
    return [
        _boxes(WIRE, at("t.wire_cells"), cells, own("wire_gap"), "wire"),
        _cuts(PREFILL, at("t.prefill_cuts"), own("gap"), cells),
        _cuts(WIRE, at("t.late_cuts"), own("wire_gap"), cells),
    ]


def _boxes(row: tuple[int, int], x: Spec, cells: int, gap: Spec, fill: str) -> Spec:
    """Boxes side by side as one filled path along their edges."""
    top, bottom = row[0] - row[1] / 2, row[0] + row[1] / 2
    return {**_path(x, [bottom, top] * cells + [bottom], "vh", gap), "fill": "toself", "fillcolor": colour(fill)}


def _cuts(row: tuple[int, int], x: Spec, width: Spec, cells: int) -> Spec:
    """Thin gaps between the cells of a bar: one line up and down, which passes from gap to gap outside the bar."""
    outside = row[1] / 2 + 1
    return _path(x, [row[0] - outside, row[0] + outside] * cells, "hv", width)


def _path(x: Spec, y: list[float], shape: str, width: Spec) -> Spec:
    line = {"shape": shape, "width": width, "color": colour("panel"), "simplify": False}
    return {"type": "scatter", "mode": "lines", "x": x, "y": y, "line": line, "hoverinfo": "skip"}


def _ticks(name: str, most: int, y: int) -> list[Label]:
    return [Label(at(f"{name}_text", i), at(f"{name}s", i), y, "muted", 12) for i in range(most)]


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


def _zoom_texts(own: Own, scale: int) -> list[Text]:
    return [
        (at("z.title"), round(0.008 * scale), 314, "body", "middle right"),
        (own("late_text"), at("z.late_end"), 377, "exposed_text", "middle right"),
        (at("z.decode_text"), at("z.decode_start"), 411, "decode_text", "middle left"),
    ]


def padded(values: list[Any], most: int, blank: Any) -> list[Any]:
    """The last `most` values, filled up with blanks: rows whose number changes keep their marks."""
    kept = values[-most:]
    return [*kept, *[blank] * (most - len(kept))]
