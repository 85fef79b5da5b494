"""Matrix operations of a layer: the published page's figures, and totals counted a second way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kvmodel import find_model
from kvmodel.cache import kv_dtype_of
from kvmodel.compute import phase_time, weight_bytes
from kvmodel.flop import index_flop, layer_flop, pair_flop
from kvmodel.matrices import Pass, cache_of, crossing, layer_amounts, layer_total, main_group, model_total, total
from kvmodel.pairs import full_pairs, shape_of
from kvmodel.parameters import layer_parameters, model_parameters
from kvmodel.placement import Placement
from kvmodel.records.model import Full, LayerGroup, Linear, Shared
from kvmodel.registry import accelerators, models
from kvmodel.terms import DECODE_TERMS, PREFILL_TERMS, _cache_read, decode_terms, prefill_terms

LLAMA = "llama-3-70b"
LAYERS = [(name, index) for name, model in models().items() for index in range(len(model.groups))]
OWNERS = [(name, index) for name, index in LAYERS if not isinstance(models()[name].groups[index].attention, Shared)]
PREFILL, DECODE = Pass("prefill", 8192, 0, 1), Pass("decode", 1, 8192, 1)
FALCON = LayerGroup(
    name="hybrid",
    count=1,
    attention=Full(q_heads=12, kv_heads=2, k_dim=128, v_dim=128),
    state=Linear(variant="mamba2", heads=24, head_dim=64, state_dim=256, conv_kernel=4),
)
VARIANTS = ("mamba2", "mamba1", "gdn", "kda", "lightning", "conv")


def place(model: Any = LLAMA, accelerator: str = "b200-sxm") -> Placement:
    spec = find_model(model)
    return Placement(spec, accelerators()[accelerator], 1, 1, 1, kv_dtype_of(spec, "auto"), "auto")


def named(model: str, group: int, a: Pass) -> dict[str, Any]:
    return {matrix.name: amount for matrix, amount in layer_amounts(place(model), find_model(model).groups[group], a)}


# ---- as published: one layer of Llama 3 70B, 8,192 rows and 1 row, bf16, "The handoff as matrix operations" ----


def layer(a: Pass) -> Any:
    return layer_total(place(), find_model(LLAMA).groups[0], a)


def test_a_layer_has_855_million_parameters_and_1_7_gb_of_weights() -> None:
    matrices = [matrix for matrix, _ in layer_amounts(place(), find_model(LLAMA).groups[0], PREFILL)]
    assert sum(matrix.parameters for matrix in matrices) == 855_638_016 == pytest.approx(855e6, rel=1e-3)
    assert layer(PREFILL).weights == layer(DECODE).weights == 1_711_276_032 == pytest.approx(1.7e9, rel=0.01)


def test_projections_of_8192_rows_take_14_tflop_and_causal_attention_1_1() -> None:
    parts = layer_amounts(place(), find_model(LLAMA).groups[0], PREFILL)
    learned = sum(amount.flop for matrix, amount in parts if matrix.over == "weights")
    attention = sum(amount.flop for matrix, amount in parts if matrix.part == "attend")
    assert learned == pytest.approx(14.0e12, rel=2e-3)
    assert attention == pytest.approx(1.1e12, rel=1e-3)
    # The page counts all S x S pairs: 2.2 TFLOP, 16 together; the model the half that causal attention computes.
    square = attention / full_pairs(8192, 0) * 8192**2
    assert square == pytest.approx(2.2e12, rel=1e-3)
    assert learned + square == pytest.approx(16e12, rel=0.02)


def test_a_decode_row_reads_0_3_gb_for_attention_and_1_4_gb_for_the_ffn() -> None:
    parts = layer_amounts(place(), find_model(LLAMA).groups[0], DECODE)
    # The page writes 0.3 GB beside Wq, Wk, Wv; that is with the output projection, those three alone are 0.17 GB.
    projections = {matrix.name: amount.weights for matrix, amount in parts if matrix.part == "project"}
    assert sum(projections.values()) == pytest.approx(0.3e9, rel=0.01)
    assert sum(projections.values()) - projections["output projection"] == pytest.approx(0.168e9, rel=2e-3)
    assert sum(amount.weights for matrix, amount in parts if matrix.part == "feed forward") == pytest.approx(1.4e9, rel=0.01)


def test_a_layer_keeps_32_mib_of_8192_rows_and_appends_4_kib_a_row() -> None:
    """The page writes MB and KB for 2**20 and 2**10 bytes."""
    group = find_model(LLAMA).groups[0]
    assert [(c.name, c.bytes) for c in crossing(group, cache_of(place(), group), 8192, 0)] == [("K", 2**24), ("V", 2**24)]
    one = named(LLAMA, 0, DECODE)
    assert one["K projection"].cache + one["V projection"].cache == 4096
    assert one["attention scores"].cache + one["attention values"].cache == 2**25


def test_a_decode_token_takes_0_14_tflop_141_gb_and_18_ms_at_8_tb_s() -> None:
    found, b200 = model_total(place(), DECODE), accelerators()["b200-sxm"]
    attention = 80 * sum(a.flop for m, a in layer_amounts(place(), find_model(LLAMA).groups[0], DECODE) if m.part == "attend")
    # The page leaves attention out of 0.14 TFLOP; over 8,192 tokens it adds 0.02.
    assert found.flop - attention == pytest.approx(0.14e12, rel=0.01)
    assert attention == pytest.approx(0.0215e12, rel=2e-3)
    # The page's 141 GB are all weights; a step looks one row of the 2.1 GB embedding up.
    embedding = 2.0 * model_parameters(find_model(LLAMA)).embedding
    assert found.weights + embedding == weight_bytes(find_model(LLAMA), "auto") == pytest.approx(141e9, rel=2e-3)
    assert found.cache == pytest.approx(2.68e9, rel=2e-3) == pytest.approx(2.6e9, rel=0.04)
    assert (found.weights + embedding + found.cache) / b200.hbm_bandwidth == pytest.approx(0.018, rel=3e-3)
    assert found.bytes / b200.hbm_bandwidth == pytest.approx(0.018, rel=0.02)


def test_the_ridge_of_a_b200_lies_between_the_phases() -> None:
    b200 = accelerators()["b200-sxm"]
    ridge = b200.peak_bf16 / b200.hbm_bandwidth
    assert ridge == pytest.approx(280, rel=0.01)
    # The page counts weights alone: S and 1 FLOP a byte. Activations and cache lower prefill, attention raises decode.
    assert layer(PREFILL).flop / layer(PREFILL).weights == pytest.approx(8192, rel=0.08)
    assert layer(DECODE).intensity == pytest.approx(1.0, rel=0.15)
    assert layer(DECODE).intensity < ridge < layer(PREFILL).intensity


# ---- counted a second way ----


@pytest.mark.parametrize(("model", "index"), LAYERS)
def test_parameters_of_the_matrices_are_those_of_the_layer(model: str, index: int) -> None:
    group = find_model(model).groups[index]
    for phase in (PREFILL, DECODE):
        counted = sum(matrix.parameters for matrix, _ in layer_amounts(place(model), group, phase))
        assert counted == layer_parameters(group, find_model(model).hidden).total


@pytest.mark.parametrize(("model", "index"), LAYERS)
@pytest.mark.parametrize(("new", "held", "batch"), [(8192, 0, 1), (1, 0, 3), (500, 8000, 2), (20_000, 1, 1)])
def test_prefill_flop_is_that_of_the_time_model(model: str, index: int, new: int, held: int, batch: int) -> None:
    group = find_model(model).groups[index]
    time = phase_time(place(model), "prefill").layers[index]
    assert layer_total(place(model), group, Pass("prefill", new, held, batch)).flop == pytest.approx(batch * time.prefill_flop(new, held))


@pytest.mark.parametrize(("model", "index"), LAYERS)
@pytest.mark.parametrize("accelerator", ["a100-sxm", "h100-sxm", "b200-sxm"])
def test_the_arithmetic_at_peak_is_that_of_the_time_model_format_by_format(model: str, index: int, accelerator: str) -> None:
    where, group = place(model, accelerator), find_model(model).groups[index]
    terms = dict(zip(PREFILL_TERMS, prefill_terms(where, group), strict=False))
    shape, new, held, batch = shape_of(group), 5000, 3000, 2
    seconds = sum(terms[name].of_prefill(shape, new, held, batch) for name in ("matmul", "attention", "expert matmul"))
    assert layer_total(where, group, Pass("prefill", new, held, batch)).peak_seconds == pytest.approx(seconds)
    step = dict(zip(DECODE_TERMS, decode_terms(where, group), strict=False))
    row = layer_total(where, group, Pass("decode", 1, 4000, batch)).peak_seconds
    seconds = sum(step[name].of_step(shape, 4000, batch, 0.0) for name in ("matmul", "attention", "expert matmul"))
    assert row == pytest.approx(seconds)


@pytest.mark.parametrize("model", models())
def test_a_whole_prefill_has_the_flop_of_an_evaluation(model: str) -> None:
    whole = phase_time(place(model), "prefill").prefill_flop(4096, 0, 2)
    assert model_total(place(model), Pass("prefill", 4096, 0, 2)).flop == pytest.approx(whole)


@pytest.mark.parametrize(("model", "index"), LAYERS)
@pytest.mark.parametrize("context", [100, 100_000])
def test_a_decode_row_has_the_flop_of_its_weights_and_of_the_keys_it_sees(model: str, index: int, context: int) -> None:
    group = find_model(model).groups[index]
    shape, flop = shape_of(group), layer_flop(group, find_model(model).hidden)
    seen = min(context, shape.cap_tokens) if shape.cap_tokens else context
    index_flop = flop.pair if shape.cap_tokens else flop.pair - pair_flop(group, absorbed=False)
    expected = flop.token + index_flop * context + pair_flop(group, absorbed=True) * seen
    assert layer_total(place(model), group, Pass("decode", 1, context, 7)).flop == pytest.approx(7 * expected)


@pytest.mark.parametrize(("model", "index"), LAYERS)
def test_terms_of_the_time_model_have_the_flop_and_the_weights_of_the_matrices(model: str, index: int) -> None:
    """Seconds at peak times the peaks of all ranks, in both phases; each rank reads its share of the weights once."""
    at, group, batch, tokens = replace(place(model), tp=8), find_model(model).groups[index], 3, 5000
    shape, gpu = shape_of(group), at.accelerator
    indexer = index_flop(group) / gpu.peak_fp8  # whole on every rank
    for phase, names, terms in (("prefill", PREFILL_TERMS, prefill_terms), ("decode", DECODE_TERMS, decode_terms)):
        term = dict(zip(names, terms(at, group), strict=False))
        new, held = (tokens, 0) if phase == "prefill" else (1, tokens)
        counted = layer_total(at, group, Pass(phase, new, held, batch))
        attention = term["attention"].of_prefill(shape, new, held, batch)
        if phase == "decode":
            attention = term["attention"].of_step(shape, tokens, batch, 0)
        scored = batch * full_pairs(new, held) if phase == "prefill" else batch * held
        attention += indexer * scored * (gpu.peak_fp8 / at.attention_tp / gpu.peak_bf16 - 1)
        rows = batch * new
        multiplied = rows * (term["matmul"].token * at.tp + term["expert matmul"].token * at.expert_shards) * at.peak
        assert multiplied + attention * at.attention_tp * gpu.peak_bf16 == pytest.approx(counted.flop), phase
        swept = term["weights"].fixed * at.tp + term["expert weights"].touched * shape.touched(rows) * at.expert_shards
        assert swept * gpu.hbm_bandwidth == pytest.approx(counted.weights), phase


@pytest.mark.parametrize(("model", "index"), OWNERS)
@pytest.mark.parametrize("context", [100_000, 1_000_000])
def test_a_decode_row_reads_the_cache_that_the_time_model_reads(model: str, index: int, context: int) -> None:
    group = find_model(model).groups[index]
    written = sum(matrix.stores for matrix, _ in layer_amounts(place(model), group, DECODE))
    read = _cache_read(place(model), group).of_step(shape_of(group), context, 3, 0)
    assert layer_total(place(model), group, Pass("decode", 1, context, 3)).cache == pytest.approx(read + 3 * written)


@pytest.mark.parametrize("model", models())
def test_a_long_prefill_reads_every_weight_once(model: str) -> None:
    counts = model_parameters(find_model(model))
    stored = weight_bytes(find_model(model), "auto") - 2.0 * (counts.embedding + counts.head)
    layers = model_total(place(model), Pass("prefill", 100_000, 0, 1)).weights - 2.0 * find_model(model).vocab * find_model(model).hidden
    assert layers == pytest.approx(stored)


@pytest.mark.parametrize(("model", "index"), LAYERS)
@pytest.mark.parametrize(("tokens", "known"), [(8192, 0), (8192, 8000), (100, 0), (64, 64)])
def test_what_crosses_is_what_completes_the_cache(model: str, index: int, tokens: int, known: int) -> None:
    group = find_model(model).groups[index]
    cache = cache_of(place(model), group)
    assert sum(c.bytes for c in crossing(group, cache, tokens, known)) == pytest.approx(cache.moved(tokens, known))


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_state_has_its_parameters_and_flop(variant: str) -> None:
    state = Linear(variant=variant, heads=32, head_dim=1 if variant in ("mamba1", "conv") else 64, state_dim=128, conv_kernel=4, groups=8)
    _agrees(LayerGroup(count=1, attention=state))


def test_a_state_beside_attention_is_counted_with_it() -> None:
    _agrees(FALCON)
    names = [c.name for c in crossing(FALCON, cache_of(place(), FALCON), 10, 0)]
    assert names == ["K", "V", "state"]


def _agrees(group: LayerGroup) -> None:
    hidden = find_model(LLAMA).hidden
    found = layer_amounts(place(), group, Pass("prefill", 77, 0, 1))
    assert sum(matrix.parameters for matrix, _ in found) == layer_parameters(group, hidden).total
    assert total(amount for _, amount in found).flop == pytest.approx(layer_flop(group, hidden).of_prefill(shape_of(group), 77, 0, 1))


def test_a_layer_that_shares_a_cache_reads_it_and_sends_nothing() -> None:
    model, (full, shared) = find_model("gemma-3n-e4b"), (1, 3)
    own, other = (named("gemma-3n-e4b", g, DECODE)["attention scores"].cache for g in (full, shared))
    assert isinstance(model.groups[shared].attention, Shared)
    assert other == own > 0
    assert crossing(model.groups[shared], cache_of(place("gemma-3n-e4b"), model.groups[shared]), 8192, 0) == ()


def moved(model: str, group: int, phase: str) -> dict[str, float]:
    """Elements of activations one row moves, by part of the layer."""
    found = layer_amounts(place(model), find_model(model).groups[group], Pass("prefill" if phase == "prefill" else "decode", 1, 0, 1))
    parts = {matrix.part for matrix, _ in found}
    return {part: sum(amount.activations for matrix, amount in found if matrix.part == part) / 2 for part in parts}


def test_activations_of_a_row_are_each_operand_read_and_each_result_written() -> None:
    """By hand for 64 heads of 128, hidden 8,192 and FFN 28,672; K and V go to the cache, scores stay on the chip."""
    x, q, pv, wide = 8192, 64 * 128, 64 * 128, 28_672
    for phase in ("prefill", "decode"):
        assert moved(LLAMA, 0, phase) == {"project": x + q + pv + x, "attend": q + pv, "feed forward": x + 2 * wide + wide + x}


def test_a_latent_is_expanded_in_prefill_and_attended_as_it_is_in_decode() -> None:
    """By hand for DeepSeek-V3: 128 heads of 128 + 64, rows of 512 + 64, queries through 1,536."""
    x, down, heads = 7168, 1536, 128
    query = x + down + down + heads * 192
    out = heads * 128 + x
    found = {phase: moved("deepseek-v3", 0, phase) for phase in ("prefill", "decode")}
    assert found["prefill"]["project"] == query + 2 * heads * 128 + out
    assert found["prefill"]["attend"] == heads * 192 + heads * 128 + heads * 128 + heads * 128
    assert found["decode"]["project"] == query + heads * (128 + 512) + heads * (512 + 128) + out
    assert found["decode"]["attend"] == heads * (512 + 64) + heads * 512


def test_few_rows_touch_few_experts() -> None:
    one, many = (named("deepseek-v3", 1, Pass("decode", 1, 100, n))["experts' gate"] for n in (1, 1000))
    assert one.weights == pytest.approx(many.weights * 8 / 256)
    assert many.flop == 1000 * one.flop


def test_the_layer_that_stands_for_a_model_keeps_all_tokens_where_any_does() -> None:
    kinds = {name: model.groups[main_group(model)].attention.kind for name, model in models().items()}
    assert {name for name, kind in kinds.items() if kind not in ("full", "mla", "compressed")} == {"mistral-7b-v0.1"}
