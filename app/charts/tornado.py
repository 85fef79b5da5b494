"""What moves the first token: every input halved and doubled by itself, and where it flips the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from app.charts.levers import signed
from app.charts.marks import Label, labels, rule
from app.charts.spec import Figure, Spec, Table, at, colour
from app.charts.tables import table_block
from app.over import Over, evaluate_over
from kvmodel.display import count_text, digits, rate_text, share_text, time_text
from kvmodel.scenario import Scenario
from kvmodel.sensitivity import INPUTS, REACH, WHOLE, Turned, sensitivity
from kvmodel.verdict import Sentence, first_short, plain, supposed

SCALE = 60_000
"""Units of the axis."""
ROW, HEAD = 40, 34
"""Pixels of a row, and of the heads above."""
COLOURS = {
    "prefill_seconds": "prefill",
    "prompt_tokens": "prefill",
    "batch": "prefill",
    "decode_step_seconds": "decode",
    "decode_batch": "decode",
}
"""Inputs by what they mean; the others are the wire's."""
PANEL = {"w": (12_000, 50_000), "n": (13_500, 46_500)}
"""Left and right of the bars' panel, by layout: beyond it there is room for words."""


def turned_over(scenario: Scenario, field: str, values: Sequence[int]) -> tuple[Turned, ...]:
    """Every input turned, at each value of a field."""
    return sensitivity(scenario, **{field: np.asarray(values)})


def tornado_table(
    scenario: Scenario, field: str, values: Sequence[int], order: Sequence[str], pinned: Mapping[str, tuple[float, float]] | None = None
) -> Table:
    """Columns over a slider's positions; rows in the given order of inputs, `pinned` the changes of a pinned scenario's first token."""
    found = {turned.field: turned for turned in turned_over(scenario, field, values)}
    rows = [found[name] for name in order]
    others = [pinned[name] for name in order] if pinned else []
    fits = [row.feasible for row in evaluate_over(scenario, field, tuple(values)).rows]
    frames = [_frame(rows, i, others, feasible=fits[i]) for i in range(len(values))]
    return {name: [frame[name] for frame in frames] for name in frames[0]}


def _frame(rows: Sequence[Turned], i: int, others: Sequence[tuple[float, float]], *, feasible: bool) -> dict[str, Any]:
    changes = [(float(turned.half_seconds[i]), float(turned.twice_seconds[i])) for turned in rows]
    low, high = (of(0.0, *(of(pair) for pair in (*changes, *others))) for of in (min, max))
    sentence = supposed(_sentence(rows, i), feasible=feasible)
    frame: dict[str, Any] = {"answer": [list(part) for part in sentence], "answer.text": plain(sentence)}
    frame["k.now"] = [value_text(turned.field, float(turned.now[i])) for turned in rows]
    frame["k.flip"] = [flip_text(turned, i) for turned in rows]
    for k, name in enumerate(("half", "twice")):
        frame[f"k.{name}"] = [
            f"{signed(pair[k])} at {value_text(turned.field, _value(turned, i, k))}" for turned, pair in zip(rows, changes, strict=True)
        ]
    for prefix, (left, right) in PANEL.items():
        unit = (right - left) / max(high - low, 1e-12)
        zero = round(left - low * unit)
        ends = [[round(zero + value * unit) for value in pair] for pair in changes]
        frame[f"{prefix}.zero"] = zero
        if others:
            frame[f"{prefix}.pin"] = [round((max(0.0, *pair) - min(0.0, *pair)) * unit) for pair in others]
            frame[f"{prefix}.pin_base"] = [round(zero + min(0.0, *pair) * unit) for pair in others]
        for k, name in enumerate(("half", "twice")):
            frame[f"{prefix}.{name}"] = [pair[k] - zero for pair in ends]
        sides = [_sides(turned.field, pair, change) for turned, pair, change in zip(rows, ends, changes, strict=True)]
        frame[f"{prefix}.low"], frame[f"{prefix}.low_text"] = [s[0] for s in sides], [s[1] for s in sides]
        frame[f"{prefix}.high"], frame[f"{prefix}.high_text"] = [s[2] for s in sides], [s[3] for s in sides]
    return frame


def _value(turned: Turned, i: int, k: int) -> float:
    return float((turned.half if k == 0 else turned.twice)[i])


def _sides(field: str, ends: Sequence[int], changes: Sequence[float]) -> tuple[int, str, int, str]:
    """(left end, its words, right end, its words): each says which way the input went, and by how much the first token moves."""
    marks = ("÷2", "+½" if field == "decode_held_tokens" else "×2")
    texts = [f"{mark} {signed(change)}" for mark, change in zip(marks, changes, strict=True)]
    first, last = (0, 1) if changes[0] <= changes[1] else (1, 0)
    if abs(changes[0] - changes[1]) < 5e-10:
        return ends[first], "", ends[last], "\u2002moves nothing"
    left, right = (texts[k] if abs(changes[k]) >= 5e-10 else "" for k in (first, last))
    if changes[first] > 5e-10:
        return ends[first], "", max(ends), f"\u2002{texts[last]}"
    if changes[last] < -5e-10:
        return min(ends), f"{texts[first]}\u2002", ends[last], ""
    return ends[first], f"{left}\u2002" if left else "", ends[last], f"\u2002{right}" if right else ""


def value_text(field: str, value: float) -> str:
    """An input's value with its unit."""
    if field == "link_gbytes_per_s":
        return rate_text(value * 1e9)
    if field.endswith("_seconds"):
        return time_text(value)
    return count_text(value) + (" tokens" if field.endswith("tokens") else "")


def flip_text(turned: Turned, i: int) -> str:
    """Where the verdict flips, in a few words."""
    if np.isnan(turned.flips_at[i]):
        return "does not flip"
    value = float(turned.flips_at[i])
    shown = value_text(turned.field, value) if turned.field not in WHOLE else f"{value:,.0f}"
    return f"{turned.would[i]} from {shown} {_way(turned, i)}"


def _way(turned: Turned, i: int) -> str:
    """On which side of its value the verdict is flipped."""
    return "up" if turned.flips_up[i] else "down"


NOW = {"nothing": "nothing moves", "hidden": "the wire hides", "link": "link-bound", "exposed": "nothing hides the wire"}
"""What bounds the transfer, in words."""


def verdict_table(over: Over) -> Table:
    """What holds now, which is what flips: what bounds the transfer, and the gap beside its mark."""
    return {"k.verdict": [f"Now: {NOW[row.bound]}, and the gap is {share_text(row.gap_share)} of TTFT." for row in over.rows]}


def _sentence(rows: Sequence[Turned], i: int) -> Sentence:
    """What moves the first token most, and what flips the verdict soonest: the longest that is short enough."""
    most = max(rows, key=lambda turned: float(turned.spread[i]))
    soon = min(rows, key=lambda turned: float(turned.distance[i]))
    low, high = sorted((float(most.half_seconds[i]), float(most.twice_seconds[i])))
    reach = f"{signed(low)} to {signed(high)}"
    head = (f"{INPUTS[most.field]} moves ", ""), ("the first token", "", "ttft_seconds"), (" most, ", ""), (reach, "exposed")
    if np.isinf(soon.distance[i]):
        return (*head, (f"; no input alone flips the verdict within {digits(REACH)} times.", ""))
    name, value = INPUTS[soon.field].lower(), value_text(soon.field, float(soon.flips_at[i]))
    some = f"a {name} of {value}"
    beyond = f"from {some} {_way(soon, i)}" if soon.field in WHOLE else f"{'above' if soon.flips_up[i] else 'below'} {some}"
    tails = (f"{beyond}: {soon.would[i]}.", f"{beyond}, another verdict.", f"{name} is nearest to another verdict.")
    said = [(*head, (f"; {tail}", "")) for tail in tails]
    return first_short(said)


def tornado_figure(order: Sequence[str]) -> Figure:
    """A row an input: a bar each for half and twice of it, out from the first token as it is."""
    return Figure("tornado", _layout(order, "w"), _layout(order, "n"), at("answer.text"))


def _layout(order: Sequence[str], prefix: str) -> Spec:
    wide, count = prefix == "w", len(order)
    size = 13 if wide else 12
    middle = [HEAD + ROW * (k + 0.5) for k in range(count)]
    tones = [COLOURS.get(name, "exposed") for name in order]
    bars = {
        "type": "bar",
        "orientation": "h",
        "base": at(f"{prefix}.zero"),
        "x": [at(f"{prefix}.{name}", k) for name in ("half", "twice") for k in range(count)],
        "y": [*middle, *middle],
        "width": 0.46 * ROW,
        "marker": {"color": [colour(tone) for tone in tones] * 2, "opacity": [1.0] * count + [0.55] * count},
        "customdata": [at(f"k.{name}", k) for name in ("half", "twice") for k in range(count)],
        "hovertext": [INPUTS[name] for name in order] * 2,
        "hovertemplate": "%{hovertext}<br>%{customdata}<extra></extra>",
    }
    words = [Label(at(f"{prefix}.low_text", k), at(f"{prefix}.low", k), y, "body", size, "middle left") for k, y in enumerate(middle)]
    words += [Label(at(f"{prefix}.high_text", k), at(f"{prefix}.high", k), y, "body", size, "middle right") for k, y in enumerate(middle)]
    words += [Label("<b>first token now</b>", at(f"{prefix}.zero"), HEAD / 2, "ink", size)]
    words += [
        Label(f"{INPUTS[name]}\u2002", 0, y - (0 if wide else 16), "body", size, "middle left" if wide else "middle right")
        for name, y in zip(order, middle, strict=True)
    ]
    height = HEAD + ROW * count + 4
    layout = {
        "height": height,
        "margin": {"l": 160 if wide else 0, "r": 0, "t": 0, "b": 0},
        "barmode": "overlay",
        "xaxis": {"range": [0, SCALE], "visible": False, "fixedrange": True},
        "yaxis": {"range": [height, 0], "visible": False, "showgrid": False, "fixedrange": True},
        "shapes": [rule(at(f"{prefix}.zero"), HEAD - 4, height - 4, "muted", 1)],
    }
    return {"data": [bars, labels(words)], "layout": layout}


def flips_block(order: Sequence[str]) -> dict[str, Any]:
    """Every input in a table: its value, what half and twice of it change, where the verdict flips."""
    heads = ("Input", "now", "half", "twice", "the verdict")
    rows = [[INPUTS[name], *(at(f"k.{column}", k) for column in ("now", "half", "twice", "flip"))] for k, name in enumerate(order)]
    return table_block("Inputs turned", heads, rows, look="", wide=(2, 3))
