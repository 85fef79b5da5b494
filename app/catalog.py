"""The views by the last part of their address, and the charts by name: what pages, files and embeds are made from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from app.live import Board
from app.over import positions_of
from app.state import State
from app.views import critical_length, frame, interconnects, matrices, measured, next_turn, one_request, sensitivity, weighs, wire
from kvmodel.errors import UnknownNameError


class View(NamedTuple):
    """A view without a page around it: pure functions of a state."""

    picture: Callable[[State, Sequence[int]], Board]
    """Its charts and texts at a state, curves over the given positions of the prompt."""
    tables: frame.Tables
    """Everything that moves with one of its sliders, over the slider's positions."""
    sliders: tuple[str, ...]
    """The slider its charts stand at first, then the others."""
    form: Callable[[State], frame.Form] = lambda _: None
    """What of its tables the state itself decides, wherever the sliders go."""

    def at(self, state: State) -> Board:
        """The view at a state."""
        return self.picture(state, positions_of("prompt_tokens", state.value("prompt_tokens")))


VIEWS = {
    "one-request": View(one_request.picture, one_request.tables, frame.PROMPT_SLIDERS, one_request.form_of),
    "critical-length": View(critical_length.picture, critical_length.tables, frame.PROMPT_SLIDERS),
    "next-turn": View(next_turn.picture, next_turn.tables, next_turn.SLIDERS),
    "wire": View(wire.picture, wire.tables, wire.SLIDERS, wire.form_of),
    "weighs": View(weighs.picture, weighs.tables, frame.PROMPT_SLIDERS),
    "interconnects": View(interconnects.picture, interconnects.tables, frame.PROMPT_SLIDERS),
    "sensitivity": View(sensitivity.picture, sensitivity.tables, frame.PROMPT_SLIDERS, sensitivity.form_of),
    "matrices": View(matrices.picture, matrices.tables, frame.PROMPT_SLIDERS),
    "measured": View(measured.picture, measured.tables, frame.PROMPT_SLIDERS),
}
"""Views with charts."""
TITLES = {
    "one-request": "One request",
    "critical-length": "Critical length",
    "next-turn": "Next turn",
    "wire": "On the wire",
    "weighs": "What it weighs",
    "interconnects": "Interconnects",
    "sensitivity": "Sensitivity",
    "matrices": "Matrices",
    "measured": "Measured",
    "method": "Method",
}
"""Views as the navigation names them."""


class Chart(NamedTuple):
    """One chart: where it stands and what it is called."""

    name: str
    view: str
    mount: str
    title: str


CHARTS = {
    chart.name: chart
    for chart in (
        Chart("timeline", "one-request", "timeline_view", "One handoff, drawn to scale"),
        Chart("levers", "one-request", "levers_view", "What would change the first token"),
        Chart("critical", "critical-length", "critical_view", "Time on every link against prompt length"),
        Chart("ratio", "critical-length", "ratio_view", "Wire time over prefill time"),
        Chart("flow", "next-turn", "flow_view", "An agent's next turn, by design"),
        Chart("turn-bars", "next-turn", "bars_view", "First token and KV moved, by design"),
        Chart("where", "wire", "where_view", "Where the time of a handoff goes"),
        Chart("pipelining", "wire", "pipelining_view", "What sending early saves"),
        Chart("congestion", "wire", "congestion_view", "Handoffs that share the links"),
        Chart("growth", "weighs", "growth_view", "Bytes of the cache against prompt length"),
        Chart("layers", "weighs", "layers_view", "The cache, layer by layer"),
        Chart("interconnects", "interconnects", "interconnects_view", "Every link against batch"),
        Chart("tornado", "sensitivity", "tornado_view", "What moves the first token"),
        Chart("matrices", "matrices", "matrices_view", "One layer in prefill and in decode"),
        Chart("roofline", "matrices", "roofline_view", "Both phases under the roofline"),
        Chart("measured", "measured", "measured_view", "Published transfers and the model"),
        Chart("residuals", "measured", "residual_view", "Published transfers over the model"),
    )
}


def find_chart(name: str) -> Chart:
    """A chart by name. Raises UnknownNameError."""
    if name not in CHARTS:
        raise UnknownNameError("chart", name, list(CHARTS))
    return CHARTS[name]
