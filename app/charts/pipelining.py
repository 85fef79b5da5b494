"""What sending while prefill computes saves: the wait of decode under each overlap, against prompt length."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from app.charts.marks import disc, line, note, words
from app.charts.scale import spread, time_axis, token_axis
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

LABEL_GAP = 15
"""Pixels between two names at the lines' ends."""


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
    wide, narrow = (_layout(table, overlaps, own, size, key, pinned) for size, key in ((13, "text"), (12, "short")))
    return Figure("pipelining", wide, narrow, at("p.sentence"))


def _layout(table: Table, overlaps: Sequence[str], own: str, size: int, words_key: str, pinned: Sequence[float]) -> Spec:
    tokens, anchor = table["p.tokens"], "p.anchor" if words_key == "text" else "p.short_anchor"
    gaps = [v or None for v in four_digits(pinned)]
    values = [v for column in (*(table[f"p.{o}"] for o in overlaps), gaps) for v in column if v] or [1e-3]
    low, high = 10.0 ** math.floor(math.log10(min(values))), 10.0 ** math.ceil(math.log10(max(values)) + 1e-9)
    data = [_curve(o, o == own) for o in sorted(overlaps, key=lambda o: o == own)]
    data += [_pinned_line(tokens, gaps)] if pinned else []
    curves = {**{o: table[f"p.{o}"] for o in overlaps}, **({"pin": gaps} if pinned else {})}
    data.append(_end_texts(tokens, curves, own, (math.log10(high) - math.log10(low)) / 248, size))
    layout = {
        "height": 300,
        "margin": {"l": 60, "r": 118, "t": 8, "b": 44},
        "xaxis": {**token_axis(tokens[0], tokens[-1]), "title": {"text": "prompt tokens"}, "fixedrange": True},
        "yaxis": {**time_axis(low, high), "fixedrange": True, "showgrid": True},
        "annotations": [
            note(at(f"p.{words_key}"), at("p.x"), at("p.y"), "ink", size, xanchor=at(anchor), yshift=22, bgcolor=colour("bg"), borderpad=3),
            disc(at("p.x"), at("p.y")),
        ],
    }
    return {"data": data, "layout": layout}


def _curve(overlap: str, chosen: bool) -> Spec:
    fill, width = ("exposed", 3.5) if chosen else ("other", 1.25)
    hover = {"customdata": col(f"p.hover.{overlap}"), "hovertemplate": "%{customdata}<extra></extra>"}
    return line(col("p.tokens"), col(f"p.{overlap}"), fill, width, **hover)


def _pinned_line(tokens: Sequence[int], gaps: Sequence[float | None]) -> Spec:
    texts = [f"pin, {count_text(n)} tokens<br>decode waits {time_text(v or 0.0)}" for n, v in zip(tokens, gaps, strict=True)]
    return line(list(tokens), list(gaps), "muted", 1.5, dash="dash", customdata=texts, hovertemplate="%{customdata}<extra></extra>")


def _end_texts(tokens: Sequence[int], curves: Mapping[str, Sequence[Any]], own: str, per_pixel: float, size: int) -> Spec:
    """Names at the lines' ends, side by side where lines meet; a line that ends in no wait is named where it was last seen."""
    last = {o: max((i for i, v in enumerate(curve) if v), default=None) for o, curve in curves.items()}
    ends = [(o, i, math.log10(curves[o][i])) for o, i in last.items() if i is not None]
    placed = [(o, tokens[i], y) for o, i, y in sorted(ends, key=lambda end: -end[2])]
    heights = spread([y for *_, y in placed], LABEL_GAP * per_pixel)
    texts = [f"\u2002<b>{o}</b>" if o == own else f"\u2002{o}" for o, *_ in placed]
    fills = [colour("exposed_text" if o == own else "muted") for o, *_ in placed]
    return words([x for _, x, _ in placed], [10**y for y in heights], texts, fills, size)
