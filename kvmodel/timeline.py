r"""When each part of the cache is on the wire while prefill computes.

Parts become ready in order and cross one after the other:

.. math:: busy_i = \max(ready_i,\ busy_{i-1}) + x_i, \qquad arrival_i = busy_i + \alpha

With `layer-both`, decode starts a layer when it has arrived: :math:`done_i = \max(arrival_i, done_{i-1}) + d`.
Parts come in runs alike (layers of one kind, equally spaced); a run is advanced in closed form, so
the recursion takes as many steps as there are runs and works on arrays.
"""

from __future__ import annotations

from typing import NamedTuple

from kvmodel.numeric import Num, maximum


class Run(NamedTuple):
    """`parts` parts alike: the first ready at `first`, the others `spacing` apart, each `x` on the wire."""

    parts: int
    first: Num
    spacing: Num
    x: Num


class WireState(NamedTuple):
    """Where the wire and the layer-by-layer decode stand."""

    busy: Num = 0.0
    """Time at which the wire is free."""
    done: Num = 0.0
    """Time at which decode has finished the layers that arrived."""


def advance(state: WireState, run: Run, latency: Num = 0.0, decode_layer: Num | None = None) -> WireState:
    """The state after a run. `decode_layer` is the seconds decode spends on a layer under `layer-both`.

    Equals stepping through the run part by part: the recursion is a maximum over paths, linear in
    where a path turns, so only paths that turn at the run's ends count.
    """
    n, x = run.parts, run.x
    start = maximum(state.busy, run.first)
    if n == 1 and decode_layer is None:
        return WireState(start + x, state.done)
    last = run.first + (n - 1) * run.spacing
    busy = maximum(start + n * x, last + x)
    if decode_layer is None:
        return WireState(busy, state.done)
    d = decode_layer
    done = maximum(state.done + n * d, start + x + latency + n * d)
    done = maximum(done, start + n * x + latency + d)
    return WireState(busy, maximum(done, last + x + latency + d))


def step_through(readies: list[float], xs: list[float], start: float = 0.0) -> list[tuple[float, float]]:
    """Start and end of each part on the wire, part by part: the recursion as written above."""
    spans, busy = [], start
    for ready, x in zip(readies, xs, strict=True):
        begin = max(ready, busy)
        busy = begin + x
        spans.append((begin, busy))
    return spans
