"""Sensitivity: which input moves the first token most, and where it flips the verdict."""

from __future__ import annotations

from collections.abc import Sequence

from app.charts import tornado
from app.charts.pins import bars
from app.charts.spec import Table, at
from app.live import Board, block, first
from app.over import evaluate_over
from app.state import State
from app.views import frame
from app.views.frame import Form
from kvmodel.sensitivity import changes_of, order_of

NOTE = (
    "Each input is turned by itself, all others as they are: solid is half of it, pale is twice, out from the first token as it is "
    "now; +½ is half of the tokens that decode does not hold. The verdict is what bounds the transfer, and whether decode "
    "waits more than 20\u202f% of the first token's time; it is tried up to 64 times either way."
)


def show() -> None:
    """Draw the view at the scenario itself, the chart first; then send the tables to drag by."""
    here = frame.frame("sensitivity")
    board = frame.pictured(picture, here.state.bare())
    with here.figure:
        board.mount("tornado_view")
    with here.answer:
        board.mount("answer_view")
    with here.rest:
        board.mount("turned_view")
    frame.show_inputs(board, here, tables, form_of(here.state))


def picture(state: State, _: Sequence[int] = ()) -> Board:
    """The view's chart and table, at the scenario itself."""
    scenario, board = state.scenario, frame.board_of(state, frame.PROMPT_SLIDERS)
    order = order_of(scenario)
    now = first(tables(state, "prompt_tokens", (scenario.prompt_tokens,)))
    drawn = tornado.tornado_figure(order)
    hollow = [bars.with_tornado_pin(drawn, len(order)), block("p", bars.TORNADO, class_="kv-note")]
    board.view("tornado_view", hollow if state.pin else [drawn], now)
    listed = [block("h2", "Where it flips", class_="kv-h2"), tornado.flips_block(order), block("p", NOTE, class_="kv-note")]
    board.view("turned_view", listed, now)
    frame.describe_answer(board, state, frame.setup_block(scenario), now, second=[block("p", at("k.verdict"), class_="kv-second")])
    return board


def form_of(state: State) -> tuple[str, ...]:
    """Inputs by how much they move, the most first."""
    return order_of(state.scenario)


def tables(state: State, name: str, values: tuple[int, ...], form: Form = None) -> Table:
    """Everything the view shows, over a slider's positions; rows stay in the scenario's own order, or that of `form`."""
    order = form if isinstance(form, tuple) else form_of(state)
    verdict = evaluate_over(state.scenario, name, values).table("verdict now", tornado.verdict_table)
    return verdict | tornado.tornado_table(state.scenario, name, values, order, changes_of(state.pin.scenario) if state.pin else None)
