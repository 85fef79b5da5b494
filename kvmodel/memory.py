"""Does a side's share of weights and cache fit in memory, and what would."""

from __future__ import annotations

from dataclasses import dataclass

from kvmodel.numeric import Num

USABLE_MEMORY = 0.9
"""Share of device memory for weights and cache; the rest is for activations and the runtime.

vLLM's default `gpu_memory_utilization` (docs.vllm.ai, engine arguments; checked 2026-11-29)."""


@dataclass(frozen=True, slots=True)
class RankMemory:
    """Bytes one accelerator of a side needs and has."""

    weights: Num
    """Weights of one rank."""
    cache: Num
    """Cache of the requests it holds."""
    usable: float
    """Bytes it can give them."""

    @property
    def fits(self) -> Num:
        """Whether both fit."""
        return self.weights + self.cache <= self.usable
