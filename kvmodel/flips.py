"""Where the band of a time crosses a threshold: what the answer would be at the other end of it.

A faster prefill hides less of the wire and leaves the gap a larger share of TTFT, a slower one the reverse; so
does the decode step for the share. Hence what holds is only tried at the end where it could cease to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from kvmodel.display import time_text
from kvmodel.handoff import Course, course, first_tokens, step_times
from kvmodel.numeric import Num
from kvmodel.plan import Plan
from kvmodel.progress import Amounts, Progress, progress
from kvmodel.results import Evaluation

GAP_MARK = 0.20
"""Share of TTFT above which the gap gives back much of what disaggregation gains."""

FIRST = "the first token's time"
"""What shares of TTFT are called in sentences."""

LOW, HIGH = 0, 1
ENDS = ("low", "high")


@dataclass(frozen=True, slots=True)
class Flip:
    """A threshold that a band crosses."""

    would: str
    """What would hold instead."""
    end: int
    """LOW or HIGH."""
    of: tuple[str, ...]
    """The times that would have to be at that end: `prefill`, `decode step` or both."""
    seconds: tuple[float, ...]
    """What they would be."""

    @property
    def clauses(self) -> tuple[str, ...]:
        """For an answer sentence: what it would take, and in fewer words where there is no room for that."""
        end = ENDS[self.end]
        if len(self.of) > 1:
            return (f"{self.would} at the {end} ends of both bands",)
        what, least = self.of[0], "only " if self.end == LOW else ""
        name = "a decode step" if what == "decode step" else what
        return f"{self.would} should {name} take {least}{time_text(self.seconds[0])}", f"{self.would} at {what}'s {end} end"

    @property
    def note(self) -> str:
        """A sentence of its own."""
        times = " and ".join(f"{name} {time_text(seconds)}" for name, seconds in zip(self.of, self.seconds, strict=True))
        return f"{self.would[0].upper()}{self.would[1:]} at the {ENDS[self.end]} end of the band: {times}."


class _There:
    """The handoff with prefill and decode step elsewhere in their bands."""

    def __init__(self, plan: Plan, a: Amounts, result: Evaluation) -> None:
        self.plan, self.a, self.result = plan, a, result
        self.found: dict[tuple[float, float], Course] = {}

    @cached_property
    def times(self) -> tuple[Num, Num]:
        """Seconds of a decode step of the batch and of a request alone, as they are."""
        return step_times(self.plan, self.a)

    @cached_property
    def progress(self) -> Progress:
        """Prefill and transfer as they are; most evaluations are far from a threshold and never ask."""
        return progress(self.plan, self.a)

    def course(self, prefill: float, step: float) -> Course:
        """The course at factors of both times; only layer by layer on both sides does the step decide what is exposed."""
        key = prefill, step if self.plan.overlap == "layer-both" else 1.0
        if key not in self.found:
            p = self.progress.stretched(key[0])
            self.found[key] = course(self.plan, self.a, p, key[1] * self.times[0], key[1] * self.times[1])
        return self.found[key]

    def gap_share(self, prefill: float, step: float) -> float:
        """Gap over TTFT at factors of both times."""
        as_it_is = prefill == 1 and (step == 1 or self.plan.overlap != "layer-both")
        gap = self.result.gap_seconds if as_it_is else self.course(prefill, step).gap
        late = prefill * self.result.prefill.seconds, gap, step * self.times[0], step * self.times[1]
        return float(gap / first_tokens(self.plan, *late)[0])


def flip_of(plan: Plan, a: Amounts, result: Evaluation) -> Flip | None:
    """The first threshold that a band of the evaluation crosses: the bound, then the gap's share of TTFT; None where none."""
    if not result.feasible or result.bound == "nothing":
        return None
    there = _There(plan, a, result)
    return next(_bound_flips(there), None) or next(_share_flips(there), None)


def _ends(result: Evaluation) -> tuple[tuple[float, float], tuple[float, float]]:
    """Factors from prefill and from the decode step to the (low, high) ends of their bands; 1 where they were measured."""
    prefill, decode = result.prefill, result.decode
    ends = (prefill.low / prefill.seconds, prefill.high / prefill.seconds)
    return ends, (decode.low / decode.step_seconds, decode.high / decode.step_seconds)


def _bound_flips(there: _There) -> Iterator[Flip]:
    """Prefill alone decides what bounds the transfer."""
    result = there.result
    end, would = {"hidden": (LOW, "link-bound"), "link": (HIGH, "hidden")}.get(result.bound, (LOW, ""))
    factor = _ends(result)[0][end]
    if would and factor != 1 and there.course(factor, 1.0).bound != result.bound:
        yield Flip(would, end, ("prefill",), (factor * result.prefill.seconds,))


def _share_flips(there: _There) -> Iterator[Flip]:
    """Prefill, then the decode step, then both decide the gap's share of TTFT."""
    result = there.result
    over = result.gap_share > GAP_MARK
    end = HIGH if over else LOW
    prefill, step = (factors[end] for factors in _ends(result))
    if not _may_cross(result, prefill, step, over):
        return
    for by_prefill, by_step in ((prefill, 1.0), (1.0, step), (prefill, step)):
        if (there.gap_share(by_prefill, by_step) > GAP_MARK) != over:
            moved = (("prefill", by_prefill, result.prefill.seconds), ("decode step", by_step, result.decode.step_seconds))
            of = [(name, factor * seconds) for name, factor, seconds in moved if factor != 1]
            would = f"gap {'under' if over else 'over'} 20\u202f% of {FIRST}"
            yield Flip(would, end, tuple(name for name, _ in of), tuple(seconds for _, seconds in of))


def _may_cross(result: Evaluation, prefill: float, step: float, over: bool) -> bool:
    """Whether the share could cross at all: the gap moves by no more than prefill and step together do."""
    moved = abs(prefill - 1) * result.prefill.seconds + abs(step - 1) * result.decode.step_seconds
    if over:
        return bool((result.gap_seconds - moved) / (result.ttft_seconds + moved) <= GAP_MARK)
    least = result.ttft_seconds - moved
    return bool(least <= 0 or (result.gap_seconds + moved) / least > GAP_MARK)
