"""Critical length: from which prompt on the wire matters, on every link."""

from __future__ import annotations

from typing import Any

import streamlit as st

from app import controls
from app.charts import critical, links, ratio
from app.charts.spec import Table
from app.live import Board, block
from app.over import evaluate_over
from app.views import frame

HOW = (
    "Each line is the time one prompt spends on a link. Where it meets the dashed line, the handoff costs as much as one decode "
    "step. Above the blue line the wire takes longer than prefill, so no overlap can hide it. More lanes move every line down: "
    "8 lanes, 8 times lower."
)
RATIO = (
    "Bytes and the matrix multiplications of prefill both grow with the prompt, so their ratio is flat. It falls where attention's "
    "square outgrows the bytes, or where windows cap them; at short prompts it follows what prefill costs whatever the length."
)


def show() -> None:
    """Draw the view: the chart first, then the answer, then the controls and the rest."""
    here = frame.frame("critical-length")
    scenario = here.state.scenario
    over = evaluate_over(scenario, "prompt_tokens", controls.slider_values(here.state, "prompt_tokens"))
    rows = links.link_rows(links.without_prompt(scenario))
    table = over.table("critical", lambda o: critical.critical_table(o, rows))
    now, board = {name: column[over.at] for name, column in table.items()}, Board("prompt_tokens", scenario.prompt_tokens)
    own = next(row for row in rows if row.id == scenario.link)
    with here.figure:
        curves = critical.critical_figure(own, table, links.drawn_links(scenario, rows))
        board.view("critical_view", [curves], now, columns=table)
    frame.show_answer(board, here, block("p", frame.setup_text(scenario), class_="kv-setup"), now)
    with here.rest:
        left, right = st.columns([1.25, 1], gap="large")
    with left:
        listed = [block("h2", "Every link", class_="kv-h2"), links.links_block(scenario, rows)]
        board.view("links_view", listed, now, later=True)
    with right:
        board.view("ratio_view", beside(table), now, columns=table, later=True)
    frame.show_prompt_inputs(board, here, table)


def beside(table: Table) -> list[Any]:
    """The ratio of wire to compute, and how to read the curves."""
    return [
        block("h2", "Wire over compute", class_="kv-h2"),
        ratio.ratio_figure(table),
        block("p", RATIO, class_="kv-note"),
        block("h2", "How to read it", class_="kv-h2"),
        block("p", HOW, class_="kv-note"),
    ]
