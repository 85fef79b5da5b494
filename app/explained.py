"""Explanations as text: values in their units, where they come from, what would halve the figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.answers import spans_text
from kvmodel.critical import Interval
from kvmodel.display import (
    MINUS,
    NARROW_SPACE,
    bytes_both_text,
    bytes_text,
    count_text,
    digits,
    exact_bytes_text,
    flop_text,
    rate_text,
    share_text,
    shared_time_unit,
    time_text,
    tokens_text,
)
from kvmodel.explain import Explanation, Given, Remedy

EXACT_BELOW = 1e7
"""Bytes below which every one is written."""


def value_text(value: Any, unit: str) -> str:
    """A value in its unit, as people read it."""
    if value is None:
        return "never" if unit == "tokens" else "none"
    if unit == "ranges":
        return spans_text(tuple(Interval(*pair) for pair in value))
    if isinstance(value, str):
        return value
    if value < 0:
        return MINUS + value_text(-value, unit)
    write = {
        "B": lambda: _bytes(value),
        "s": lambda: time_text(value),
        "tokens": lambda: f"{count_text(value)} tokens",
        "share": lambda: share_text(value),
        "B/s": lambda: rate_text(value),
        "s/B": lambda: f"{digits(value * 1e12)}{NARROW_SPACE}ps a byte",
        "FLOP": lambda: flop_text(value),
        "FLOP/s": lambda: flop_text(value) + "/s",
    }.get(unit, lambda: count_text(value) if float(value).is_integer() or value >= 1000 else f"{value:.4g}")
    return write()


def _bytes(count: float) -> str:
    if count >= EXACT_BELOW or count != round(count):
        return bytes_both_text(count)
    binary = bytes_both_text(count).partition(" (")[2]
    return exact_bytes_text(count) + (f" ({binary}" if binary else "")


def headline(told: Explanation) -> str:
    """The figure's value, with its band where it has one."""
    value = tokens_text(told.value) + " tokens" if told.unit == "tokens" and told.value else value_text(told.value, told.unit)
    if told.low is None or told.high is None:
        return value
    unit = shared_time_unit(told.low, told.high)
    return f"{value}, band {time_text(told.low, unit)} to {time_text(told.high, unit)}"


def filled_text(told: Explanation) -> str:
    """The formula with values and its result; empty where it has none."""
    alone = told.terms[0].how if len(told.terms) == 1 else ""
    filled = told.filled or alone or (_sum([part.value for part in told.terms], told.unit) if len(told.terms) > 1 else "")
    return f"= {filled} = {value_text(told.value, told.unit)}" if filled else ""


def term_text(value: float, unit: str) -> str:
    """A term of a sum: bytes in SI units alone."""
    return (MINUS if value < 0 else "") + bytes_text(abs(value)) if unit == "B" else value_text(value, unit)


def share_of(share: float) -> str:
    """A part's share of all that is added; of what is taken off it is negative."""
    return (MINUS if share < 0 else "") + share_text(abs(share))


def _sum(values: Sequence[float], unit: str) -> str:
    """Values as a sum, times in one unit where that can be read."""
    shared, most = shared_time_unit(*values), max(map(abs, values))
    texts = [time_text(abs(v), shared if abs(v) > 1e-3 * most else None) if unit == "s" else term_text(abs(v), unit) for v in values]
    return " ".join(("− " if value < 0 else "+ ") + text for value, text in zip(values, texts, strict=True)).removeprefix("+ ")


def named(given: Given) -> str:
    """A value's name, with its symbol where it has one."""
    return f"{given.name} ({given.symbol})" if given.symbol else given.name


def from_text(given: Given) -> str:
    """Where a value comes from: the reader, a default, a row of `data/` and the day it was checked."""
    where = {"you": "you set it", "default": "default", "computed": "computed", "fit": "fitted"}.get(given.origin, "")
    checked = f"checked {given.checked.isoformat()}" if given.checked else ""
    return ", ".join(word for word in (where, given.row, checked) if word)


def remedy_text(remedy: Remedy, unit: str) -> str:
    """A change and what the figure would be."""
    if unit == "ranges":
        return remedy.change
    share = "" if remedy.share is None else f", {share_text(remedy.share)} of now"
    return f"{remedy.change}: {value_text(remedy.value, unit)}{share}"


INSTEAD = {"sticky.stall_seconds": ", because the prefill side serves the turn then"}
"""What is done instead where a change leaves nothing of a figure."""


def remedies_text(told: Explanation) -> list[str]:
    """What reaches the goal, a line each; or that nothing does by itself, and what comes nearest."""
    if told.remedies:
        way = INSTEAD.get(told.figure, "")
        return [f"{remedy_text(remedy, told.unit)}{way if remedy.value == 0 else ''}" for remedy in told.remedies]
    if told.met:
        return ["nothing is left to better"]
    nearest = f"; nearest comes {remedy_text(told.nearest, told.unit)}" if told.nearest else ""
    return [f"no single input does{nearest}"]


def sources(inputs: Sequence[Given]) -> dict[str, str]:
    """What the rows that values stand in name as their sources, each once."""
    found: dict[str, str] = {}
    for given in inputs:
        if given.source and given.source not in found.get(given.row, ""):
            found[given.row] = "; ".join(text for text in (found.get(given.row, ""), given.source) if text)
    return found


def explanation_text(told: Explanation) -> str:
    """An explanation for a reader of the command line."""
    lines = [f"{told.name} ({told.figure}): {headline(told)}", f"  {told.words}", f"  {told.symbols}"]
    lines += [f"    {filled_text(told)}"] if filled_text(told) else []
    if len(told.terms) > 1:
        terms = [(p.name, term_text(p.value, told.unit), share_of(p.share), p.how or p.symbol) for p in told.terms]
        lines += ["  Terms", *_columns(terms)]
    put_in = [(named(g), value_text(g.value, g.unit), from_text(g)) for g in told.inputs]
    lines += ["  Values put in", *_columns(put_in)]
    found = list(sources(told.inputs).items())
    lines += ["  Sources", *_columns(found)] if found else []
    return "\n".join([*lines, f"  {told.goal}", *(f"    {line}" for line in remedies_text(told)), f"  {told.left_out}"])


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells with two spaces between, the last as long as it is."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["    " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
