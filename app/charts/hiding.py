"""On which NICs prefill hides a handoff that is sent while it computes, over a slider's positions.

The other yardstick than a decode step: not what the wire costs, but whether it can be had for nothing. Sent as the
engine sends that does so by itself, else layer by layer. Links of one node's fabric are not NICs and left out, and
those between sites are named but not counted. A link of which engines reach little is tried at what they reach.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from app.charts.full_rate import as_reached, naming_order
from app.charts.links import on_link
from app.charts.spec import Table
from kvmodel import registry
from kvmodel.critical import is_hidden
from kvmodel.display import count_text
from kvmodel.evaluate import sweep
from kvmodel.plan import plan_of
from kvmodel.records.hardware import Link
from kvmodel.scenario import Scenario

WAYS = {"chunk": "chunk by chunk", "layer": "layer by layer", "layer-group": "by groups of layers", "layer-both": "layer by layer"}
"""How a prompt is sent while prefill computes, by overlap."""
LAST = {"chunk": "the last chunk", "layer": "the last layer", "layer-group": "the last group"}
"""What no prefill is left to hide, by overlap."""
WHOLE = "the whole prompt at once"
FRACTION = 1e-9
"""Relative difference below which two times on the wire are the same."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The links between nodes at one position."""

    able: tuple[Link, ...]
    """Those that prefill hides, the least time on the wire first."""
    slowest: str
    """Name of one of the NICs among them with the most time, the chosen link's if it is one."""
    count: int
    """All NICs that were tried."""
    whole: bool
    """Whether every NIC that takes less time than the slowest of them hides too."""
    narrow: str = ""
    """Name of one of the NICs among them with the least bandwidth, where that is less than the slowest's: its protocol costs less."""

    def words(self) -> str:
        """Where it hides, in a few words."""
        nics = sum(is_nic(link) for link in self.able)
        if not nics:
            return "on no NIC"
        if nics == self.count:
            return "on every NIC"
        if self.narrow:
            return f"on {nics} of {self.count} NICs, {self.narrow} among them"
        if self.whole:
            return f"on {self.slowest} or faster"
        return f"on {nics} of {self.count} NICs, {self.slowest} the slowest"


def is_nic(link: Link) -> bool:
    """Whether a link is that of a NIC: not a node's fabric, nor a pipe between sites."""
    return link.scope not in ("same-node", "site")


def sent_ahead(scenario: Scenario) -> Scenario:
    """The scenario sent while prefill computes: as it is where that is so, else layer by layer."""
    return scenario.with_changes(overlap="layer") if plan_of(scenario).overlap == "serial" else scenario


def reach_over(scenario: Scenario, field: str, values: Sequence[int]) -> tuple[Reach, ...]:
    """Which links hide the scenario's handoff at each value of a field, sent as its overlap says."""
    return _reach(scenario, field, tuple(values))


@lru_cache(maxsize=64)
def _reach(scenario: Scenario, field: str, values: tuple[int, ...]) -> tuple[Reach, ...]:
    links = [link for link in registry.links().values() if link.scope != "same-node"]
    links = [link for link in links if not plan_of(on_link(scenario, link.id)).refusal] or links
    links.sort(key=lambda link: naming_order(link, scenario))
    found = [sweep(as_reached(on_link(scenario, link.id)), **{field: np.asarray(values)}) for link in links]
    shape = (len(values),)
    seconds = np.stack([np.broadcast_to(r.transfer.seconds, shape) for r in found])
    hides = np.stack([np.broadcast_to(is_hidden(r.bound), shape) for r in found])
    names = [link.short for link in links]
    return tuple(_reach_of(links, names, seconds[:, i], hides[:, i]) for i in range(len(values)))


def _reach_of(links: Sequence[Link], names: Sequence[str], seconds: np.ndarray[Any, Any], hides: np.ndarray[Any, Any]) -> Reach:
    able = tuple(links[i] for i in np.argsort(np.round(seconds, 12), kind="stable").tolist() if hides[i])
    nics = np.array([is_nic(link) for link in links])
    count, mine = int(nics.sum()), nics & hides
    if not mine.any():
        return Reach(able, "", count, whole=True)
    most = float(seconds[mine].max()) * (1 - FRACTION)
    slowest = next(i for i, (one, time) in enumerate(zip(mine, seconds, strict=True)) if one and time >= most)
    least = min(np.flatnonzero(mine).tolist(), key=lambda i: links[i].bandwidth)
    narrow = names[least] if links[least].bandwidth < links[slowest].bandwidth else ""
    return Reach(able, names[slowest], count, bool(hides[nics & (seconds < most)].all()), narrow)


def hiding_table(scenario: Scenario, field: str, values: Sequence[int], other: Scenario | None) -> Table:
    """Where it hides, over a slider's positions; and where under the costs of another engine, if there is one."""
    table: Table = {"h.where": _where(sent_ahead(scenario), field, values)}
    if other is not None:
        engine = registry.engines()[other.engine]
        ahead = sent_ahead(other)
        way = WAYS[plan_of(ahead).overlap]
        whole = f"{engine.name} sends it whole and hides nothing; {way} at its costs it would hide "
        costs = whole if engine.overlap == "serial" else f"with {engine.name}’s costs "
        table["h.other"] = [f"{costs}{words}" for words in _where(ahead, field, values)]
    return table


def _where(ahead: Scenario, field: str, values: Sequence[int]) -> list[str]:
    """Where it hides at each position; a prompt that is one chunk has nothing to hide behind."""
    reaches, alone = reach_over(ahead, field, values), one_chunk(ahead, field, values)
    return [
        f"{reach.words()}{', as it is one chunk' if single and not reach.able else ''}"
        for reach, single in zip(reaches, alone, strict=True)
    ]


def one_chunk(scenario: Scenario, field: str, values: Sequence[int]) -> list[bool]:
    """Whether all of a prompt is computed in one chunk, over positions of the prompt's length or the batch; never where none are sent."""
    plan = plan_of(scenario)
    if plan.overlap != "chunk" or plan.chunk is None:
        return [False] * len(values)
    tokens = values if field == "prompt_tokens" else [scenario.prompt_tokens] * len(values)
    batches = values if field == "batch" else [scenario.batch] * len(values)
    return [n <= max(plan.chunk // batch, 1) for n, batch in zip(tokens, batches, strict=True)]


def way_text(scenario: Scenario) -> str:
    """How it is sent, at the beginning of a sentence."""
    return f"Sent {WAYS[plan_of(sent_ahead(scenario)).overlap]}"


def last_text(scenario: Scenario) -> str:
    """What of it decode waits for all the same; nothing where decode's own layers hide that too."""
    return LAST.get(plan_of(sent_ahead(scenario)).overlap, "")


def whose_text(scenario: Scenario) -> str:
    """Whether the engine sends so by itself; nothing of the ideal one, which is no program."""
    return _whose(scenario, "as {} does")


def whose_sentence(scenario: Scenario) -> str:
    """The same as a sentence of its own."""
    said = _whose(scenario, "So does {}")
    return said and f"{said}."


def _whose(scenario: Scenario, so: str) -> str:
    """Who sends so, in words with a place for the name, or how the engine sends by itself."""
    engine, overlap = registry.engines()[scenario.engine], plan_of(sent_ahead(scenario)).overlap
    if scenario.engine == "ideal":
        return ""
    if engine.overlap == overlap:
        return so.format(engine.name)
    return f"{engine.name} itself sends {WHOLE if engine.overlap == 'serial' else WAYS[engine.overlap]}"


def names_text(reach: Reach, tokens: int) -> str:
    """All links that hide a prompt of so many tokens, in a sentence, the fastest first."""
    said = f"Layer by layer, prefill hides a prompt of {count_text(tokens)} tokens between nodes on "
    return f"{said}{', '.join(link.short for link in reach.able)}." if reach.able else f"{said}no link."
