"""An agent's next turn: five rows of designs as flow pictures in one geometry, and as bars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.charts.scale import NARROW, WIDE
from app.charts.spec import Figure, Spec, Table, at, colour, four_digits
from app.state import State
from kvmodel.display import bytes_text, count_text, shared_time_unit, time_text
from kvmodel.evaluate import amounts_of
from kvmodel.plan import plan_of
from kvmodel.results import pick
from kvmodel.turn import Design, designs
from kvmodel.verdict import Sentence, plain

TITLES = {
    ("recompute", True): "Recompute and ship",
    ("pull-back", True): "Pull back",
    ("pool", True): "Shared pool",
    ("pool", False): "Shared pool, cold",
    ("sticky", True): "Sticky to the holder",
}
DRAWN = (("recompute", True), ("pull-back", True), ("pool", True), ("sticky", True))
"""Designs drawn as pictures, most bytes first."""
BARS = (*DRAWN[:3], ("pool", False), DRAWN[3])
MAX_EDGE, MIN_EDGE = 26.0, 2.0
SAME = 0.10
"""First tokens within this share of each other count as equal."""

Key = tuple[str, bool]


@dataclass(frozen=True, slots=True)
class TurnRow:
    """All designs at one position of a slider."""

    history: int
    delta: int
    by_key: dict[Key, Design]


def turn_rows(state: State, field: str, values: Sequence[int]) -> list[TurnRow]:
    """Every design at each value of a field of the turn."""
    plan, amounts = plan_of(state.scenario), amounts_of(state.scenario)
    column = np.asarray(values, dtype=np.int64)
    history = column if field == "history_tokens" else np.full(column.shape, state.turn.history_tokens)
    delta = column if field == "delta_tokens" else np.full(column.shape, state.turn.delta_tokens)
    found = designs(plan, amounts, state.turn, history=history, delta=delta)
    full = [broadcast(design, column.shape) for design in found]
    return [TurnRow(int(history[i]), int(delta[i]), {(d.id, d.warm): pick(d, i) for d in full}) for i in range(len(values))]


def broadcast(node: Any, shape: tuple[int, ...]) -> Any:
    """A design whose numbers all have the swept shape."""
    if isinstance(node, tuple):
        return tuple(broadcast(item, shape) for item in node)
    if hasattr(node, "__dataclass_fields__"):
        return type(node)(**{name: broadcast(getattr(node, name), shape) for name in node.__dataclass_fields__})
    return node if isinstance(node, str | bool) else np.broadcast_to(np.asarray(node), shape)


def turn_sentence(row: TurnRow) -> Sentence:
    """The answer: what keeping the history where it is saves."""
    all_ship, kept, sticky = row.by_key[DRAWN[0]], row.by_key["pull-back", True], row.by_key["sticky", True]
    times = [row.by_key[key].ttft_seconds for key in DRAWN]
    if max(times) - min(times) < SAME * max(times):
        spread = time_text(max(times) - min(times))
        return ((f"With {count_text(row.delta)} new of {count_text(row.history + row.delta)} tokens, all four designs finish within {spread}; sticky moves the least.", ""),)  # fmt: skip
    best = min(kept, row.by_key["pool", True], key=lambda d: d.ttft_seconds)
    if best.unique_bytes >= 0.98 * all_ship.unique_bytes and sticky.unique_bytes == 0:
        return (
            ("Sticky moves ", ""),
            (bytes_text(0), "wire"),
            (f", but its neighbours wait {time_text(sticky.stall_seconds)} for each turn.", ""),
        )
    unit = shared_time_unit(all_ship.ttft_seconds, best.ttft_seconds)
    return (
        ("Keep the history where it is: moving only what is new cuts ", ""),
        (f"{bytes_text(all_ship.unique_bytes)} to {bytes_text(best.unique_bytes)}", "wire"),
        (f" and the first token from {time_text(all_ship.ttft_seconds, unit)} to {time_text(best.ttft_seconds, unit)}.", ""),
    )


# ---- flow pictures ---------------------------------------------------------------------------------


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


def flow_table(rows: Sequence[TurnRow]) -> Table:
    """Columns of the flow pictures over a slider's positions."""
    frames = [_flow_frame(row) for row in rows]
    return {name: [frame[name] for frame in frames] for name in frames[0]}


def _flow_frame(row: TurnRow) -> dict[str, Any]:
    largest = max(max((e.bytes for e in row.by_key[key].edges), default=0.0) for key in DRAWN) or 1.0
    frame: dict[str, Any] = {}
    for index, key in enumerate(DRAWN):
        design = row.by_key[key]
        frame[f"f{index}.bytes"] = f"<b>{bytes_text(design.unique_bytes)}</b>"
        frame |= _node_texts(index, key, design)
        for number, (source, target) in enumerate(_EDGES[key]):
            moved = sum(e.bytes for e in design.edges if (e.source, e.target) == (source, target))
            frame[f"f{index}.e{number}"] = bytes_text(moved) if moved else ""
            for prefix, geometry in GEOMETRY.items():
                frame[f"{prefix}{index}.e{number}"] = _arrow(geometry, index, source, target, moved / largest) if moved else "M0,0Z"
    return frame


def _node_texts(index: int, key: Key, design: Design) -> dict[str, Any]:
    local = key[0] == "sticky" and not any(e.bytes for e in design.edges)
    computed = f"prefills {count_text(design.prefill_tokens)}"
    decode = {"recompute": "KV unused", "pull-back": "lends its KV", "pool": "reads the rest"}.get(key[0], "lends its KV")
    return {
        f"f{index}.prefill": "idle" if local else computed,
        f"f{index}.decode": computed if local else decode,
        f"f{index}.prefill_fill": colour("clear") if local else colour("soft_prefill"),
        f"f{index}.prefill_line": colour("other") if local else colour("prefill"),
        f"f{index}.prefill_dash": "dot" if local else "solid",
        f"f{index}.inner": _inner_text(design) if key[0] == "pool" else "",
        f"f{index}.nothing": bytes_text(0) if local else "",
    }


def _inner_text(design: Design) -> str:
    """Label between the pool's two inner edges: what prefill reads and what decode wrote, once if they are equal."""
    moved = {(e.source, e.target): e.bytes for e in design.edges}
    texts = [bytes_text(moved[edge]) for edge in (("pool", "prefill"), ("decode", "pool")) if moved.get(edge)]
    return "<br>".join(dict.fromkeys(texts))


def _ends(geometry: Geometry, index: int, source: str, target: str) -> tuple[tuple[float, float], tuple[float, float]]:
    """Where an edge starts and ends; opposite edges keep apart."""
    a, b = geometry.box(index, source), geometry.box(index, target)
    shift = 8 if geometry.columns == 4 else 7
    if {source, target} == {"prefill", "decode"}:
        both = DRAWN[index][0] in ("pull-back", "sticky")
        y = (a[1] + a[3]) / 2 + ((-11 if source == "prefill" else 11) if both else 0)
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
    shapes: list[Spec] = []
    notes: list[Note] = []
    for index, key in enumerate(DRAWN):
        shapes += _picture_shapes(g, prefix, index, key)
        notes += _picture_notes(g, index, key, size)
    layout = {
        "height": rows * g.height + 4,
        "margin": {"l": 0, "r": 0, "t": 0, "b": 0},
        "xaxis": {"range": [-1, g.width + 1], "visible": False, "fixedrange": True},
        "yaxis": {"range": [rows * g.height + 2, -2], "visible": False, "showgrid": False, "fixedrange": True},
        "shapes": shapes,
    }
    return {"data": [_labels(notes)], "layout": layout}


def _labels(notes: Sequence[Note]) -> Spec:
    """All labels in one trace: far cheaper to redraw than annotations."""
    return {
        "type": "scatter",
        "mode": "text",
        "x": [note.x for note in notes],
        "y": [note.y for note in notes],
        "text": [note.text for note in notes],
        "textposition": [note.place for note in notes],
        "textfont": {"size": [note.size for note in notes], "color": [colour(note.fill) for note in notes]},
        "hoverinfo": "skip",
        "cliponaxis": False,
    }


def _picture_shapes(g: Geometry, prefix: str, index: int, key: Key) -> list[Spec]:
    x, y = g.origin(index)
    rule = {"type": "line", "x0": x, "x1": x + g.cell, "y0": y + 1, "y1": y + 1, "line": {"color": colour("line"), "width": 2}}
    boxes = [
        _rect(g.box(index, "agent"), colour("clear"), colour("line"), "solid"),
        _rect(g.box(index, "prefill"), at(f"f{index}.prefill_fill"), at(f"f{index}.prefill_line"), at(f"f{index}.prefill_dash")),
        _rect(g.box(index, "decode"), colour("soft_decode"), colour("decode"), "solid"),
    ]
    if key[0] == "pool":
        boxes.append(_rect(g.box(index, "pool"), colour("soft_pool"), colour("pool"), "solid"))
    edges = [
        {"type": "path", "path": at(f"{prefix}{index}.e{n}"), "fillcolor": colour("wire"), "line": {"width": 0}}
        for n in range(len(_EDGES[key]))
    ]
    return [rule, *boxes, *_text_edges(g, index, key), *edges]


def _rect(box: tuple[float, float, float, float], fill: Spec, line: Spec, dash: Spec) -> Spec:
    return {
        "type": "rect",
        "x0": box[0],
        "y0": box[1],
        "x1": box[2],
        "y1": box[3],
        "fillcolor": fill,
        "line": {"color": line, "width": 1, "dash": dash},
    }


def _picture_notes(g: Geometry, index: int, key: Key, size: int) -> list[Note]:
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


def _edge_notes(g: Geometry, index: int, key: Key, size: int) -> list[Note]:
    notes = []
    for number, (source, target) in enumerate(_EDGES[key]):
        (x0, y0), (x1, y1) = _ends(g, index, source, target)
        mx, my = (x0 + x1) / 2, (y0 + y1) / 2
        if key[0] == "pool":
            if (source, target) in (("prefill", "pool"), ("pool", "decode")):
                side = -1 if source == "prefill" else 1
                notes.append(
                    _note(at(f"f{index}.e{number}"), mx + side * 9, my, "wire_text", min(size, 12), "left" if side > 0 else "right")
                )
        else:
            shift = -32 if key[0] == "recompute" else -11 if source == "prefill" else 11
            notes.append(_note(at(f"f{index}.e{number}"), mx, my + shift, "wire_text", min(size, 12)))
    if key[0] == "pool":
        pool = g.box(index, "pool")
        notes.append(_note(at(f"f{index}.inner"), (pool[0] + pool[2]) / 2, pool[1] - 30, "wire_text", min(size, 12)))
    if key[0] == "sticky":
        boxes = g.box(index, "prefill"), g.box(index, "decode")
        notes.append(_note(at(f"f{index}.nothing"), (boxes[0][2] + boxes[1][0]) / 2, boxes[0][1] + 25, "muted", size))
    return notes


def _text_edges(g: Geometry, index: int, key: Key) -> list[Spec]:
    agent = g.box(index, "agent")
    target = "decode" if key[0] == "sticky" else "prefill"
    box, back = g.box(index, target), g.box(index, "decode")
    down_x = agent[0] + 0.25 * (agent[2] - agent[0]) if target == "prefill" else agent[2] - 0.32 * (agent[2] - agent[0])
    into = (box[0] + box[2]) / 2 - (6 if target == "decode" else 0)
    out = (back[0] + back[2]) / 2 + 8
    return [_line(down_x, agent[3] + 2, into, box[1] - 3), _line(out, back[1] - 2, agent[2] - 0.12 * (agent[2] - agent[0]), agent[3] + 3)]


def _line(x0: float, y0: float, x1: float, y1: float) -> Spec:
    """A thin arrow: where text travels."""
    length = math.hypot(x1 - x0, y1 - y0)
    ux, uy = (x1 - x0) / length, (y1 - y0) / length
    bx, by = x1 - 7 * ux, y1 - 7 * uy
    head = [(bx - 3 * uy, by + 3 * ux), (x1, y1), (bx + 3 * uy, by - 3 * ux)]
    path = f"M{x0:.1f},{y0:.1f}L{bx:.1f},{by:.1f}M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in head) + "Z"
    return {"type": "path", "path": path, "fillcolor": colour("other"), "line": {"width": 1, "color": colour("other")}}


@dataclass(frozen=True, slots=True)
class Note:
    """A label of the flow pictures."""

    text: Spec
    x: float
    y: float
    fill: str
    size: int
    place: str


def _note(text: Spec, x: float, y: float, fill: str, size: int, anchor: str = "center") -> Note:
    place = {"left": "middle right", "right": "middle left", "center": "middle center"}[anchor]
    return Note(text, round(x, 1), round(y, 1), fill, size, place)


# ---- bars ------------------------------------------------------------------------------------------


def bars_table(rows: Sequence[TurnRow]) -> Table:
    """Columns of the bars over a slider's positions."""
    table: Table = {f"t.{name}": [] for name in ("prefill", "wait", "wait_base", "step", "step_base", "ttft", "ttft_x", "bytes", "bytes_text", "range", "narrow", "brange", "hatch")}  # fmt: skip
    for row in rows:
        found = [row.by_key[key] for key in BARS]
        totals = [d.ttft_seconds for d in found]
        unit = shared_time_unit(*totals)
        table["t.prefill"].append(four_digits([d.prefill_seconds for d in found]))
        table["t.wait"].append(four_digits([max(0.0, d.wait_seconds) for d in found]))
        table["t.wait_base"].append(four_digits([d.prefill_seconds for d in found]))
        table["t.step"].append(four_digits([d.step_seconds for d in found]))
        table["t.step_base"].append(four_digits([d.prefill_seconds + max(0.0, d.wait_seconds) for d in found]))
        stalls = [f"  stalls its neighbours {time_text(d.stall_seconds)}" if d.stall_seconds else "" for d in found]
        table["t.ttft"].append([f"\u2002<b>{time_text(v, unit)}</b>{stall}" for v, stall in zip(totals, stalls, strict=True)])
        table["t.ttft_x"].append(four_digits(totals))
        table["t.bytes"].append(four_digits([d.unique_bytes for d in found]))
        table["t.bytes_text"].append([f"\u2002<b>{bytes_text(d.unique_bytes)}</b>" for d in found])
        table["t.range"].append(four_digits([0, max(totals) * 1.3]))
        table["t.narrow"].append(four_digits([0, max(totals) * 1.5]))
        table["t.brange"].append(four_digits([0, max(1.0, *(d.unique_bytes for d in found)) * 1.32]))
    return table


def bars_figure() -> Figure:
    """Time to the first token, stacked, and unique KV moved."""
    return Figure("turn-bars", _bars_layout(narrow=False), _bars_layout(narrow=True), "Time to first token and unique KV moved, by design")


def _bars_layout(*, narrow: bool) -> Spec:
    names = [TITLES[key] for key in BARS]
    rows = list(range(len(BARS)))
    size = 12 if narrow else 13
    hatch = {"shape": "/", "fillmode": "overlay", "fgcolor": colour("bg"), "fgopacity": 0.55, "size": 5, "solidity": 0.22}
    bar = {"type": "bar", "orientation": "h", "y": rows, "width": 0.42, "hoverinfo": "skip"}
    second = {"xaxis": "x2", "yaxis": "y2"}
    data = [
        {**bar, "x": at("t.prefill"), "marker": {"color": colour("prefill")}},
        {**bar, "x": at("t.wait"), "base": at("t.wait_base"), "marker": {"color": colour("exposed"), "pattern": hatch}},
        {**bar, "x": at("t.step"), "base": at("t.step_base"), "marker": {"color": colour("decode")}},
        _words(at("t.ttft_x"), rows, at("t.ttft"), "ink", size, {}),
        {**bar, **second, "x": at("t.bytes"), "marker": {"color": colour("wire")}},
        _words(at("t.bytes"), rows, at("t.bytes_text"), "wire_text", size, second),
    ]
    axis = {"visible": True, "showticklabels": False, "zeroline": True, "zerolinecolor": colour("line"), "fixedrange": True}
    rows_axis = {"range": [len(rows) - 0.5, -0.5], "tickvals": rows, "ticktext": names, "showgrid": False, "fixedrange": True, "ticklabelstandoff": 6, "tickfont": {"color": colour("body"), "size": size}}  # fmt: skip
    layout: dict[str, Any] = {
        "height": 470 if narrow else 250,
        "margin": {"l": 134 if narrow else 150, "r": 0, "t": 26, "b": 0},
        "barmode": "overlay",
        "xaxis": {**axis, "range": at("t.narrow" if narrow else "t.range"), "domain": [0, 1] if narrow else [0, 0.58]},
        "xaxis2": {**axis, "range": at("t.brange"), "domain": [0, 1] if narrow else [0.66, 1], "anchor": "y2"},
        "yaxis": {**rows_axis, "domain": [0.55, 1] if narrow else [0, 1]},
        "yaxis2": {**rows_axis, "domain": [0, 0.45] if narrow else [0, 1], "anchor": "x2", "showticklabels": narrow},
    }
    heads = [
        ("<b>Time to first token</b>", 0.0, 1.0),
        ("<b>Unique KV moved this turn</b>", 0.0 if narrow else 0.66, 0.45 if narrow else 1.0),
    ]
    layout["annotations"] = [
        {"text": text, "x": x, "y": y, "xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom", "yshift": 4, "showarrow": False, "font": {"size": size, "color": colour("body")}}
        for text, x, y in heads
    ]  # fmt: skip
    return {"data": data, "layout": layout}


def _words(x: Spec, y: Spec, text: Spec, fill: str, size: int, axes: dict[str, str]) -> Spec:
    return {"type": "scatter", "mode": "text", "x": x, "y": y, "text": text, "textposition": "middle right", "textfont": {"size": size, "color": colour(fill)}, "hoverinfo": "skip", **axes}  # fmt: skip


def turn_table(rows: Sequence[TurnRow]) -> Table:
    """Everything the view shows, over a slider's positions."""
    sentences = [turn_sentence(row) for row in rows]
    stalls = [row.by_key["sticky", True].stall_seconds for row in rows]
    return {
        "answer": [[list(part) for part in s] for s in sentences],
        "answer.text": [plain(s) for s in sentences],
        "setup": [f"{count_text(row.history)} tokens of history, {count_text(row.delta)} new" for row in rows],
        "stall": [
            f"Sticky moves nothing, but the decode GPUs run the prefill, and every request batched with it waits {time_text(s)}." if s
            else "This turn is too long for sticky routing to prefill on decode: it goes through the prefill side like pull back."
            for s in stalls
        ],
        **flow_table(rows),
        **bars_table(rows),
    }  # fmt: skip
