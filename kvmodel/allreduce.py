"""All-reduces of a tensor-parallel layer: bytes and waits, as long and as short messages take them.

A long message (prefill) goes round a ring: each rank sends and receives 2 (p - 1)/p of it, and the
ranks wait for each other some log2(p) times; a message that is not so long starts up faster. A short
one (decode) is read by every rank from all the others at once: (p - 1) times its bytes and one wait.
Ranks that span nodes do the same within the node first, as many times slower as the NICs are slower
than the node's fabric.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

from kvmodel.placement import Placement
from kvmodel.records.model import LayerGroup
from kvmodel.work import Work

ONE_SHOT_BYTES = 2**20
"""Longest message that is read from all the others at once; common kernels switch at 0.5 to 4 MiB."""

STARTUP_BYTES = 16 * 2**20
"""Message from which a ring runs at its full rate; published tables of all-reduces get no steeper beyond 16 to 32 MB."""

STARTUP_SHARE = 0.3
"""Share of a ring's waits that the shortest message has."""


@dataclass(frozen=True, slots=True)
class AllReduces:
    """The all-reduces of one layer on one placement, at peak and within the node unless they must leave it."""

    count: int
    """How many; 0 with one rank."""
    slower: float
    """Times slower than within a node; 1 where the ranks share one."""
    message: float
    """Bytes a token has in each."""
    fabric: float
    """Bytes per second of the node's fabric, one direction."""
    ranks: int
    """Ranks in all."""
    near: int
    """Ranks of one node."""

    @property
    def ring(self) -> float:
        """Seconds a token takes in a long message."""
        return self._seconds * 2 * (self.ranks - 1) / self.ranks

    @property
    def one_shot(self) -> float:
        """Seconds a token takes in a short message."""
        return self._seconds * max(self.near - 1, 2 * (self.ranks - 1) / self.ranks)

    @property
    def waits(self) -> float:
        """Waits of long messages."""
        return self.count * self.slower * log2(self.near)

    @property
    def startup(self) -> Work:
        """The same by length of the message: a share at once, the rest as it grows to `STARTUP_BYTES`."""
        return Work(fixed=STARTUP_SHARE * self.waits, short=(1 - STARTUP_SHARE) * self.waits * self.message / STARTUP_BYTES)

    @property
    def _seconds(self) -> float:
        return self.count * self.slower * self.message / self.fabric


def all_reduces(place: Placement, group: LayerGroup) -> AllReduces:
    """The all-reduces of one layer: one after attention and one after the block behind it.

    >>> from kvmodel.registry import accelerators, find_model
    >>> model = find_model("llama-3-70b")
    >>> r = all_reduces(Placement(model, accelerators()["h100-sxm"], 8, 1, 1, "bf16", "bf16"), model.groups[0])
    >>> r.count, r.slower, r.waits, round(r.ring * 450e9)
    (2, 1.0, 6.0, 57344)
    """
    a, tp = place.accelerator, place.tp
    count = (group.attention.kind != "none") + (group.ffn is not None) if tp > 1 else 0
    slower = max(1.0, a.scale_up_bandwidth / (a.nic_bandwidth * a.nics_per_gpu)) if place.spans_nodes else 1.0
    return AllReduces(count, slower, 2.0 * place.model.hidden, a.scale_up_bandwidth, tp, min(tp, a.gpus_per_node))


def short_tokens(place: Placement, phase: str) -> float:
    """Tokens of a pass whose all-reduce counts as short in this phase."""
    return (STARTUP_BYTES if phase == "prefill" else ONE_SHOT_BYTES) / (2.0 * place.model.hidden)
