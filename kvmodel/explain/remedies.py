"""What would halve a figure: for each input by itself, the least change that does, found by evaluating it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from kvmodel.errors import KvModelError
from kvmodel.explain.figures import Case, Figure
from kvmodel.explain.levers import Lever, levers
from kvmodel.explain.record import Remedy

SAYS_NOTHING = {
    "prefill.seconds": {"prefill_seconds"},
    "decode.step_seconds": {"decode_step_seconds"},
    "tpot_seconds": {"decode_step_seconds"},
}
"""Inputs that would only put another number in the figure's place."""

NOTICED = 0.995
"""Share of a figure above which a change is none."""


def remedies_of(figure: Figure, case: Case) -> tuple[tuple[Remedy, ...], Remedy | None]:
    """(changes that reach the figure's goal, each of one input; where there are none, the one that comes nearest)."""
    now = figure.value(case)
    if is_met(figure, now):
        return (), None
    found, nearest = [], None
    for lever in levers(case, figure.family):
        if not set(lever.fields) & SAYS_NOTHING.get(figure.id, set()):
            remedy, near = _try(figure, case, lever, now)
            found += [remedy] if remedy else []
            nearest = min((r for r in (nearest, near) if r), key=_closeness, default=None)
    some = tuple(found)
    return some, None if some else nearest


def is_met(figure: Figure, now: Any) -> bool:
    """Whether nothing is left to better of a figure."""
    return not now or figure.goal.reached(now, now)


def _closeness(remedy: Remedy) -> float:
    return 1.0 if remedy.share is None else remedy.share


def _try(figure: Figure, case: Case, lever: Lever, now: Any) -> tuple[Remedy | None, Remedy | None]:
    """(the lever's least change that reaches the goal, the change that comes nearest to it)."""
    before: Any = None
    good: list[Remedy] = []
    short: list[Remedy] = []
    for value in lever.tried:
        remedy = _remedy(figure, case, lever, value, now, coarse=True)
        if remedy is None:
            continue
        if figure.goal.reached(now, remedy.value):
            least = _between(figure, case, lever, before, value, now) if lever.number else value
            exact = _remedy(figure, case, lever, least, now)
            if exact is not None and figure.goal.reached(now, exact.value):
                good.append(exact)
                if not lever.best:
                    break
        elif remedy.share is not None and remedy.share < NOTICED:
            short.append(remedy)
        before = value
    return min(good, key=_closeness, default=None), min(short, key=_closeness, default=None)


def _remedy(figure: Figure, case: Case, lever: Lever, value: Any, now: Any, *, coarse: bool = False) -> Remedy | None:
    """What a change would do; None where it cannot be made, or would not fit where the scenario does."""
    values = lever.values(value)
    try:
        changed = case.changed(values)
        if _fits(figure, case) and not _fits(figure, changed):
            return None
        new = figure.value(changed, coarse=coarse)
    except KvModelError:
        return None
    share = new / now if isinstance(now, int | float) and isinstance(new, int | float) else None
    return Remedy(lever.fields[0], lever.words(value), values, new, share)


def _fits(figure: Figure, case: Case) -> bool:
    """Whether engines accept the scenario and its sides hold it, at the turn's length for a turn."""
    turn = case.turn
    whole = case.changed({"prompt_tokens": turn.history_tokens + turn.delta_tokens}) if figure.family == "turn" else case
    return bool(whole.result.feasible)


def _between(figure: Figure, case: Case, lever: Lever, fails: Any, holds: Any, now: Any) -> Any:
    """The least change between one that falls short and one that reaches the goal."""
    low = fails if fails is not None else _start(case, lever)
    middle: Callable[[Any, Any], Any] = _halfway if lever.number == "whole" else lambda a, b: math.sqrt(a * b)
    for _ in range(40):
        tried = middle(low, holds)
        if tried in (low, holds) or (lever.number == "broken" and abs(holds / low - 1) < 1e-6):
            break
        remedy = _remedy(figure, case, lever, tried, now, coarse=True)
        reached = remedy is not None and figure.goal.reached(now, remedy.value)
        low, holds = (low, tried) if reached else (tried, holds)
    return holds if lever.number == "whole" else _rounded(holds, up=holds > low)


def _start(case: Case, lever: Lever) -> Any:
    """The value now: for those that are left to engine or model, the first one tried stands in, half or twice."""
    name = lever.fields[0]
    holder = case.turn if name in ("history_tokens", "delta_tokens", "generated_tokens") else case.scenario
    now = getattr(holder, name)
    if isinstance(now, int | float):
        return now
    first = lever.tried[0]
    return case.plan.lanes if name == "lanes" else first * 2 if name.endswith("seconds") else first / 2


def _halfway(a: int, b: int) -> int:
    return (a + b) // 2


def _rounded(value: float, *, up: bool) -> float:
    """Three significant digits, away from where the change began."""
    scale = 10.0 ** (2 - math.floor(math.log10(value)))
    inside = value * scale * (1 - 1e-5 if up else 1 + 1e-5)
    return (math.ceil(inside) if up else math.floor(inside)) / scale
