"""Prefill and decode times explained: physical terms at datasheet peak, each times a constant fitted to published tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kvmodel.compute import HEAD, NETWORK, PhaseTime, TermTime, term_times
from kvmodel.explain.figures import Case
from kvmodel.explain.given import asked, computed, of_model, once, stated
from kvmodel.explain.record import Formula, Given, parts_of
from kvmodel.plan import placement_of
from kvmodel.progress import cut, request_chunk
from kvmodel.records.hardware import Accelerator
from kvmodel.registry import derates

NAMES = {
    "launch": "Kernel launches",
    "matmul": "Matrix multiplication, weights read meanwhile",
    "attention": "Attention",
    "KV read": "Reading the cache",
    "all-reduce bytes": "All-reduce, bytes",
    "all-reduce latency": "All-reduce, waits",
    "activations": "Activations through memory",
    "expert matmul": "Experts, multiplication",
    "expert weights": "Experts, reading weights",
    NETWORK: "Waits between nodes, tokens to experts and back",
    HEAD: "LM head",
}
"""Terms of `kvmodel.terms` as the page writes them."""
SYMBOLS = {
    "launch": "k·kernels",
    "matmul": "√((k·t_weights)² + (k·t_matmul)²)",
    "attention": "k·t_attention",
    "KV read": "k·t_KV",
    "all-reduce bytes": "k·t_ring",
    "all-reduce latency": "k·waits",
    "activations": "k·t_activations",
    "expert matmul": "k·t_experts",
    "expert weights": "k·t_expert weights",
    NETWORK: "t_network",
    HEAD: "t_head",
}
COUNTED = {"launch": "kernels", "all-reduce latency": "waits"}
"""Terms whose constant is a time, and what is counted."""


Clock = Callable[[PhaseTime], Any]
Timed = list[tuple[TermTime, float]]


def of_prefill(case: Case) -> Formula:
    """Prefill of the whole batch."""
    s, r, plan, a = case.scenario, case.result, case.plan, case.amounts
    if s.prefill_seconds is not None:
        return _measured(case, "prefill_seconds", "t_prefill", r.prefill.seconds)
    new, held, _ = cut(plan, a)
    chunk = request_chunk(plan, a)
    timed = _timed(case, "prefill", lambda t: t.prefill(new, held, a.batch, chunk))
    words = (
        "Kernel launches, matrix multiplication, attention, all-reduce and memory traffic, each at datasheet peak times a fitted constant."
        + _of_replicas(s.prefill_attention_dp)
    )
    given = [
        asked(s, "prompt_tokens", "n", "tokens"),
        asked(s, "prefill_held_tokens", "", "tokens", held),
        asked(s, "batch", "q"),
        computed("Prefill work", "", r.prefill.flop, "FLOP", "two for each parameter and token, and attention's pairs"),
        *([computed("Tokens of a pass, each request", "", chunk, "tokens", "chunk tokens over the batch")] if chunk else []),
        *_side_inputs(case, "prefill", timed),
    ]
    return _sum("t_prefill = ", words, timed, given, (r.prefill.low, r.prefill.high))


def of_step(case: Case) -> Formula:
    """One decode step at a context of the prompt."""
    s, r, a = case.scenario, case.result, case.amounts
    if s.decode_step_seconds is not None:
        return _measured(case, "decode_step_seconds", "t_step", r.decode.step_seconds)
    timed = _timed(case, "decode", lambda t: t.step(a.prompt_tokens, a.decode_batch))
    words = "Weights and cache read from device memory, kernel launches and all-reduce, each at datasheet peak times a fitted constant."
    words += _of_replicas(s.decode_attention_dp)
    given = [asked(s, "prompt_tokens", "n", "tokens"), asked(s, "decode_batch", "q"), *_side_inputs(case, "decode", timed)]
    return _sum("t_step = ", words, timed, given, (r.decode.low, r.decode.high))


def of_tpot(case: Case) -> Formula:
    """Mean time per output token after the first."""
    s, r, a = case.scenario, case.result, case.amounts
    if s.decode_step_seconds is not None:
        return _measured(case, "decode_step_seconds", "TPOT", r.tpot_seconds)
    timed = _timed(case, "decode", lambda t: t.mean_step(a.prompt_tokens, a.output_tokens, a.decode_batch))
    words = "The mean of the decode steps that make tokens 2 to the last, the context growing by one each."
    lengths = [asked(s, "prompt_tokens", "n", "tokens"), asked(s, "output_tokens", "", "tokens"), asked(s, "decode_batch", "q")]
    low, high = (end / r.decode.step_seconds * r.tpot_seconds for end in (r.decode.low, r.decode.high))
    return _sum("TPOT = mean of ", words, timed, [*lengths, *_side_inputs(case, "decode", timed)], (low, high))


def _of_replicas(replicas: int) -> str:
    return " Of attention replicas, the one with most requests sets the time." if replicas > 1 else ""


def _measured(case: Case, field: str, symbol: str, seconds: float) -> Formula:
    words = "You measured it: your time stands in place of the modelled one."
    given = (asked(case.scenario, field, symbol, "s"),)
    return Formula(words, f"{symbol} = your measurement", parts_of([("Your measurement", symbol, seconds, "")]), given)


def _timed(case: Case, phase: str, clock: Clock) -> Timed:
    """Terms of a phase that take time, with their seconds."""
    found = [(term, float(clock(term.time))) for term in term_times(placement_of(case.scenario, phase), phase)]
    return [(term, seconds) for term, seconds in found if seconds]


def _sum(head: str, words: str, timed: Timed, given: list[Given], band: tuple[float, float]) -> Formula:
    """A time as the sum of its terms; a band that is none is left out."""
    rows = [(NAMES[term.name], SYMBOLS[term.name], seconds, _how(term, seconds)) for term, seconds in timed]
    symbols = head + " + ".join(symbol for _, symbol, _, _ in rows)
    return Formula(words, symbols, parts_of(rows), once(given), band=band if band[0] != band[1] else None)


def _how(term: TermTime, seconds: float) -> str:
    """A term as its constant times what it would be at peak, or times what is counted."""
    if len(term.constants) != 1:
        return ""
    k = term.constants[0]
    if term.name in COUNTED:
        return f"{k * 1e6:.4g} µs × {seconds / k:,.4g} {COUNTED[term.name]}"
    return f"{k:.4g} × {seconds / k * 1e3:.4g} ms at peak"


def _side_inputs(case: Case, phase: str, timed: Timed) -> list[Given]:
    """Accelerator, layout and constants of a side."""
    s, plan, place = case.scenario, case.plan, placement_of(case.scenario, phase)
    gpu, time = place.accelerator, getattr(plan, phase).time
    rows = [
        of_model(plan, s, "Layers", "L", plan.model.layers),
        of_model(plan, s, "Width of the residual stream", "", plan.model.hidden),
        _weight_dtype(case),
        asked(s, f"{phase}_tp", ""),
        stated(f"Peak in {place.matmul_dtype}, {gpu.name}", "", place.peak, "FLOP/s", gpu, "accelerators.toml"),
        stated(f"Memory bandwidth, {gpu.name}", "", gpu.hbm_bandwidth, "B/s", gpu, "accelerators.toml"),
        stated(f"To the node's other GPUs, {gpu.name}", "", gpu.scale_up_bandwidth, "B/s", gpu, "accelerators.toml"),
    ]
    rows += [_peak_of_attention(gpu)] if place.matmul_dtype != "bf16" else []
    rows += [_nics(gpu)] if place.spans_nodes else []
    rows += [asked(s, f"{phase}_attention_dp", "")] if place.attention_dp > 1 else []
    rows += [asked(s, "ep", "")] if place.ep > 1 else []
    for term, _ in timed:
        names = (term.name, "weight sweep") if len(term.constants) == 2 else (term.name,)
        unit = "s" if term.name in COUNTED else ""
        rows += [_fit(f"Constant of {name}", k, unit, gpu.derates) for name, k in zip(names, term.constants, strict=False)]
    return [*rows, _fit("Error on rows left out of the fit, 90th percentile", time.error, "share", gpu.derates)]


def _peak_of_attention(gpu: Accelerator) -> Given:
    return stated(f"Peak in bf16 (attention), {gpu.name}", "", gpu.peak_bf16, "FLOP/s", gpu, "accelerators.toml")


def _nics(gpu: Accelerator) -> Given:
    rate = gpu.nic_bandwidth * gpu.nics_per_gpu
    return stated(f"NICs of one GPU, {gpu.name}", "", rate, "B/s", gpu, "accelerators.toml")


def _weight_dtype(case: Case) -> Given:
    s = case.scenario
    if s.weight_dtype != "auto":
        return asked(s, "weight_dtype", "")
    return asked(s, "weight_dtype", "", "", case.plan.model.weight_dtype, "auto, as published")


def _fit(name: str, value: float, unit: str, row: str) -> Given:
    family = derates()[row]
    return Given(name, "k", value, unit, "fit", f"derates.toml {row}", family.source, family.checked)
