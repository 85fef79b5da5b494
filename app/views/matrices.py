"""Matrices: one layer in prefill and in decode, what crosses between them, and why the phases want different GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from app import controls
from app.charts import layer_tables, matrices, roofline
from app.charts.spec import Table, at
from app.live import Board, at_value, block
from app.over import Over, evaluate_over
from app.state import State
from app.views import frame
from app.views.frame import Form
from kvmodel.plan import plan_of


def show() -> None:
    """Draw the view: the pictures first, then the answer, then the choice of a layer and the rest."""
    here = frame.frame("matrices")
    board = frame.pictured(picture, here.state.bare(), controls.slider_values(here.state, "prompt_tokens"))
    with here.figure:
        chosen = st.container(key="overlap_row")
        left, right = st.columns([1.85, 1], gap="medium")
    with left:
        board.mount("matrices_view")
    with right:
        board.mount("roofline_view")
    with here.answer:
        board.mount("answer_view")
    with here.rest:
        board.mount("phases_view", "tensors_view", "operations_view")
    with chosen:
        controls.draw_layer(here.state)
    frame.show_inputs(board, here, tables)


def picture(state: State, positions: Sequence[int]) -> Board:
    """The view's charts and texts over the positions."""
    index, board = _index(state), frame.board_of(state, frame.PROMPT_SLIDERS)
    over = evaluate_over(state.scenario, "prompt_tokens", tuple(positions))
    now = at_value(_table(over, index), positions, state.scenario.prompt_tokens)
    same = [block("h2", "The same layer, twice", class_="kv-h2"), matrices.matrices_figure(over, index)]
    board.view("matrices_view", same, now)
    why = [block("h2", "Why the phases want different GPUs", class_="kv-h2"), roofline.roofline_figure(over, index)]
    board.view("roofline_view", why, now, later=True)
    frame.describe_answer(board, state, block("p", at("m.setup"), class_="kv-setup"), now)
    board.view("phases_view", [roofline.phases_block(over, index), block("p", layer_tables.COUNTED, class_="kv-note")], now)
    stays = [block("h2", "What stays, what crosses", class_="kv-h2"), layer_tables.tensors_block(over, index)]
    board.view("tensors_view", [*stays, block("p", layer_tables.EXCEPTIONS, class_="kv-note")], now, later=True)
    each = [
        item
        for phase, title in (("Prefill", "Prefill, operation by operation"), ("Decode", "Decode, one row, operation by operation"))
        for item in (block("h2", title, class_="kv-h2"), layer_tables.operations_block(over, index, phase))
    ]
    board.view("operations_view", each, now, later=True)
    return board


def tables(state: State, name: str, values: tuple[int, ...], _: Form = None) -> Table:
    """Everything that moves with a slider, over its positions."""
    return _table(evaluate_over(state.scenario, name, values), _index(state))


def _index(state: State) -> int:
    return matrices.group_of(plan_of(state.scenario).model, state.seen.layer)


def _table(over: Over, index: int) -> Table:
    return over.table(f"matrices {index}", partial(_made, index=index))


def _made(over: Over, index: int) -> Table:
    return matrices.matrices_table(over, index) | roofline.roofline_table(over, index) | layer_tables.operations_table(over, index)
