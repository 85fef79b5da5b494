"""Wire time over prefill time: flat while both grow with the prompt, lower where prefill has more to do than that."""

from __future__ import annotations

import math

from app.charts.curves import Curves
from app.charts.marks import axis_title, disc, line, note
from app.charts.scale import log_axis, token_axis
from app.charts.spec import Figure, Spec, Table, at, col, colour
from kvmodel.display import NARROW_SPACE, share_text, tokens_text

FLAT = 0.10
"""Shares within this part of each other count as flat."""


def ratio_text(table: Table) -> str:
    """How the ratio goes over the prompts drawn, in a sentence."""
    tokens, ratio = table["c.tokens"], table["r.ratio"]
    top = max(range(len(ratio)), key=ratio.__getitem__)
    first, most, last = (share_text(ratio[i]) for i in (0, top, -1))
    if not ratio[top]:
        return "Nothing moves, so there is nothing to compare."
    low = min(ratio)
    if ratio[top] - low <= FLAT * ratio[top]:
        return f"The ratio is flat: no prompt has it above {most}."
    rises, falls = ratio[0] < (1 - FLAT) * ratio[top], ratio[-1] < (1 - FLAT) * ratio[top]
    if rises and falls:
        return f"The ratio rises from {first} to {most} at {tokens_text(tokens[top])} tokens and falls to {last} at the longest prompt."
    way = "rises" if rises else "falls"
    return f"The ratio {way} from {first} at the shortest prompt to {last} at the longest."


def ratio_figure(table: Table, pinned: Curves | None = None) -> Figure:
    """The ratio against prompt length, from the table of `app.charts.critical`; a pin's dashed."""
    return Figure("ratio", _layout(table, pinned, 13), _layout(table, pinned, 12), "Transfer time over prefill time against prompt length")


def _layout(table: Table, pinned: Curves | None, size: int) -> Spec:
    tokens = table["c.tokens"]
    values = [v for v in [*table["r.ratio"], *(pinned.ratio if pinned else [])] if v > 0] or [1.0]
    low = 10.0 ** math.floor(math.log10(min(*values, 0.5)))
    high = 10.0 ** math.ceil(math.log10(max(*values, 2.0)))
    ticks = [10.0**d for d in range(round(math.log10(low)), round(math.log10(high)) + 1)]
    data = [
        line(col("c.tokens"), col("r.ratio"), "wire", 3.5, customdata=col("r.hover"), hovertemplate="%{customdata}<extra></extra>"),
        line([tokens[0], tokens[-1]], [1, 1], "prefill", 1.5, dash="dash"),
        *([pinned.ratio_line()] if pinned else []),
    ]
    right = {"xref": "paper", "xanchor": "right", "yshift": 10, "xshift": -4, "bgcolor": colour("bg")}
    you = {"xanchor": at("c.you_anchor"), "yshift": -18, "bgcolor": colour("bg"), "borderpad": 3}
    layout = {
        "height": 260,
        "margin": {"l": 52, "r": 16, "t": 28, "b": 44},
        "xaxis": {**token_axis(tokens[0], tokens[-1]), "title": {"text": "prompt tokens"}, "fixedrange": True},
        "yaxis": {**log_axis(low, high, ticks, [f"{t * 100:,g}{NARROW_SPACE}%" for t in ticks]), "showgrid": True, "fixedrange": True},
        "annotations": [
            axis_title("wire ÷ prefill", size, 52),
            *([pinned.label(pinned.ratio, "pin", size)] if pinned else []),
            note("as long as prefill", 1.0, 0.0, "prefill_text", size, **right),
            note(at("r.text"), at("c.x"), at("r.you"), "ink", size, **you),
            disc(at("c.x"), at("r.you")),
        ],
    }
    return {"data": data, "layout": layout}
