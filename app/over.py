"""A scenario over a slider's positions: evaluated all at once, read position by position."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from app.charts.spec import Table
from kvmodel.errors import KvModelError
from kvmodel.evaluate import amounts_of, sweep
from kvmodel.plan import Plan, plan_of
from kvmodel.progress import Amounts
from kvmodel.results import Evaluation
from kvmodel.scenario import MAX_PROMPT_TOKENS, Scenario

SLIDER_LOW, SLIDER_HIGH = 128, MAX_PROMPT_TOKENS
PER_DOUBLING = 6
COUNTED = ("batch", "in_flight")
"""Sliders over powers of two, 1 to 256."""
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


@lru_cache(maxsize=64)
def token_positions(*extra: int, low: int = SLIDER_LOW, high: int = SLIDER_HIGH) -> tuple[int, ...]:
    """Positions of a token slider: six a doubling, powers of two among them, and any value asked for."""
    steps = round(math.log2(high / low) * PER_DOUBLING)
    grid = {round(low * 2 ** (i / PER_DOUBLING)) for i in range(steps + 1)}
    return tuple(sorted(grid | set(extra)))


def batch_positions(*extra: int) -> tuple[int, ...]:
    """Positions of the batch slider."""
    return tuple(sorted({*BATCHES, *extra}))


def positions_of(slider: str, value: int) -> tuple[int, ...]:
    """Positions of a slider by its name, `value` among them."""
    if slider in COUNTED:
        return batch_positions(value)
    return token_positions(value, high=MAX_PROMPT_TOKENS if slider == "prompt_tokens" else MAX_PROMPT_TOKENS // 2)


@dataclass(frozen=True)
class Over:
    """A scenario evaluated over one field's values."""

    scenario: Scenario
    field: str
    values: tuple[int, ...]
    at: int
    """Index of the scenario's own value."""
    plan: Plan
    swept: Evaluation
    """Arrays over the values."""
    rows: Sequence[Evaluation]
    """Plain numbers, a row a value."""

    tables: dict[str, Table] = field(default_factory=dict)
    """Tables made so far, by name; shared by scenarios that differ in the field alone."""

    def table(self, name: str, make: Callable[[Over], Table]) -> Table:
        """A table over the values, made once: readers share what they look at.

        What in it follows from where the scenario itself stands (an order, a choice) belongs in the name.
        """
        if name not in self.tables:
            self.tables[name] = make(self)
        return self.tables[name]

    def amounts(self, index: int) -> Amounts:
        """The scenario's numbers at a position."""
        return replace(amounts_of(self.scenario), **{self.field: self.values[index]})


def evaluate_over(scenario: Scenario, field: str, values: tuple[int, ...]) -> Over:
    """Evaluate a scenario over a field's values, its own among them: once for all that differ in the field alone."""
    found, own = over_values(moved(scenario, field, values[-1]), field, values), getattr(scenario, field)
    return replace(found, scenario=scenario, at=values.index(own))


def moved(scenario: Scenario, field: str, value: int) -> Scenario:
    """The scenario with another value of a field; as it is where that value does not go with the rest."""
    try:
        return scenario.with_changes(**{field: value})
    except KvModelError:
        return scenario


@lru_cache(maxsize=32)
def over_values(scenario: Scenario, field: str, values: tuple[int, ...]) -> Over:
    """A scenario that stands at the last of the values, evaluated at each."""
    swept = sweep(scenario, **{field: np.asarray(values)})
    rows = [swept.at(i) for i in range(len(values))]
    return Over(scenario, field, values, len(values) - 1, plan_of(scenario), swept, rows)


def nearest(values: Sequence[int], wanted: Any) -> int:
    """Index of the value nearest to the one wanted."""
    return min(range(len(values)), key=lambda i: abs(values[i] - wanted))
