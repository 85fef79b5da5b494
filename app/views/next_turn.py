"""An agent's next turn: what each design moves and how long its first token takes."""

from __future__ import annotations

from app import controls
from app.charts import flow, turn, turn_bars
from app.charts.spec import at
from app.live import Slider, block, live
from app.state import State
from app.views import frame
from kvmodel.display import count_text, rate_text
from kvmodel.plan import plan_of

SLIDERS = ("delta_tokens", "history_tokens")
NOTE = (
    "Orange edges are KV, as wide as their bytes; thin grey edges are text. A cold pool is what serving the turn on any worker "
    "costs. Times add up prefill, transfers that nothing hides, and the first decode step."
)


def show() -> None:
    """Draw the view: the pictures first, then the answer and the controls."""
    here = frame.frame("next-turn", ("history_tokens", "delta_tokens"))
    sliders = [slider_over(here.state, name) for name in SLIDERS]
    with here.figure:
        live("flow_view", [flow.flow_figure()], sliders)
        texts = [block("p", at("stall"), class_="kv-note"), block("p", NOTE, class_="kv-note")]
        live("bars_view", [turn_bars.bars_figure(), *texts], sliders, later=True)
    frame.show_answer(here.answer, here.state, block("p", at("setup"), setup_text(here.state), class_="kv-setup"), sliders)
    heads = here.draw_inputs()
    for slider in sliders:
        frame.show_slider_head(heads[slider.key], slider.key, slider.values, slider.at)


def slider_over(state: State, name: str) -> Slider:
    """A slider of the turn with everything the view shows over its positions."""
    values = controls.slider_values(state, name)
    rows = turn.turn_rows(state, name, values)
    table = turn.turn_table(rows) | flow.flow_table(rows) | turn_bars.bars_table(rows)
    return Slider(name, values, values.index(getattr(state.turn, name)), table)


def setup_text(state: State) -> str:
    """The rest of the turn's setup in words."""
    plan = plan_of(state.scenario)
    link = f"{plan.link.short} at {rate_text(plan.lane.bandwidth)}"
    return f"; {count_text(state.turn.generated_tokens)} of the history generated on decode; {plan.model.name} in {plan.kv_dtype}, {link}"
