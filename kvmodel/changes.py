"""Inputs that differ between two scenarios, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kvmodel import registry
from kvmodel.display import count_text
from kvmodel.plan import plan_of
from kvmodel.scenario import Inputs, Scenario

_SETTLED = ("kv_dtype", "lanes", "overlap")
"""Inputs whose automatic value a plan settles."""
_ROWS: dict[str, Callable[[], Mapping[str, Any]]] = {
    "link": registry.links,
    "engine": registry.engines,
    "prefill_accelerator": registry.accelerators,
    "decode_accelerator": registry.accelerators,
}


@dataclass(frozen=True, slots=True)
class InputChange:
    """An input that differs."""

    name: str
    """Its name in the scenario."""
    title: str
    """What it is called."""
    pinned: str
    """Its pinned value in words."""
    this: str
    """Its value now in words."""

    def as_dict(self) -> dict[str, str]:
        """Name and both values, ready for JSON."""
        return {"name": self.name, "pinned": self.pinned, "this": self.this}


def changes_between(pinned: Inputs, this: Inputs, leave_out: Sequence[str] = ()) -> tuple[InputChange, ...]:
    """The inputs whose values differ, in the order of declaration; an automatic value counts as what it stands for."""
    return tuple(
        InputChange(name, str(field.title), input_text(pinned, name), input_text(this, name))
        for name, field in type(this).model_fields.items()
        if name not in leave_out and _meant(pinned, name) != _meant(this, name)
    )


def _meant(record: Inputs, name: str) -> Any:
    """What an input stands for: the row of an id, the value an automatic one takes."""
    value = getattr(record, name)
    if not isinstance(record, Scenario):
        return value
    if name in _SETTLED:
        return getattr(plan_of(record), name)
    if name == "model" and isinstance(value, str):
        return registry.find_model(value)
    return registry.find(name.rpartition("_")[2], value, _ROWS[name]()) if name in _ROWS else value


def input_text(record: Inputs, name: str) -> str:
    """An input's value in words; an automatic one as what it stands for."""
    value = _meant(record, name)
    if value is None:
        return unset_text(name)
    if isinstance(value, int | float):
        return count_text(value) if isinstance(value, int) else f"{value:g}"
    return str(getattr(value, "short", getattr(value, "name", value)))


def unset_text(name: str) -> str:
    """Whose value counts where an input of a scenario has none."""
    if name in ("prefill_seconds", "decode_step_seconds"):
        return "modelled"
    return "the link's" if name in ("link_gbytes_per_s", "achieved", "latency_seconds") else "the engine's"


def lead_of(changes: Sequence[InputChange]) -> str:
    """What differs, as the beginning of a sentence."""
    if len(changes) == 1:
        return f"{changes[0].title} {changes[0].this} in place of {changes[0].pinned}: "
    if len(changes) > 3:
        return f"{len(changes)} inputs differ: "
    *most, last = [change.title if i == 0 else _inside(change.title) for i, change in enumerate(changes)]
    return f"{', '.join(most)} and {last} differ: "


def _inside(title: str) -> str:
    return title[0].lower() + title[1:] if title[1:2].islower() else title


def changes_over(pinned: Scenario, this: Scenario, field: str, values: Sequence[int]) -> list[tuple[InputChange, ...]]:
    """The inputs that differ with one field of the second at each of several values."""
    others = changes_between(pinned, this, (field,))
    order = list(Scenario.model_fields)
    told, title = input_text(pinned, field), str(Scenario.model_fields[field].title)
    own = InputChange(field, title, told, "")

    def at(value: int) -> tuple[InputChange, ...]:
        if getattr(pinned, field) == value:
            return others
        return tuple(sorted((*others, replace(own, this=count_text(value))), key=lambda change: order.index(change.name)))

    return [at(value) for value in values]
