"""`--against QUERY`: a scenario beside another, on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any
from urllib.parse import parse_qsl

from app.model_names import scenario_of
from kvmodel.changes import InputChange
from kvmodel.compare import Comparison, FigurePair, compare
from kvmodel.compare_turns import TurnComparison, compare_turns
from kvmodel.errors import BadScenarioError
from kvmodel.scenario import Scenario, parse_text
from kvmodel.turn import Turn
from kvmodel.verdict import plain

DEFAULTS = "defaults"
"""The query of a scenario that differs in nothing from the defaults."""
MAX_QUERY = 2_000
"""Characters of a scenario to compare with; all inputs changed take some 1,600."""


def against_texts(text: str, known: Sequence[str]) -> dict[str, str]:
    """Inputs as texts from the query of a link, or from a link. Raises BadScenarioError for an input that is not known."""
    query = text.rpartition("?")[2].strip()
    texts = dict(parse_qsl(query, keep_blank_values=True)) if len(query) <= MAX_QUERY else {}
    strange = next((name for name in texts if name not in known), None)
    if strange is not None and query != DEFAULTS:
        near = get_close_matches(strange, known, n=3, cutoff=0.5)
        raise BadScenarioError(f"against: no input is called {strange[:60]!r}" + (f"; nearest: {', '.join(near)}" if near else ""))
    if not texts and query != DEFAULTS:
        raise BadScenarioError(
            f"against: got {text[:60]!r}; allowed: inputs as in a link, such as 'link=roce-100&batch=4', or {DEFAULTS}; "
            f"up to {MAX_QUERY:,} characters"
        )
    return {} if query == DEFAULTS else texts


def beside(found: dict[str, Any], text: str, this: Scenario, against: str) -> tuple[dict[str, Any], str]:
    """The answer on one scenario with its comparison to another. Raises KvModelError."""
    comparison = compare(scenario_of(against_texts(against, list(Scenario.model_fields))), this)
    return {**found, "compare": comparison.as_dict()}, f"{text}\n\n{comparison_text(comparison)}"


def beside_turn(found: dict[str, Any], text: str, this: tuple[Scenario, Turn], against: str) -> tuple[dict[str, Any], str]:
    """The answer on one turn with its comparison to another. Raises KvModelError."""
    texts = against_texts(against, [*Turn.model_fields, *Scenario.model_fields])
    turn = parse_text(Turn, {name: value for name, value in texts.items() if name in Turn.model_fields})
    scenario = scenario_of({name: value for name, value in texts.items() if name not in Turn.model_fields})
    comparison = compare_turns((scenario, turn), this)
    return {**found, "compare": comparison.as_dict()}, f"{text}\n\n{turn_comparison_text(comparison)}"


def comparison_text(found: Comparison) -> str:
    """The sentence, the inputs that differ, the figures of both, and what each says of itself; what a format costs."""
    told = [f"Pinned: {found.pinned.verdict}", f"This:   {found.this.verdict}", *([found.accuracy] if found.accuracy else [])]
    return "\n".join([plain(found.sentence), *_rows(found.inputs, [(figure.title, figure) for figure in found.figures]), *told])


def turn_comparison_text(found: TurnComparison) -> str:
    """The sentence, the inputs that differ, and each design under both."""
    figures = [
        (f"{d.id}{'' if d.warm else ' (cold)'}, {f.title[0].lower()}{f.title[1:]}", f) for d in found.designs for f in (d.ttft, d.unique)
    ]
    return "\n".join([plain(found.sentence), *_rows(found.inputs, figures), *([found.accuracy] if found.accuracy else [])])


def _rows(inputs: Sequence[InputChange], figures: Sequence[tuple[str, FigurePair]]) -> list[str]:
    """Inputs and figures of both in columns."""
    told = [("", "pinned", "this", "change"), *((change.title, change.pinned, change.this, "") for change in inputs)]
    rows = [*told, *((title, *figure.texts()) for title, figure in figures)]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    return [f"  {a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}  {d}".rstrip() for a, b, c, d in rows]
