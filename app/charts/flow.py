"""Flow pictures of a turn: four designs in one geometry, so that the eye compares shape.

KV edges are as wide as their bytes; text edges are thin; an idle node is dotted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from app.charts.marks import Label, labels, outlined
from app.charts.scale import NARROW, WIDE
from app.charts.spec import Figure, Spec, Table, at, colour
from app.charts.turn import DRAWN, TITLES, Key, TurnRow
from kvmodel.compare import same
from kvmodel.designs import Design
from kvmodel.display import bytes_text, count_text

MAX_EDGE, MIN_EDGE = 26.0, 2.0
"""Pixels of the widest and the thinnest KV edge."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """Where the four pictures and their nodes stand, in pixels of a layout."""

    width: int
    columns: int
    cell: int
    gap: int
    height: int

    def origin(self, index: int) -> tuple[float, float]:
        """Top left of a picture."""
        return (index % self.columns) * (self.cell + self.gap), (index // self.columns) * self.height

    def box(self, index: int, node: str) -> tuple[float, float, float, float]:
        """Left, top, right, bottom of a node."""
        x, y = self.origin(index)
        w = self.cell
        left, top, right, bottom = {
            "agent": (0.27 * w, 34, 0.73 * w, 64),
            "prefill": (0.0, 106, 0.385 * w, 156),
            "decode": (0.615 * w, 106, w, 156),
            "pool": (0.25 * w, 200, 0.75 * w, 230),
        }[node]
        return x + left, y + top, x + right, y + bottom


GEOMETRY = {"w": Geometry(WIDE, 4, 262, 24, 238), "n": Geometry(NARROW, 2, 170, 18, 244)}

_EDGES: dict[Key, tuple[tuple[str, str], ...]] = {
    ("recompute", True): (("prefill", "decode"),),
    ("pull-back", True): (("prefill", "decode"), ("decode", "prefill")),
    ("pool", True): (("prefill", "pool"), ("pool", "prefill"), ("decode", "pool"), ("pool", "decode")),
    ("sticky", True): (("prefill", "decode"), ("decode", "prefill")),
}


def flow_table(rows: Sequence[TurnRow], pinned: TurnRow | None = None) -> Table:
    """Columns of the flow pictures over a slider's positions; the widest edge is that of either where a turn is pinned."""
    least = largest_edge(pinned) if pinned else 0.0
    frames = [_flow_frame(row, max(largest_edge(row), least)) for row in rows]
    return {name: [frame[name] for frame in frames] for name in frames[0]}


def largest_edge(row: TurnRow) -> float:
    """Bytes on the edge that carries most, of all designs."""
    return max(max((e.bytes for e in row.by_key[key].edges), default=0.0) for key in DRAWN) or 1.0


def edges_path(geometry: Geometry, row: TurnRow, largest: float, unlike: TurnRow | None = None) -> str:
    """The arrows of all pictures, the widest that of `largest` bytes; without those that are as wide in the turn they are `unlike`."""
    found = [(index, key, edge) for index, key in enumerate(DRAWN) for edge in _EDGES[key]]
    arrows = []
    for index, key, edge in found:
        moved, other = _moved(row.by_key[key], edge), _moved(unlike.by_key[key], edge) if unlike else 0.0
        if moved and not same(moved, other):
            arrows.append(_arrow(geometry, index, *edge, moved / largest))
    return "".join(arrows) or "M0,0Z"


def _moved(design: Design, edge: tuple[str, str]) -> float:
    return float(sum(e.bytes for e in design.edges if (e.source, e.target) == edge))


def _flow_frame(row: TurnRow, largest: float) -> dict[str, Any]:
    frame: dict[str, Any] = {}
    for index, key in enumerate(DRAWN):
        design = row.by_key[key]
        frame[f"f{index}.bytes"] = f"<b>{bytes_text(design.unique_bytes)}</b>"
        frame |= _node_texts(index, key, design)
        for number, edge in enumerate(_EDGES[key]):
            moved = _moved(design, edge)
            frame[f"f{index}.e{number}"] = bytes_text(moved) if moved else ""
    return frame | {f"{prefix}.edges": edges_path(geometry, row, largest) for prefix, geometry in GEOMETRY.items()}


def _node_texts(index: int, key: Key, design: Design) -> dict[str, Any]:
    local = _is_local(key, design)
    computed = f"prefills {count_text(design.prefill_tokens)}"
    decode = {"recompute": "KV unused", "pull-back": "lends its KV", "pool": "reads the rest"}.get(key[0], "lends its KV")
    return {
        f"f{index}.prefill": "idle" if local else computed,
        f"f{index}.decode": computed if local else decode,
        **(_node_looks(local) if key[0] == "sticky" else {}),
        f"f{index}.inner": _inner_text(design) if key[0] == "pool" else "",
        f"f{index}.nothing": bytes_text(0) if local else "",
    }


def _is_local(key: Key, design: Design) -> bool:
    """Whether decode prefills by itself, so that the prefill node is idle."""
    return key[0] == "sticky" and not any(e.bytes for e in design.edges)


def _node_looks(idle: bool) -> dict[str, Any]:
    """How the one prefill node looks that can be idle."""
    return {
        "f.idle_fill": colour("clear" if idle else "soft_prefill"),
        "f.idle_line": colour("other" if idle else "prefill"),
        "f.idle_dash": "dot" if idle else "solid",
    }


def _inner_text(design: Design) -> str:
    """Label between the pool's two inner edges: what prefill reads and what decode wrote, once if they are equal."""
    moved = {(e.source, e.target): e.bytes for e in design.edges}
    texts = [bytes_text(moved[edge]) for edge in (("pool", "prefill"), ("decode", "pool")) if moved.get(edge)]
    return "<br>".join(dict.fromkeys(texts))


def _ends(geometry: Geometry, index: int, source: str, target: str) -> tuple[tuple[float, float], tuple[float, float]]:
    """Where an edge starts and ends; opposite edges keep apart."""
    a, b = geometry.box(index, source), geometry.box(index, target)
    shift = 13 if geometry.columns == 4 else 10
    if {source, target} == {"prefill", "decode"}:
        both = DRAWN[index][0] in ("pull-back", "sticky")
        y = (a[1] + a[3]) / 2 + ((-16 if source == "prefill" else 16) if both else 0)
        return ((a[2] + 2, y), (b[0] - 2, y)) if source == "prefill" else ((a[0] - 2, y), (b[2] + 2, y))
    side = -1 if "prefill" in (source, target) else 1
    px = {"prefill": geometry.box(index, "prefill")[2], "decode": geometry.box(index, "decode")[0]}["prefill" if side < 0 else "decode"]
    outer = shift if target == ("pool" if side < 0 else "decode") else -shift
    outer = outer if side < 0 else -outer
    pool = geometry.box(index, "pool")
    top = (px + side * 22 - outer, geometry.box(index, "prefill")[3] + 3)
    low = ((pool[0] + 24 if side < 0 else pool[2] - 24) - outer, pool[1] - 3)
    return (top, low) if target == "pool" else (low, top)


def _arrow(geometry: Geometry, index: int, source: str, target: str, share: float) -> str:
    """An arrow as wide as its bytes: 26 pixels for the most, never under 2."""
    (x0, y0), (x1, y1) = _ends(geometry, index, source, target)
    width = max(MIN_EDGE, share * MAX_EDGE)
    length = math.hypot(x1 - x0, y1 - y0)
    ux, uy = (x1 - x0) / length, (y1 - y0) / length
    half, wing = width / 2, max(5.5, width * 0.85)
    head = min(max(9.0, width * 0.8), 0.6 * length)
    bx, by = x1 - ux * head, y1 - uy * head
    points = [
        (x0 - uy * half, y0 + ux * half),
        (bx - uy * half, by + ux * half),
        (bx - uy * wing, by + ux * wing),
        (x1, y1),
        (bx + uy * wing, by - ux * wing),
        (bx + uy * half, by - ux * half),
        (x0 + uy * half, y0 - ux * half),
    ]
    return "M" + "L".join(f"{round(x, 1)},{round(y, 1)}" for x, y in points) + "Z"


def flow_figure() -> Figure:
    """Four pictures in one geometry, so that the eye compares shape."""
    return Figure("flow", _flow_layout("w"), _flow_layout("n"), at("answer.text"))


def _flow_layout(prefix: str) -> Spec:
    g = GEOMETRY[prefix]
    size = 13 if prefix == "w" else 12
    rows = -(-len(DRAWN) // g.columns)
    notes = [note for index, key in enumerate(DRAWN) for note in _picture_notes(g, index, key, size)]
    layout = {
        "height": rows * g.height + 4,
        "margin": {"l": 0, "r": 0, "t": 0, "b": 0},
        "xaxis": {"range": [-1, g.width + 1], "visible": False, "fixedrange": True},
        "yaxis": {"range": [rows * g.height + 2, -2], "visible": False, "showgrid": False, "fixedrange": True},
        "shapes": _shapes(g, prefix),
    }
    return {"data": [labels(notes)], "layout": layout}


def _shapes(g: Geometry, prefix: str) -> list[Spec]:
    """All that is drawn alike in one path: redrawing costs by shape."""
    every = range(len(DRAWN))
    sticky = next(i for i in every if DRAWN[i][0] == "sticky")
    rules = [(x, y + 1, x + g.cell, y + 1) for x, y in map(g.origin, every)]
    idle = {"fillcolor": at("f.idle_fill"), "line": {"color": at("f.idle_line"), "width": 1, "dash": at("f.idle_dash")}}
    return [
        outlined("".join(f"M{a:g},{b:g}L{c:g},{d:g}" for a, b, c, d in rules), "clear", "line", 2),
        outlined(_boxes(g, "agent", every), "clear", "line"),
        outlined(_boxes(g, "prefill", [i for i in every if i != sticky]), "soft_prefill", "prefill"),
        {**outlined(_boxes(g, "prefill", [sticky]), "clear", "other"), **idle},
        outlined(_boxes(g, "decode", every), "soft_decode", "decode"),
        outlined(_boxes(g, "pool", [i for i in every if DRAWN[i][0] == "pool"]), "soft_pool", "pool"),
        outlined("".join(_text_edges(g, index, DRAWN[index]) for index in every), "other", "other"),
        {**outlined(at(f"{prefix}.edges"), "wire", "wire", 0), "fillrule": "nonzero"},
    ]


def _boxes(g: Geometry, node: str, pictures: Iterable[int]) -> str:
    """Outlines of a node in some of the pictures."""
    boxes = (g.box(index, node) for index in pictures)
    return "".join(f"M{x0:g},{y0:g}L{x1:g},{y0:g}L{x1:g},{y1:g}L{x0:g},{y1:g}Z" for x0, y0, x1, y1 in boxes)


def _picture_notes(g: Geometry, index: int, key: Key, size: int) -> list[Label]:
    x, y = g.origin(index)
    middle = {
        node: ((g.box(index, node)[0] + g.box(index, node)[2]) / 2, g.box(index, node)[1])
        for node in ("agent", "prefill", "decode", "pool")
    }
    wide = g.columns == 4
    notes = [
        _note(f"<b>{TITLES[key]}</b>", x, y + (16 if wide else 11), "ink", size + (1 if wide else 0), "left"),
        _note(
            at(f"f{index}.bytes"),
            x + (g.cell if wide else 0),
            y + (16 if wide else 26),
            "wire_text",
            size + (1 if wide else 0),
            "right" if wide else "left",
        ),
        _note("<b>agent</b>", middle["agent"][0], middle["agent"][1] + 15, "muted", size),
    ]
    for node in ("prefill", "decode"):
        notes.append(_note(f"<b>{node}</b>", middle[node][0], middle[node][1] + 16, "ink", size))
        notes.append(_note(at(f"f{index}.{node}"), middle[node][0], middle[node][1] + 35, "body", 12 if wide else 10))
    if key[0] == "pool":
        notes.append(_note("<b>KV pool</b>", middle["pool"][0], middle["pool"][1] + 15, "ink", size))
    return notes + _edge_notes(g, index, key, size)


def _edge_notes(g: Geometry, index: int, key: Key, size: int) -> list[Label]:
    notes = []
    away, small = (17, min(size, 12)) if g.columns == 4 else (9, 10)
    for number, (source, target) in enumerate(_EDGES[key]):
        (x0, y0), (x1, y1) = _ends(g, index, source, target)
        mx, my = (x0 + x1) / 2, (y0 + y1) / 2
        if key[0] == "pool":
            if (source, target) in (("prefill", "pool"), ("pool", "decode")):
                side = -1 if source == "prefill" else 1
                notes.append(_note(at(f"f{index}.e{number}"), mx + side * away, my, "wire_text", small, "left" if side > 0 else "right"))
        else:
            shift = -32 if key[0] == "recompute" else -23 if source == "prefill" else 23
            notes.append(_note(at(f"f{index}.e{number}"), mx, my + shift, "wire_text", min(size, 12)))
    if key[0] == "pool":
        pool = g.box(index, "pool")
        notes.append(_note(at(f"f{index}.inner"), (pool[0] + pool[2]) / 2, pool[1] - 30, "wire_text", min(size, 12)))
    if key[0] == "sticky":
        boxes = g.box(index, "prefill"), g.box(index, "decode")
        notes.append(_note(at(f"f{index}.nothing"), (boxes[0][2] + boxes[1][0]) / 2, boxes[0][1] + 25, "muted", size))
    return notes


def _text_edges(g: Geometry, index: int, key: Key) -> str:
    """The two thin arrows of a picture: where text travels."""
    agent = g.box(index, "agent")
    target = "decode" if key[0] == "sticky" else "prefill"
    box, back = g.box(index, target), g.box(index, "decode")
    down_x = agent[0] + 0.25 * (agent[2] - agent[0]) if target == "prefill" else agent[2] - 0.32 * (agent[2] - agent[0])
    into = (box[0] + box[2]) / 2 - (6 if target == "decode" else 0)
    out = (back[0] + back[2]) / 2 + 8
    return _thin(down_x, agent[3] + 2, into, box[1] - 3) + _thin(out, back[1] - 2, agent[2] - 0.12 * (agent[2] - agent[0]), agent[3] + 3)


def _thin(x0: float, y0: float, x1: float, y1: float) -> str:
    length = math.hypot(x1 - x0, y1 - y0)
    ux, uy = (x1 - x0) / length, (y1 - y0) / length
    bx, by = x1 - 7 * ux, y1 - 7 * uy
    head = [(bx - 3 * uy, by + 3 * ux), (x1, y1), (bx + 3 * uy, by - 3 * ux)]
    return f"M{x0:.1f},{y0:.1f}L{bx:.1f},{by:.1f}M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in head) + "Z"


def _note(text: Spec, x: float, y: float, fill: str, size: int, anchor: str = "center") -> Label:
    place = {"left": "middle right", "right": "middle left", "center": "middle center"}[anchor]
    return Label(text, round(x, 1), round(y, 1), fill, size, place)
