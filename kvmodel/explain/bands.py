"""The band of a time that follows from those of prefill and the decode step."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from kvmodel.explain.figures import Case
from kvmodel.handoff import Course, course, step_times
from kvmodel.progress import progress


def band_of(case: Case, pick: Callable[[Course], float]) -> tuple[float, float] | None:
    """Least and most of a time over the ends of both bands; None where the bands do not change it."""
    plan, a = case.plan, case.amounts
    p, (step, tpot) = progress(plan, a), step_times(plan, a)
    r = case.result
    prefill = (r.prefill.low / r.prefill.seconds, r.prefill.high / r.prefill.seconds)
    decode = (r.decode.low / r.decode.step_seconds, r.decode.high / r.decode.step_seconds)
    found = [float(pick(course(plan, a, p.stretched(x), y * step, y * tpot))) for x, y in product(prefill, decode)]
    return (min(found), max(found)) if max(found) - min(found) > 1e-9 * max(found) else None
