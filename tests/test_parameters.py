"""Parameters counted from dimensions against what the makers state."""

from __future__ import annotations

import pytest

from kvmodel import find_model
from kvmodel.parameters import layer_parameters, model_parameters
from kvmodel.registry import models

LEFT_OUT = {
    "gemma-3-4b": "the page counts its vision encoder of 0.4 B",
    "gemma-3n-e4b": "the page counts per-layer embeddings and encoders, which are not layers of the text model",
}
"""Models whose published total counts what the record does not, with the reason."""

ROUNDED = {
    "qwen3-next-80b-a3b": "A3B is a whole number of billions for 3.6 B",
}
"""Models whose published active parameters are a name rather than a count."""


@pytest.mark.parametrize("model", sorted(set(models()) - set(LEFT_OUT)))
def test_the_total_is_within_3_percent_of_the_published_one(model: str) -> None:
    spec = find_model(model)
    assert model_parameters(spec).total == pytest.approx(spec.published_parameters, rel=0.03)


@pytest.mark.parametrize("model", sorted(LEFT_OUT))
def test_an_exception_counts_less_than_published_and_says_why(model: str) -> None:
    spec = find_model(model)
    assert spec.published_parameters is not None
    assert model_parameters(spec).total < 0.97 * spec.published_parameters
    assert "count" in spec.notes


@pytest.mark.parametrize("model", sorted(m.id for m in models().values() if m.published_active_parameters and m.id not in ROUNDED))
def test_the_active_ones_are_within_6_percent_with_or_without_the_embedding(model: str) -> None:
    # makers differ in whether a looked-up embedding is active
    spec, counts = find_model(model), model_parameters(find_model(model))
    published = spec.published_active_parameters
    assert published is not None
    assert min(abs(n / published - 1) for n in (counts.active, counts.active - counts.embedding)) <= 0.06


def test_the_70b_by_hand() -> None:
    # one layer of the published matrices: 855 M parameters, 80 of them, and two tables of 128,256 x 8,192
    spec = find_model("llama-3-70b")
    q = o = 8192 * 8192
    k = v = 8192 * 1024
    ffn = 3 * 8192 * 28_672
    layer = layer_parameters(spec.groups[0], spec.hidden)
    assert layer.total == layer.active == q + o + k + v + ffn
    assert layer.total == pytest.approx(855e6, rel=1e-3)
    assert model_parameters(spec).total == 80 * layer.total + 2 * 128_256 * 8192


def test_deepseek_v3_by_hand() -> None:
    # q: 7168 -> 1536 -> 128 x 192; kv: 7168 -> 576, 512 -> 128 x 256; out 128 x 128 -> 7168; 8 of 256 experts and a shared one
    spec = find_model("deepseek-v3")
    attention = 7168 * 1536 + 1536 * 128 * 192 + 7168 * 576 + 512 * 128 * 256 + 128 * 128 * 7168
    expert = 3 * 7168 * 2048
    moe = layer_parameters(next(g for g in spec.groups if g.name == "moe"), spec.hidden)
    assert moe.attention == attention
    assert moe.total == attention + 7168 * 256 + 257 * expert
    assert moe.active == attention + 7168 * 256 + 9 * expert


def test_a_mixture_of_two_of_eight_activates_two() -> None:
    moe = layer_parameters(find_model("mixtral-8x7b").groups[0], 4096)
    assert moe.total - moe.active == 6 * 3 * 4096 * 14_336


def test_tied_embeddings_count_once() -> None:
    spec = find_model("gemma-3-27b")
    untied = spec.model_copy(update={"tied_embeddings": False})
    assert model_parameters(untied).total - model_parameters(spec).total == spec.vocab * spec.hidden


def test_no_token_activates_more_than_there_is() -> None:
    for spec in models().values():
        counts = model_parameters(spec)
        moe = any(layer_parameters(g, spec.hidden).experts for g in spec.groups)
        assert counts.active < counts.total if moe else counts.active == counts.total, spec.id
