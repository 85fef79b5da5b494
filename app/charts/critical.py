"""Time on every link against prompt length, with prefill and one decode step."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from app.charts.curves import Curves
from app.charts.hiding import names_text, reach_over
from app.charts.links import LinkRow, critical_sentence, on_link, same_speed
from app.charts.marks import disc, line, note, rings, rule, words
from app.charts.odd_links import odd_sentences
from app.charts.scale import time_axis, token_axis
from app.charts.spec import Figure, Spec, Table, at, col, colour, four_digits
from app.over import Over
from kvmodel.display import count_text, digits, share_text, time_text, tokens_text
from kvmodel.evaluate import sweep
from kvmodel.verdict import plain, supposed

LABEL_GAP = 14
"""Pixels between two labels at the lines' ends."""
_TINT = "rgba(181,16,79,0.09)"


def critical_table(over: Over, rows: Sequence[LinkRow]) -> Table:
    """Columns over the prompt slider: a curve for each link, prefill, the decode step, and where you are."""
    tokens, swept = np.asarray(over.values), over.swept
    own = next(row for row in rows if row.id == over.scenario.link)
    wire, step = np.asarray(swept.transfer.seconds), np.asarray(swept.decode.step_seconds)
    steps, moves = wire / step, np.asarray(swept.kv.wire_bytes) > 0
    said = [critical_sentence(own, k, moves=bool(m)) for k, m in zip(steps, moves, strict=True)]
    sentences = [supposed(one, feasible=row.feasible) for one, row in zip(said, over.rows, strict=True)]
    ratio = wire / np.asarray(swept.prefill.seconds)
    table: Table = {
        "c.tokens": list(over.values),
        "c.prefill": four_digits(swept.prefill.seconds),
        "c.prefill_hover": [
            f"{count_text(n)} tokens<br>prefill {time_text(v)}" for n, v in zip(over.values, swept.prefill.seconds, strict=True)
        ],
        "c.step": four_digits(step),
        "c.step_text": [f"one decode step, {time_text(v)} at yours" for v in step],
        "c.x": [round(math.log10(v), 5) for v in over.values],
        "c.you": four_digits(wire),
        "c.you_y": [round(math.log10(max(v, 1e-9)), 4) for v in wire],
        "c.you_text": [_you(n, s, k) for n, s, k in zip(over.values, wire, steps, strict=True)],
        "c.you_short": [_you(n, s, k, narrow=True) for n, s, k in zip(over.values, wire, steps, strict=True)],
        "c.you_anchor": ["left" if n < 24_000 else "right" for n in over.values],
        "c.hover": [
            f"{count_text(n)} tokens over {own.name}<br>{time_text(s)}<br>{_steps(k)}"
            for n, s, k in zip(over.values, wire, steps, strict=True)
        ],
        "answer": [[list(part) for part in sentence] for sentence in sentences],
        "answer.text": [plain(sentence) for sentence in sentences],
        "r.ratio": four_digits(ratio),
        "r.you": [round(math.log10(max(v, 1e-9)), 4) for v in ratio],
        "r.text": [f"<b>{share_text(v)}</b>" for v in ratio],
        "r.hover": [f"{count_text(n)} tokens<br>wire ÷ prefill = {digits(v)}" for n, v in zip(over.values, ratio, strict=True)],
    }
    seconds = {row.id: np.asarray(sweep(on_link(over.scenario, row.id), prompt_tokens=tokens).transfer.seconds) for row in rows}
    for name, times in seconds.items():
        table[f"c.{name}"] = four_digits(times)
        table[f"c.text.{name}"] = [time_text(v) for v in times]
    reaches = reach_over(over.scenario.with_changes(overlap="layer"), "prompt_tokens", over.values)
    hiding = [names_text(reach, n) for reach, n in zip(reaches, over.values, strict=True)]
    return table | {"c.odd": odd_sentences(over, rows, seconds), "c.hiding": hiding}


def _steps(steps: float) -> str:
    return f"{digits(steps)} decode step{'' if steps == 1 else 's'}"


def _you(tokens: int, seconds: float, steps: float, *, narrow: bool = False) -> str:
    told = f"{count_text(tokens)}<br>{time_text(seconds)}" if narrow else f"{count_text(tokens)} tokens, {time_text(seconds)}"
    return f"<b>you: {told}</b><br>= {_steps(steps)}"


def critical_figure(
    own: LinkRow, table: Table, drawn: Sequence[LinkRow], pinned: Curves | None = None, rows: Sequence[LinkRow] = ()
) -> Figure:
    """Lines for links, the chosen one in the wire's colour; the area in which prefill cannot hide the wire; a pin's curves dashed.

    Pointed at, a line names its link and those of `rows` that share it.
    """
    curves = [_curve(row, same_speed(row, rows), chosen=row.id == own.id) for row in drawn]
    wide, narrow = (_layout(own, table, drawn, curves, pinned, narrow=narrow) for narrow in (False, True))
    return Figure("critical", wide, narrow, at("answer.text"))


def _layout(own: LinkRow, table: Table, drawn: Sequence[LinkRow], curves: Sequence[Spec], pinned: Curves | None, *, narrow: bool) -> Spec:
    tokens, size, height = table["c.tokens"], 12 if narrow else 13, 400 if narrow else 460
    low, high = _limits(table, drawn, pinned)
    decades = math.log10(high) - math.log10(low)
    prefill = {"fill": "tonexty", "fillcolor": _TINT, "customdata": col("c.prefill_hover"), "hovertemplate": "%{customdata}<extra></extra>"}
    data = [
        line(tokens, [high] * len(tokens), "clear", 0),
        line(col("c.tokens"), col("c.prefill"), "prefill", 2, **prefill),
        *curves,
        line(col("c.tokens"), col("c.step"), "decode", 1.5, dash="dash"),
        *(pinned.lines() if pinned else []),
        *_crossings(own, drawn, table),
        _end_texts(own, drawn, table, decades / (height - 52), size),
    ]
    others = [pinned.wire, pinned.prefill] if pinned else []
    spot = free_spot(table, drawn, decades / (height - 52), 278 if narrow else 984, others)
    layout = {
        "height": height,
        "margin": {"l": 52, "r": 82 if narrow else 84, "t": 8, "b": 44},
        "xaxis": {**token_axis(tokens[0], tokens[-1]), "title": {"text": "prompt tokens"}, "fixedrange": True},
        "yaxis": {**time_axis(low, high), "fixedrange": True, "showgrid": True},
        "annotations": [
            *(pinned.notes(size) if pinned else []),
            *_notes(own, table, size, spot, narrow=narrow),
        ],
        "shapes": _shapes(own, table, low),
    }
    return {"data": data, "layout": layout}


def _limits(table: Table, drawn: Sequence[LinkRow], pinned: Curves | None) -> tuple[float, float]:
    """Decades around all curves."""
    wires = [*(table[f"c.{row.id}"] for row in drawn), *([pinned.wire] if pinned else [])]
    values = [v for wire in wires for v in wire if v > 0] or [1e-3]
    low = 10.0 ** math.floor(math.log10(max(1e-6, min(values))))
    tops = [*table["c.prefill"], *(pinned.prefill if pinned else [])]
    return low, 10.0 ** math.ceil(math.log10(max(*values, *tops, low * 10)))


def _curve(row: LinkRow, mates: Sequence[str], *, chosen: bool) -> Spec:
    hover = "%{customdata}" if chosen else f"%{{x:,d}} tokens over {row.name}<br>%{{customdata}}"
    hover += f"<br>same bandwidth: {', '.join(mates)}" if mates else ""
    more = {"customdata": col("c.hover" if chosen else f"c.text.{row.id}"), "hovertemplate": hover + "<extra></extra>"}
    fill, width = ("wire", 3.5) if chosen else ("other", 1.25)
    return line(col("c.tokens"), col(f"c.{row.id}"), fill, width, name=row.short, **more)


def _crossing(row: LinkRow, table: Table) -> tuple[float, float] | None:
    """Where a link's line meets the decode step, if on the picture."""
    tokens = table["c.tokens"]
    if row.critical is None or not tokens[0] <= row.critical <= tokens[-1]:
        return None
    return row.critical, float(np.interp(row.critical, tokens, table["c.step"]))


def _crossings(own: LinkRow, drawn: Sequence[LinkRow], table: Table) -> list[Spec]:
    others, mine = [row for row in drawn if row.id != own.id], [own]
    return [_ringed(others, table, 7, 1.25, "other"), _ringed(mine, table, 11, 3, "wire")]


def _ringed(rows: Sequence[LinkRow], table: Table, size: float, width: float, fill: str) -> Spec:
    """Where the lines of some links meet the decode step."""
    found = [(row, point) for row in rows if (point := _crossing(row, table))]
    texts = [f"critical over {row.name}: {tokens_text(x)}<br>{time_text(y)}, one decode step" for row, (x, y) in found]
    drawn = rings([x for _, (x, _) in found], [y for _, (_, y) in found], size, width, fill)
    return {**drawn, "hoverinfo": "text", "customdata": texts, "hovertemplate": "%{customdata}<extra></extra>"}


def _shapes(own: LinkRow, table: Table, low: float) -> list[Spec]:
    shapes = [rule(at("c.tokens"), low, at("c.you"), "ink", 1)]
    if point := _crossing(own, table):
        shapes.append(rule(point[0], low, point[1], "wire", 1, "dot", layer="below"))
    return shapes


def _notes(own: LinkRow, table: Table, size: int, spot: int, *, narrow: bool) -> list[Spec]:
    blocked = "<b>link-bound</b>" if narrow else "<b>link-bound</b>: the wire outlasts prefill, so it cannot hide"
    you, height = (at("c.you_short"), 0.15) if narrow else (at("c.you_text"), 0.12)
    covered = {"bgcolor": colour("bg"), "borderpad": 5}
    paper = {"xref": "paper", "yref": "paper"}
    above = {"xref": "paper", "xanchor": "right", "yshift": -12, "xshift": -4, "bgcolor": colour("bg")}
    notes = [
        note(blocked, 0.0, 1.0, "exposed_text", size, **paper, yanchor="top", xshift=14, yshift=-8),
        note("prefill time", table["c.x"][spot], math.log10(table["c.prefill"][spot]), "prefill_text", size, xanchor="right", yshift=12),
        note("decode step" if narrow else at("c.step_text"), 1.0, math.log10(table["c.step"][-1]), "decode_text", size, **above),
        note(you, at("c.x"), height, "ink", size, yref="paper", xanchor=at("c.you_anchor"), align="left", **covered),
    ]
    notes.append(disc(at("c.x"), at("c.you_y")))
    if point := _crossing(own, table):
        anchor = "right" if point[0] > (4000 if narrow else 600) else "left"
        text = f"<b>critical: {tokens_text(point[0])}</b>"
        notes.append(note(text, math.log10(point[0]), 0.035, "wire_text", size, yref="paper", xanchor=anchor, **covered))
    return notes


def free_spot(table: Table, drawn: Sequence[LinkRow], per_pixel: float, width: int, others: Sequence[Sequence[float]] = ()) -> int:
    """Position on the prefill curve whose label, above it and to its left, keeps farthest from every curve."""
    x = np.asarray(table["c.x"])
    span = (x[-1] - x[0]) * 84 / width
    drawings = [*(table[name] for name in ("c.prefill", *(f"c.{row.id}" for row in drawn))), *others]
    curves = [np.log10(np.maximum(curve, 1e-12)) for curve in drawings]
    best, room = len(x) // 3, -1.0
    for i in range(len(x)):
        under = (x >= x[i] - span) & (x <= x[i])
        if x[i] - span < x[0] or not table["c.prefill"][i]:
            continue
        centre = curves[0][i] + 12 * per_pixel
        free = min(float(np.min(np.abs(curve[under] - centre))) for curve in curves)
        if free > room * 1.02:
            best, room = i, free
    return best


def _end_texts(own: LinkRow, drawn: Sequence[LinkRow], table: Table, per_pixel: float, size: int) -> Spec:
    kept = end_labels(own, drawn, {row.id: table[f"c.{row.id}"][-1] for row in drawn}, per_pixel)
    texts = [f"\u2002<b>{row.short}</b>" if row.id == own.id else f"\u2002{row.short}" for row, _ in kept]
    fills = [colour("wire_text" if row.id == own.id else "muted") for row, _ in kept]
    return words([table["c.tokens"][-1]] * len(kept), [10**y for _, y in kept], texts, fills, size)


def end_labels(own: LinkRow, drawn: Sequence[LinkRow], ends: dict[str, float], per_pixel: float) -> list[tuple[LinkRow, float]]:
    """Labels at the lines' ends that stand 14 pixels apart: those nearest the chosen line go first where they cannot."""
    kept = [(own, math.log10(max(ends[own.id], 1e-12)))]
    others = sorted((row for row in drawn if row.id != own.id), key=lambda row: -abs(math.log10(row.bandwidth / own.bandwidth)))
    for row in others:
        y = math.log10(max(ends[row.id], 1e-12))
        if all(abs(y - placed) >= LABEL_GAP * per_pixel for _, placed in kept):
            kept.append((row, y))
    return kept
