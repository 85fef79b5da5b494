"""Seconds and FLOP of one layer in a pass: what adds up, what bends, and what only the fullest attention replica does."""

from __future__ import annotations

from dataclasses import dataclass

from kvmodel.numeric import Num, ceil_div, root_sum_square
from kvmodel.pairs import LayerShape
from kvmodel.work import Work


@dataclass(frozen=True, slots=True)
class LayerTime:
    """Seconds and FLOP of one layer, constants applied."""

    count: int
    shape: LayerShape
    seconds: Work
    """What adds up."""
    sweep: float
    """Seconds a pass reads weights."""
    multiply: float
    """Seconds a token of a pass is multiplied with them."""
    short_tokens: float
    """Tokens of a pass whose all-reduces are short."""
    first_pairs: float
    """(request, cached token) pairs of a step that are read at a lower rate."""
    flop: Work
    replicas: int = 1
    """Attention replicas: a request is on one of them, and the fullest sets the time."""
    beside: float = 0.0
    """Seconds a token takes outside attention, where there are replicas; multiplication with weights apart."""
    beside_share: float = 1.0
    """Share of `multiply` outside attention, where there are replicas."""

    def prefill(self, new: Num, held: Num, batch: Num) -> Num:
        """Seconds of one pass over `new` tokens of each of `batch` requests, after `held` cached ones."""
        return self.straight(new, held, batch) + self.bends(new, batch)

    def straight(self, new: Num, held: Num, batch: Num) -> Num:
        """The part of a pass that does not bend."""
        idle = self.idle(batch)
        seconds = self.seconds.of_prefill(self.shape, new, held, batch + idle)
        return seconds - idle * new * self.beside if self.replicas > 1 else seconds

    def idle(self, batch: Num) -> Num:
        """Requests that attention could take beside `batch` in the same time: room of replicas with fewer than the fullest."""
        return self.replicas * ceil_div(batch, self.replicas) - batch if self.replicas > 1 else 0

    def prefill_flop(self, new: Num, held: Num) -> Num:
        """FLOP over all ranks for `new` tokens of one request."""
        return self.flop.of_prefill(self.shape, new, held, 1)

    def step(self, context: Num, batch: Num) -> Num:
        """Seconds of one decode step with `batch` requests of `context` cached tokens each."""
        idle = self.idle(batch)
        seconds = self.seconds.of_step(self.shape, context, batch + idle, self.first_pairs) + self.bends(1, batch)
        return seconds - idle * self.beside if self.replicas > 1 else seconds

    def bends(self, new: Num, batch: Num = 1) -> Num:
        r"""Seconds of a pass that grow slower than its tokens.

        Weights are read while the tokens already there are multiplied; neither hides the other entirely:

        .. math:: \sqrt{sweep^2 + (multiply\, tokens)^2}

        beside it the experts touched and what short messages take.
        """
        tokens = new * batch
        multiplied = tokens + self.idle(batch) * new * (1.0 - self.beside_share) if self.replicas > 1 else tokens
        return root_sum_square(self.sweep, self.multiply * multiplied) + self.seconds.bends(self.shape, tokens, self.short_tokens)
