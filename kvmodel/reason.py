"""Why a scenario is infeasible, in a sentence: what does not fit where, and what to try first."""

from __future__ import annotations

from collections.abc import Sequence

from kvmodel.display import bytes_text, count_text
from kvmodel.plan import Plan, Side
from kvmodel.progress import Amounts
from kvmodel.remedies import first_remedy, side_memory
from kvmodel.results import SideMemory
from kvmodel.scenario import Scenario

LONGEST = 124
"""Characters of a reason; with its full stop it is an answer sentence."""

NO_REMEDY = "no TP, PP, format or accelerator alone would do"


def reason_of(plan: Plan, amounts: Amounts, scenario: Scenario) -> str:
    """Why the scenario is infeasible and what would do; empty where it is feasible."""
    if plan.refusal:
        return plan.refusal
    sides = failing_sides(plan, amounts)
    if not sides:
        return ""
    memories = [side_memory(plan, amounts, phase) for phase in sides]
    uses = [found.use if (found := first_remedy(scenario, amounts, phase)) else NO_REMEDY for phase in sides]
    if len(sides) == 1:
        return shortest(_one(getattr(plan, sides[0]), sides[0], memories[0], uses[0]))
    return shortest(_both((plan.prefill, plan.decode), memories, uses))


def failing_sides(plan: Plan, amounts: Amounts) -> list[str]:
    """Sides that do not fit."""
    return [phase for phase in ("prefill", "decode") if not side_memory(plan, amounts, phase).fits]


def shortest(sentences: Sequence[str]) -> str:
    """The first sentence that an answer has room for."""
    return next((s for s in sentences if len(s) <= LONGEST), sentences[-1])


def _one(side: Side, phase: str, memory: SideMemory, use: str) -> list[str]:
    """What does not fit on one side, and the remedy, the fullest sentence first."""
    return [f"{head} {_where(side)} ({phase}): {use}" for head in (_parts(side, memory), f"{_whole(side, memory)} exceed")]


def _both(sides: Sequence[Side], memories: Sequence[SideMemory], uses: Sequence[str]) -> list[str]:
    """What does not fit on either side, and the remedies, the fullest sentence first."""
    wholes = [_whole(side, memory) for side, memory in zip(sides, memories, strict=True)]
    found = []
    if _where(sides[0]) == _where(sides[1]) and uses[0] == uses[1]:
        heads = [_parts(side, memory) for side, memory in zip(sides, memories, strict=True)]
        use = uses[0] + " on each" * uses[0].endswith("or more")
        found += [f"{heads[0]} {_where(sides[0])}, prefill and decode alike: {use}"] * (heads[0] == heads[1])
        found.append(f"{wholes[0]} (prefill) and {wholes[1]} (decode) exceed {_where(sides[0])} each: {use}")
    each = [
        f"{whole} exceed {_where(side)} ({phase}): {use}"
        for whole, side, phase, use in zip(wholes, sides, ("prefill", "decode"), uses, strict=True)
    ]
    found.append("; ".join(each))
    found.append(f"{wholes[0]} exceed {_where(sides[0])} (prefill), and {wholes[1]} exceed {_where(sides[1])} (decode)")
    return [*found, f"{wholes[0]} exceed the GPUs of prefill, and {wholes[1]} those of decode"]


def _where(side: Side) -> str:
    return f"{count_text(side.rank_count)} × {side.accelerator.name}"


def _whole(side: Side, memory: SideMemory) -> str:
    """All that a side would hold."""
    return bytes_text((memory.weights_bytes + memory.cache_bytes + memory.activation_bytes) * side.rank_count)


def _parts(side: Side, memory: SideMemory) -> str:
    """As many of weights, cache and workspace as it takes to be too much, with the verb."""
    weights, cache, workspace = (
        bytes_text(part * side.rank_count) for part in (memory.weights_bytes, memory.cache_bytes, memory.activation_bytes)
    )
    if memory.weights_bytes > memory.usable_bytes:
        return f"{weights} of weights do not fit on"
    if memory.weights_bytes + memory.cache_bytes > memory.usable_bytes:
        return f"{weights} of weights and {cache} of cache exceed"
    return f"{weights} of weights, {cache} of cache and {workspace} of workspace exceed"
