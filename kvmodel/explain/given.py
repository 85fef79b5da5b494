"""Values put into a figure, each with where it comes from."""

from __future__ import annotations

from typing import Any

from kvmodel import registry
from kvmodel.explain.figures import FIGURES, Case
from kvmodel.explain.record import Given, Origin
from kvmodel.plan import Plan
from kvmodel.records.base import Sourced
from kvmodel.records.model import ModelSpec
from kvmodel.scenario import Inputs, Scenario


def asked(inputs: Inputs, name: str, symbol: str, unit: str = "", value: Any = None, why: str = "") -> Given:
    """An input of the reader's; `value` is what it amounts to, where that differs from what was typed, `why` says how."""
    field = type(inputs).model_fields[name]
    own = getattr(inputs, name)
    origin: Origin = "default" if own == field.default else "you"
    return Given(_title(type(inputs), name), symbol, own if value is None else value, unit, origin, why)


def _title(record: type[Inputs], field: str) -> str:
    """A field's title without its unit."""
    return str(record.model_fields[field].title).partition(",")[0]


def computed(name: str, symbol: str, value: Any, unit: str, why: str = "") -> Given:
    """A value that the model makes from others."""
    return Given(name, symbol, value, unit, "computed", why)


SEE = "see "
"""What begins the row of a value that is a figure of its own, before the figure's id."""


def of_figure(case: Case, figure: str, symbol: str) -> Given:
    """A value that is a figure of its own, explained there."""
    own = FIGURES[figure]
    return computed(own.name, symbol, own.value(case), own.unit, SEE + figure)


def stated(name: str, symbol: str, value: Any, unit: str, row: Sourced, file: str, source: str = "") -> Given:
    """A value that stands in a row of `data/`; `source` where it is not the row's own."""
    return Given(name, symbol, value, unit, "data", f"{file} {getattr(row, 'id', '')}".strip(), source or row.source, row.checked)


def of_model(plan: Plan, scenario: Scenario, name: str, symbol: str, value: Any, unit: str = "") -> Given:
    """A dimension of the model; of one that the reader described, it is the reader's."""
    if isinstance(scenario.model, ModelSpec):
        return Given(name, symbol, value, unit, "you", "configuration of your own")
    return stated(name, symbol, value, unit, plan.model, "models.toml")


def of_engine(plan: Plan, scenario: Scenario, field: str, symbol: str, value: Any, unit: str = "") -> Given:
    """A way of the engine's, unless the scenario asks for another; `field` is the scenario's."""
    title = _title(Scenario, field)
    if getattr(scenario, field) is not None:
        return Given(title, symbol, value, unit, "you")
    return Given(title, symbol, value, unit, "engine", f"engines.toml {plan.engine.id}", plan.engine.source, plan.engine.checked)


def of_link(plan: Plan, scenario: Scenario, field: str, symbol: str, value: Any, unit: str = "", source: str = "") -> Given:
    """A property of the link, unless the scenario asks for another, or the engine takes links as nominal."""
    title = _title(Scenario, field)
    if getattr(scenario, field) is not None:
        return Given(title, symbol, value, unit, "you")
    if registry.engines()[scenario.engine].nominal_link:
        return of_engine(plan, scenario, field, symbol, value, unit)
    return stated(title, symbol, value, unit, plan.link, "links.toml", source)


def chunk_inputs(plan: Plan, scenario: Scenario) -> list[Given]:
    """Tokens of a prefill chunk, where the prompt is computed in chunks."""
    if plan.chunk is None:
        return []
    if scenario.chunk_tokens is None and plan.engine.chunk_tokens is None:
        why = "vLLM's smallest default, as neither engine nor scenario states one"
        return [Given(_title(Scenario, "chunk_tokens"), "", plan.chunk, "tokens", "default", why)]
    return [of_engine(plan, scenario, "chunk_tokens", "", plan.chunk, "tokens")]


def once(rows: list[Given]) -> tuple[Given, ...]:
    """The values in order, each once."""
    return tuple(dict.fromkeys(rows))
