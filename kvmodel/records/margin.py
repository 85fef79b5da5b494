"""What engines were measured to take beyond the operator tables that the time model is fitted to: the upper end of its bands."""

from __future__ import annotations

from pydantic import Field

from kvmodel.records.base import Seconds, Sourced


class Margin(Sourced):
    """How far above the tables measured times lie."""

    id: str
    """Whose times were measured."""
    prefill_below: float = Field(ge=0, lt=1)
    """Share of a measured TTFT at 8k tokens that the tables lack, at most."""
    kernel_gap: Seconds
    """Decode: time beside each kernel, in nine of ten measured steps at most."""
    rank_wait: Seconds
    """Decode: time beside each all-reduce for every doubling of its ranks, likewise."""
    network_wait: Seconds
    """Decode: time beside each all-reduce that leaves the node."""
