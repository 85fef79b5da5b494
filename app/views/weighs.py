"""What a handoff weighs: the model's cache by token, layer and rank, and a configuration of your own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app import controls, own_config
from app.charts import models, weighs
from app.charts.curves import pinned_curves
from app.charts.pinned import applies_text
from app.charts.pins import bars
from app.charts.spec import Figure, Table, at
from app.live import Board, at_value, block
from app.over import evaluate_over
from app.state import State
from app.views import frame
from app.views.frame import Form
from kvmodel.plan import plan_of
from kvmodel.scenario import Scenario

NOTE = "GB are 10⁹ bytes. Bytes are exact in tokens, one copy, before any engine rounds to blocks."

MODELS_NOTE = "One prompt's cache at four lengths, {dtype}; the lightest 8k prompt first. A name takes the scenario to that model."


def show() -> None:
    """Draw the view: the curve first, then the answer, the controls and the rest."""
    own_config.take()
    here = frame.frame("weighs")
    positions = controls.slider_values(here.state, "prompt_tokens")
    board = frame.pictured(picture, here.state.bare(), positions)
    with here.figure:
        board.mount("growth_view", "layers_view")
    with here.answer:
        board.mount("answer_view")
    with here.rest:
        board.mount("ranks_view", "models_view")
        own_config.draw()
    frame.show_inputs(board, here, tables)


def picture(state: State, positions: Sequence[int]) -> Board:
    """The view's charts and texts, its curve over the positions."""
    scenario, plan, board = state.scenario, plan_of(state.scenario), frame.board_of(state, frame.PROMPT_SLIDERS)
    table = _columns(state, positions)
    now = at_value(table, positions, scenario.prompt_tokens)
    board.view("growth_view", [weighs.growth_figure(table, pinned_curves(state, positions))], now, columns=table)
    layers = [block("h2", "Layer by layer", class_="kv-h2"), _layers(state), weighs.groups_block(plan)]
    board.view("layers_view", layers, now, later=True)
    frame.describe_answer(board, state, frame.setup_block(scenario), now)
    title = block("h2", "Who holds and sends which heads", class_="kv-h2")
    held = block("p", at("w.rank"), class_="kv-note")
    board.view("ranks_view", [title, held, weighs.ranks_block(plan), block("p", NOTE, class_="kv-note")], now)
    board.view("models_view", every_model(state), {})
    return board


def dtype_text(kv_dtype: str) -> str:
    """In which format models keep their caches, in words."""
    return "each model’s own KV dtype" if kv_dtype == "auto" else f"KV dtype {kv_dtype}"


def _layers(state: State) -> Figure:
    drawn, plan, pin = weighs.layers_figure(plan_of(state.scenario)), plan_of(state.scenario), state.pin
    return bars.with_layers_pin(drawn, plan_of(pin.scenario), pin.scenario.prompt_tokens, plan.model.layers) if pin else drawn


def every_model(state: State) -> list[dict[str, Any]]:
    """The other models by what the same prompts weigh in them; own configurations stay out of links."""
    others = "&".join(part for part in state.applied().query().split("&") if not part.startswith("model="))
    title = block("h2", "Every model", class_="kv-h2")
    return [
        title,
        block("p", MODELS_NOTE.format(dtype=dtype_text(state.scenario.kv_dtype)), class_="kv-note"),
        models.models_block(state.scenario, others, applies_text(state)),
    ]


def tables(state: State, name: str, values: tuple[int, ...], _: Form = None) -> Table:
    """Everything that moves with a slider, over its positions: bytes of one request do not depend on the batch."""
    return _columns(state, values) if name == "prompt_tokens" else {}


def _columns(state: State, positions: Sequence[int]) -> Table:
    table, pin = table_of(state.scenario, positions), state.pin
    return table | (bars.layers_pin_table(table, plan_of(pin.scenario), pin.scenario.prompt_tokens) if pin else {})


def table_of(scenario: Scenario, positions: Sequence[int]) -> Table:
    """Everything the view shows, over the slider's positions."""
    return evaluate_over(scenario, "prompt_tokens", tuple(positions)).table("weighs", weighs.weighs_table)
