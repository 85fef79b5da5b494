"""Links that the ideal engine has at their full rate, and how much of it engines reach: rows that are equal only there."""

from __future__ import annotations

from kvmodel import registry
from kvmodel.display import share_text
from kvmodel.plan import plan_of
from kvmodel.records.hardware import Link
from kvmodel.scenario import Scenario
from kvmodel.verdict import FAR, reached_share


def is_far(link: Link) -> bool:
    """Whether engines reach less than half of a link's rate, such as over kernel TCP."""
    return link.achieved < FAR


def naming_order(link: Link, scenario: Scenario) -> tuple[bool, bool, bool, str]:
    """Which of links alike gives its name: the chosen one, else InfiniBand's, else one whose rate engines come near."""
    return link.id != scenario.link, not link.id.startswith("ib-"), is_far(link), link.id


def as_reached(scenario: Scenario) -> Scenario:
    """The scenario with its link at the rate that engines reach, where the ideal one has all of it and they reach little.

    What hides is told at that: who buys a NIC by it must not find that nothing drives it. A rate of the reader's own stands.
    """
    reached = reached_share(scenario)
    return scenario if reached is None else scenario.with_changes(achieved=reached)


def full_rate_text(scenario: Scenario) -> str:
    """How much engines reach of links that share a bandwidth with one of which they reach little; nothing beside other engines."""
    if not plan_of(scenario).engine.nominal_link:
        return ""
    links = registry.links().values()
    far = {link.bandwidth for link in links if is_far(link)}
    alike = sorted((link for link in links if link.bandwidth in far), key=lambda link: -link.achieved)
    *before, last = [f"{share_text(link.achieved)} of {link.name}" for link in alike]
    name = registry.engines()[scenario.engine].name
    reach = f"* {name} has every link at its full rate, whatever carries it. Engines reach at most {', '.join(before)} and {last}"
    return f"{reach}; what hides on {' and '.join(link.short for link in alike if is_far(link))} is told at that rate."
