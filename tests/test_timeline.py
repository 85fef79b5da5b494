"""The wire's recursion in closed form against the recursion part by part."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel.timeline import Run, WireState, advance, step_through

seconds = st.one_of(st.just(0.0), st.floats(1e-6, 10.0))
runs = st.lists(
    st.builds(Run, parts=st.integers(1, 40), first=st.just(0.0), spacing=seconds, x=seconds),
    min_size=1,
    max_size=6,
)


def laid_out(spacings: list[Run]) -> list[Run]:
    """The runs one after the other on prefill's clock."""
    clock, placed = 0.0, []
    for run in spacings:
        placed.append(run._replace(first=clock + run.spacing))
        clock += run.parts * run.spacing
    return placed


def parts(placed: list[Run]) -> tuple[list[float], list[float]]:
    """Ready times and wire times of all parts."""
    readies = [run.first + i * run.spacing for run in placed for i in range(run.parts)]
    return readies, [run.x for run in placed for _ in range(run.parts)]


@given(runs, seconds)
def test_a_run_in_closed_form_equals_its_parts(spacings: list[Run], start: float) -> None:
    placed, state = laid_out(spacings), WireState(start)
    for number, run in enumerate(placed, start=1):
        state = advance(state, run)
        assert state.busy == pytest.approx(step_through(*parts(placed[:number]), start)[-1][1], rel=1e-12)


@given(runs, seconds, seconds, seconds, seconds)
def test_decode_layer_by_layer_equals_a_plain_loop(spacings: list[Run], start: float, began: float, alpha: float, step: float) -> None:
    placed, state = laid_out(spacings), WireState(start, began)
    for run in placed:
        state = advance(state, run, latency=alpha, decode_layer=step)
    busy, done = start, began
    for ready, x in zip(*parts(placed), strict=True):
        busy = max(ready, busy) + x
        done = max(busy + alpha, done) + step
    assert state.busy == pytest.approx(busy, rel=1e-12)
    assert state.done == pytest.approx(done, rel=1e-12)


@given(runs)
def test_the_end_lies_between_the_longer_of_the_two_and_their_sum(spacings: list[Run]) -> None:
    placed, state = laid_out(spacings), WireState()
    for run in placed:
        state = advance(state, run)
    compute, wire = (sum(run.parts * getattr(run, name) for run in placed) for name in ("spacing", "x"))
    assert max(compute, wire) * (1 - 1e-12) <= state.busy <= (compute + wire) * (1 + 1e-12)


@given(st.lists(seconds, min_size=1, max_size=30), st.lists(seconds, min_size=30, max_size=30), seconds)
def test_the_wire_carries_one_part_at_a_time_and_none_early(steps: list[float], xs: list[float], start: float) -> None:
    readies = list(np.cumsum(steps))
    spans = step_through(readies, xs[: len(steps)], start)
    assert all(begin >= ready for (begin, _), ready in zip(spans, readies, strict=True))
    assert all(later[0] >= earlier[1] for earlier, later in pairwise(spans))


@pytest.mark.parametrize(
    ("gbytes_per_s", "pipelined", "exposed"),
    [(50.0, 0.800671, 0.000671), (1.0, 2.694355, 1.894355)],
)
def test_eighty_equal_layers_leave_one_layer_or_all_but_the_first_compute(gbytes_per_s: float, pipelined: float, exposed: float) -> None:
    # 33,554,432 B a layer behind 10 ms of prefill each: reasoned in sgl-project/sglang#23515 and #38309
    x = 33_554_432 / (gbytes_per_s * 1e9)
    end = advance(WireState(), Run(80, 0.010, 0.010, x)).busy
    assert end == pytest.approx(pipelined, abs=1e-6)
    assert end - 0.8 == pytest.approx(exposed, abs=1e-6)


@given(st.integers(1, 200), st.floats(1e-4, 1.0), st.floats(1e-4, 1.0))
def test_uniform_layers_expose_the_last_one_or_what_the_link_lags(layers: int, compute: float, x: float) -> None:
    exposed = advance(WireState(), Run(layers, compute, compute, x)).busy - layers * compute
    assert exposed == pytest.approx(x if x <= compute else layers * x - (layers - 1) * compute, rel=1e-9, abs=1e-12)


def test_arrays_advance_like_numbers() -> None:
    spacing, x = np.array([0.1, 0.2, 0.3]), np.array([0.3, 0.2, 0.1])
    together = advance(WireState(0.05, 0.02), Run(7, spacing, spacing, x), latency=0.01, decode_layer=0.2)
    for i in range(3):
        alone = advance(WireState(0.05, 0.02), Run(7, spacing[i], spacing[i], x[i]), latency=0.01, decode_layer=0.2)
        assert (together.busy[i], together.done[i]) == (alone.busy, alone.done)
