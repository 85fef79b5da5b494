"""What most readers see first, made before they come: a first visit would else make each position of a slider while others wait."""

from __future__ import annotations

from app.over import positions_of
from app.state import from_link
from app.views import frame, one_request


def prepare() -> None:
    """Make the front view of the default scenario, its charts and tables, wherever one of its sliders stands."""
    start = from_link({})
    values = {name: positions_of(name, start.value(name)) for name in frame.PROMPT_SLIDERS}
    for name, positions in values.items():
        for position in positions:
            state = start.moved(name, position)
            drawn = frame.pictured(one_request.picture, state)
            frame.heads_and_tables(drawn, state, one_request.tables, one_request.form_of(state), values, dict.fromkeys(values))
            frame.infeasible("one-request", state.scenario)
