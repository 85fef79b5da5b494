"""`--against QUERY`: a scenario beside another, on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any
from urllib.parse import parse_qsl

from app.model_names import scenario_of
from kvmodel.compare import Comparison, compare
from kvmodel.errors import BadScenarioError
from kvmodel.scenario import Scenario
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


def comparison_text(found: Comparison) -> str:
    """The sentence, the inputs that differ, and the figures of both."""
    inputs = [(change.title, change.pinned, change.this, "") for change in found.inputs]
    rows = [("", "pinned", "this", "change"), *inputs, *((figure.title, *figure.texts()) for figure in found.figures)]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = ["  " + "  ".join([f"{row[0]:<{widths[0]}}", f"{row[1]:>{widths[1]}}", f"{row[2]:>{widths[2]}}", row[3]]) for row in rows]
    told = [f"Pinned: {found.pinned.verdict}", f"This:   {found.this.verdict}"]
    return "\n".join([plain(found.sentence), *(line.rstrip() for line in lines), *told])
