"""What would halve a figure: for each input by itself, the least change that does, found by evaluating it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from kvmodel.capacity import capacity
from kvmodel.errors import KvModelError
from kvmodel.explain.figures import HALF, Case, Figure
from kvmodel.explain.levers import Lever, levers
from kvmodel.explain.record import Remedy

SAYS_NOTHING = {
    "prefill.seconds": {"prefill_seconds"},
    "decode.step_seconds": {"decode_step_seconds"},
    "tpot_seconds": {"decode_step_seconds"},
}
"""Inputs that would only put another number in the figure's place."""

CLOSE = 2e-4
"""How close two broken numbers are looked for; they are then written with three digits."""
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
    tried = lever.tried
    if lever.number and tried and not _reaches(figure, case, lever, tried[-1], now):
        tried = tried[-1:]
    before: Any = None
    good: list[Remedy | None] = []
    short: list[Remedy | None] = []
    for value in tried:
        if _reaches(figure, case, lever, value, now):
            least = _between(figure, case, lever, before, value, now) if lever.number else value
            good.append(_remedy(figure, case, lever, least, now))
            if not lever.best:
                break
        elif figure.goal is HALF:
            short.append(_remedy(figure, case, lever, value, now))
        before = value
    reached = [remedy for remedy in good if remedy and figure.goal.reached(now, remedy.value)]
    nearer = [remedy for remedy in short if remedy and _closeness(remedy) < NOTICED]
    return min(reached, key=_closeness, default=None), min(nearer, key=_closeness, default=None)


def _reaches(figure: Figure, case: Case, lever: Lever, value: Any, now: Any) -> bool:
    """Whether a change can be made and reaches the goal; of critical lengths, whether it may."""
    changed = _changed(figure, case, lever, value)
    if changed is None:
        return False
    return figure.may_reach(changed, now) if figure.goal is not HALF else figure.goal.reached(now, figure.value(changed))


def _changed(figure: Figure, case: Case, lever: Lever, value: Any) -> Case | None:
    """The case with a change; None where it cannot be made, or would not fit where the scenario does."""
    try:
        changed = case.changed(lever.values(value))
        return changed if _fits(figure, changed) or not _fits(figure, case) else None
    except KvModelError:
        return None


def _remedy(figure: Figure, case: Case, lever: Lever, value: Any, now: Any) -> Remedy | None:
    """What a change does; None where it cannot be made."""
    changed = _changed(figure, case, lever, value)
    if changed is None:
        return None
    new = figure.value(changed)
    share = new / now if isinstance(now, int | float) and isinstance(new, int | float) else None
    return Remedy(lever.fields[0], lever.words(value), lever.values(value), new, share)


def _fits(figure: Figure, case: Case) -> bool:
    """Whether engines accept the scenario and its sides hold it, at the turn's length for a turn."""
    turn = case.turn
    whole = case.changed({"prompt_tokens": turn.history_tokens + turn.delta_tokens}) if figure.family == "turn" else case
    memory = capacity(whole.plan, whole.amounts)
    return not whole.plan.refusal and bool(memory.prefill.fits and memory.decode.fits)


def _between(figure: Figure, case: Case, lever: Lever, fails: Any, holds: Any, now: Any) -> Any:
    """The least change between one that falls short and one that reaches the goal."""
    low = fails if fails is not None else _start(case, lever)
    middle: Callable[[Any, Any], Any] = _halfway if lever.number == "whole" else lambda a, b: math.sqrt(a * b)
    while True:
        tried = middle(low, holds)
        if tried in (low, holds) or (lever.number == "broken" and abs(holds / low - 1) < CLOSE):
            break
        reached = _reaches(figure, case, lever, tried, now)
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
