"""How many (query, key) pairs attention computes, and which share of experts is touched.

Counts are exact in tokens: query `i` after `held` cached tokens sees `held + i` keys, itself included,
or as many of them as a window, a local chunk or a top-k leaves.
"""

from __future__ import annotations

from dataclasses import dataclass

from kvmodel.numeric import Num, minimum, power
from kvmodel.records.model import Chunked, Compressed, LayerGroup, Moe, Shared, Sliding


def full_pairs(new: Num, held: Num) -> Num:
    r"""Causal (query, key) pairs of `new` tokens after `held` ones: a query sees itself and all before it.

    .. math:: \sum_{i=1}^{new} (held + i) = new\, held + new (new + 1) / 2

    >>> full_pairs(500, 8000)
    4125250.0
    """
    return new * (held + (new + 1) / 2)


@dataclass(frozen=True, slots=True)
class LayerShape:
    """What decides how many pairs a layer computes and how many experts it touches."""

    cap_tokens: float
    """Window, chunk or top-k; 0 where attention is not capped."""
    chunked: bool
    """The cap is a local chunk, not a sliding window."""
    miss: float
    """Share of experts one token misses: 1 - k/E; 1 without experts."""

    def capped_pairs(self, new: Num, held: Num) -> Num:
        r"""(query, key) pairs inside the cap for `new` tokens after `held` ones, exact in tokens.

        .. math:: \sum_{i=1}^{new} \min(held + i, cap)

        of a window or top-k; in a local chunk a query sees the tokens of its chunk up to itself.
        """
        return self._pairs_to(held + new) - self._pairs_to(held)

    def _pairs_to(self, position: Num) -> Num:
        """Pairs of the first `position` queries."""
        cap = self.cap_tokens
        if self.chunked:
            whole = position // cap
            return whole * full_pairs(cap, 0) + full_pairs(position - whole * cap, 0)
        inside = minimum(position, cap)
        return full_pairs(inside, 0) + cap * (position - inside)

    def touched(self, tokens: Num) -> Num:
        """Expected share of routed experts that `tokens` tokens touch."""
        return 1.0 - power(self.miss, tokens)


def shape_of(group: LayerGroup) -> LayerShape:
    """The counting shape of one layer."""
    attention, ffn = group.attention, group.ffn
    cap = 0
    if isinstance(attention, Sliding | Shared):
        cap = attention.window or 0
    if isinstance(attention, Chunked):
        cap = attention.chunk
    if group.indexer:
        cap = group.indexer.top_k * (attention.ratio if isinstance(attention, Compressed) else 1)
    miss = 1.0 - ffn.top_k / ffn.experts if isinstance(ffn, Moe) else 1.0
    return LayerShape(float(cap), isinstance(attention, Chunked), miss)
