"""On which links between nodes prefill hides a handoff that is sent layer by layer, over a slider's positions.

The other yardstick than a decode step: not what the wire costs, but whether it can be had for nothing. Links of
one node's fabric are not NICs and left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from app.charts.links import on_link
from app.charts.spec import Table
from kvmodel import registry
from kvmodel.display import count_text
from kvmodel.evaluate import sweep
from kvmodel.plan import plan_of
from kvmodel.records.hardware import Link
from kvmodel.scenario import Scenario

OWN = {"serial": "sends the whole prompt at once", "chunk": "sends chunks", "layer-group": "sends groups of layers"}
"""What an engine does by itself instead of sending layer by layer, by its overlap."""
FRACTION = 1e-9
"""Relative difference below which two times on the wire are the same."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The links between nodes at one position."""

    able: tuple[Link, ...]
    """Those that prefill hides, the least time on the wire first."""
    slowest: str
    """Name of one of those with the most time, the chosen link's if it is among them."""
    count: int
    """All that were tried."""
    whole: bool
    """Whether every link that takes less time than the slowest of them hides too."""

    def words(self) -> str:
        """Where it hides, in a few words."""
        if not self.able:
            return "on no NIC"
        if len(self.able) == self.count:
            return "on every NIC"
        if self.whole:
            return f"on {self.slowest} or faster"
        return f"on {len(self.able)} of {self.count} NICs, {self.slowest} the slowest"


def reach_over(scenario: Scenario, field: str, values: Sequence[int]) -> tuple[Reach, ...]:
    """Which links hide the scenario's handoff, sent layer by layer, at each value of a field."""
    return _reach(scenario.with_changes(overlap="layer"), field, tuple(values))


@lru_cache(maxsize=64)
def _reach(layered: Scenario, field: str, values: tuple[int, ...]) -> tuple[Reach, ...]:
    nics = [link for link in registry.links().values() if link.scope != "same-node"]
    nics = [link for link in nics if not plan_of(on_link(layered, link.id)).refusal] or nics
    nics.sort(key=lambda link: (link.id != layered.link, not link.id.startswith("ib-"), link.id))
    found = [sweep(on_link(layered, link.id), **{field: np.asarray(values)}) for link in nics]
    shape = (len(values),)
    seconds = np.stack([np.broadcast_to(r.transfer.seconds, shape) for r in found])
    hides = np.stack([np.broadcast_to(np.isin(r.bound, ("hidden", "nothing")), shape) for r in found])
    return tuple(_reach_of(nics, seconds[:, i], hides[:, i]) for i in range(len(values)))


def _reach_of(nics: Sequence[Link], seconds: np.ndarray[Any, Any], hides: np.ndarray[Any, Any]) -> Reach:
    able = [int(i) for i in np.argsort(np.round(seconds, 12), kind="stable") if hides[i]]
    if not able:
        return Reach((), "", len(nics), whole=True)
    most = seconds[able[-1]] * (1 - FRACTION)
    slowest = next(nics[i] for i in range(len(nics)) if hides[i] and seconds[i] >= most)
    return Reach(tuple(nics[i] for i in able), slowest.short, len(nics), bool(hides[seconds < most].all()))


def hiding_table(scenario: Scenario, field: str, values: Sequence[int], other: Scenario | None) -> Table:
    """Where it hides, over a slider's positions; and where under the costs of another engine, if there is one."""
    table: Table = {"h.where": [reach.words() for reach in reach_over(scenario, field, values)]}
    if other is not None:
        name = registry.engines()[other.engine].name
        table["h.other"] = [f"with {name}’s costs {reach.words()}" for reach in reach_over(other, field, values)]
    return table


def condition_text(scenario: Scenario) -> str:
    """Under which condition: sent layer by layer, which the engine does by itself or not."""
    engine = registry.engines()[scenario.engine]
    if scenario.engine == "ideal":
        return "Sent layer by layer, prefill hides it "
    if engine.overlap.startswith("layer") and engine.overlap not in OWN:
        return f"Sent layer by layer, as {engine.name} does, prefill hides it "
    return f"Sent layer by layer ({engine.name} itself {OWN[engine.overlap]}), prefill hides it "


def names_text(reach: Reach, tokens: int) -> str:
    """All links that hide a prompt of so many tokens, in a sentence, the fastest first."""
    said = f"Layer by layer, prefill hides a prompt of {count_text(tokens)} tokens on "
    return f"{said}{', '.join(link.short for link in reach.able)}." if reach.able else f"{said}no link between nodes."
