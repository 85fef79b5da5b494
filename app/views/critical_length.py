"""Critical length: from which prompt on the wire matters, on every link."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from app import controls
from app.charts import critical, links, ratio
from app.charts.curves import Curves, pinned_curves
from app.charts.full_rate import full_rate_text
from app.charts.spec import Table, at
from app.live import Board, at_value, block
from app.over import evaluate_over
from app.state import State
from app.views import frame, offers
from app.views.frame import Form
from app.views.yardstick import yardstick
from kvmodel.scenario import Scenario

HOW = (
    "Each line is the time one prompt spends on a link; where it meets the dashed line, the handoff costs one decode step. More lanes "
    "move every line down: twice the lanes halve the time of the bytes, not that of posting messages."
)
UNNAMED = (
    "A line without a name is too near to one that has it: point at it, or tap it, to read its link. Links of one bandwidth share a "
    "line; the table of every link is below."
)
HIDING = (
    "Prefill is the yardstick of another question: can sending layer by layer hide the handoff? It can while the wire needs less time "
    "than prefill, below the blue line; above it the wire falls behind, however early it starts."
)
RATIO = (
    "Bytes grow with the prompt, and so do prefill's matrix multiplications: where those are most of it, the ratio is flat. Short prompts "
    "pay what prefill costs whatever the length; long ones pay for attention, which grows with the square, and windows cap the bytes."
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
    curves = critical.critical_figure(own, table, links.drawn_links(scenario, rows), pinned, rows)
    board.view("critical_view", [curves, yardstick(state, here=True), block("p", UNNAMED, class_="kv-note")], now, columns=table)
    frame.describe_answer(board, state, frame.setup_block(scenario), now, second=[offers.hiding_block(state)])
    seconds = {row.id: table[f"c.{row.id}"][positions.index(scenario.prompt_tokens)] for row in rows}
    listed = [
        block("h2", "Every link by one decode step", class_="kv-h2"),
        links.links_block(scenario, rows, seconds),
        block("p", at("c.odd"), class_="kv-note"),
        *([block("p", said, class_="kv-note kv-beyond")] if (said := full_rate_text(scenario)) else []),
        block("p", HOW, class_="kv-note"),
    ]
    board.view("links_view", listed, now, later=True)
    board.view("ratio_view", [*beside(table, pinned), links.hides_block(scenario, rows)], now, columns=table, later=True)
    return board


def tables(state: State, name: str, values: tuple[int, ...], _: Form = None) -> Table:
    """Everything that moves with a slider, over its positions: the batch moves nothing before it is let go."""
    return table_of(state.scenario, values) if name == "prompt_tokens" else {}


def table_of(scenario: Scenario, positions: Sequence[int]) -> Table:
    """Everything the view shows, over the slider's positions."""
    rows = links.link_rows(links.without_prompt(scenario))
    over = evaluate_over(scenario, "prompt_tokens", tuple(positions))
    second = over.table("hiding", lambda o: offers.hiding_table(o.scenario, o.field, o.values))
    return over.table("critical", lambda o: critical.critical_table(o, rows)) | second


def beside(table: Table, pinned: Curves | None) -> list[Any]:
    """The other yardstick: the ratio of wire to prefill, and what prefill hides."""
    return [
        block("h2", "The other yardstick: can prefill hide it?", class_="kv-h2"),
        block("p", HIDING, class_="kv-note"),
        block("p", at("c.hiding"), class_="kv-note kv-beyond"),
        ratio.ratio_figure(table, pinned),
        block("p", ratio.ratio_text(table), class_="kv-note kv-beyond"),
        block("p", RATIO, class_="kv-note"),
    ]
