"""An agent's next turn: what each design moves and how long its first token takes."""

from __future__ import annotations

from app import controls
from app.charts import turn
from app.charts.spec import at
from app.live import Slider, block, live
from app.views import frame
from kvmodel.display import count_text, rate_text
from kvmodel.plan import plan_of

SLIDERS = ("history_tokens", "delta_tokens")
NOTE = (
    "Orange edges are KV, as wide as their bytes; thin grey edges are text. A cold pool is what serving the turn on any worker "
    "costs. Times add up prefill, transfers that nothing hides, and the first decode step."
)


def show() -> None:
    """Draw the view."""
    state, answer, page, heads = frame.with_controls(SLIDERS)
    sliders = []
    for name in reversed(SLIDERS):
        values = controls.slider_values(state, name)
        rows = turn.turn_rows(state, name, values)
        sliders.append(Slider(name, values, values.index(getattr(state.turn, name)), turn.turn_table(rows)))
    plan = plan_of(state.scenario)
    setup = f"; {count_text(state.turn.generated_tokens)} of the history generated on decode; {plan.model.name} in {plan.kv_dtype}, {plan.link.short} at {rate_text(plan.lane.bandwidth)}"  # fmt: skip
    frame.show_answer(answer, state, block("p", at("setup"), setup, class_="kv-setup"), sliders)
    with page.container(key="figure"):
        live("flow_view", [turn.flow_figure()], sliders)
        live(
            "bars_view",
            [turn.bars_figure(), block("p", at("stall"), class_="kv-note"), block("p", NOTE, class_="kv-note")],
            sliders,
            later=True,
        )
    for slider in sliders:
        frame.show_slider_head(heads[slider.key], slider.key, slider.values, slider.at)
