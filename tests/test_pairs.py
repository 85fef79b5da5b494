"""Pairs of queries and keys, counted one by one; experts touched."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel import find_model
from kvmodel.pairs import LayerShape, full_pairs, shape_of
from tests.strategies import whole


@given(whole(1, 3000), whole(0, 3000))
def test_causal_pairs_are_those_of_each_query(new: int, held: int) -> None:
    pairs = sum(held + i for i in range(1, new + 1))  # a query sees itself
    assert full_pairs(new, held) == pairs
    assert full_pairs(np.array([new]), np.array([held])).tolist() == [pairs]


def test_new_tokens_attend_to_the_prefix_that_is_held() -> None:
    # sgl-project/sglang#19746: 500 new tokens after 8,000; as a fresh prompt they would be 33 times fewer pairs, all 8,500 8.8 times more
    assert full_pairs(500, 8000) == 500 * 8000 + 500 * 501 // 2 == 4_125_250
    assert (full_pairs(8500, 0), full_pairs(500, 0)) == (36_129_250, 125_250)


@given(whole(1, 3000), whole(0, 6000), whole(1, 2000), st.booleans())
def test_capped_pairs_are_those_inside_window_or_chunk(new: int, held: int, cap: int, chunked: bool) -> None:
    pairs = sum(p % cap + 1 if chunked else min(p + 1, cap) for p in range(held, held + new))
    shape = LayerShape(float(cap), chunked, 1.0)
    assert shape.capped_pairs(new, held) == pairs
    assert shape.capped_pairs(np.array([new]), np.array([held])).tolist() == [pairs]


@given(whole(1, 3000), whole(0, 3000), whole(1, 2000), st.booleans(), st.data())
def test_pairs_of_two_passes_are_those_of_one(new: int, held: int, cap: int, chunked: bool, data: st.DataObject) -> None:
    first = data.draw(whole(0, new))
    for pairs in (full_pairs, LayerShape(float(cap), chunked, 1.0).capped_pairs):
        assert pairs(first, held) + pairs(new - first, held + first) == pairs(new, held)


@given(st.integers(1, 200))
def test_experts_touched_are_those_that_not_every_token_misses(tokens: int) -> None:
    shape = shape_of(find_model("mixtral-8x7b").groups[0])
    missed = 1.0
    for _ in range(tokens):
        missed *= 6 / 8
    assert shape.touched(tokens) == pytest.approx(1 - missed)
