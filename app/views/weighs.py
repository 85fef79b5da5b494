"""What a handoff weighs: the model's cache by token, layer and rank, and a configuration of your own."""

from __future__ import annotations

from app import controls, own_config
from app.charts import weighs
from app.charts.spec import Table
from app.live import Board, block
from app.over import evaluate_over
from app.views import frame

NOTE = "GB are 10⁹ bytes. Bytes are exact in tokens, one copy, before any engine rounds to blocks."


def show() -> None:
    """Draw the view: the curve first, then the answer, the controls and the rest."""
    own_config.take()
    here = frame.frame("weighs")
    scenario = here.state.scenario
    over = evaluate_over(scenario, "prompt_tokens", controls.slider_values(here.state, "prompt_tokens"))
    table: Table = over.table("weighs", weighs.weighs_table)
    now, board = {name: column[over.at] for name, column in table.items()}, Board("prompt_tokens", scenario.prompt_tokens)
    with here.figure:
        board.view("growth_view", [weighs.growth_figure(table)], now, columns=table)
        layers = [block("h2", "Layer by layer", class_="kv-h2"), weighs.layers_figure(over.plan), weighs.groups_block(over.plan)]
        board.view("layers_view", layers, now, later=True)
    frame.show_answer(board, here, block("p", frame.setup_text(scenario), class_="kv-setup"), now)
    with here.rest:
        ranks = [
            block("h2", "Who holds and sends which heads", class_="kv-h2"),
            weighs.ranks_block(over.plan),
            block("p", NOTE, class_="kv-note"),
        ]
        board.view("ranks_view", ranks, now)
        own_config.draw()
    frame.show_prompt_inputs(board, here, table)
