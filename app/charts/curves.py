"""A pinned scenario's curves over prompt lengths: dashed and grey, each with its word."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.charts.marks import line, note, rings
from app.charts.spec import Spec, colour, four_digits
from app.over import evaluate_over
from app.state import State
from kvmodel.compare import same
from kvmodel.display import count_text, digits, exact_bytes_text, time_text

_PLACE = 0.16
"""Where along a curve its label stands, of the axis's width."""


@dataclass(frozen=True, slots=True)
class Curves:
    """Curves of the pinned scenario, a value for each prompt length."""

    tokens: Sequence[int]
    wire: list[float]
    """Seconds of transfer."""
    prefill: list[float]
    step: list[float]
    """Seconds of one decode step."""
    ratio: list[float]
    """Wire over prefill."""
    average: list[float]
    """Bytes of a token on average."""
    own: tuple[int, float]
    """The pinned prompt and its transfer."""
    told: tuple[bool, bool]
    """Whether prefill and decode step are other than the present scenario's, so that they are drawn."""

    def lines(self) -> list[Spec]:
        """Transfer, and prefill and decode step where they are others; a ring at the pinned prompt."""
        texts = [f"pin, {count_text(n)} tokens<br>{time_text(v)}" for n, v in zip(self.tokens, self.wire, strict=True)]
        others = [(self.prefill, self.told[0]), (self.step, self.told[1])]
        quiet = [line(list(self.tokens), curve, "muted", 1.5, dash="dot") for curve, shown in others if shown]
        return [self._line(self.wire, texts), *quiet, rings([self.own[0]], [self.own[1]], 9, 2, "muted")]

    def notes(self, size: int) -> list[Spec]:
        """A word for each of these lines."""
        others = [(self.prefill, "pin: prefill", self.told[0]), (self.step, "pin: decode step", self.told[1])]
        return [self.label(self.wire, "pin", size), *(self.label(curve, text, size) for curve, text, shown in others if shown)]

    def ratio_line(self) -> Spec:
        """Wire over prefill."""
        return self._line(self.ratio, [f"pin, {count_text(n)} tokens<br>{digits(v)}" for n, v in zip(self.tokens, self.ratio, strict=True)])

    def average_line(self) -> Spec:
        """Bytes of a token on average."""
        texts = [f"pin, {count_text(n)} tokens<br>{exact_bytes_text(v)} a token" for n, v in zip(self.tokens, self.average, strict=True)]
        return self._line(self.average, texts)

    def _line(self, y: list[float], texts: list[str]) -> Spec:
        return line(list(self.tokens), y, "muted", 1.5, dash="dash", customdata=texts, hovertemplate="%{customdata}<extra></extra>")

    def label(self, curve: Sequence[float], text: str, size: int) -> dict[str, Any]:
        """A word on a curve, on axes that are both logarithms."""
        at = round(_PLACE * (len(self.tokens) - 1))
        value = max(curve[at], 1e-12)
        return note(text, math.log10(self.tokens[at]), math.log10(value), "muted", size, xanchor="center", bgcolor=colour("bg"))


def pinned_curves(state: State, positions: Sequence[int]) -> Curves | None:
    """The pinned scenario over prompt lengths; None without a pin."""
    if state.pin is None:
        return None
    tokens, own, pin = tuple(positions), state.scenario, state.pin.scenario
    over = evaluate_over(pin.with_changes(prompt_tokens=own.prompt_tokens), "prompt_tokens", tokens)
    now, swept = evaluate_over(own, "prompt_tokens", tokens).swept, over.swept
    wire, prefill, step = (np.asarray(v, dtype=float) for v in (swept.transfer.seconds, swept.prefill.seconds, swept.decode.step_seconds))
    alone = evaluate_over(pin, "prompt_tokens", (pin.prompt_tokens,)).rows[0]
    mine = (np.broadcast_to(np.asarray(v, dtype=float), wire.shape) for v in (now.prefill.seconds, now.decode.step_seconds))
    told = [not all(same(a, b) for a, b in zip(theirs, ours, strict=True)) for theirs, ours in zip((prefill, step), mine, strict=True)]
    return Curves(
        tokens,
        four_digits(wire),
        four_digits(prefill),
        four_digits(np.broadcast_to(step, wire.shape)),
        four_digits(wire / prefill),
        four_digits(np.asarray(over.plan.cache.prompt_bytes(np.asarray(tokens)), dtype=float) / np.asarray(tokens)),
        (pin.prompt_tokens, float(alone.transfer.seconds)),
        (told[0], told[1]),
    )
