"""An agent's next turn: what each design moves and how long its first token takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from app.charts import flow, turn, turn_bars
from app.charts.pinned import HOLLOW
from app.charts.pins import flow as flow_pin
from app.charts.spec import Table, at
from app.live import Board, block, first
from app.state import State
from app.views import frame, offers
from app.views.frame import Form
from app.views.opens import opening
from kvmodel.display import count_text
from kvmodel.plan import plan_of
from kvmodel.scenario import Scenario
from kvmodel.turn import decoded_beside

DASHED = "Dashed arrows are the pinned turn's where they are others, to the same scale. "
SLIDERS = ("delta_tokens", "history_tokens")
NOTE = (
    "Orange edges are KV, wider for more bytes: eight times the bytes are twice as wide; thin grey edges are text. Beside the pool, ↓ is "
    "what it takes and ↑ what it gives. Pull back and the shared pool suppose that prefill still holds the history but for what decode "
    "generated; recompute and the cold pool, which is what serving the turn on any worker costs, that it holds none. Times add up "
    "prefill, transfers that nothing hides, and the first decode step, but for sticky, whose prefill on decode makes the token."
)


def show() -> None:
    """Draw the view at the turn itself, the pictures first; then send the tables to drag by."""
    here = frame.frame("next-turn", ("history_tokens", "delta_tokens"))
    board = frame.pictured(picture, here.state.bare())
    with here.figure:
        board.mount("flow_view", "bars_view")
    with here.answer:
        board.mount("answer_view")
    frame.show_inputs(board, here, tables)


def picture(state: State, _: Sequence[int] = ()) -> Board:
    """The view's pictures and texts, at the turn itself."""
    now, board = first(tables(state, "delta_tokens", (state.turn.delta_tokens,))), frame.board_of(state, SLIDERS)
    drawn, pinned = flow.flow_figure(), _pinned(state)
    board.view("flow_view", [flow_pin.with_flow_pin(drawn, pinned) if pinned else drawn], now)
    hollow = [] if pinned is None else [block("p", DASHED, HOLLOW, class_="kv-note")]
    texts = [
        *hollow,
        block("p", at("copies"), class_="kv-note kv-beyond"),
        block("p", at("stall"), class_="kv-note"),
        block("p", NOTE, class_="kv-note"),
    ]
    board.view("bars_view", [turn_bars.bars_figure(pinned=state.pin is not None), *texts], now, later=True)
    frame.describe_answer(board, state, setup_block(state), now, beside=offers.other_offer(state))
    return board


def tables(state: State, name: str, values: tuple[int, ...], _: Form = None) -> Table:
    """Everything the view shows, over a slider's positions."""
    rows = turn.turn_rows(state, name, values)
    pinned = _pinned(state)
    table = turn.turn_table(rows) | flow.flow_table(rows, pinned) | turn_bars.bars_table(rows, pinned)
    table |= flow_pin.flow_pin_table(pinned, rows) if pinned else {}
    other = offers.other_engine(state.scenario)
    if other is None:
        return table
    first_tokens = [turn.first_token_text(row) for row in turn.turn_rows(replace(state, scenario=other), name, values)]
    return table | offers.worded(other, first_tokens)


def _pinned(state: State) -> turn.TurnRow | None:
    """The pinned turn."""
    pin = state.pin
    return turn.turn_rows(pin, "delta_tokens", (pin.turn.delta_tokens,))[0] if pin else None


def setup_block(state: State) -> dict[str, Any]:
    """The turn's setup in words; those that say a folded input open it."""
    born, beside = opening("generated_tokens", at("born")), opening("decode_batch", beside_text(state.scenario))
    turned = block("span", at("setup"), "; ", class_="kv-wide")
    return block("p", turned, born, at("held"), "; ", beside, setup_text(state), class_="kv-setup")


def beside_text(scenario: Scenario) -> str:
    """Who is decoded beside the turn."""
    count = decoded_beside(scenario)
    return f"{count_text(count)} request{'' if count == 1 else 's'} decoded beside it" if count else "nobody decoded beside it"


def setup_text(state: State) -> str:
    """The rest of the turn's setup in words, but for the engine."""
    plan = plan_of(state.scenario)
    return f"; {plan.model.name}, {frame.kv_text(state.scenario)}, {frame.link_text(state.scenario)}"
