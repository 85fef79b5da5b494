r"""Prefill and decode times: the physical terms times fitted constants.

.. math:: t = \sqrt{(k_w t_w)^2 + (k_m t_m)^2} + \sum_i k_i\, t_i, \qquad k \ge 0

with t the time of a term at peak, w the weight sweep and m the matrix multiplication, which
overlap. The constants belong to an accelerator family and a weight format (`data/derates.toml`); they were
fitted by `tests/fit_derates.py` to published operator-table latencies. Times carry a band.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import log2

from kvmodel.allreduce import Across, across_of, all_reduces, short_tokens
from kvmodel.dtypes import BYTES_PER_ELEMENT
from kvmodel.flop import layer_flop
from kvmodel.kernels import layer_kernels
from kvmodel.layer_time import LayerTime
from kvmodel.numeric import Num, minimum
from kvmodel.pairs import shape_of
from kvmodel.parameters import layer_parameters, model_parameters
from kvmodel.placement import Placement
from kvmodel.records.derates import PhaseFit
from kvmodel.records.model import LayerGroup, ModelSpec, Moe
from kvmodel.registry import derates, margins
from kvmodel.terms import (
    ACROSS,
    ALL_REDUCE,
    DECODE_TERMS,
    EXPERT_MATMUL,
    MATMUL,
    PREFILL_TERMS,
    WEIGHTS,
    decode_terms,
    first_pairs,
    passes,
    prefill_terms,
    without_attention,
)
from kvmodel.work import Work


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
    """What makes the time rougher than a fit to the accelerator's own rows; empty where nothing does."""
    beyond: float = 0.0
    """Seconds that engines were measured to take in a decode step beyond the operator tables; 0 in prefill."""
    other: PhaseTime | None = None
    """The same with all-reduces that leave the node the other way; None where the ranks share one."""

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
        last = new - extra * chunk
        whole = layer.straight(new, held, batch)
        return whole + extra * (layer.seconds.fixed + layer.bends(chunk, batch)) + layer.bends(last, batch)

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
            s, idle = layer.seconds, layer.idle(batch)
            read = s.pair * (context + (steps + 1) / 2)
            if s.capped:
                read = read + s.capped * mean_capped(context, steps, layer.shape.cap_tokens)
            if s.first:
                read = read + s.first * mean_capped(context, steps, layer.first_pairs / (batch + idle))
            total = total + layer.count * (s.fixed + (batch + idle) * (s.token + read) - idle * layer.beside + layer.bends(1, batch))
        return total


def mean_capped(context: Num, steps: Num, cap: Num) -> Num:
    """Mean of min(context + k, cap) over k = 1 .. steps; the cap may be a broken number."""
    start = minimum(context, cap)
    growing = minimum(steps, (cap - start) // 1)
    inside = growing * start + growing * (growing + 1) / 2
    return (inside + (steps - growing) * cap) / steps


@lru_cache(maxsize=512)
def phase_time(place: Placement, phase: str) -> PhaseTime:
    """The time model of `prefill` or `decode` on a placement."""
    across = across_of(place)
    own = _phase_time(place, phase, across)
    if across is None:
        return own
    rough = f"{across.value}; the other end of the band has {across.other.value}"
    return replace(own, rough="; ".join(filter(None, (own.rough, rough))), other=_phase_time(place, phase, across.other))


def _phase_time(place: Placement, phase: str, across: Across | None) -> PhaseTime:
    fit, error, rough = _fit(place, phase)
    k = _constants(place, phase, fit)
    layers = tuple(_layer_time(place, group, phase, k, across) for group in place.model.groups)
    sweep, per_request, flop = head_terms(place)
    beyond = _beyond(place) if phase == "decode" else 0.0
    return PhaseTime(layers, k[WEIGHTS] * sweep, k[MATMUL] * per_request, flop, error, rough, beyond)


def _constants(place: Placement, phase: str, fit: PhaseFit) -> dict[str, float]:
    """Constants by term. Whole experts with many tokens are multiplied as dense layers are; the tables have but slices of them."""
    if phase == "decode":
        return dict(zip(DECODE_TERMS, fit.constants, strict=True))
    k = dict(zip(PREFILL_TERMS, fit.constants, strict=True))
    return {**k, EXPERT_MATMUL: k[MATMUL]} if place.routes_tokens else k


@dataclass(frozen=True, slots=True)
class TermTime:
    """One term of a phase's time model, by itself."""

    name: str
    """Of `PREFILL_TERMS` or `DECODE_TERMS`; `NETWORK` for waits between nodes and tokens under way to experts, `HEAD` for the LM head."""
    constants: tuple[float, ...]
    """What its time at peak is multiplied with; both where it overlaps the weight sweep, none of the network's and the LM head's."""
    time: PhaseTime
    """The model with this term alone."""


HEAD, NETWORK = "LM head", "network"


def term_times(place: Placement, phase: str) -> tuple[TermTime, ...]:
    """The time model of a phase term by term: their times add up to that of `phase_time`.

    Multiplication and the weight sweep overlap and are one term, under the name of the first.
    """
    fit, error, rough = _fit(place, phase)
    k = _constants(place, phase, fit)
    across = across_of(place)
    slower = k[ACROSS] if across is Across.TABLES else 1.0
    whole, found = phase_time(place, phase), []
    nothing = dict.fromkeys(k, 0.0)

    def alone(constants: dict[str, float], *, network: bool) -> PhaseTime:
        layers = tuple(_layer_time(place, group, phase, constants, across, network=network) for group in place.model.groups)
        return PhaseTime(layers, 0.0, 0.0, 0.0, error, rough)

    for name in k:
        if name in (ACROSS, WEIGHTS):
            continue
        names = (MATMUL, WEIGHTS) if name == MATMUL else (name,)
        constants = (k[MATMUL], k[WEIGHTS]) if name == MATMUL else (k[name] * (slower if name in ALL_REDUCE else 1.0),)
        only = {**nothing, **{other: k[other] for other in names}, ACROSS: k[ACROSS]}
        found.append(TermTime(name, constants, alone(only, network=False)))
    return (*found, TermTime(NETWORK, (), alone(nothing, network=True)), TermTime(HEAD, (), replace(whole, layers=())))


def _layer_time(
    place: Placement, group: LayerGroup, phase: str, k: dict[str, float], across: Across | None, *, network: bool = True
) -> LayerTime:
    """One layer's terms with the constants `k` applied, what `NETWORK` stands for among them or not."""
    terms_of = prefill_terms if phase == "prefill" else decode_terms
    terms = dict(zip(k, terms_of(place, group, across), strict=False))
    extra = k[ACROSS] if across is Across.TABLES else 1.0
    factors = {name: k[name] * (extra if name in ALL_REDUCE else 1.0) for name in terms if name not in (WEIGHTS, MATMUL)}
    reduces = all_reduces(place, group, across)
    seconds = Work(fixed=reduces.network, token=reduces.routed) if network else Work()
    for name, factor in factors.items():
        seconds = seconds.plus(terms[name].scaled(factor))
    beside, share = 0.0, 1.0
    if place.attention_dp > 1:
        shared = dict(zip(k, terms_of(place, without_attention(group), across), strict=False))
        beside = sum(factor * shared[name].token for name, factor in factors.items())
        share = shared[MATMUL].token / (terms[MATMUL].token or 1.0)
    return LayerTime(
        count=group.count,
        shape=shape_of(group),
        seconds=seconds,
        sweep=k[WEIGHTS] * terms[WEIGHTS].fixed,
        multiply=k[MATMUL] * terms[MATMUL].token,
        short_tokens=short_tokens(place, phase),
        first_pairs=first_pairs(place, group),
        flop=layer_flop(group, place.model.hidden),
        replicas=place.attention_dp,
        beside=beside,
        beside_share=share,
    )


def _beyond(place: Placement) -> float:
    """Gaps between kernels and waits of ranks for each other, as engines were measured to have them (`data/margins.toml`)."""
    margin, total = margins()["engines"], 0.0
    for group in place.model.groups:
        waits = all_reduces(place, group).count * (log2(place.tp) * margin.rank_wait + place.spans_nodes * margin.network_wait)
        total += group.count * (layer_kernels(group) * margin.kernel_gap + waits)
    return total


def head_terms(place: Placement) -> tuple[float, float, float]:
    """LM head at peak: seconds of its BF16 weight sweep, seconds and FLOP a token adds."""
    flop = 2.0 * place.model.vocab * place.model.hidden
    return flop / place.tp / place.accelerator.hbm_bandwidth, flop / place.tp / place.accelerator.peak_bf16, flop


BORROWED = 0.15
"""What constants of another accelerator or format may be off by, beside their own error: assumed."""


def _fit(place: Placement, phase: str) -> tuple[PhaseFit, float, str]:
    """(constants, error, why they are not this accelerator's own)."""
    family, accelerator = derates()[place.accelerator.derates], place.accelerator
    fp8: PhaseFit | None = getattr(family, f"{phase}_fp8")
    fit: PhaseFit = getattr(family, f"{phase}_bf16") if place.matmul_dtype == "bf16" or fp8 is None else fp8
    rough = []
    if accelerator.derates != accelerator.id:
        rough.append(f"no measurements of {accelerator.name}: achieved fractions of {accelerator.derates}")
    if place.matmul_dtype == "nvfp4":
        rough.append("no measurements of NVFP4 weights: achieved fractions of FP8")
    elif place.matmul_dtype == "fp8" and fp8 is None:
        rough.append(f"no measurements of FP8 weights on {accelerator.derates}: achieved fractions of BF16")
    elif place.matmul_dtype == "bf16" and place.dense_bytes < BYTES_PER_ELEMENT["bf16"]:
        rough.append(f"no measurements of {place.stored_dtype.upper()} weights unpacked to BF16: achieved fractions of BF16")
    experts = any(isinstance(group.ffn, Moe) for group in place.model.groups)
    if experts and place.routes_tokens:
        rough.append("no measurements of whole experts on a rank: achieved fractions of dense layers")
    error = (fit.experts_p90_error if experts else fit.p90_error) + (BORROWED if rough else 0.0)
    if experts and not fit.experts_rows:
        rough.append(f"no measurements of experts in this format on {accelerator.derates}: achieved fractions of FP8")
    return fit, min(0.75, error), "; ".join(rough)


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
