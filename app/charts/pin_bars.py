"""The first token of the pinned scenario and of this one as two bars to one scale, named after what differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.charts.spec import Table, at
from kvmodel.changes import InputChange
from kvmodel.compare import pair_unit
from kvmodel.designs import Design
from kvmodel.display import time_text

SIDES = (("was", "Pinned"), ("now", "Now"))
TERMS = (("prefill", "prefill"), ("exposed transfer", "exposed"), ("fixed handoff", "other"), ("first decode step", "decode"))
"""What adds up to the first token, and its meaning."""
ALONE = ("model", "link", "engine")
"""Inputs whose values need no title."""
NAMED = 2
"""Inputs that a bar is named after."""
REACH = 82
"""Percent of the width that the longer bar takes: the rest is for its time."""

Terms = Mapping[str, float]


def pin_bars_table(pinned: Terms, this: Sequence[Terms], changes: Sequence[Sequence[InputChange]]) -> Table:
    """Columns of both bars over a slider's positions, from the seconds of `TERMS` of each scenario and what differs."""
    table: Table = {f"pin.bar.{side}.{part}": [] for side, _ in SIDES for part in ("name", "text", *range(len(TERMS)))}
    for terms, found in zip(this, changes, strict=True):
        both = {"was": pinned, "now": terms}
        totals = {side: sum(both[side].values()) for side in both}
        longest, unit = max(*totals.values(), 1e-12), pair_unit(*totals.values())
        for side, title in SIDES:
            table[f"pin.bar.{side}.name"].append(bar_name(title, found, side))
            table[f"pin.bar.{side}.text"].append(time_text(totals[side], unit))
            for i, (name, _) in enumerate(TERMS):
                table[f"pin.bar.{side}.{i}"].append(f"width:{REACH * both[side].get(name, 0.0) / longest:.2f}%")
    return table


def bar_name(title: str, changes: Sequence[InputChange], side: str) -> str:
    """`Pinned: NDR 400`: the values of the first inputs that differ."""
    told = [_value(change, change.pinned if side == "was" else change.this) for change in changes]
    more = f" and {len(told) - NAMED} more" if len(told) > NAMED else ""
    return f"{title}: {', '.join(told[:NAMED])}{more}" if told else title


def _value(change: InputChange, text: str) -> str:
    if change.name in ALONE:
        return text
    title = change.title if change.title[1:2].isupper() else change.title[0].lower() + change.title[1:]
    return f"{text} tokens" if change.name == "prompt_tokens" else f"{title} {text}"


def turn_terms(design: Design) -> Terms:
    """What adds up to the first token of a turn."""
    terms = (design.prefill_seconds, max(0.0, design.wait_seconds), 0.0, design.step_seconds)
    return {name: float(seconds) for (name, _), seconds in zip(TERMS, terms, strict=True)}


def pin_bars() -> dict[str, Any]:
    """Both bars with their names and times."""
    rows = []
    for side, _ in SIDES:
        parts = [_span("", look=f"kv-swatch-{meaning}", style=at(f"pin.bar.{side}.{i}")) for i, (_, meaning) in enumerate(TERMS)]
        track = {"tag": "div", "class": "kv-pin-track", "children": [*parts, _span(at(f"pin.bar.{side}.text"))]}
        rows.append({"tag": "div", "class": "kv-pin-bar", "children": [_span(at(f"pin.bar.{side}.name")), track]})
    return {"tag": "div", "class": "kv-pin-bars", "role": "group", "aria-label": "Time to first token, to scale", "children": rows}


def _span(child: Any, *, look: str = "", style: Any = None) -> dict[str, Any]:
    named = {**({"class": look} if look else {}), **({} if style is None else {"style": style})}
    return {"tag": "span", **named, "children": [child]}
