"""Interconnects: every link against batch, in time and in decode steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.charts import hiding, interconnects
from app.charts.full_rate import full_rate_text
from app.charts.pins import cells
from app.charts.spec import Figure, Table, at
from app.live import Board, block, first
from app.over import evaluate_over
from app.state import State
from app.views import frame, offers
from app.views.frame import Form
from app.views.yardstick import yardstick

NOTE = (
    "A cell is the time all bytes of so many prompts take on a link, hidden or not, under the engine and lanes chosen, without what an "
    "engine adds to each handoff whatever its bytes; bandwidth is one direction's. One link is drawn for each bandwidth and scope: a NIC "
    "for each GPU, for a node, for a site. The answer counts NICs; fabrics inside a node and pipes between sites are ticked, not counted."
)


def show() -> None:
    """Draw the view at the scenario itself, the cells first; then send the tables to drag by."""
    here = frame.frame("interconnects")
    board = frame.pictured(picture, here.state.bare())
    with here.figure:
        board.mount("interconnects_view")
    with here.answer:
        board.mount("answer_view")
    frame.show_inputs(board, here, tables)


def picture(state: State, _: Sequence[int] = ()) -> Board:
    """The view's cells and texts, at the scenario itself."""
    scenario, board = state.scenario, frame.board_of(state, frame.PROMPT_SLIDERS)
    now = first(tables(state, "prompt_tokens", (scenario.prompt_tokens,)))
    items = [block("h2", "Time on the wire", class_="kv-h2"), _key(state), _cells(state)]
    dashed = [block("p", cells.NOTE, class_="kv-note")] if state.pin else []
    odd = block("p", at("i.odd"), class_="kv-note kv-beyond")
    rate = [block("p", said, class_="kv-note kv-beyond")] if (said := full_rate_text(scenario)) else []
    notes = [
        block("p", at("i.step"), class_="kv-note"),
        odd,
        *rate,
        *dashed,
        yardstick(state, here=False),
        block("p", NOTE, class_="kv-note"),
    ]
    board.view("interconnects_view", [*items, *notes], now)
    frame.describe_answer(board, state, frame.setup_block(scenario), now, second=[second_block(state)])
    return board


def second_block(state: State) -> dict[str, Any]:
    """The line below the answer: whose way of sending it is, what another engine would make of it, and what one decode step carries."""
    whose, offer = hiding.whose_sentence(state.scenario), offers.hiding_offer(state, after=". ")
    return block("p", f"{whose} " if whose else "", *offer, at("i.carries"), ".", class_="kv-second")


def _cells(state: State) -> Figure:
    drawn = interconnects.interconnects_figure(state.scenario)
    return cells.with_cells_pin(drawn, state.scenario, state.pin.scenario) if state.pin else drawn


def _key(state: State) -> dict[str, object]:
    """What the colours mean, in words."""
    swatches = [
        block("span", block("span", class_=f"kv-swatch kv-swatch-{heat}", aria_hidden="true"), name)
        for heat, name in zip(interconnects.HEAT, interconnects.NAMES, strict=True)
    ]
    mark = block("span", block("b", interconnects.MARK.strip()), f" {interconnects.hidden_text(state.scenario)}")
    return block("p", block("span", "Colour: decode steps that it takes to cross"), *swatches, mark, class_="kv-key")


def tables(state: State, name: str, values: tuple[int, ...], _: Form = None) -> Table:
    """Everything the view shows, over a slider's positions."""
    scenario = state.scenario
    second = offers.hiding_table(scenario, name, values) | evaluate_over(scenario, name, values).table("odd", interconnects.odd_table)
    return interconnects.interconnects_table(scenario, name, values) | second
