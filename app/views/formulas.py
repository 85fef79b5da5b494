"""The formulas of matrices and roofline, each with its value for a scenario."""

from __future__ import annotations

from typing import Any

from app.charts.tables import table_block
from kvmodel.display import bytes_text, count_text, digits, flop_text
from kvmodel.evaluate import amounts_of
from kvmodel.flop import absorbs, pair_flop
from kvmodel.matrices import Amount, Pass, layer_amounts, layer_total, main_group, multiplied_in, peak_of
from kvmodel.operations import Matrix
from kvmodel.pairs import full_pairs, shape_of
from kvmodel.placement import Placement
from kvmodel.plan import placement_of, plan_of
from kvmodel.progress import cut
from kvmodel.records.model import LayerGroup, Mla, Moe
from kvmodel.registry import find_model
from kvmodel.scenario import Scenario

ABSORBED = "deepseek-v3"
"""Stands for latent attention where the scenario's model has none."""
HEADS = ("What", "Formula", "Value")
INTRO = (
    "n new tokens of a request after h held ones make n rows in prefill, one row in decode; d are dimensions, H heads, b bytes an element. "
    "Multiply and add count as two FLOP; counts are of one layer, all ranks together, one request."
)


def formulas_block(scenario: Scenario) -> dict[str, Any]:
    """A row a formula, in words, in symbols, and as it comes out for a layer of the scenario."""
    return table_block("Formulas of matrices and roofline", HEADS, formula_rows(scenario), look="kv-words", stacked=True)


def formula_rows(scenario: Scenario) -> list[tuple[str, str, str]]:
    """(words, symbols, value) of each formula."""
    place, rows = placement_of(scenario, "prefill"), placement_of(scenario, "decode")
    group = place.model.groups[main_group(place.model)]
    new, held, _ = cut(plan_of(scenario), amounts_of(scenario))
    prefill, decode = Pass("prefill", int(new), int(held), 1), Pass("decode", 1, scenario.prompt_tokens, 1)
    each = pair_flop(group, absorbed=absorbs(group, "prefill"))
    matrix, amount = next((m, a) for m, a in layer_amounts(place, group, prefill) if m.learned)
    whole, row = layer_total(place, group, prefill), layer_total(rows, group, decode)
    seen = f", of which a window or top-k of {count_text(shape_of(group).cap_tokens)} is kept" if shape_of(group).cap_tokens else ""
    return [
        (
            "Multiplication with weights",
            "F = 2 · n · d_in · d_out",
            f"{_shape(matrix, new)}: {flop_text(float(amount.flop))}",
        ),
        ("Causal attention: pairs of a row and a key", "pairs = n·h + n(n+1)/2", f"{count_text(full_pairs(new, held))} pairs{seen}"),
        ("Attention", "F = 2 · H · (d_qk + d_v) · pairs", f"{count_text(each)} FLOP a pair"),
        *_absorbed(place),
        *_touched(group, prefill),
        (
            "Bytes between memory and chip",
            "B = weights·b_w + (operands read + results written)·b_a + cache read and written",
            f"prefill {_bytes(whole)}; decode {_bytes(row)}",
        ),
        ("Intensity", "I = F ÷ B", f"prefill {_intensity(whole)}; decode {_intensity(row)}"),
        (
            "Peak, where operations run in several formats",
            "P = F ÷ Σ (Fᵢ ÷ Pᵢ)",
            f"prefill {_peak(whole)}: {_formats(place, group, prefill)}; decode {_peak(row)}: {_formats(rows, group, decode)}",
        ),
        ("Ridge", "I* = P ÷ bandwidth", f"prefill {_ridge(place, whole)}; decode {_ridge(rows, row)}"),
        ("Roof", "min(P, I · bandwidth)", f"prefill {_roof(place, whole)}; decode {_roof(rows, row)}, each a GPU at most"),
    ]


def _shape(matrix: Matrix, new: Any) -> str:
    return f"{matrix.name} [{count_text(new)} × {count_text(matrix.inner)}] [{count_text(matrix.inner)} × {count_text(matrix.columns)}]"


def _absorbed(place: Placement) -> list[tuple[str, str, str]]:
    """Latent attention: expanded in prefill, absorbed in decode, and in prefill too where an indexer picks rows."""
    model = place.model if any(isinstance(g.attention, Mla) for g in place.model.groups) else find_model(ABSORBED)
    group = next(g for g in model.groups if isinstance(g.attention, Mla))
    expanded, absorbed = (count_text(pair_flop(group, absorbed=a)) for a in (False, True))
    if absorbs(group, "prefill"):
        return [
            (
                "Latent attention (MLA) with an indexer: each query reads rows of its own, so both phases take it into the latent",
                "F = 2 · H · (2·d_latent + d_rope)",
                f"{model.name}: {absorbed} FLOP a pair, {expanded} had K and V been expanded",
            )
        ]
    return [
        (
            "Latent attention (MLA): prefill expands the latent into K and V; decode takes each query into the latent and attends there",
            "prefill F = 2 · H · (d_nope + d_rope + d_v); decode, absorbed, F = 2 · H · (2·d_latent + d_rope)",
            f"{model.name}: {expanded} FLOP a pair expanded, {absorbed} absorbed",
        )
    ]


def _touched(group: LayerGroup, prefill: Pass) -> list[tuple[str, str, str]]:
    """Experts that a pass reads."""
    if not isinstance(group.ffn, Moe):
        return []
    each, some = group.ffn.experts, shape_of(group).touched
    said = ", ".join(f"{digits(float(each * some(n)))} of {each} by {count_text(n)} row{'s' * (n != 1)}" for n in (1, 32, prefill.rows))
    return [("Experts that n rows touch, k of E each", "E · (1 − (1 − k/E)ⁿ)", said)]


def _bytes(amount: Amount) -> str:
    parts = ((amount.weights, "weights"), (amount.activations, "activations"), (amount.cache, "cache"))
    return " + ".join(f"{bytes_text(float(size))} {name}" for size, name in parts)


def _intensity(amount: Amount) -> str:
    return f"{flop_text(float(amount.flop))} ÷ {bytes_text(float(amount.bytes))} = {digits(float(amount.intensity))} FLOP/B"


def _peak(amount: Amount) -> str:
    return f"{digits(float(amount.peak) / 1e12)} TFLOP/s"


def _formats(place: Placement, group: LayerGroup, one: Pass) -> str:
    """Formats of a layer's operations and their peaks."""
    formats = dict.fromkeys(multiplied_in(place, m) for m, _ in layer_amounts(place, group, one))
    return ", ".join(f"{name} {digits(peak_of(place.accelerator, name) / 1e12)}" for name in formats) + f" on {place.accelerator.name}"


def _ridge(place: Placement, amount: Amount) -> str:
    bandwidth = place.accelerator.hbm_bandwidth
    return f"{_peak(amount)} ÷ {bytes_text(bandwidth)}/s = {digits(float(amount.peak) / bandwidth)} FLOP/B"


def _roof(place: Placement, amount: Amount) -> str:
    reached = min(float(amount.peak), float(amount.intensity) * place.accelerator.hbm_bandwidth)
    return f"{digits(reached / 1e12)} TFLOP/s"
