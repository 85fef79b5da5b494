r"""All-reduces of a tensor-parallel layer: bytes and waits, as long and as short messages take them.

A long message (prefill) goes round a ring: each rank sends and receives 2 (p - 1)/p of it, and the
ranks wait for each other some log2(p) times; a message that is not so long starts up faster. A short
one (decode) is read by every rank from all the others at once: (p - 1) times its bytes and one wait.

Ranks that span nodes use every NIC of a node: NCCL lays a ring through each of them, so that a long
message goes at the slower of the node's fabric and its NICs together,

.. math:: bus = \min(fabric,\ GPUs \times NICs \times rate),

after `NETWORK_WAIT`. The operator tables that the constants are fitted to have not measured that: they
take what a node takes and multiply it with fabric / one GPU's NICs (aiconfigurator 095f58a,
perf_database/communication.rs, query_custom_allreduce_scaled). Only their rows of models with experts
span nodes. So a model with experts follows the tables, a dense one NCCL, and the band of either covers
the other (`Across`). Under attention DP, of which the tables have nothing, all-reduces go as NCCL's, and
where each rank keeps its own tokens these are sent to their experts (`kvmodel.routing`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import log2

from kvmodel.placement import Placement
from kvmodel.records.model import LayerGroup, Moe
from kvmodel.routing import routed_seconds
from kvmodel.work import Work

ONE_SHOT_BYTES = 2**20
"""Longest message that is read from all the others at once; common kernels switch at 0.5 to 4 MiB."""

STARTUP_BYTES = 16 * 2**20
"""Message from which a ring runs at its full rate; published tables of all-reduces get no steeper beyond 16 to 32 MB."""

STARTUP_SHARE = 0.3
"""Share of a ring's waits that the shortest message has."""

NETWORK_WAIT = 45e-6
"""Seconds that an all-reduce between nodes waits for the network, however short: NCCL over two nodes of 8 takes 46 us
for a few bytes (https://github.com/NVIDIA/nccl/issues/1244, 8 x 400 Gb/s), 54 us on 8 x B200 with EFA
(https://github.com/dstackai/dstack/pull/3961), some 3 us of them within the node."""


class Across(Enum):
    """How all-reduces that leave the node go."""

    NICS = "all-reduces between nodes over all NICs of a node, as NCCL does"
    TABLES = "all-reduces between nodes at the pace of one GPU's NICs, as the operator tables extrapolate"
    ROUTED = "tokens sent to experts and back with nothing computed meanwhile"
    HIDDEN = "tokens sent to experts and back while the other half of the batch is computed"

    @property
    def other(self) -> Across:
        """What the band has to cover beside it."""
        return {Across.NICS: Across.TABLES, Across.TABLES: Across.NICS, Across.ROUTED: Across.HIDDEN, Across.HIDDEN: Across.ROUTED}[self]


def across_of(place: Placement) -> Across | None:
    """How a model's all-reduces leave the node; None where its ranks share one."""
    if not place.spans_nodes:
        return None
    experts = any(isinstance(group.ffn, Moe) for group in place.model.groups)
    if experts and place.routes_tokens:
        return Across.ROUTED
    return Across.TABLES if experts and place.attention_dp == 1 else Across.NICS


@dataclass(frozen=True, slots=True)
class AllReduces:
    """The all-reduces of one layer on one placement, at peak."""

    count: int
    """How many; 0 with one rank."""
    slower: float
    """Times the bytes go slower than within a node; 1 where the ranks share one."""
    rings: float
    """How many rounds through all ranks the bytes of a token amount to."""
    waits: float
    """Waits of long messages."""
    one_wait: float
    """Waits of one short message."""
    message: float
    """Bytes a token has in each."""
    fabric: float
    """Bytes per second of the node's fabric, one direction."""
    ranks: int
    """Ranks in all."""
    near: int
    """Ranks of one node."""
    network: float
    """Seconds that all of them wait for the network in a pass."""
    routed: float
    """Seconds a token takes to its experts and back, where it is sent to them alone."""

    @property
    def ring(self) -> float:
        """Seconds a token takes in a long message."""
        return self._seconds * 2 * (self.ranks - 1) / self.ranks

    @property
    def one_shot(self) -> float:
        """Seconds a token takes in a short message."""
        return self._seconds * max(self.near - 1, 2 * (self.ranks - 1) / self.ranks)

    @property
    def short_waits(self) -> float:
        """Waits of short messages."""
        return self.count * self.one_wait

    @property
    def startup(self) -> Work:
        """The waits of long messages by length: a share at once, the rest as it grows to `STARTUP_BYTES`."""
        return Work(fixed=STARTUP_SHARE * self.waits, short=(1 - STARTUP_SHARE) * self.waits * self.message / STARTUP_BYTES)

    @property
    def _seconds(self) -> float:
        return self.rings * self.slower * self.message / self.fabric


def all_reduces(place: Placement, group: LayerGroup, across: Across | None = None) -> AllReduces:
    """The all-reduces of one layer: one after attention and one after the block behind it.

    Replicas of the attention reduce each among their own ranks, and gather their tokens before that block and scatter
    them behind it, together the bytes of one all-reduce in two collectives (SGLang, `dp_gather` and `dp_scatter`).

    `across` is how they leave the node, where they do; None is as `across_of` has it.

    >>> from kvmodel.registry import accelerators, find_model
    >>> model = find_model("llama-3-70b")
    >>> place = Placement(model, accelerators()["h100-sxm"], 8, 1, 1, "bf16", "bf16")
    >>> r = all_reduces(place, model.groups[0])
    >>> r.count, r.slower, r.waits, round(r.ring * 450e9)
    (2, 1.0, 6.0, 57344)
    """
    a, tp = place.accelerator, place.tp
    attends, feeds = group.attention.kind != "none", group.ffn is not None
    near, own = min(tp, a.gpus_per_node), a.nic_bandwidth * a.nics_per_gpu
    dp, own_ranks = place.attention_dp, place.attention_tp
    attends = attends and own_ranks > 1
    count = attends + feeds * (2 if dp > 1 else 1) if tp > 1 else 0
    slower, waits, one, network = 1.0, log2(tp), 1.0, 0.0
    law = (across or across_of(place)) if place.spans_nodes else None
    experts = group.ffn if isinstance(group.ffn, Moe) and place.routes_tokens else None
    routed = routed_seconds(place, experts) if experts and across is not Across.HIDDEN else 0.0
    if law in (Across.NICS, Across.ROUTED, Across.HIDDEN):
        slower, network = max(1.0, a.scale_up_bandwidth / (own * near)), count * NETWORK_WAIT
    elif law is Across.TABLES:
        slower = one = max(1.0, a.scale_up_bandwidth / own)
        waits = slower * log2(near)
    own = (own_ranks - 1) / own_ranks / dp / ((tp - 1) / tp) if attends else 0.0
    rings, waits = (feeds * (experts is None) + own, waits * (feeds + attends)) if tp > 1 else (0.0, 0.0)
    return AllReduces(count, slower, rings, waits, one, 2.0 * place.model.hidden, a.scale_up_bandwidth, tp, near, network, routed)


def short_tokens(place: Placement, phase: str) -> float:
    """Tokens of a pass whose all-reduce counts as short in this phase."""
    return (STARTUP_BYTES if phase == "prefill" else ONE_SHOT_BYTES) / (2.0 * place.model.hidden)
