r"""Prefill and decode times: the physical terms times fitted constants.

.. math:: t = \sum_i k_i\, t_i^{peak}, \qquad k_i \ge 0

The constants belong to an accelerator family and a weight format (`data/derates.toml`); they were
fitted by `tests/fit_derates.py` to published operator-table latencies. Times carry a band.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from kvmodel.dtypes import BYTES_PER_ELEMENT
from kvmodel.numeric import Num, minimum
from kvmodel.pairs import LayerShape, full_pairs, shape_of
from kvmodel.parameters import layer_parameters, model_parameters
from kvmodel.records.derates import PhaseFit
from kvmodel.records.model import ModelSpec, Moe
from kvmodel.registry import derates
from kvmodel.terms import Placement, Work, decode_terms, layer_flop, passes, prefill_terms

GRID_BELOW_MEASURED = 0.22
"""The operator tables read up to this much below measured TTFT at 8k tokens (see the derates' source)."""


@dataclass(frozen=True, slots=True)
class LayerTime:
    """Seconds and FLOP of one layer, constants applied."""

    count: int
    shape: LayerShape
    seconds: Work
    flop: Work

    def prefill(self, new: Num, held: Num, batch: Num) -> Num:
        """Seconds of one pass over `new` tokens of each of `batch` requests, after `held` cached ones."""
        s, shape = self.seconds, self.shape
        pairs = s.pair * full_pairs(new, held)
        if s.capped:
            pairs = pairs + s.capped * shape.capped_pairs(new, held)
        time = s.fixed + batch * (s.token * new + pairs)
        return time + s.touched * shape.touched(new * batch) if s.touched else time

    def prefill_flop(self, new: Num, held: Num) -> Num:
        """FLOP over all ranks for `new` tokens of one request."""
        f = self.flop
        total = f.token * new + f.pair * full_pairs(new, held)
        return total + f.capped * self.shape.capped_pairs(new, held) if f.capped else total

    def step(self, context: Num, batch: Num) -> Num:
        """Seconds of one decode step with `batch` requests of `context` cached tokens each."""
        s, shape = self.seconds, self.shape
        read = s.pair * context
        if s.capped:
            read = read + s.capped * minimum(context, shape.cap_tokens)
        time = s.fixed + batch * (s.token + read)
        return time + s.touched * shape.touched(batch) if s.touched else time


@dataclass(frozen=True, slots=True)
class PhaseTime:
    """A phase's time model on one placement."""

    layers: tuple[LayerTime, ...]
    """One for each layer group, in the model's order of groups."""
    head_seconds: float
    """LM head for one token of each request: fixed part, the weight sweep."""
    head_per_request: float
    """LM head: seconds a request adds."""
    head_flop: float
    """LM head: FLOP a request adds."""
    error: float
    """90th percentile of the relative error of the fit on rows left out; wider where constants are borrowed."""
    rough: str
    """Why the constants are not this accelerator's own; empty where they are."""

    def head(self, batch: Num) -> Num:
        """Seconds of the LM head for one token of each of `batch` requests."""
        return self.head_seconds + self.head_per_request * batch

    def prefill_flop(self, new: Num, held: Num, batch: Num) -> Num:
        """FLOP over all ranks to prefill `new` tokens of each request, the last one's logits included."""
        return batch * (sum(layer.count * layer.prefill_flop(new, held) for layer in self.layers) + self.head_flop)

    def prefill_layers(self, new: Num, held: Num, batch: Num, chunk: Num | None) -> list[Num]:
        """Seconds each group's one layer takes over the whole prompt, all its chunks added."""
        return [self._chunked(layer, new, held, batch, chunk) for layer in self.layers]

    def _chunked(self, layer: LayerTime, new: Num, held: Num, batch: Num, chunk: Num | None) -> Num:
        if chunk is None:
            return layer.prefill(new, held, batch)
        extra = passes(new, chunk) - 1
        s, shape = layer.seconds, layer.shape
        time = layer.prefill(new, held, batch) + extra * s.fixed
        if not s.touched:
            return time
        last = new - extra * chunk
        swept = extra * shape.touched(chunk * batch) + shape.touched(last * batch) - shape.touched(new * batch)
        return time + s.touched * swept

    def prefill(self, new: Num, held: Num, batch: Num, chunk: Num | None = None) -> Num:
        """Seconds to prefill `new` tokens of each of `batch` requests, after `held` cached ones."""
        per_layer = self.prefill_layers(new, held, batch, chunk)
        return sum(layer.count * t for layer, t in zip(self.layers, per_layer, strict=True)) + self.head(batch)

    def step(self, context: Num, batch: Num) -> Num:
        """Seconds of one decode step at a context of `context` tokens."""
        return sum(layer.count * layer.step(context, batch) for layer in self.layers) + self.head(batch)

    def mean_step(self, context: Num, output: Num, batch: Num) -> Num:
        """Mean seconds of the decode steps that make tokens 2 to `output`, the context growing by one each."""
        steps = output - 1 + (output <= 1)
        total: Num = self.head(batch)
        for layer in self.layers:
            s = layer.seconds
            read = s.pair * (context + (steps + 1) / 2)
            if s.capped:
                read = read + s.capped * mean_capped(context, steps, layer.shape.cap_tokens)
            total = total + layer.count * (s.fixed + batch * (s.token + read) + s.touched * layer.shape.touched(batch))
        return total


def mean_capped(context: Num, steps: Num, cap: float) -> Num:
    """Mean of min(context + k, cap) over k = 1 .. steps."""
    start = minimum(context, cap)
    growing = minimum(steps, cap - start)
    inside = growing * start + growing * (growing + 1) / 2
    return (inside + (steps - growing) * cap) / steps


@lru_cache(maxsize=512)
def phase_time(place: Placement, phase: str) -> PhaseTime:
    """The time model of `prefill` or `decode` on a placement."""
    fit, rough = _fit(place, phase)
    terms = prefill_terms if phase == "prefill" else decode_terms
    layers = tuple(
        LayerTime(group.count, shape_of(group), _weighted(terms(place, group), fit.constants), layer_flop(group, place.model.hidden))
        for group in place.model.groups
    )
    sweep, per_request, flop = head_terms(place)
    weights, matmul = fit.constants[6 if phase == "prefill" else 1], fit.constants[1 if phase == "prefill" else 5]
    head_constant = max(weights, 1.0)
    experts = any(isinstance(group.ffn, Moe) for group in place.model.groups)
    error = min(0.75, (fit.experts_p90_error if experts else fit.p90_error) + (0.15 if rough else 0.0))
    return PhaseTime(layers, sweep * head_constant, per_request * max(matmul, 1.0), flop, error, rough)


def head_terms(place: Placement) -> tuple[float, float, float]:
    """LM head at peak: seconds of its BF16 weight sweep, seconds and FLOP a token adds."""
    flop = 2.0 * place.model.vocab * place.model.hidden
    return flop / place.tp / place.accelerator.hbm_bandwidth, flop / place.tp / place.accelerator.peak_bf16, flop


def _fit(place: Placement, phase: str) -> tuple[PhaseFit, str]:
    family = derates()[place.accelerator.derates]
    wanted = "bf16" if place.matmul_dtype == "bf16" else "fp8"
    fit: PhaseFit | None = getattr(family, f"{phase}_{wanted}")
    rough = []
    if place.accelerator.derates != place.accelerator.id:
        rough.append(f"no measurements of {place.accelerator.name}: achieved fractions of {place.accelerator.derates}")
    if place.matmul_dtype == "nvfp4":
        rough.append("no measurements of NVFP4 weights: achieved fractions of FP8")
    if fit is None:
        fit = getattr(family, f"{phase}_bf16")
    return fit, "; ".join(rough)


def _weighted(terms: tuple[Work, ...], constants: tuple[float, ...]) -> Work:
    total = Work()
    for term, constant in zip(terms, constants, strict=True):
        total = total.plus(term.scaled(constant))
    return total


@lru_cache(maxsize=512)
def weight_bytes(model: ModelSpec, weight_dtype: str) -> float:
    """Bytes of all weights, one copy, embedding and LM head in BF16."""
    dense = BYTES_PER_ELEMENT[model.weight_dtype if weight_dtype == "auto" else weight_dtype]
    expert = BYTES_PER_ELEMENT[(model.expert_dtype or model.weight_dtype) if weight_dtype == "auto" else weight_dtype]
    counts = model_parameters(model)
    total = 2.0 * (counts.embedding + counts.head)
    for group in model.groups:
        p = layer_parameters(group, model.hidden)
        total += group.count * ((p.attention + p.ffn) * dense + p.experts * p.expert * expert)
    return total
