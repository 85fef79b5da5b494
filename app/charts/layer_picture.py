"""Where the matrices of one layer stand in the picture: rows and columns to one scale, in pixels of a layout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from app.charts.marks import Label
from app.charts.scale import NARROW, text_width
from kvmodel.display import count_text

COLUMNS = 28_672
"""Columns that fill a side of the picture, unless a layer needs more."""
THIN = 2.0
"""Pixels of what would be thinner."""
HEADS_DRAWN, MOST_CHUNKS = 3, 24
WIDE_PICTURE = 680


@dataclass(frozen=True, slots=True)
class Geometry:
    """Places of a layout, in pixels."""

    width: float
    column: float
    """Width of a side."""
    top: float
    """Top of the first panel's matrices."""
    pitch: float
    """From one panel to the next."""
    tall: float
    """Height at which rows are cut."""
    row_at: float
    """Decode's row below the panel's top."""
    gap: float
    size: int
    height: int

    def panel(self, index: int) -> float:
        """Top of a panel's matrices."""
        return self.top + index * self.pitch

    @property
    def right(self) -> float:
        """Left edge of decode's side."""
        return self.width - self.column


GEOMETRY = {
    "w": Geometry(WIDE_PICTURE, 306, 56, 134, 92, 30, 12, 13, 462),
    "n": Geometry(NARROW, 158, 52, 96, 48, 22, 8, 12, 338),
}


@dataclass(frozen=True, slots=True)
class Sent:
    """A tensor that crosses."""

    name: str
    columns: int
    rows: float
    """Rows of it that cross."""
    low: float = 1.0
    """Where it stands beside prefill's rows: 1 at their foot, as the last of them."""


@dataclass(frozen=True, slots=True)
class Shapes:
    """What the picture of one layer shows: columns of each matrix, 0 where there is none."""

    hidden: int
    query: int
    values: int
    inter: int
    rows: int
    """Tokens that prefill computes."""
    context: int
    """Tokens that a decode row sees."""
    window: float
    """Keys a row sees at most; 0 for all."""
    chunked: bool
    """The window is a chunk of the prompt: rows see its tokens up to themselves."""
    heads: int
    sent: Sequence[Sent]
    texts: dict[str, str]
    """Words by place: project, attend, feed, inter, row, kept, appended."""


@dataclass
class Picture:
    """Outlines and labels: coordinates of closed polygons and of lines, None between them."""

    geometry: Geometry
    scale: float
    """Pixels of a column, and of a row."""
    prefill: list[list[Any]] = field(default_factory=lambda: [[], []])
    wire: list[list[Any]] = field(default_factory=lambda: [[], []])
    breaks: list[list[Any]] = field(default_factory=lambda: [[], []])
    decode: list[list[Any]] = field(default_factory=lambda: [[], []])
    labels: list[Label] = field(default_factory=list)

    def polygon(self, trace: list[list[Any]], points: Sequence[tuple[float, float]]) -> None:
        """A closed outline."""
        for x, y in (*points, points[0]):
            trace[0].append(round(x, 1))
            trace[1].append(round(y, 1))
        trace[0].append(None)
        trace[1].append(None)

    def block(self, trace: list[list[Any]], x: float, top: float, columns: float, rows: float, low: float = 0.0) -> float:
        """A matrix to scale, `low` of the way to the foot of prefill's rows; cut where it is too tall. Returns its right edge."""
        wide, high = max(columns * self.scale, THIN), min(max(rows * self.scale, THIN), self.geometry.tall)
        top += max(0.0, low * (self.tallest - high))
        self.polygon(trace, [(x, top), (x + wide, top), (x + wide, top + high), (x, top + high)])
        if rows * self.scale > self.geometry.tall:
            self.cut(x, x + wide, top)
        return x + wide

    tallest: float = 0.0
    """Height of prefill's rows."""

    def cut(self, left: float, right: float, top: float) -> None:
        """A gap across a matrix that is taller than drawn."""
        y = top + 0.76 * self.geometry.tall
        self.polygon(self.breaks, [(left - 1, y), (right + 1, y), (right + 1, y + 5), (left - 1, y + 5)])

    def row(self, x: float, y: float, columns: float, text: str, fill: str = "decode_text") -> float:
        """One row of a decode matrix with its name above. Returns its right edge, or the name's."""
        wide = max(columns * self.scale, THIN)
        self.decode[0] += [round(x, 1), round(x + wide, 1), None]
        self.decode[1] += [y, y, None]
        self.say(text, x, y - 0.75 * self.geometry.size, fill, "middle right")
        return x + wide

    def say(self, text: str, x: float, y: float, fill: str, place: str) -> None:
        """A label."""
        self.labels.append(Label(text, round(x, 1), round(y, 1), fill, self.geometry.size, place))

    def inside(self, text: str, left: float, right: float, top: float, *shorter: str) -> None:
        """A matrix's name, a shorter one where it would be wider: in the matrix, under it where that is flat, beside it where narrow."""
        size, room = self.geometry.size, right - left - 4
        fitting = next((t for t in (text, *shorter) if text_width(t, size) <= room), "")
        flat = self.tallest < size + 4
        y = top + (self.tallest + 10 if flat else self.tallest / 2)
        if fitting or not shorter:
            name = fitting or text
            self.say(name, max((left + right) / 2, left + text_width(name, size) / 2), y, "ink", "middle center")
        else:
            self.say(shorter[-1], left if flat else right + 2, y, "ink", "middle right")


def scale_of(shapes: Shapes, g: Geometry) -> float:
    """Pixels of a column: `COLUMNS` fill a side, more where a layer's matrices would not fit beside each other."""
    sent = sum(s.columns for s in shapes.sent)
    beside = (g.column - (2 + len(shapes.sent)) * g.gap) / max(1, shapes.hidden + shapes.query + sent)
    attend = (g.column - g.tall - (HEADS_DRAWN + 1) * g.gap) / max(1, shapes.values)
    return min(g.column / max(COLUMNS, shapes.inter), beside, attend)


def picture_of(shapes: Shapes, g: Geometry) -> Picture:
    """One layer's matrices in prefill and decode."""
    scale = scale_of(shapes, g)
    p = Picture(g, scale, tallest=min(max(shapes.rows * scale, THIN), g.tall))
    _heads(p, shapes)
    _project(p, shapes)
    _attend(p, shapes)
    _feed(p, shapes)
    _foot(p, shapes)
    return p


def _heads(p: Picture, s: Shapes) -> None:
    g = p.geometry
    p.say(s.texts["prefill"], 0, 12, "prefill_text", "middle right")
    p.say(s.texts["decode"], g.right, 12, "decode_text", "middle right")
    for index, name in enumerate(("project", "attend", "feed")):
        p.say(_short(s.texts[name], g), 0, g.panel(index) - 11, "muted", "middle right")


def _short(text: str, g: Geometry) -> str:
    """A panel's title: its first word where there is no room for more."""
    return text if g.width > NARROW else text.partition(":")[0]


def _project(p: Picture, s: Shapes) -> None:
    """X and Q stay; what crosses stands on both sides of the gap, with the arrow between."""
    g, top, y = p.geometry, p.geometry.panel(0), p.geometry.panel(0) + p.geometry.row_at
    right = p.block(p.prefill, 0, top, s.hidden, s.rows)
    p.inside("X", 0, right, top)
    left, right = right + g.gap, right + g.gap
    if s.query:
        right = p.block(p.prefill, left, top, s.query, s.rows)
    p.inside("Q" if s.query else "", left, right, top)
    edge = _sent(p, s, top)
    p.say(s.texts["kept"], g.column, top - 11, "wire_text", "middle left")
    p.say(s.texts["read" if g.width > NARROW else "kept"], g.right, top - 11, "wire_text", "middle right")
    start = g.right + (edge + g.gap if s.sent else 0.0)
    end = p.row(start, y, s.hidden, "x")
    if s.query:
        p.row(max(end, start + g.size) + g.gap, y, s.query, "q")
    p.say(s.texts["appended"], start, y + 0.9 * g.size, "wire_text", "middle right")
    p.say(s.texts["appended_bytes"], start, y + 2.1 * g.size, "wire_text", "middle right")


def _sent(p: Picture, s: Shapes, top: float) -> float:
    """Tensors that cross, on both sides, and the arrow; returns their width together."""
    g, wide = p.geometry, _tensors(p, s, top)
    if not s.sent:
        return 0.0
    y, start, end = top + p.tallest / 2 if p.tallest > 14 else top, g.column + 5, g.right - 4
    neck, half, head = end - 11, 2.0, 6.5
    outline = [(start, y - half), (neck, y - half), (neck, y - head), (end, y), (neck, y + head), (neck, y + half), (start, y + half)]
    p.polygon(p.wire, outline)
    return wide


def sent_outlines(p: Picture, s: Shapes) -> tuple[list[Any], list[Any]]:
    """Outlines of what crosses, on both sides of the gap, at the picture's scale; coordinates of lines with None between."""
    other = Picture(p.geometry, p.scale, tallest=min(max(s.rows * p.scale, THIN), p.geometry.tall))
    _tensors(other, s, p.geometry.panel(0))
    return other.wire[0], other.wire[1]


def _tensors(p: Picture, s: Shapes, top: float) -> float:
    """What crosses, on both sides of the gap; returns its width."""
    between = p.geometry.gap / 2
    wide = sum(max(t.columns * p.scale, THIN) for t in s.sent) + between * max(0, len(s.sent) - 1)
    for x in (p.geometry.column - wide, p.geometry.right):
        for t in s.sent:
            x = p.block(p.wire, x, top, t.columns, t.rows, t.low) + between
    return wide


def _attend(p: Picture, s: Shapes) -> None:
    """Scores of a few heads, causal and inside the window, and their product with V."""
    g, top, y = p.geometry, p.geometry.panel(1), p.geometry.panel(1) + p.geometry.row_at
    left, step = 0.0, g.gap / 2.4
    size = min(max(s.rows * p.scale, THIN), g.tall)
    if s.heads:
        for head in reversed(range(HEADS_DRAWN)):
            for outline in _causal(head * step, top, size, s.window * p.scale, s.chunked):
                p.polygon(p.prefill, outline)
        left = size + (HEADS_DRAWN - 1) * step + g.gap
        if s.rows * p.scale > g.tall:
            p.cut(0, left - g.gap, top)
    flat = size < 3 * g.size
    x, y_text = (16.0, top + size + 10) if flat else (size * 0.32, top + 0.68 * size)
    p.say(s.texts["scores"], x, y_text, "ink", "middle center")
    left = max(left, 44) if flat and s.heads else left
    right = p.block(p.prefill, left, top, s.values, s.rows) if s.values else left
    p.inside(s.texts["values"], left, right, top)
    end = p.row(g.right, y, min(s.context, s.window or s.context, g.tall / p.scale), s.texts["row_scores"]) if s.heads else g.right - g.gap
    if s.values:
        p.row(max(end, g.right + 5.2 * g.size if s.heads else 0.0) + g.gap, y, s.values, s.texts["row_values"])


def _causal(x: float, top: float, size: float, window: float, chunked: bool) -> list[list[tuple[float, float]]]:
    """(row, key) pairs that are computed: a triangle, a band where rows see a window, a triangle for each chunk."""
    if not 0 < window < size:
        return [[(x, top), (x + size, top + size), (x, top + size)]]
    if not chunked or size / window > MOST_CHUNKS:
        return [[(x, top), (x + size, top + size), (x + size - window, top + size), (x, top + window)]]
    starts = [i * window for i in range(math.ceil(size / window - 1e-6))]
    return [[(x + a, top + a), (x + b, top + b), (x + a, top + b)] for a, b in ((a, min(a + window, size)) for a in starts)]


def _feed(p: Picture, s: Shapes) -> None:
    if not s.inter:
        return
    top, y = p.geometry.panel(2), p.geometry.panel(2) + p.geometry.row_at
    right = p.block(p.prefill, 0, top, s.inter, s.rows)
    p.inside(s.texts["inter"], 0, right, top, s.texts["inter_short"], count_text(s.inter))
    fits = text_width(s.texts["row"], p.geometry.size) <= s.inter * p.scale
    p.row(p.geometry.right, y, s.inter, s.texts["row"] if fits else f"1 × {count_text(s.inter)}")


def _foot(p: Picture, s: Shapes) -> None:
    g, y = p.geometry, p.geometry.panel(2) + p.geometry.tall + 20
    for index, text in enumerate(_scale_texts(p, s)):
        p.say(text, 0, y + index * 1.3 * g.size, "muted", "middle right")


def _scale_texts(p: Picture, s: Shapes) -> tuple[str, str]:
    """The scale, and the true heights of what is drawn thicker or cut."""
    full, columns, unit = s.rows * p.scale, p.geometry.column / p.scale, "\u202fpx"
    cut, row, tall = full > p.geometry.tall, f"{p.scale:.2g}{unit}", f"{count_text(full)}{unit}"
    if p.geometry.width <= NARROW:
        heights = f"true heights: decode {row}, prefill {tall}, cut" if cut else f"a decode row's true height is {row}"
        return "one scale throughout; blue is dropped after the pass", heights
    drawn = f"a decode row is drawn {THIN:.0f}{unit}, its true height is {row}"
    more = f"; prefill's rows are cut, their true height is {tall}" if cut else ""
    return f"one scale throughout: {count_text(columns)} columns fill a side; blue is used inside the pass and dropped", drawn + more
