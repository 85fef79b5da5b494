"""`--explain [FIGURE]` of the commands that print figures."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import kvmodel
from app import report
from app.explained import explanation_text
from kvmodel.explain import FIGURES, Case, Figure, explained, figures_of, find_figure
from kvmodel.scenario import Scenario
from kvmodel.turn import Turn

Answer = tuple[dict[str, Any], str]

FIGURES_OF: dict[str, tuple[Figure, ...]] = {
    "evaluate": figures_of("request"),
    "critical": figures_of("critical"),
    "turn": figures_of("turn"),
    "wire": tuple(FIGURES[name] for name in ("gap_seconds", "transfer.seconds", "transfer.exposed_seconds", "kv.wire_bytes")),
}
"""Figures that a command prints."""
HELP = "explain a figure, by its path in the JSON or the beginning of it; without FIGURE all of them"


def with_explanations(options: Namespace, answer: Answer, scenario: Scenario, turn: Turn | None = None) -> Answer:
    """A command's answer with what `--explain` asked for; as it is where it did not. Raises UnknownNameError."""
    asked, command = options.explain, options.command
    if asked is None:
        return answer
    found, text = answer
    figures = (find_figure(asked, FIGURES_OF[command]),) if asked else FIGURES_OF[command]
    case = Case(scenario, turn or Turn())
    told = [explained(figure, case) for figure in figures]
    changed = {**scenario.changed(), **(turn.changed() if turn else {})}
    again = report.command_of(command, changed, told[0].figure if asked else "FIGURE")
    wrong = report.link_of(told[0], report.body_of(told[0], again)) if asked else ""
    last = f"A wrong number? Report it{f' to {wrong}' if wrong else ''} with version {kvmodel.__version__} and: {again}"
    texts = [text, *(explanation_text(one) for one in told), last]
    return {**found, "explain": [one.as_dict() for one in told]}, "\n\n".join(texts)
