"""What sending while prefill computes saves: the wait of decode under each overlap, against prompt length."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from app.charts.marks import disc, line, note, words
from app.charts.scale import NARROW, WIDE, spread, time_axis, token_axis
from app.charts.spec import Figure, Spec, Table, at, col, colour, four_digits
from app.over import Over
from kvmodel.display import count_text, digits, time_text
from kvmodel.evaluate import sweep

NAMES = {
    "serial": "all at the end",
    "chunk": "chunk by chunk",
    "layer": "layer by layer",
    "layer-group": "in groups of layers",
    "layer-both": "layer by layer on both sides",
}

DASHES = {"serial": "solid", "chunk": "dot", "layer": "solid", "layer-group": "dashdot", "layer-both": "6px,3px"}
"""Strokes of the lines that are not chosen, which share a colour."""
MARGINS = {"l": 60, "r": 100, "t": 8, "b": 44}
LABEL_GAP = 15
"""Pixels between two names at the lines' ends."""
LEADER = 16
"""Pixels from a line's end to its name, which a stroke joins: the axis reaches as much farther."""


def pipelining_table(over: Over, overlaps: Sequence[str]) -> Table:
    """Columns over the prompt slider: decode's wait under each overlap, and what yours saves against serial."""
    tokens = np.asarray(over.values)
    gaps = {o: np.asarray(sweep(over.scenario.with_changes(overlap=o), prompt_tokens=tokens).gap_seconds) for o in overlaps}
    gaps = {o: np.broadcast_to(gap, tokens.shape) for o, gap in gaps.items()}
    mine = np.broadcast_to(np.asarray(over.swept.gap_seconds), tokens.shape)
    own = over.plan.overlap
    best = [min(overlaps, key=lambda o: float(gaps[o][i])) for i in range(len(tokens))]
    sentences = [_sentence(own, b, float(mine[i]), float(gaps["serial"][i]), float(gaps[b][i])) for i, b in enumerate(best)]
    table: Table = {
        "p.tokens": list(over.values),
        "p.x": [round(math.log10(v), 5) for v in over.values],
        "p.y": [round(math.log10(max(v, 1e-9)), 4) for v in mine],
        "p.text": [f"<b>you: decode waits {time_text(v)}</b>" for v in mine],
        "p.anchor": ["left" if n < 1_000 else "right" for n in over.values],
        "p.short": [f"<b>you: {time_text(v)}</b>" for v in mine],
        "p.short_anchor": ["left" if n < 16_000 else "right" for n in over.values],
        "p.sentence": sentences,
    }
    for overlap, gap in gaps.items():
        table[f"p.{overlap}"] = [v or None for v in four_digits(gap)]
        table[f"p.hover.{overlap}"] = [
            f"{count_text(n)} tokens, {NAMES[overlap]}<br>decode waits {time_text(v)}" for n, v in zip(over.values, gap, strict=True)
        ]
    return table


def _sentence(own: str, best: str, mine: float, serial: float, least: float) -> str:
    if serial <= 0:
        return "Nothing moves, so there is nothing to hide."
    if own == "serial":
        if least >= serial * (1 - 1e-6):
            return f"Sent {NAMES['serial']}, decode waits {time_text(serial)}; no overlap would make it less."
        return f"Sent {NAMES['serial']}, decode waits {time_text(serial)}; {NAMES[best]} it would wait {time_text(least)}."
    if mine > serial * (1 + 1e-6):
        return f"Sent {NAMES[own]}, decode waits {time_text(mine)}: longer than the {time_text(serial)} of sending {NAMES['serial']}."
    times = f", {digits(serial / mine)} times less" if mine > 0 and serial / mine >= 1.05 else ""
    return f"Sent {NAMES[own]}, decode waits {time_text(mine)} in place of {time_text(serial)}{times}."


def pipelining_figure(table: Table, overlaps: Sequence[str], own: str, pinned: Sequence[float] = ()) -> Figure:
    """A line for each overlap, the chosen one in the colour of what is exposed; a pinned scenario's own gaps dashed."""
    wide, narrow = (_layout(table, overlaps, own, width, pinned) for width in (WIDE, NARROW))
    return Figure("pipelining", wide, narrow, at("p.sentence"))


def never_waits(table: Table, overlaps: Sequence[str]) -> list[str]:
    """Overlaps under which decode waits at no prompt length: a logarithmic axis has no place for them."""
    return [o for o in overlaps if not any(table[f"p.{o}"])]


def undrawn_text(table: Table, overlaps: Sequence[str]) -> str:
    """Which lines are not there, in words; empty where each is there from end to end."""
    never = never_waits(table, overlaps)
    partly = any(not all(table[f"p.{o}"]) for o in overlaps if o not in never)
    told = [f"Not drawn, because decode waits 0\u202fs at every length: {', '.join(NAMES[o] for o in never)}."] if never else []
    return " ".join([*told, *(["A line is left out where decode waits 0\u202fs."] if partly else [])])


def _layout(table: Table, overlaps: Sequence[str], own: str, width: int, pinned: Sequence[float]) -> Spec:
    size, words_key, anchor = (13, "text", "p.anchor") if width == WIDE else (12, "short", "p.short_anchor")
    tokens = table["p.tokens"]
    gaps = [v or None for v in four_digits(pinned)]
    values = [v for column in (*(table[f"p.{o}"] for o in overlaps), gaps) for v in column if v] or [1e-3]
    low, high = 10.0 ** math.floor(math.log10(min(values))), 10.0 ** math.ceil(math.log10(max(values)) + 1e-9)
    never = never_waits(table, overlaps)
    data = [_curve(o, o == own) for o in sorted(overlaps, key=lambda o: o == own) if o not in never]
    data += [_pinned_line(tokens, gaps)] if pinned else []
    curves = {**{o: table[f"p.{o}"] for o in overlaps}, **({"pin": gaps} if pinned else {})}
    across = math.log10(tokens[-1] / tokens[0]) / (width - MARGINS["l"] - MARGINS["r"] - LEADER)
    data += _end_texts(tokens, curves, own, ((math.log10(high) - math.log10(low)) / 248, across), size)
    layout = {
        "height": 300,
        "margin": MARGINS,
        "xaxis": {**token_axis(tokens[0], tokens[-1], LEADER * across), "title": {"text": "prompt tokens"}, "fixedrange": True},
        "yaxis": {**time_axis(low, high), "fixedrange": True, "showgrid": True},
        "annotations": [
            note(at(f"p.{words_key}"), at("p.x"), at("p.y"), "ink", size, xanchor=at(anchor), yshift=22, bgcolor=colour("bg"), borderpad=3),
            disc(at("p.x"), at("p.y")),
        ],
    }
    return {"data": data, "layout": layout}


def _curve(overlap: str, chosen: bool) -> Spec:
    fill, width, dash = ("exposed", 3.5, "solid") if chosen else ("other", 1.5, DASHES[overlap])
    hover = {"customdata": col(f"p.hover.{overlap}"), "hovertemplate": "%{customdata}<extra></extra>"}
    return line(col("p.tokens"), col(f"p.{overlap}"), fill, width, dash=dash, **hover)


def _pinned_line(tokens: Sequence[int], gaps: Sequence[float | None]) -> Spec:
    texts = [f"pin, {count_text(n)} tokens<br>decode waits {time_text(v or 0.0)}" for n, v in zip(tokens, gaps, strict=True)]
    return line(list(tokens), list(gaps), "muted", 1.5, dash="dash", customdata=texts, hovertemplate="%{customdata}<extra></extra>")


def _end_texts(
    tokens: Sequence[int], curves: Mapping[str, Sequence[Any]], own: str, per_pixel: tuple[float, float], size: int
) -> list[Spec]:
    """Names at the lines' ends, side by side where lines meet and joined to their ends; decades of a pixel are (up, across).

    A line that ends in no wait is named where it was last seen.
    """
    last = {o: max((i for i, v in enumerate(curve) if v), default=None) for o, curve in curves.items()}
    ends = [(o, i, math.log10(curves[o][i])) for o, i in last.items() if i is not None]
    placed = [(o, tokens[i], y) for o, i, y in sorted(ends, key=lambda end: -end[2])]
    heights = spread([y for *_, y in placed], LABEL_GAP * per_pixel[0])
    texts = [f"<b>{o}</b>" if o == own else o for o, *_ in placed]
    fills = [colour("exposed_text" if o == own else "muted") for o, *_ in placed]
    starts, rises = [x for _, x, _ in placed], [10**y for y in heights]
    ends_at = [int(x * 10 ** (LEADER * per_pixel[1])) for x in starts]
    xs = [x for pair in zip(starts, ends_at, strict=True) for x in (*pair, None)]
    ys = [y for (*_, low), high in zip(placed, rises, strict=True) for y in (10**low, high, None)]
    return [line(xs, ys, "other", 1), words(ends_at, rises, texts, fills, size)]
