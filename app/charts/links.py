"""Every link under a scenario: its curve over prompt lengths, its critical length, what it can hide."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from app.charts.full_rate import is_far
from app.charts.spec import at
from kvmodel import registry
from kvmodel.critical import Interval, Test, intervals, is_hidden
from kvmodel.display import bytes_text, count_text, digits, rate_text, tokens_text
from kvmodel.evaluate import amounts_of
from kvmodel.handoff import handoff
from kvmodel.plan import plan_of
from kvmodel.scenario import MAX_PROMPT_TOKENS, Scenario
from kvmodel.verdict import Sentence

_FOLDED = {"tag": "span", "children": ["Which prompts each link hides"]}
_GRID = {"per_doubling": 24, "dense": 64}
_HEADS = ("Link", "Bandwidth", "Your prompt", "Outlasts a step from")


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
    """Every link, fastest first; the scenario's prompt plays no part (see `without_prompt`)."""
    found = sorted(registry.links().values(), key=lambda link: (-link.bandwidth, is_far(link), link.id))
    return tuple(_row(on_link(scenario, link.id)) for link in found)


@lru_cache(maxsize=512)
def _row(other: Scenario) -> LinkRow:
    """The row of a scenario's own link."""
    link = registry.links()[other.link]
    plan, measured = plan_of(other), other.link_gbytes_per_s
    steps = intervals(_outlasts_step(other), **_GRID)
    hidden = intervals(_hides(other.with_changes(overlap="layer")), **_GRID)
    bandwidth = plan.lane.bandwidth if measured is None else measured * 1e9
    return LinkRow(link.id, link.name, link.short, bandwidth, steps[0].from_tokens if steps else None, hidden)


def _outlasts_step(scenario: Scenario) -> Test:
    plan, amounts = plan_of(scenario), amounts_of(scenario)

    def holds(tokens: Any) -> Any:
        result = handoff(plan, replace(amounts, prompt_tokens=tokens))
        return (result.transfer.seconds >= result.decode.step_seconds) & (result.kv.wire_bytes > 0)

    return holds


def _hides(scenario: Scenario) -> Test:
    plan, amounts = plan_of(scenario), amounts_of(scenario)
    return lambda tokens: is_hidden(handoff(plan, replace(amounts, prompt_tokens=tokens)).bound)


def on_link(scenario: Scenario, link: str) -> Scenario:
    """The scenario on another link; a measured bandwidth belongs to its own link."""
    return scenario if link == scenario.link else scenario.with_changes(link=link, link_gbytes_per_s=None)


def without_prompt(scenario: Scenario) -> Scenario:
    """The scenario with the default prompt: key of what does not depend on it."""
    return scenario.with_changes(prompt_tokens=Scenario.model_fields["prompt_tokens"].default)


def drawn_links(scenario: Scenario, rows: Sequence[LinkRow]) -> list[LinkRow]:
    """One link for each bandwidth, the chosen one among them; slowest first."""
    chosen = next(row for row in rows if row.id == scenario.link)
    by_speed = {_speed(row): row for row in reversed(rows)}  # the first of each
    by_speed[_speed(chosen)] = chosen
    return sorted(by_speed.values(), key=lambda row: row.bandwidth)


def same_speed(row: LinkRow, rows: Sequence[LinkRow]) -> list[str]:
    """The other links that share a line with one, by their short names."""
    return [other.short for other in rows if other.id != row.id and _speed(other) == _speed(row)]


def _speed(row: LinkRow) -> float:
    return float(f"{row.bandwidth:.2g}")


def critical_sentence(row: LinkRow, steps: float, *, moves: bool) -> Sentence:
    """The answer: where the chosen link begins to matter."""
    if not moves:
        return (("Decode already holds this prompt: ", ""), (bytes_text(0), "wire", "kv.wire_bytes"), (" to move.", ""))
    if row.critical is None:
        return ((f"On {row.name}, no prompt up to {count_text(MAX_PROMPT_TOKENS)} outlasts a decode step.", ""),)
    if row.critical == 1:
        return ((f"Every handoff on {row.name} outlasts a decode step; yours takes {digits(steps)} steps.", ""),)
    return (
        (f"On {row.name}, a prompt past ", ""),
        (f"{tokens_text(row.critical)} tokens", "wire", "decode_step_tokens"),
        (f" spends longer on the wire than one decode step; yours spends {digits(steps)} steps.", ""),
    )


def hidden_text(spans: Sequence[Interval]) -> str:
    """Prompts that can hide, in a table's cell."""
    words = []
    for span in spans:
        first, last = span.from_tokens == 1, span.to_tokens == MAX_PROMPT_TOKENS
        low, high = tokens_text(span.from_tokens), tokens_text(span.to_tokens)
        words.append("every prompt" if first and last else f"up to {high}" if first else f"from {low}" if last else f"{low} to {high}")
    return " and ".join(words) or "no prompt"


def links_block(scenario: Scenario, rows: Sequence[LinkRow], seconds: Mapping[str, float]) -> dict[str, Any]:
    """Every link in a table, the longest critical length first, then the least time of your prompt, from `seconds` by link."""
    ordered = sorted(rows, key=lambda row: (-(row.critical or math.inf), seconds[row.id]))
    body = [(row, (row.name, rate_text(row.bandwidth), at(f"c.text.{row.id}"), _critical_text(row))) for row in ordered]
    return _table("Every link", _HEADS, body, scenario.link)


def hides_block(scenario: Scenario, rows: Sequence[LinkRow]) -> dict[str, Any]:
    """Which prompts each link hides, a folded table."""
    body = [(row, (row.name, rate_text(row.bandwidth), hidden_text(row.hidden))) for row in rows]
    table = _table("Prompts that each link hides", ("Link", "Bandwidth", "Hides layer by layer"), body, scenario.link)
    own = next(row for row in rows if row.id == scenario.link)
    mine = {"tag": "span", "children": [f"{own.short}: {hidden_text(own.hidden)}"]}
    return {"tag": "details", "class": "kv-row", "children": [{"tag": "summary", "children": [_FOLDED, mine]}, table]}


def _critical_text(row: LinkRow) -> str:
    return "never" if row.critical is None else "the first token" if row.critical == 1 else tokens_text(row.critical)


def _table(title: str, heads: Sequence[str], rows: Sequence[tuple[LinkRow, Sequence[Any]]], chosen: str) -> dict[str, Any]:
    head = {"tag": "tr", "children": [_cell("th", text, i) for i, text in enumerate(heads)]}
    body = [
        {"tag": "tr", "class": "kv-chosen" if row.id == chosen else "", "children": [_cell("td", cell, i) for i, cell in enumerate(cells)]}
        for row, cells in rows
    ]
    table = {"tag": "table", "class": "kv-table", "children": [{"tag": "thead", "children": [head]}, {"tag": "tbody", "children": body}]}
    return {"tag": "div", "class": "kv-scroll", "tabindex": "0", "role": "region", "aria-label": title, "children": [table]}


def _cell(tag: str, content: Any, index: int) -> dict[str, Any]:
    scope = {"scope": "col"} if tag == "th" else {}
    return {"tag": tag, "class": "kv-wide" if index == 1 else "", **scope, "children": [content]}
