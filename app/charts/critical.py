"""Time on every link against prompt length, with prefill and one decode step; and the ratio of wire to compute."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from app.charts.scale import time_axis, token_axis
from app.charts.spec import Figure, Spec, Table, at, col, colour, four_digits
from app.over import Over
from kvmodel import registry
from kvmodel.critical import Interval, intervals
from kvmodel.display import bytes_text, count_text, digits, rate_text, share_text, time_text, tokens_text
from kvmodel.evaluate import amounts_of, sweep
from kvmodel.handoff import handoff
from kvmodel.plan import plan_of
from kvmodel.scenario import MAX_PROMPT_TOKENS, Scenario
from kvmodel.verdict import Sentence

LABEL_GAP = 14
"""Pixels between two labels at the lines' ends."""
WIDE_HEIGHT, NARROW_HEIGHT = 460, 400


@dataclass(frozen=True, slots=True)
class LinkRow:
    """One link under the scenario."""

    id: str
    name: str
    short: str
    bandwidth: float
    """Achieved bytes per second of a lane under the engine."""
    critical: int | None
    """Shortest prompt that spends a decode step on it."""
    hidden: tuple[Interval, ...]
    """Prompts it hides, layer by layer."""


@lru_cache(maxsize=128)
def link_rows(scenario: Scenario) -> tuple[LinkRow, ...]:
    """Every link, fastest first; the scenario's prompt plays no part."""
    rows = []
    for link in sorted(registry.links().values(), key=lambda link: (-link.bandwidth, link.id)):
        other = _on_link(scenario, link.id)
        plan, layered = plan_of(other), plan_of(other.with_changes(overlap="layer"))
        amounts = amounts_of(other)

        def outlasts(tokens: Any, plan: Any = plan, amounts: Any = amounts) -> Any:
            result = handoff(plan, _at(amounts, tokens))
            return (result.transfer.seconds >= result.decode.step_seconds) & (result.kv.wire_bytes > 0)

        def hides(tokens: Any, plan: Any = layered, amounts: Any = amounts) -> Any:
            return np.isin(handoff(plan, _at(amounts, tokens)).bound, ("hidden", "nothing"))

        steps = intervals(outlasts, per_doubling=24, dense=64)
        hidden = intervals(hides, per_doubling=24, dense=64)
        measured = other.link_gbytes_per_s
        bandwidth = plan.lane.bandwidth if measured is None else measured * 1e9
        rows.append(LinkRow(link.id, link.name, link.short, bandwidth, steps[0].from_tokens if steps else None, hidden))
    return tuple(rows)


def _at(amounts: Any, tokens: Any) -> Any:
    from dataclasses import replace

    return replace(amounts, prompt_tokens=tokens)


def _on_link(scenario: Scenario, link: str) -> Scenario:
    """The scenario on another link; a measured bandwidth belongs to its own link."""
    return scenario if link == scenario.link else scenario.with_changes(link=link, link_gbytes_per_s=None)


def without_prompt(scenario: Scenario) -> Scenario:
    """The scenario with the default prompt: key of what does not depend on it."""
    return scenario.with_changes(prompt_tokens=Scenario.model_fields["prompt_tokens"].default)


def drawn_links(scenario: Scenario, rows: Sequence[LinkRow]) -> list[LinkRow]:
    """One link for each bandwidth, the chosen one among them; slowest first."""
    chosen = next(row for row in rows if row.id == scenario.link)
    by_speed: dict[float, LinkRow] = {}
    for row in rows:
        key = float(f"{row.bandwidth:.2g}")
        if key == float(f"{chosen.bandwidth:.2g}") or key not in by_speed:
            by_speed[key] = chosen if key == float(f"{chosen.bandwidth:.2g}") else row
    return sorted(by_speed.values(), key=lambda row: row.bandwidth)


def critical_sentence(scenario: Scenario, row: LinkRow, steps: float, moves: bool) -> Sentence:
    """The answer: where the chosen link begins to matter."""
    if not moves:
        return (("Decode already holds this prompt: ", ""), (bytes_text(0), "wire"), (" to move.", ""))
    if row.critical is None:
        return ((f"On {row.name}, no prompt up to {count_text(MAX_PROMPT_TOKENS)} outlasts a decode step.", ""),)
    if row.critical == 1:
        return ((f"Every handoff on {row.name} outlasts a decode step; yours takes {digits(steps)} steps.", ""),)
    return (
        (f"On {row.name}, a prompt past ", ""),
        (f"{tokens_text(row.critical)} tokens", "wire"),
        (f" spends longer on the wire than one decode step; yours spends {digits(steps)} steps.", ""),
    )


def critical_table(over: Over, rows: Sequence[LinkRow], drawn: Sequence[LinkRow]) -> Table:
    """Columns over the prompt slider: a curve for each link, prefill, the decode step, and where you are."""
    scenario = over.scenario
    tokens = np.asarray(over.values)
    swept = over.swept
    table: Table = {"c.tokens": [int(v) for v in tokens]}
    for row in rows:
        seconds = np.asarray(sweep(_on_link(scenario, row.id), prompt_tokens=tokens).transfer.seconds)
        table[f"c.{row.id}"] = four_digits(seconds)
        table[f"c.text.{row.id}"] = [time_text(v) for v in seconds]
    wire, step = np.asarray(swept.transfer.seconds), np.asarray(swept.decode.step_seconds)
    table["c.prefill"] = four_digits(swept.prefill.seconds)
    table["c.step"] = four_digits(step)
    table["c.step_text"] = [f"one decode step, {time_text(v)}" for v in step]
    steps = wire / step
    own = next(row for row in rows if row.id == scenario.link)
    table["c.x"] = [round(math.log10(v), 5) for v in over.values]
    table["c.you"] = four_digits(wire)
    table["c.you_y"] = [round(math.log10(max(v, 1e-9)), 4) for v in wire]
    table["c.you_text"] = [
        f"<b>you: {count_text(n)} tokens, {time_text(s)}</b><br>= {digits(k)} decode step{'' if k == 1 else 's'}"
        for n, s, k in zip(over.values, wire, steps, strict=True)
    ]
    table["c.you_anchor"] = ["left" if n < 24_000 else "right" for n in over.values]
    table["c.hover"] = [
        f"{count_text(n)} tokens over {own.name}<br>{time_text(s)}<br>{digits(k)} decode steps"
        for n, s, k in zip(over.values, wire, steps, strict=True)
    ]
    sentences = [critical_sentence(scenario, own, k, bool(b > 0)) for k, b in zip(steps, np.asarray(swept.kv.wire_bytes), strict=True)]
    table["answer"] = [[list(part) for part in sentence] for sentence in sentences]
    table["answer.text"] = ["".join(text for text, _ in sentence) for sentence in sentences]
    ratio = wire / np.asarray(swept.prefill.seconds)
    table["r.ratio"] = four_digits(ratio)
    table["r.you"] = [round(math.log10(max(v, 1e-9)), 4) for v in ratio]
    table["r.text"] = [f"<b>{share_text(v)}</b>" for v in ratio]
    table["r.hover"] = [f"{count_text(n)} tokens<br>wire ÷ prefill = {digits(v)}" for n, v in zip(over.values, ratio, strict=True)]
    return table


def critical_figure(scenario: Scenario, table: Table, rows: Sequence[LinkRow], drawn: Sequence[LinkRow]) -> Figure:
    """Lines for links, the chosen one in the wire's colour; the area in which prefill cannot hide the wire."""
    wide, narrow = (_critical_layout(scenario, table, rows, drawn, narrow=n) for n in (False, True))
    return Figure("critical", wide, narrow, at("answer.text"))


def _critical_layout(scenario: Scenario, table: Table, rows: Sequence[LinkRow], drawn: Sequence[LinkRow], *, narrow: bool) -> Spec:
    tokens = table["c.tokens"]
    curves = {row.id: table[f"c.{row.id}"] for row in drawn}
    low = 10 ** math.floor(math.log10(max(1e-7, min(min(c) for c in curves.values() if min(c) > 0) if curves else 1e-4)))
    low = max(low, 1e-5)
    high = 10 ** math.ceil(math.log10(max(max(max(c) for c in curves.values()), max(table["c.prefill"]))))
    size = 12 if narrow else 13
    own = next(row for row in rows if row.id == scenario.link)
    height = NARROW_HEIGHT if narrow else WIDE_HEIGHT
    margins = {"l": 52, "r": 66 if narrow else 84, "t": 8, "b": 44}
    data: list[Spec] = [
        {"type": "scatter", "mode": "lines", "x": tokens, "y": [high] * len(tokens), "line": {"width": 0, "color": colour("clear")}, "hoverinfo": "skip"},
        {"type": "scatter", "mode": "lines", "x": col("c.tokens"), "y": col("c.prefill"), "fill": "tonexty", "fillcolor": "rgba(181,16,79,0.09)",
         "line": {"width": 2, "color": colour("prefill")}, "name": "prefill", "hovertemplate": "prefill, %{x:,} tokens<extra></extra>"},
    ]  # fmt: skip
    for row in drawn:
        chosen = row.id == scenario.link
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": col("c.tokens"),
                "y": col(f"c.{row.id}"),
                "name": row.short,
                "line": {"width": 3.5 if chosen else 1.25, "color": colour("wire" if chosen else "other")},
                "customdata": col("c.hover" if chosen else f"c.text.{row.id}"),
                "hovertemplate": ("%{customdata}" if chosen else f"over {row.name}<br>%{{customdata}}") + "<extra></extra>",
            }
        )
    data.append({"type": "scatter", "mode": "lines", "x": col("c.tokens"), "y": col("c.step"), "line": {"width": 1.5, "dash": "dash", "color": colour("decode")}, "hoverinfo": "skip", "name": "one decode step"})  # fmt: skip
    data += _markers(own, drawn, table)
    data.append(_end_texts(own, drawn, table, (math.log10(high) - math.log10(low)) / (height - 52), size))
    layout = {
        "height": height,
        "margin": margins,
        "xaxis": {**token_axis(tokens[0], tokens[-1]), "title": {"text": "prompt tokens"}, "fixedrange": True},
        "yaxis": {**time_axis(low, high), "fixedrange": True, "showgrid": True},
        "annotations": _notes(scenario, table, drawn, own, size, narrow),
        "shapes": _rules(own, table, low),
    }
    return {"data": data, "layout": layout}


def _markers(own: LinkRow, drawn: Sequence[LinkRow], table: Table) -> list[Spec]:
    tokens, step = np.asarray(table["c.tokens"], dtype=float), np.asarray(table["c.step"])

    def crossing(row: LinkRow) -> tuple[float, float] | None:
        if row.critical is None or not tokens[0] <= row.critical <= tokens[-1]:
            return None
        return row.critical, float(np.interp(row.critical, tokens, step))

    others = [point for row in drawn if row.id != own.id and (point := crossing(row))]
    mine = crossing(own)
    ring = {"size": 7, "color": colour("bg"), "line": {"width": 1.25, "color": colour("other")}}
    data: list[Spec] = [
        {"type": "scatter", "mode": "markers", "x": [x for x, _ in others], "y": [y for _, y in others], "marker": ring, "hoverinfo": "skip"},
        {"type": "scatter", "mode": "markers", "x": [mine[0]] if mine else [], "y": [mine[1]] if mine else [],
         "marker": {"size": 11, "color": colour("bg"), "line": {"width": 3, "color": colour("wire")}}, "hoverinfo": "skip"},
    ]  # fmt: skip
    return data


def _disc(x: Spec, y: Spec) -> Spec:
    """Where you are. A shape, because moving a shape does not make Plotly draw the lines again."""
    return {
        "type": "circle", "xref": "x", "yref": "y", "xsizemode": "pixel", "ysizemode": "pixel", "xanchor": x, "yanchor": y,
        "x0": -6.5, "x1": 6.5, "y0": -6.5, "y1": 6.5, "fillcolor": colour("ink"), "line": {"color": colour("bg"), "width": 2},
    }  # fmt: skip


def _rules(own: LinkRow, table: Table, low: float) -> list[Spec]:
    shapes: list[Spec] = [
        {"type": "line", "xref": "x", "yref": "y", "x0": at("c.tokens"), "x1": at("c.tokens"), "y0": low, "y1": at("c.you"),
         "line": {"color": colour("ink"), "width": 1}},
        _disc(at("c.tokens"), at("c.you")),
    ]  # fmt: skip
    if own.critical is not None and table["c.tokens"][0] <= own.critical <= table["c.tokens"][-1]:
        line = {"color": colour("wire"), "width": 1, "dash": "dot"}
        top = float(np.interp(own.critical, table["c.tokens"], table["c.step"]))
        ends = {"x0": own.critical, "x1": own.critical, "y0": low, "y1": top}
        shapes.append({"type": "line", "xref": "x", "yref": "y", **ends, "line": line, "layer": "below"})
    return shapes


def _notes(scenario: Scenario, table: Table, drawn: Sequence[LinkRow], own: LinkRow, size: int, narrow: bool) -> list[Spec]:
    tokens = table["c.tokens"]
    left = math.log10(tokens[0])
    notes: list[Spec] = []
    blocked = "<b>link-bound</b>" if narrow else "<b>link-bound</b>: the wire outlasts prefill, so it cannot hide"
    notes.append(
        {**_note(blocked, 0.0, 1.0, "exposed_text", size, xref="paper", xshift=14), "yref": "paper", "yanchor": "top", "yshift": -8}
    )
    notes.append(_note("prefill time", left, math.log10(table["c.prefill"][0]), "prefill_text", size, xshift=6, yshift=12, bg=True))
    notes.append(
        _note(
            at("c.step_text"),
            1.0,
            math.log10(table["c.step"][-1]),
            "decode_text",
            size,
            xref="paper",
            anchor="right",
            yshift=-12,
            xshift=-4,
            bg=True,
        )
    )
    you = _note(at("c.you_text"), at("c.x"), 0.12, "ink", size, anchor=at("c.you_anchor"), bg=True)
    notes.append({**you, "yref": "paper", "align": "left", "xshift": 0, "borderpad": 5})
    if own.critical is not None and tokens[0] <= own.critical <= tokens[-1]:
        text = f"<b>critical: {tokens_text(own.critical)}</b>"
        anchor = "right" if own.critical > 600 else "left"
        notes.append(
            {**_note(text, math.log10(own.critical), 0.035, "wire_text", size, anchor=anchor, bg=True), "yref": "paper", "borderpad": 5}
        )
    return notes


def _end_texts(own: LinkRow, drawn: Sequence[LinkRow], table: Table, per_pixel: float, size: int) -> Spec:
    kept = end_labels(drawn, own, {row.id: table[f"c.{row.id}"][-1] for row in drawn}, per_pixel)
    return {
        "type": "scatter",
        "mode": "text",
        "x": [table["c.tokens"][-1]] * len(kept),
        "y": [10**y for _, y in kept],
        "text": [f"\u2002<b>{row.short}</b>" if row.id == own.id else f"\u2002{row.short}" for row, _ in kept],
        "textposition": "middle right",
        "textfont": {"size": size, "color": [colour("wire_text" if row.id == own.id else "muted") for row, _ in kept]},
        "hoverinfo": "skip",
        "cliponaxis": False,
    }


def end_labels(drawn: Sequence[LinkRow], own: LinkRow, ends: dict[str, float], per_pixel: float) -> list[tuple[LinkRow, float]]:
    """Labels at the lines' ends that stand 14 pixels apart: those nearest the chosen line go first where they cannot."""
    kept: list[tuple[LinkRow, float]] = [(own, math.log10(max(ends[own.id], 1e-12)))]
    others = sorted((row for row in drawn if row.id != own.id), key=lambda row: -abs(math.log10(row.bandwidth / own.bandwidth)))
    for row in others:
        y = math.log10(max(ends[row.id], 1e-12))
        if all(abs(y - placed) >= LABEL_GAP * per_pixel for _, placed in kept):
            kept.append((row, y))
    return kept


def _note(
    text: Spec,
    x: Spec,
    y: Spec,
    fill: str,
    size: int,
    *,
    xref: str = "x",
    anchor: Spec = "left",
    xshift: int = 0,
    yshift: int = 0,
    bg: bool = False,
) -> Spec:
    note = {"text": text, "x": x, "xref": xref, "xanchor": anchor, "y": y, "yref": "y", "yanchor": "middle", "showarrow": False, "xshift": xshift, "yshift": yshift, "borderpad": 1, "font": {"size": size, "color": colour(fill)}}  # fmt: skip
    return {**note, "bgcolor": colour("bg")} if bg else note


def ratio_figure(scenario: Scenario, table: Table) -> Figure:
    """Wire time over prefill time: flat until attention's square outgrows the bytes."""
    return Figure(
        "ratio",
        _ratio_layout(table, narrow=False),
        _ratio_layout(table, narrow=True),
        "Transfer time over prefill time against prompt length",
    )


def _ratio_layout(table: Table, *, narrow: bool) -> Spec:
    tokens, ratio = table["c.tokens"], [v for v in table["r.ratio"] if v > 0]
    low, high = (min(ratio), max(ratio)) if ratio else (0.1, 1.0)
    low, high = 10 ** math.floor(math.log10(min(low, 0.5))), 10 ** math.ceil(math.log10(max(high, 2.0)))
    ticks = [10.0**d for d in range(round(math.log10(low)), round(math.log10(high)) + 1)]
    size = 12 if narrow else 13
    data = [
        {"type": "scatter", "mode": "lines", "x": col("c.tokens"), "y": col("r.ratio"), "line": {"width": 3.5, "color": colour("wire")},
         "customdata": col("r.hover"), "hovertemplate": "%{customdata}<extra></extra>"},
        {"type": "scatter", "mode": "lines", "x": [tokens[0], tokens[-1]], "y": [1, 1], "line": {"width": 1.5, "dash": "dash", "color": colour("prefill")}, "hoverinfo": "skip"},
    ]  # fmt: skip
    notes = [
        _note("as long as prefill", 1.0, 0.0, "prefill_text", size, xref="paper", anchor="right", yshift=10, xshift=-4, bg=True),
        {
            **_note(at("r.text"), at("c.x"), at("r.you"), "ink", size, anchor=at("c.you_anchor"), yshift=-16, bg=True),
            "xshift": 0,
            "borderpad": 4,
        },
    ]
    layout = {
        "height": 240,
        "margin": {"l": 52, "r": 16, "t": 8, "b": 44},
        "xaxis": {**token_axis(tokens[0], tokens[-1]), "title": {"text": "prompt tokens"}, "fixedrange": True},
        "yaxis": {"type": "log", "range": [math.log10(low), math.log10(high)], "tickvals": ticks, "ticktext": [f"{t * 100:,g}\u202f%" for t in ticks], "showgrid": True, "fixedrange": True},
        "annotations": notes,
        "shapes": [_disc(at("c.tokens"), at("r.ratio"))],
    }  # fmt: skip
    return {"data": data, "layout": layout}


def hidden_text(spans: Sequence[Interval]) -> str:
    """Prompts that can hide, in a table's cell."""
    if not spans:
        return "never"
    if spans[0].from_tokens == 1 and spans[0].to_tokens == MAX_PROMPT_TOKENS:
        return "always"
    words = []
    for span in spans:
        if span.from_tokens == 1:
            words.append(f"up to {tokens_text(span.to_tokens)}")
        elif span.to_tokens == MAX_PROMPT_TOKENS:
            words.append(f"from {tokens_text(span.from_tokens)}")
        else:
            words.append(f"{tokens_text(span.from_tokens)} to {tokens_text(span.to_tokens)}")
    return ", ".join(words)


def links_block(scenario: Scenario, rows: Sequence[LinkRow]) -> dict[str, Any]:
    """Every link in a table: bandwidth, your prompt, critical length, what can hide."""
    head = {
        "tag": "tr",
        "children": [
            _cell("th", t, wide=i == 1) for i, t in enumerate(("Link", "Bandwidth", "Your prompt", "Critical tokens", "Can hide"))
        ],
    }
    body = []
    for row in rows:
        critical = "never" if row.critical is None else "always" if row.critical == 1 else tokens_text(row.critical)
        cells = [row.name, rate_text(row.bandwidth), at(f"c.text.{row.id}"), critical, hidden_text(row.hidden)]
        body.append(
            {
                "tag": "tr",
                "class": "kv-chosen" if row.id == scenario.link else "",
                "children": [_cell("td", c, wide=i == 1) for i, c in enumerate(cells)],
            }
        )
    table = {"tag": "table", "class": "kv-table", "children": [{"tag": "thead", "children": [head]}, {"tag": "tbody", "children": body}]}
    return {"tag": "div", "class": "kv-scroll", "tabindex": "0", "role": "region", "aria-label": "Every link", "children": [table]}


def _cell(tag: str, content: Any, *, wide: bool) -> dict[str, Any]:
    scope = {"scope": "col"} if tag == "th" else {}
    return {"tag": tag, "class": "kv-wide" if wide else "", **scope, "children": [content]}
