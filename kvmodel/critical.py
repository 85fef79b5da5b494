"""Critical lengths: from which prompt on the handoff matters.

Times and overlaps may cross more than once, so every answer but the first crossing of a decode step
is a list of intervals. Measured overrides stay what they are at every length.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from kvmodel.evaluate import amounts_of
from kvmodel.flips import GAP_MARK
from kvmodel.handoff import handoff
from kvmodel.plan import Plan, plan_of
from kvmodel.progress import Amounts
from kvmodel.scenario import MAX_PROMPT_TOKENS, Scenario, need_scenario

Test = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Interval:
    """Prompt lengths from `from_tokens` to `to_tokens`, both included."""

    from_tokens: int
    to_tokens: int


@dataclass(frozen=True, slots=True)
class CriticalLengths:
    """Where a handoff begins or ceases to matter."""

    decode_step_tokens: int | None
    """Shortest prompt whose transfer takes one decode step; None where none up to 1,048,576 does."""
    hidden: tuple[Interval, ...]
    """Prompts whose transfer layer-by-layer sending would hide behind prefill."""
    gap_over_share: tuple[Interval, ...]
    """Prompts whose gap is over 20 % of TTFT, with the scenario's own overlap."""
    critical_bandwidth_bytes_per_s: float | None
    """Bandwidth of all lanes together at which the wire takes as long as prefill; None where nothing moves."""

    def as_dict(self) -> dict[str, Any]:
        """Nested dictionaries of plain values, ready for JSON."""
        return asdict(self)


def critical_lengths(scenario: Scenario) -> CriticalLengths:
    """Critical lengths of a scenario, whatever its own prompt length.

    >>> critical_lengths(Scenario(link="ethernet-100", decode_step_seconds=0.030)).decode_step_tokens
    1145

    Raises UnknownNameError and BadScenarioError.
    """
    need_scenario(scenario)
    tests = length_tests(scenario)
    steps = intervals(tests["decode_step_tokens"])
    return CriticalLengths(
        decode_step_tokens=steps[0].from_tokens if steps else None,
        hidden=intervals(tests["hidden"]),
        gap_over_share=intervals(tests["gap_over_share"]),
        critical_bandwidth_bytes_per_s=critical_bandwidth(plan_of(scenario), amounts_of(scenario)),
    )


def length_tests(scenario: Scenario) -> dict[str, Test]:
    """What is asked of a prompt length, or of an array of them, by the name of the answer in `CriticalLengths`."""
    plan = plan_of(scenario)
    layered = plan_of(scenario.with_changes(overlap="layer"))
    amounts = amounts_of(scenario)

    def outlasts_step(tokens: Any) -> Any:
        result = handoff(plan, replace_tokens(amounts, tokens))
        return (result.transfer.seconds >= result.decode.step_seconds) & (result.kv.wire_bytes > 0)

    def hides(tokens: Any) -> Any:
        return is_hidden(handoff(layered, replace_tokens(amounts, tokens)).bound)

    def gap_is_large(tokens: Any) -> Any:
        return handoff(plan, replace_tokens(amounts, tokens)).gap_share > GAP_MARK

    return {"decode_step_tokens": outlasts_step, "hidden": hides, "gap_over_share": gap_is_large}


def is_hidden(bound: Any) -> Any:
    """Whether a bound, or each of an array of them, is that of a transfer that prefill hides: all but its last part, or nothing to move."""
    return np.isin(bound, ("hidden", "nothing"))


def critical_bandwidth(plan: Plan, amounts: Amounts) -> float | None:
    """Bytes per second over all lanes at which the wire takes as long as prefill, at the scenario's prompt."""
    here = handoff(plan, amounts)
    return here.kv.wire_bytes / here.prefill.seconds if here.kv.wire_bytes else None


def replace_tokens(amounts: Amounts, tokens: Any) -> Amounts:
    """The amounts at other prompt lengths."""
    return replace(amounts, prompt_tokens=tokens)


def intervals(
    holds: Test, low: int = 1, high: int = MAX_PROMPT_TOKENS, *, dense: int = 4096, per_doubling: int = 200
) -> tuple[Interval, ...]:
    """Intervals of whole numbers from `low` to `high` where `holds` (vectorised) is true.

    Every length up to `dense` is tried, then `per_doubling` a doubling; each change between two
    neighbours is then bisected, all at once.
    """
    near = np.arange(low, min(high, dense) + 1)
    steps = max(2, round(per_doubling * np.log2(max(high / dense, 2.0))))
    far = np.geomspace(dense, high, steps).round().astype(np.int64) if high > dense else near[:0]
    grid = np.unique(np.concatenate([near, far]))
    truth = np.broadcast_to(np.asarray(holds(grid), dtype=bool), grid.shape)
    changes = np.flatnonzero(truth[1:] != truth[:-1])
    edges = _bisect(holds, grid[changes], grid[changes + 1], truth[changes])
    starts = ([low] if truth[0] else []) + [int(e) for e, before in zip(edges, truth[changes], strict=True) if not before]
    ends = [int(e) - 1 for e, before in zip(edges, truth[changes], strict=True) if before] + ([high] if truth[-1] else [])
    return tuple(Interval(a, b) for a, b in zip(starts, ends, strict=True))


def _bisect(holds: Test, low: Any, high: Any, low_truth: Any) -> Any:
    """First whole number after each change of `holds` between `low` and `high`."""
    while len(low) and np.any(high - low > 1):
        middle = (low + high) // 2
        same = np.broadcast_to(np.asarray(holds(middle), dtype=bool), middle.shape) == low_truth
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return high
