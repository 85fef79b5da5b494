"""One layer of a model in three passes: prefill, a decode step of one row, and one of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from app.over import Over
from kvmodel.display import count_text
from kvmodel.evaluate import amounts_of
from kvmodel.matrices import Amount, Pass, layer_total
from kvmodel.placement import Placement
from kvmodel.plan import placement_of
from kvmodel.progress import cut

COMPARED = 32
"""Decode batch shown beside a single row where the scenario has no batch of its own."""


@dataclass(frozen=True, slots=True)
class Run:
    """One layer in one pass, over a slider's positions."""

    name: str
    place: Placement
    at: Pass
    """The pass; its numbers are arrays."""
    layer: Amount

    @property
    def phase(self) -> str:
        """`prefill` or `decode`."""
        return self.at.phase

    @property
    def ridge(self) -> Any:
        """FLOP a byte from which arithmetic, not memory, sets the layer's time, formats mixed as its FLOP are."""
        return self.layer.peak / self.place.accelerator.hbm_bandwidth

    def reached(self) -> Any:
        """FLOP/s of one accelerator under the layer's roof."""
        return np.minimum(self.layer.peak, self.layer.intensity * self.place.accelerator.hbm_bandwidth)

    def bound(self, index: int) -> str:
        """What sets the time at a position."""
        return "compute" if self.layer.intensity[index] >= self.ridge[index] else "HBM"


def passes_of(over: Over) -> tuple[tuple[str, Pass], ...]:
    """Prefill of the scenario's requests, a decode step of one row, and one of a batch; arrays over the positions."""
    a, size = amounts_of(over.scenario, **{over.field: np.asarray(over.values)}), len(over.values)
    new, held, _ = (np.broadcast_to(np.asarray(v), size) for v in cut(over.plan, a))
    batch, context, one = np.broadcast_to(a.batch, size), np.broadcast_to(a.prompt_tokens, size), np.ones(size, dtype=np.int64)
    together = over.scenario.decode_batch if over.scenario.decode_batch > 1 else COMPARED
    return (
        ("Prefill", Pass("prefill", new, held, batch)),
        ("Decode", Pass("decode", one, context, one)),
        (f"Decode, batch {count_text(together)}", Pass("decode", one, context, one * together)),
    )


def runs_of(over: Over, index: int) -> list[Run]:
    """One layer of a group in the three passes."""
    group = over.plan.model.groups[index]
    found = []
    for name, one in passes_of(over):
        place = placement_of(over.scenario, one.phase)
        found.append(Run(name, place, one, layer_total(place, group, one)))
    return found
