"""Links that take longer than slower ones, and the term that makes them: more bandwidth is not always less time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from app.charts.links import LinkRow, on_link
from app.over import Over
from kvmodel.breakdown import transfer_terms
from kvmodel.display import time_text
from kvmodel.evaluate import amounts_of
from kvmodel.plan import plan_of
from kvmodel.records.hardware import Link

WORTH = 1.02
"""Factor in time from which a faster link that takes longer is worth a word."""
COSTS = {"posting": "posting its messages takes", "waiting": "waiting for messages in flight takes", "latency": "its latency is"}

Array = np.ndarray[Any, Any]


def odd_sentences(over: Over, rows: Sequence[LinkRow | Link], seconds: Mapping[str, Array]) -> list[str]:
    """At each position, which faster link takes longer than a slower one and why, the chosen one first; the others by name."""
    costs: dict[str, dict[str, Array]] = {}
    said = []
    for i in range(len(over.values)):
        pairs = _pairs(over.scenario.link, rows, {name: float(times[i]) for name, times in seconds.items()})
        for row in pairs[0] if pairs else ():
            costs.setdefault(row.id, _costs(over, row.id))
        said.append(f"{_sentence(*pairs[0], i, seconds, costs)}{_too([row for row, _ in pairs[1:]])}" if pairs else "")
    return said


def _pairs(chosen: str, rows: Sequence[LinkRow | Link], seconds: Mapping[str, float]) -> list[tuple[LinkRow | Link, LinkRow | Link]]:
    """(a link, the slower one that takes least of those that take less), the chosen link first; none where bandwidth decides."""
    found = []
    for row in sorted(rows, key=lambda row: (row.id != chosen, -row.bandwidth)):
        slower = [other for other in rows if other.bandwidth < row.bandwidth and seconds[other.id] * WORTH < seconds[row.id]]
        if slower:
            found.append((row, min(slower, key=lambda other: seconds[other.id])))
    return found


def _too(rows: Sequence[LinkRow | Link]) -> str:
    """The others that take longer than a slower one, by name."""
    if not rows:
        return ""
    *before, last = [row.name for row in rows]
    return (
        f" {', '.join(before)} and {last} take longer than some slower link, too."
        if before
        else f" {last} takes longer than a slower link, too."
    )


def _costs(over: Over, link: str) -> dict[str, Array]:
    scenario = on_link(over.scenario, link)
    amounts = amounts_of(scenario, **{over.field: np.asarray(over.values)})
    return {
        term.id: np.broadcast_to(term.seconds, len(over.values)) for term in transfer_terms(plan_of(scenario), amounts) if term.id in COSTS
    }


def _sentence(
    row: LinkRow | Link, other: LinkRow | Link, i: int, seconds: Mapping[str, Array], costs: Mapping[str, Mapping[str, Array]]
) -> str:
    mine, least = costs[row.id], costs[other.id]
    most = max(COSTS, key=lambda key: float(mine[key][i] - least[key][i]))
    times = [time_text(float(times[row][i])) for times, row in ((seconds, row.id), (seconds, other.id))]
    why = f"{COSTS[most]} {time_text(float(mine[most][i]))} against {time_text(float(least[most][i]))}"
    return f"{row.name} has more bandwidth than {other.name} and yet takes longer here, {times[0]} against {times[1]}: {why}."
