"""Measured: published transfers beside the model, with what is left between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from app import controls
from app.charts import measured, measured_rows
from app.charts.pins import points
from app.charts.spec import Table
from app.live import Board, block, first
from app.over import evaluate_over
from app.state import State
from app.views import frame
from app.views.frame import Form
from kvmodel import Evaluation, Scenario, registry, sweep

HOW = (
    "Each mark is one number somebody published, a click opens the page that prints it. The model's curves are those of how the bytes "
    "travelled (RDMA by a thin library, a serving engine's connector, NCCL, …), each with constants fitted to all published rows of its "
    "kind; tests judge them with the source in question left out. The band is within 25\u202f% of the model; rings are the same rows "
    "against bytes over nominal bandwidth. Curves are drawn for one message a NIC: rows of many small messages stand above them."
)
MISSES = "Rows the model misses by more than 25\u202f% are listed first."


def show() -> None:
    """Draw the view: the chart first, then the answer, then the filter and the rest."""
    here = frame.frame("measured")
    board = frame.pictured(picture, here.state.bare())
    with here.figure:
        filters, chart = st.container(key="overlap_row"), st.container()
    with chart:
        board.mount("measured_view")
    with here.answer:
        board.mount("answer_view")
    with here.rest:
        board.mount("residual_view", "rows_view")
    with filters:
        controls.draw_filters(here.state)
    frame.show_inputs(board, here, tables)


def tables(state: State, name: str, values: tuple[int, ...], _: Form = None) -> Table:
    """Where your scenario stands, over a slider's positions."""
    return measured.you_table(evaluate_over(state.scenario, name, values))


def picture(state: State, _: Sequence[int] = ()) -> Board:
    """The view's charts and texts."""
    scenario, board = state.scenario, frame.board_of(state, frame.PROMPT_SLIDERS)
    asked, engine = state.seen.measured_link, state.seen.measured_engine
    link = scenario.link if asked == measured.YOURS else asked
    shown = measured.kept(link, engine)
    answer = measured.sentence(shown, _where(link, engine))
    far = not shown
    if far and asked == measured.YOURS:
        shown = measured.kept(measured.ALL, engine)
    now: dict[str, Any] = first(tables(state, "prompt_tokens", (scenario.prompt_tokens,)))
    now |= {"answer": answer, "answer.text": "".join(part[0] for part in answer)}
    drawn = _measured(state, shown, near=asked == measured.YOURS and not far) if shown else [empty(state)]
    board.view("measured_view", drawn, now)
    frame.describe_answer(board, state, frame.setup_block(scenario), now)
    left = [block("h2", "What is left", class_="kv-h2"), measured.residual_figure(shown)] if shown else []
    left += [block("p", text, class_="kv-note") for text in (*([points.RESIDUALS] if state.pin else []), HOW)]
    board.view("residual_view", left, now, later=True)
    rows = [measured_rows.rows_block(shown), block("p", MISSES, class_="kv-note"), measured_rows.elsewhere_block()]
    listed = [block("h2", "Published against modelled", class_="kv-h2"), *rows]
    board.view("rows_view", listed, now, later=True)
    return board


def empty(state: State) -> dict[str, Any]:
    """What stands in place of the picture where no row is left by the filter."""
    every = state.with_values({"measured_link": measured.ALL, "measured_engine": measured.ALL})
    way = block("a", "Show all of them", href=f"?{every.query()}")
    told = "Published transfers belong here: one mark for each that says its bytes and its time. None is near this link with this engine."
    return block("div", block("p", told), block("p", way), class_="kv-empty")


def _measured(state: State, shown: Sequence[measured.Point], *, near: bool) -> list[Any]:
    """The measurements, with the pinned scenario among them."""
    scenario, pin = state.scenario, state.pin
    if pin is None:
        return [measured.measured_figure(shown, reach_of(scenario))]
    theirs = _alone(pin.scenario)
    drawn = measured.measured_figure(shown, [*reach_of(scenario), (theirs.kv.wire_bytes, theirs.transfer.seconds)])
    note = points.differs_note(scenario, pin.scenario, near=near)
    return [points.with_points_pin(drawn, theirs), block("p", note, class_="kv-note")]


def _alone(scenario: Scenario) -> Evaluation:
    return evaluate_over(scenario, "prompt_tokens", (scenario.prompt_tokens,)).rows[0]


def reach_of(scenario: Scenario) -> list[tuple[float, float]]:
    """(bytes, seconds) of the shortest and of a long prompt, and of the scenario itself."""
    swept = sweep(scenario, prompt_tokens=[128, 131_072, scenario.prompt_tokens])
    return list(zip(swept.kv.wire_bytes.tolist(), swept.transfer.seconds.tolist(), strict=True))


def _where(link: str, engine: str) -> str:
    near = "" if link == measured.ALL else f"near {registry.links()[link].name}"
    by = "" if engine == measured.ALL else f"with {registry.engines()[engine].name}"
    return " ".join(word for word in (near, by) if word) or "on every kind of link"
