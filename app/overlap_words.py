"""What stands beside the overlap control: which engines send so of their own, and where the chosen engine does not."""

from __future__ import annotations

from typing import Any

from app.charts.hiding import WAYS
from app.live import block
from kvmodel import registry
from kvmodel.records.engine import Overlap
from kvmodel.scenario import Scenario

SENDS = {"serial": "after prefill", **WAYS, "layer-both": f"{WAYS['layer-both']} to a decode that computes along"}
"""How an engine sends whose own overlap this is."""
NONE = "No engine here sends so of its own."
ALL = 3
"""Names that are said beside a what-if; of more, the others are counted and named behind the count."""


def engines_with(overlap: Overlap) -> list[str]:
    """Names of the engines whose own overlap this is; the ideal one is none, only the least that a handoff can cost."""
    return sorted(engine.name for engine in registry.engines().values() if engine.overlap == overlap and engine.id != "ideal")


def overlap_line(scenario: Scenario) -> dict[str, Any]:
    """The line for the overlap that a scenario has."""
    engine = registry.engines()[scenario.engine]
    chosen: Overlap = scenario.overlap or engine.overlap
    names = engines_with(chosen)
    if engine.overlap == chosen or engine.id == "ideal":
        return block("p", *(_whose(f"{chosen} is how", names, len(names)) if names else [f"{chosen}: n{NONE[1:]}"]), class_="kv-overlap")
    said = f"{engine.name} sends {SENDS[engine.overlap]}: {chosen} is a what-if here. "
    return block("p", said, *_whose("It is how", names, ALL), class_="kv-overlap")


def _whose(head: str, names: list[str], most: int) -> list[Any]:
    """A sentence on the engines that send so; of more than `most` and one, the others are counted."""
    if not names:
        return [NONE]
    said, rest = (names[:most], names[most:]) if len(names) > most + 1 else (names, [])
    last = block("abbr", f"{len(rest)} more", title=", ".join(rest)) if rest else said[-1]
    before = ", ".join(said if rest else said[:-1])
    return [f"{head} ", *([f"{before} and "] if before else []), last, " send." if len(names) > 1 else " sends."]
