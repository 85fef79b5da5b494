"""`evaluate` one scenario, or `sweep` any of its numbers over an array."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvmodel.context import context_notes
from kvmodel.errors import BadScenarioError
from kvmodel.handoff import handoff
from kvmodel.idle import idle_notes
from kvmodel.lanes import lanes_notes
from kvmodel.plan import plan_of
from kvmodel.progress import AMOUNTS, Amounts
from kvmodel.reason import failing_sides, reason_of
from kvmodel.remedies import side_remedies
from kvmodel.results import Evaluation, Remedy
from kvmodel.scenario import Scenario, allowed_values, bounds, need_scenario
from kvmodel.structure import STRUCTURE
from kvmodel.verdict import verdict_and_note

MAX_SWEEP = 20_000_000


def amounts_of(scenario: Scenario, **replaced: Any) -> Amounts:
    """A scenario's numbers, some replaced by arrays."""
    return Amounts(**{name: replaced.get(name, getattr(scenario, name)) for name in AMOUNTS})


def evaluate(scenario: Scenario) -> Evaluation:
    """What one handoff costs, with a reason where it is infeasible and the answer in a sentence.

    >>> round(evaluate(Scenario()).transfer.seconds, 6)
    0.053687

    Raises UnknownNameError and BadScenarioError.
    """
    need_scenario(scenario)
    plan = plan_of(scenario)
    amounts = amounts_of(scenario)
    result = handoff(plan, amounts)
    reason = "" if result.feasible else reason_of(plan, amounts, scenario)
    object.__setattr__(result, "reason", reason)
    verdict, note = verdict_and_note(plan, amounts, scenario, result)
    object.__setattr__(result, "verdict", verdict)
    object.__setattr__(result, "band_note", note)
    notes = (*context_notes(plan.model, scenario.prompt_tokens), *lanes_notes(plan), *idle_notes(plan, scenario))
    object.__setattr__(result, "notes", notes)
    return result


def remedies(scenario: Scenario) -> tuple[Remedy, ...]:
    """Changes of which each alone makes a side fit that does not, the one to try first in front; empty where both fit.

    >>> [remedy.use for remedy in remedies(Scenario(prefill_tp=1))][:2]
    ['use TP 2 or more', 'use FP8 weights and cache']

    Raises UnknownNameError and BadScenarioError.
    """
    need_scenario(scenario)
    plan, amounts = plan_of(scenario), amounts_of(scenario)
    sides = () if plan.refusal else failing_sides(plan, amounts)
    return tuple(remedy for phase in sides for remedy in side_remedies(scenario, amounts, phase))


def sweep(scenario: Scenario, **arrays: Any) -> Evaluation:
    """The same tree as `evaluate` gives, with arrays for numbers, over arrays of any numeric fields.

    Arrays broadcast against each other. Equal, element by element, to `evaluate` of the scenario
    with that element; `reason`, `verdict`, `band_note` and `notes` stay empty.

    >>> sweep(Scenario(), prompt_tokens=[1024, 8192]).kv.prompt_bytes
    array([3.35544320e+08, 2.68435456e+09])

    Raises BadScenarioError for a field that is no number, or values out of its bounds.
    """
    need_scenario(scenario)
    if not arrays:
        raise BadScenarioError("sweep: got no array; allowed: an array for any numeric field")
    columns = {name: _column(name, values) for name, values in arrays.items()}
    try:
        shape = np.broadcast_shapes(*(column.shape for column in columns.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {column.shape}" for name, column in columns.items())
        raise BadScenarioError(f"sweep: got arrays of shapes {shapes}; allowed: shapes that broadcast") from None
    if int(np.prod(shape)) > MAX_SWEEP:
        raise BadScenarioError(f"sweep: got {int(np.prod(shape)):,} scenarios; allowed: up to {MAX_SWEEP:,}")
    structural = {name: np.broadcast_to(columns.pop(name), shape) for name in list(columns) if name in STRUCTURE}
    if not structural:
        result: Evaluation = _broadcast(handoff(plan_of(scenario), amounts_of(scenario, **columns)), shape)
        return result
    full = {name: np.broadcast_to(column, shape).ravel() for name, column in columns.items()}
    return _by_structure(scenario, structural, full, shape)


def _column(name: str, values: Any) -> np.ndarray[Any, Any]:
    low, high = bounds(Scenario, name) if name in Scenario.model_fields else (None, None)
    if name not in Scenario.model_fields or high is None:
        raise BadScenarioError(f"sweep: got {name!r}; allowed: a numeric field")
    try:
        column = np.asarray(values)
    except ValueError:
        raise BadScenarioError(f"sweep: {name} is ragged; allowed: an array of numbers") from None
    if column.size == 0:
        raise BadScenarioError(f"sweep: {name} is empty; allowed: at least one number")
    whole = "a whole number" in allowed_values(Scenario, name)
    if (
        column.dtype.kind not in "iuf"
        or column.size == 0
        or (whole and column.dtype.kind == "f" and not np.all(column == np.floor(column)))
    ):
        raise BadScenarioError(f"sweep: {name} needs {'whole numbers' if whole else 'numbers'}, got {column.dtype}")
    above = column > 0 if low is None else column >= low
    if not np.all(above & (column <= high)):
        worst = column[~(above & (column <= high))].ravel()[0]
        raise BadScenarioError(f"{name}: got {worst}; allowed: {allowed_values(Scenario, name)}")
    return column.astype(np.int64 if whole else np.float64)


def _by_structure(
    scenario: Scenario, structural: dict[str, np.ndarray[Any, Any]], full: dict[str, np.ndarray[Any, Any]], shape: tuple[int, ...]
) -> Evaluation:
    keys = np.stack([column.ravel() for column in structural.values()], axis=1)
    combinations, which = np.unique(keys, axis=0, return_inverse=True)
    parts = []
    for index, combination in enumerate(combinations):
        chosen = {name: column.dtype.type(value).item() for (name, column), value in zip(structural.items(), combination, strict=True)}
        plan = plan_of(scenario, **chosen)
        rows = np.flatnonzero(which.ravel() == index)
        columns = {name: column[rows] for name, column in full.items()}
        parts.append((rows, _broadcast(handoff(plan, amounts_of(scenario, **columns)), (len(rows),))))
    merged: Evaluation = _merge([part for _, part in parts], [rows for rows, _ in parts], shape)
    return merged


def _broadcast(node: Any, shape: tuple[int, ...]) -> Any:
    if hasattr(node, "__dataclass_fields__"):
        return type(node)(**{name: _broadcast(getattr(node, name), shape) for name in node.__dataclass_fields__})
    return node if isinstance(node, tuple) or (isinstance(node, str) and node == "") else _spread(np.asarray(node), shape)


def _spread(array: np.ndarray[Any, Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """`np.broadcast_to`, several times as fast for a number and for what has the shape already; read-only as its result is."""
    if array.dtype.hasobject or (array.ndim and array.shape != shape):
        return np.broadcast_to(array, shape)
    spread = array.view() if array.ndim else np.ndarray(shape, array.dtype, array, 0, (0,) * len(shape))
    spread.flags.writeable = False
    return spread


def _merge(nodes: list[Any], rows: list[np.ndarray[Any, Any]], shape: tuple[int, ...]) -> Any:
    first = nodes[0]
    if hasattr(first, "__dataclass_fields__"):
        return type(first)(**{name: _merge([getattr(node, name) for node in nodes], rows, shape) for name in first.__dataclass_fields__})
    if isinstance(first, str | tuple):
        return first
    out = np.empty(int(np.prod(shape)), dtype=np.result_type(*nodes))
    for node, where_ in zip(nodes, rows, strict=True):
        out[where_] = node
    return out.reshape(shape)
