r"""Bands: from what to what a modelled time may stand for.

The error of the fit is :math:`e = |modelled / tabled - 1|`, so the tabled time lies from 1 / (1 + e) to 1 / (1 - e)
of the modelled one. Measured times lie above the tables by what these leave out (`data/margins.toml`): a share of
prefill, and in decode the gaps between kernels and the waits of ranks, which count more the shorter the step is:

.. math:: high = \frac{step}{1 - e} + kernels\, g + all\,reduces\, (\log_2(p)\, w + n)

Where all-reduces leave the node, the time with these the other way (`kvmodel.allreduce.Across`) is inside the band.
"""

from __future__ import annotations

from kvmodel.compute import PhaseTime
from kvmodel.numeric import Num, maximum, minimum
from kvmodel.registry import margins

Band = tuple[Num, Num]
"""(low end, high end), in seconds."""


def prefill_band(time: PhaseTime, own: Num, new: Num, held: Num, batch: Num, chunk: Num | None = None) -> Band:
    """Ends of the band of `PhaseTime.prefill`, which took `own` seconds."""
    least, most = _both_ways(own, time.other.prefill(new, held, batch, chunk) if time.other else own)
    return least / (1 + time.error), most / (1 - time.error) / (1 - margins()["engines"].prefill_below)


def step_band(time: PhaseTime, own: Num, context: Num, batch: Num) -> Band:
    """Ends of the band of `PhaseTime.step`, which took `own` seconds."""
    least, most = _both_ways(own, time.other.step(context, batch) if time.other else own)
    return least / (1 + time.error), most / (1 - time.error) + time.beyond


def _both_ways(own: Num, other: Num) -> Band:
    return minimum(own, other), maximum(own, other)
