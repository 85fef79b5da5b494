"""Links that the ideal engine has at their full rate, and how much of it engines reach: rows that are equal only there."""

from __future__ import annotations

from kvmodel import registry
from kvmodel.display import share_text
from kvmodel.plan import plan_of
from kvmodel.records.hardware import Link
from kvmodel.scenario import Scenario
from kvmodel.verdict import FAR


def is_far(link: Link) -> bool:
    """Whether engines reach less than half of a link's rate, such as over kernel TCP."""
    return link.achieved < FAR


def naming_order(link: Link, scenario: Scenario) -> tuple[bool, bool, bool, str]:
    """Which of links alike gives its name: the chosen one, else InfiniBand's, else one whose rate engines come near."""
    return link.id != scenario.link, not link.id.startswith("ib-"), is_far(link), link.id


def named(link: Link, scenario: Scenario) -> str:
    """A link's short name; where the scenario's engine has it at a rate far from what others reach, with that."""
    return f"{link.short} at its full rate" if is_far(link) and plan_of(scenario).engine.nominal_link else link.short


def full_rate_text(scenario: Scenario) -> str:
    """How much engines reach of links that share a bandwidth with one of which they reach little; nothing beside other engines."""
    if not plan_of(scenario).engine.nominal_link:
        return ""
    links = registry.links().values()
    far = {link.bandwidth for link in links if is_far(link)}
    alike = sorted((link for link in links if link.bandwidth in far), key=lambda link: -link.achieved)
    *before, last = [f"{share_text(link.achieved)} of {link.name}" for link in alike]
    name = registry.engines()[scenario.engine].name
    return f"* {name} has every link at its full rate, whatever carries it. Engines reach at most {', '.join(before)} and {last}."
