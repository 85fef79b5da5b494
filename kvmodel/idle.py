"""Inputs that were given and change nothing, because another input keeps them from counting."""

from __future__ import annotations

from kvmodel.plan import Plan
from kvmodel.scenario import Scenario

_ONLY = {
    "group_layers": ("layer-group",),
    "early_prefix": ("chunk", "layer", "layer-group", "layer-both"),
}
"""Inputs that count under some overlaps alone."""
_WHY = {
    "group_layers": "only layer-group sends layers in groups",
    "early_prefix": "nothing leaves before prefill ends",
}


def idle_notes(plan: Plan, scenario: Scenario) -> tuple[str, ...]:
    """A sentence for each input that does nothing under the overlap in force.

    >>> from kvmodel.plan import plan_of
    >>> asked = Scenario(group_layers=4, overlap="layer")
    >>> idle_notes(plan_of(asked), asked)
    ('Layers of a group (group_layers) does nothing under overlap layer: only layer-group sends layers in groups.',)
    """
    return tuple(
        f"{Scenario.model_fields[name].title} ({name}) does nothing under overlap {plan.overlap}: {_WHY[name]}."
        for name, overlaps in _ONLY.items()
        if getattr(scenario, name) not in (None, "no") and plan.overlap not in overlaps
    )
