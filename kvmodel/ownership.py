"""Which rank holds which KV heads, which stage which layers, and which sends them to whom."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise

from kvmodel.cache import kv_heads_per_rank


@dataclass(frozen=True, slots=True)
class Flow:
    """Heads `first` to `last` go from one prefill rank to one decode rank."""

    prefill_rank: int
    decode_rank: int
    first: int
    last: int


def heads_of_rank(kv_heads: int, tp: int, rank: int) -> tuple[int, int]:
    """First and last head that a rank holds; beyond their number, `tp / kv_heads` ranks share a head.

    >>> [heads_of_rank(8, 4, rank) for rank in range(4)]
    [(0, 1), (2, 3), (4, 5), (6, 7)]
    >>> [heads_of_rank(2, 4, rank) for rank in range(4)]
    [(0, 0), (0, 0), (1, 1), (1, 1)]
    """
    each = kv_heads_per_rank(kv_heads, tp)
    first = rank * each if tp <= kv_heads else rank * kv_heads // tp
    return min(first, kv_heads - 1), min(first + each, kv_heads) - 1


def flows(kv_heads: int, prefill_tp: int, decode_tp: int) -> tuple[Flow, ...]:
    """What crosses: each decode rank takes each of its heads from its counterpart, or else the first rank that holds it.

    Counterparts are ranks at the same share of their side, so that at equal TP each rank sends to its own, copies
    included. Source: vLLM 0.33.0 nixl/tp_mapping.py, which reads a replicated head from one rank only.

    >>> [(f.prefill_rank, f.first) for f in flows(2, 4, 1)]
    [(0, 0), (2, 1)]
    """
    found = []
    for target in range(decode_tp):
        low, high = heads_of_rank(kv_heads, decode_tp, target)
        head = low
        while head <= high:
            source = _holder(kv_heads, prefill_tp, target * prefill_tp // decode_tp, head)
            last = min(high, heads_of_rank(kv_heads, prefill_tp, source)[1])
            found.append(Flow(source, target, head, last))
            head = last + 1
    return tuple(found)


def _holder(kv_heads: int, tp: int, counterpart: int, head: int) -> int:
    """The rank to take a head from."""

    def holds(rank: int) -> bool:
        first, last = heads_of_rank(kv_heads, tp, rank)
        return first <= head <= last

    return counterpart if holds(counterpart) else next(rank for rank in range(tp) if holds(rank))


def replicas(tp: int, attention_dp: int) -> tuple[tuple[int, int], ...]:
    """First and last rank of each attention replica; a request is on one of them, which holds all its heads.

    Source: SGLang 0.5.23 layers/dp_attention.py numbers neighbouring ranks into one replica.

    >>> replicas(8, 2)
    ((0, 3), (4, 7))
    """
    each = max(1, tp // attention_dp)
    return tuple((first, first + each - 1) for first in range(0, each * attention_dp, each))


def stage_edges(layers: int, pp: int) -> tuple[int, ...]:
    """Layers before each of `pp` pipeline stages of consecutive layers, and behind the last.

    >>> stage_edges(61, 2)
    (0, 30, 61)
    """
    return tuple(round(stage * layers / pp) for stage in range(pp + 1))


@dataclass(frozen=True, slots=True)
class StageFlow:
    """Layers `first` to `last`, counted from 1, go from one prefill stage to one decode stage, counted from 0."""

    first: int
    last: int
    prefill_stage: int
    decode_stage: int


def stage_flows(layers: int, prefill_pp: int, decode_pp: int) -> tuple[StageFlow, ...]:
    """What crosses between pipeline stages: each stretch of layers that one stage holds on either side.

    >>> [(f.first, f.last, f.prefill_stage, f.decode_stage) for f in stage_flows(32, 2, 1)]
    [(1, 16, 0, 0), (17, 32, 1, 0)]
    """
    sides = stage_edges(layers, prefill_pp), stage_edges(layers, decode_pp)
    cuts = sorted({edge for edges in sides for edge in edges})
    return tuple(StageFlow(low + 1, high, *(bisect_right(edges, low) - 1 for edges in sides)) for low, high in pairwise(cuts))
