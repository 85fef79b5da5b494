"""Flow pictures of a turn: four designs in one geometry, so that the eye compares shape.

KV edges are wider for more bytes, by their cube root; text edges are thin; an idle node is dotted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from app.charts.arrows import thick_arrow, thin_arrow
from app.charts.marks import Label, labels, outlined
from app.charts.scale import NARROW, WIDE
from app.charts.spec import Figure, Spec, Table, at, colour
from app.charts.turn import DRAWN, TITLES, Key, TurnRow
from kvmodel.compare import same
from kvmodel.designs import Design
from kvmodel.display import bytes_text, count_text

MIN_EDGE = 1.0
"""Pixels of the thinnest KV edge."""
EDGE_ROOT = 3
"""Eight times the bytes are twice the width: megabytes beside gigabytes keep widths that the eye tells apart."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """Where the four pictures and their nodes stand, in pixels of a layout."""

    width: int
    columns: int
    cell: int
    gap: int
    height: int
    most: float
    """Pixels of the widest KV edge."""
    apart: int
    """Pixels from the middle of a pair of the pool's edges to either."""
    pair: tuple[int, int]
    """Pixels from the inner end of a node, and from the pool's, to the middle of a pair."""
    away: int
    """Pixels from the pool's outer edges to what they carry in words."""

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


GEOMETRY = {"w": Geometry(WIDE, 4, 262, 24, 238, 22.0, 15, (22, 24), 22), "n": Geometry(NARROW, 2, 170, 18, 244, 12.0, 10, (14, 20), 12)}

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


def _copies(design: Design, edge: tuple[str, str], edges: Sequence[tuple[str, str]]) -> int:
    """How often each byte crosses an edge, where ranks hold copies of heads; 1 where that is no whole number."""
    source, target = edge
    if "pool" in edge:  # once into it, then as often as it is read on the other side
        once = _moved(design, ("prefill" if target == "decode" else "decode", "pool")) if source == "pool" else 0.0
        times = _moved(design, edge) / once if once else 1.0
    else:
        times = sum(_moved(design, one) for one in edges) / design.unique_bytes if design.unique_bytes else 1.0
    return round(times) if abs(times - round(times)) < 1e-6 and times > 1 else 1


def _moved(design: Design, edge: tuple[str, str]) -> float:
    return float(sum(e.bytes for e in design.edges if (e.source, e.target) == edge))


def _flow_frame(row: TurnRow, largest: float) -> dict[str, Any]:
    frame: dict[str, Any] = {}
    for index, key in enumerate(DRAWN):
        design = row.by_key[key]
        frame[f"f{index}.bytes"] = f"<b>{bytes_text(design.unique_bytes)}</b>"
        frame |= _node_texts(index, key, design)
        for number, edge in enumerate(_EDGES[key]):
            moved, copies = _moved(design, edge), _copies(design, edge, _EDGES[key])
            often = f"{copies}×" if copies > 1 else ""
            frame[f"f{index}.e{number}"] = f"{_way(edge)}{often}{bytes_text(moved / copies)}" if moved else ""
            if "pool" in edge:  # beside its edges a phone has no room for how often
                frame[f"n{index}.e{number}"] = f"{_way(edge)}{bytes_text(moved)}" if moved else ""
    return frame | {f"{prefix}.edges": edges_path(geometry, row, largest) for prefix, geometry in GEOMETRY.items()}


def _node_texts(index: int, key: Key, design: Design) -> dict[str, Any]:
    local = _is_local(key, design)
    computed = f"prefills {count_text(design.prefill_tokens)}"
    decode = {"recompute": "KV unused", "pull-back": "lends its KV", "pool": "reads the rest"}.get(key[0], "lends its KV")
    return {
        f"f{index}.prefill": "idle" if local else computed,
        f"f{index}.decode": computed if local else decode,
        **(_node_looks(local) if key[0] == "sticky" else {}),
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


def _way(edge: tuple[str, str]) -> str:
    """Into or out of the pool, as a sign before the bytes: its edges stand in pairs."""
    return "↓\u2009" if edge[1] == "pool" else "↑\u2009" if edge[0] == "pool" else ""


def _ends(geometry: Geometry, index: int, source: str, target: str) -> tuple[tuple[float, float], tuple[float, float]]:
    """Where an edge starts and ends; opposite edges keep apart."""
    a, b = geometry.box(index, source), geometry.box(index, target)
    if {source, target} == {"prefill", "decode"}:
        both = DRAWN[index][0] in ("pull-back", "sticky")
        y = (a[1] + a[3]) / 2 + ((-16 if source == "prefill" else 16) if both else 0)
        return ((a[2] + 2, y), (b[0] - 2, y)) if source == "prefill" else ((a[0] - 2, y), (b[2] + 2, y))
    side = -1 if "prefill" in (source, target) else 1
    px = {"prefill": geometry.box(index, "prefill")[2], "decode": geometry.box(index, "decode")[0]}["prefill" if side < 0 else "decode"]
    outer = geometry.apart if target == ("pool" if side < 0 else "decode") else -geometry.apart
    outer = outer if side < 0 else -outer
    pool = geometry.box(index, "pool")
    top = (px + side * geometry.pair[0] - outer, geometry.box(index, "prefill")[3] + 3)
    low = ((pool[0] + geometry.pair[1] if side < 0 else pool[2] - geometry.pair[1]) - outer, pool[1] - 3)
    return (top, low) if target == "pool" else (low, top)


def edge_width(geometry: Geometry, share: float) -> float:
    """Pixels of a KV edge with this share of the most bytes."""
    return max(MIN_EDGE, float(geometry.most * share ** (1 / EDGE_ROOT)))


def _arrow(geometry: Geometry, index: int, source: str, target: str, share: float) -> str:
    """An arrow whose width says its bytes, a `share` of the most."""
    return thick_arrow(*_ends(geometry, index, source, target), edge_width(geometry, share))


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
    for number, (source, target) in enumerate(_EDGES[key]):
        (x0, y0), (x1, y1) = _ends(g, index, source, target)
        mx, my = (x0 + x1) / 2, (y0 + y1) / 2
        if key[0] == "pool":
            notes.append(_pool_note(g, index, number, size))
        else:
            shift = -32 if key[0] == "recompute" else -23 if source == "prefill" else 23
            notes.append(_note(at(f"f{index}.e{number}"), mx, my + shift, "wire_text", min(size, 12)))
    if key[0] == "sticky":
        boxes = g.box(index, "prefill"), g.box(index, "decode")
        notes.append(_note(at(f"f{index}.nothing"), (boxes[0][2] + boxes[1][0]) / 2, boxes[0][1] + 25, "muted", size))
    return notes


def _pool_note(g: Geometry, index: int, number: int, size: int) -> Label:
    """What an edge of the pool carries: beside its pair, into the pool above out of it."""
    small = min(size, 12) if g.columns == 4 else 10
    edge = _EDGES[DRAWN[index]][number]
    side, outer = (-1, ("prefill", "pool")) if "prefill" in edge else (1, ("pool", "decode"))
    ends = sorted(_ends(g, index, *outer), key=lambda end: end[1])
    along = 0.46 if edge[1] == "pool" else 0.82
    x, y = (a + along * (b - a) for a, b in zip(*ends, strict=True))
    shown = f"{'f' if g.columns == 4 else 'n'}{index}.e{number}"
    return _note(at(shown), x + side * g.away, y, "wire_text", small, "left" if side > 0 else "right")


def _text_edges(g: Geometry, index: int, key: Key) -> str:
    """The two thin arrows of a picture: where text travels."""
    agent = g.box(index, "agent")
    target = "decode" if key[0] == "sticky" else "prefill"
    box, back = g.box(index, target), g.box(index, "decode")
    down_x = agent[0] + 0.25 * (agent[2] - agent[0]) if target == "prefill" else agent[2] - 0.32 * (agent[2] - agent[0])
    into = (box[0] + box[2]) / 2 - (6 if target == "decode" else 0)
    out = (back[0] + back[2]) / 2 + 8
    return thin_arrow(down_x, agent[3] + 2, into, box[1] - 3) + thin_arrow(
        out, back[1] - 2, agent[2] - 0.12 * (agent[2] - agent[0]), agent[3] + 3
    )


def _note(text: Spec, x: float, y: float, fill: str, size: int, anchor: str = "center") -> Label:
    place = {"left": "middle right", "right": "middle left", "center": "middle center"}[anchor]
    return Label(text, round(x, 1), round(y, 1), fill, size, place)
