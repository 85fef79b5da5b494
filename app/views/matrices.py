"""Matrices: one layer in prefill and in decode, what crosses between them, and why the phases want different GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import streamlit as st

from app import controls
from app.charts import layer_tables, matrices, roofline
from app.charts.layer_runs import runs_of
from app.charts.pins import layer
from app.charts.spec import Figure, Table, at
from app.live import Board, at_value, block, first
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
    now |= first(_placed(state, evaluate_over(state.scenario, "prompt_tokens", (state.scenario.prompt_tokens,))))
    drawn, roofs, notes = _figures(state, over, index)
    board.view("matrices_view", [block("h2", "The same layer, twice", class_="kv-h2"), drawn, *notes[:1]], now)
    board.view("roofline_view", [block("h2", "Why the phases want different GPUs", class_="kv-h2"), roofs, *notes[1:]], now, later=True)
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
    over = evaluate_over(state.scenario, name, values)
    return _table(over, _index(state)) | _placed(state, over)


def _placed(state: State, over: Over) -> Table:
    """Labels of the roofline where a pinned scenario moves its axes."""
    pinned = _pinned(state)
    return roofline.roofline_table(over, _index(state), pinned.runs) if pinned else {}


def _figures(state: State, over: Over, index: int) -> tuple[Figure, Figure, list[dict[str, Any]]]:
    """Both pictures with what is pinned in them, and what its marks are."""
    pinned = _pinned(state)
    if pinned is None:
        return matrices.matrices_figure(over, index), roofline.roofline_figure(over, index), []
    runs = runs_of(over, index)
    shapes = matrices.shapes_at(over, index)
    drawn = layer.with_matrices_pin(matrices.matrices_figure(over, index), shapes, pinned)
    roofs = layer.with_roofline_pin(roofline.roofline_figure(over, index, pinned.runs), runs, pinned)
    told = (layer.matrices_note(shapes, pinned), layer.ROOFLINE if layer.other_roofs(runs, pinned.runs) else layer.NO_ROOF)
    return drawn, roofs, [block("p", text, class_="kv-note") for text in told]


def _pinned(state: State) -> layer.Pinned | None:
    return layer.pinned_layer(state.scenario, state.pin.scenario, _index(state)) if state.pin else None


def _index(state: State) -> int:
    return matrices.group_of(plan_of(state.scenario).model, state.seen.layer)


def _table(over: Over, index: int) -> Table:
    return over.table(f"matrices {index}", partial(_made, index=index))


def _made(over: Over, index: int) -> Table:
    return matrices.matrices_table(over, index) | roofline.roofline_table(over, index) | layer_tables.operations_table(over, index)
