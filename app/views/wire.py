"""On the wire: where the transfer's time goes, what overlap saves, and what sharing and failures cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from app import controls, reading
from app.charts import congestion, groups, pipelining, where
from app.charts.pinned import HOLLOW
from app.charts.spec import Table, at
from app.live import Board, at_value, block, first
from app.over import evaluate_over
from app.state import State
from app.views import frame
from app.views.frame import Form
from kvmodel import registry, sweep
from kvmodel.display import share_text, time_text
from kvmodel.plan import plan_of
from kvmodel.scenario import Scenario
from kvmodel.traffic import Traffic

SLIDERS = ("prompt_tokens", "in_flight")
SHARED = (
    "Below the knee a handoff has the links to itself; above it more in flight only wait for each other. Times are those of equal "
    "handoffs that share the links of one decode instance, as bounds: real ones vary and wait somewhat longer near the knee."
)
FAILED = (
    "Supposed, under More inputs: {} of attempts fail, known {} later; prefill keeps what nobody reads for {}. A failure comes at a "
    "moment spread evenly over the bytes. Retry sends everything again, resume what is missing; recompute prefills on decode."
)
CHUNKS = "Of chunks decode waits for the last one alone, which has what is left of the prompt: hence the jagged line."


def show() -> None:
    """Draw the view: the chart first, then the answer, then the controls and the rest."""
    here = frame.frame("wire", ("in_flight", "prompt_tokens"))
    positions = controls.slider_values(here.state, "prompt_tokens")
    board = frame.pictured(picture, here.state.bare(), positions)
    with here.figure:
        overlap, chart = st.container(key="overlap_row"), st.container()
    with chart:
        board.mount("where_view")
    with here.answer:
        board.mount("answer_view")
    with here.rest:
        board.mount("pipelining_view")
        left, right = st.columns(2, gap="large")
    with left:
        board.mount("congestion_view")
    with right:
        board.mount("failure_view")
    with overlap:
        controls.draw_overlap(here.state.scenario)
    frame.show_inputs(board, here, tables, form_of(here.state))


def picture(state: State, positions: Sequence[int]) -> Board:
    """The view's charts and texts, its curves over the positions."""
    scenario, board = state.scenario, frame.board_of(state, SLIDERS)
    curves, offered = lengths_of(scenario, positions), reading.overlaps(scenario)
    now = at_value(curves, positions, scenario.prompt_tokens) | first(
        _here(state, "prompt_tokens", (scenario.prompt_tokens,), form_of(state))
    )
    narrow = registry.lossy_format(scenario.kv_dtype, scenario.wire_dtype)
    lost = [block("p", f"{narrow.name}: {narrow.accuracy}", class_="kv-note")] if narrow else []
    pinned = state.pin.scenario if state.pin else None
    hollow = [block("p", HOLLOW, class_="kv-note")] if pinned else []
    board.view(
        "where_view", [block("h2", "Where the time goes", class_="kv-h2"), where.where_figure(scenario, pinned), *hollow, *lost], now
    )
    second = [block("p", at("g.second"), class_="kv-second")]
    frame.describe_answer(board, state, frame.setup_block(scenario), now, second=second)
    undrawn = pipelining.undrawn_text(curves, offered)
    saves = [
        block("h2", "What sending early saves", class_="kv-h2"),
        pipelining.pipelining_figure(curves, offered, plan_of(scenario).overlap, _pinned_gaps(state, positions)),
        block("p", at("p.sentence"), class_="kv-note"),
        *([block("p", undrawn, class_="kv-note")] if undrawn else []),
        *([block("p", CHUNKS, class_="kv-note")] if "chunk" in offered else []),
        groups.groups_line(),
    ]
    board.view("pipelining_view", saves, now, columns=curves, later=True)
    notes = [block("p", text, class_="kv-note") for text in (at("g.sentence"), at("g.room_sentence"), SHARED)]
    shared = [block("h2", "Handoffs that share the links", class_="kv-h2"), congestion.congestion_figure(_pinned_points(state)), *notes]
    board.view("congestion_view", shared, now, later=True)
    supposed = block("p", _failed(state.traffic), class_="kv-note")
    failed = [block("h2", "Transfers that fail", class_="kv-h2"), congestion.failure_block(), supposed]
    board.view("failure_view", failed, now, later=True)
    return board


def _failed(traffic: Traffic) -> str:
    """What is supposed of failures."""
    known, kept = time_text(traffic.detection_seconds), time_text(traffic.lease_seconds)
    return FAILED.format(share_text(traffic.failure_probability), known, kept)


def lengths_of(scenario: Scenario, positions: Sequence[int]) -> Table:
    """Curves over the slider's positions."""
    offered = reading.overlaps(scenario)
    over = evaluate_over(scenario, "prompt_tokens", tuple(positions))
    return over.table("pipelining", lambda o: pipelining.pipelining_table(o, offered))


def _pinned_gaps(state: State, positions: Sequence[int]) -> list[float]:
    """Decode's wait under the pinned scenario at each prompt length; empty without a pin."""
    if state.pin is None:
        return []
    found = sweep(state.pin.scenario, prompt_tokens=np.asarray(positions)).gap_seconds
    return [float(v) for v in np.broadcast_to(np.asarray(found, dtype=float), len(positions))]


def _pinned_points(state: State) -> Sequence[float]:
    """Seconds of a handoff by the number in flight under the pinned scenario and its traffic; empty without a pin."""
    pin = state.pin
    return congestion.shared_rows(pin, "in_flight", (pin.traffic.in_flight,))[0].points if pin else ()


def form_of(state: State) -> tuple[str, ...]:
    """Terms that have a bar."""
    return tuple(where.rows_of(state.scenario, state.pin.scenario if state.pin else None))


def _here(state: State, name: str, values: tuple[int, ...], rows: tuple[str, ...]) -> Table:
    over = evaluate_over(state.scenario, "prompt_tokens", values)
    shared = _shared(state, name, values)
    pinned = state.pin.scenario if state.pin else None
    bars = where.where_table(over, rows, pinned) if pinned else over.table(f"where {rows}", lambda o: where.where_table(o, rows))
    return shared | bars | over.table("groups", groups.groups_table)


def _shared(state: State, name: str, values: tuple[int, ...]) -> Table:
    return congestion.shared_table(congestion.shared_rows(state, name, values), _pinned_points(state))


def tables(state: State, name: str, values: tuple[int, ...], form: Form = None) -> Table:
    """Everything that moves with a slider, over its positions."""
    if name == "in_flight":
        return _shared(state, name, values)
    return lengths_of(state.scenario, values) | _here(state, name, values, form if isinstance(form, tuple) else form_of(state))
