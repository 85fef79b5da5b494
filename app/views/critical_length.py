"""Critical length: from which prompt on the wire matters, on every link."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from app import controls
from app.charts import critical, links, ratio
from app.charts.curves import Curves, pinned_curves
from app.charts.spec import Table, at
from app.live import Board, at_value, block
from app.over import evaluate_over
from app.state import State
from app.views import frame
from app.views.frame import Form
from kvmodel.scenario import Scenario

HOW = (
    "Each line is the time one prompt spends on a link. Where it meets the dashed line, the handoff costs as much as one decode "
    "step. Above the blue line the wire takes longer than prefill, so no overlap can hide it. More lanes move every line down: "
    "twice the lanes halve the time of the bytes, not that of posting messages."
)
RATIO = (
    "Bytes and the matrix multiplications of prefill both grow with the prompt, so their ratio is flat. It falls where attention's "
    "square outgrows the bytes, or where windows cap them; at short prompts it follows what prefill costs whatever the length."
)


def show() -> None:
    """Draw the view: the chart first, then the answer, then the controls and the rest."""
    here = frame.frame("critical-length")
    positions = controls.slider_values(here.state, "prompt_tokens")
    board = frame.pictured(picture, here.state.bare(), positions)
    with here.figure:
        board.mount("critical_view")
    with here.answer:
        board.mount("answer_view")
    with here.rest:
        left, right = st.columns([1.25, 1], gap="large")
    with left:
        board.mount("links_view")
    with right:
        board.mount("ratio_view")
    frame.show_inputs(board, here, tables)


def picture(state: State, positions: Sequence[int]) -> Board:
    """The view's charts and texts, its curves over the positions."""
    scenario, board = state.scenario, frame.board_of(state, frame.PROMPT_SLIDERS)
    rows, table = links.link_rows(links.without_prompt(scenario)), table_of(scenario, positions)
    now = at_value(table, positions, scenario.prompt_tokens)
    own = next(row for row in rows if row.id == scenario.link)
    pinned = pinned_curves(state, positions)
    curves = critical.critical_figure(own, table, links.drawn_links(scenario, rows), pinned)
    board.view("critical_view", [curves], now, columns=table)
    frame.describe_answer(board, state, block("p", frame.setup_text(scenario), class_="kv-setup"), now)
    hiding = block("p", at("c.hiding"), class_="kv-note kv-beyond")
    listed = [
        block("h2", "Every link", class_="kv-h2"),
        hiding,
        links.links_block(scenario, rows),
        block("p", at("c.odd"), class_="kv-note"),
    ]
    board.view("links_view", listed, now, later=True)
    board.view("ratio_view", beside(table, pinned), now, columns=table, later=True)
    return board


def tables(state: State, name: str, values: tuple[int, ...], _: Form = None) -> Table:
    """Everything that moves with a slider, over its positions: the batch moves nothing before it is let go."""
    return table_of(state.scenario, values) if name == "prompt_tokens" else {}


def table_of(scenario: Scenario, positions: Sequence[int]) -> Table:
    """Everything the view shows, over the slider's positions."""
    rows = links.link_rows(links.without_prompt(scenario))
    return evaluate_over(scenario, "prompt_tokens", tuple(positions)).table("critical", lambda o: critical.critical_table(o, rows))


def beside(table: Table, pinned: Curves | None) -> list[Any]:
    """The ratio of wire to compute, and how to read the curves."""
    return [
        block("h2", "Wire over compute", class_="kv-h2"),
        ratio.ratio_figure(table, pinned),
        block("p", RATIO, class_="kv-note"),
        block("h2", "How to read it", class_="kv-h2"),
        block("p", HOW, class_="kv-note"),
    ]
