"""Amounts by which one layer's work grows with the tokens, requests and context of a pass."""

from __future__ import annotations

from dataclasses import dataclass

from kvmodel.numeric import Num, minimum
from kvmodel.pairs import LayerShape, full_pairs


@dataclass(frozen=True, slots=True)
class Work:
    """A polynomial in what one layer does; each field counts per unit of it.

    `fixed` per pass, `token` per new token, `pair` per (query, key) pair, `capped` per pair inside a
    window, `touched` per share of routed experts that the tokens of a pass touch, `short` per token
    among the first `short_tokens` of a pass, `first` per pair among the first `first_pairs` of a step.
    """

    fixed: float = 0.0
    token: float = 0.0
    pair: float = 0.0
    capped: float = 0.0
    touched: float = 0.0
    short: float = 0.0
    first: float = 0.0

    def scaled(self, factor: float) -> Work:
        """Every amount times a factor."""
        return Work(*(factor * getattr(self, name) for name in self.__slots__))

    def plus(self, other: Work) -> Work:
        """Amounts added."""
        return Work(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))

    def of_prefill(self, shape: LayerShape, new: Num, held: Num, batch: Num) -> Num:
        """What a pass over `new` tokens of each of `batch` requests after `held` cached ones amounts to, bends apart."""
        pairs = self.pair * full_pairs(new, held)
        if self.capped:
            pairs = pairs + self.capped * shape.capped_pairs(new, held)
        return self.fixed + batch * (self.token * new + pairs)

    def of_step(self, shape: LayerShape, context: Num, batch: Num, first_pairs: float) -> Num:
        """What a decode step of `batch` requests with `context` cached tokens each amounts to, bends apart."""
        read = self.pair * context
        if self.capped:
            read = read + self.capped * minimum(context, shape.cap_tokens)
        time = self.fixed + batch * (self.token + read)
        return time + self.first * minimum(batch * context, first_pairs) if self.first else time

    def bends(self, shape: LayerShape, tokens: Num, short_tokens: float) -> Num:
        """What grows slower than the tokens of a pass: experts touched, and messages up to a length."""
        total: Num = 0.0
        if self.touched:
            total = self.touched * shape.touched(tokens)
        if self.short:
            total = total + self.short * minimum(tokens, short_tokens)
        return total
