"""Which rank holds which KV heads, and which sends them to whom."""

from __future__ import annotations

from dataclasses import dataclass

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
    """What crosses: each decode rank takes each of its heads from the first prefill rank that holds it.

    Source: vLLM 0.33.0 nixl/tp_mapping.py reads a replicated head from one rank only.

    >>> [(f.prefill_rank, f.first) for f in flows(2, 4, 1)]
    [(0, 0), (2, 1)]
    """
    found = []
    for target in range(decode_tp):
        low, high = heads_of_rank(kv_heads, decode_tp, target)
        head = low
        while head <= high:
            source = next(rank for rank in range(prefill_tp) if heads_of_rank(kv_heads, prefill_tp, rank)[1] >= head)
            last = min(high, heads_of_rank(kv_heads, prefill_tp, source)[1])
            found.append(Flow(source, target, head, last))
            head = last + 1
    return tuple(found)
