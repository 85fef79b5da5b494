"""One request: what its handoff adds, drawn to scale."""

from __future__ import annotations

from typing import Any

import streamlit as st

from app import controls
from app.charts import levers, request, timeline
from app.charts.spec import Table, at
from app.live import Slider, block, live
from app.over import Over, evaluate_over
from app.state import State
from app.views import frame
from kvmodel.parts import MAX_DRAWN
from kvmodel.plan import plan_of
from kvmodel.records.base import Sourced

OVERLAPS = ("serial", "chunk", "layer", "layer-both")


def show() -> None:
    """Draw the view."""
    state, answer, page, heads = frame.with_controls()
    sum_place, figure_place = page.container(key="sum"), page.container(key="figure")
    with figure_place:
        state = overlap_control(state)
    over = {name: evaluate_over(state.scenario, name, controls.slider_values(state, name)) for name in ("prompt_tokens", "batch")}
    main = over["prompt_tokens"]
    drawn = {name: request.moments(o) for name, o in over.items()}
    magnified = timeline.is_small(main.rows[main.at])
    tables = {name: table_of(o, drawn[name], magnified) for name, o in over.items()}
    sliders = [Slider(name, o.values, o.at, tables[name]) for name, o in over.items()]
    with answer:
        head = [block("h1", block("span", parts=at("answer")), class_="kv-answer"), block("p", frame.setup_text(state.scenario), class_="kv-setup")]
        live("answer_view", head, sliders, say=tables["prompt_tokens"]["answer.text"][main.at], url=frame.link_data(state))
    with sum_place:
        live("sum_view", [request.sum_block(main)], sliders)
    cells = min(MAX_DRAWN, max(len(m.parts.compute_end) for o in drawn.values() for m in o))
    with figure_place:
        live("timeline_view", [timeline.timeline_figure(parts=cells, magnified=magnified)], sliders)
    with page.container(key="rest"):
        left, right = st.columns(2, gap="large")
        with left:
            live("levers_view", [block("h2", "What would change the first token", class_="kv-h2"), levers.levers_figure()], sliders)
        with right:
            live("behind_view", behind(main), sliders)
    for name in ("batch", "prompt_tokens"):
        frame.show_slider_head(heads[name], name, over[name].values, over[name].at)


def table_of(over: Over, drawn: list[timeline.Moment], magnified: bool) -> Table:
    """Everything the view shows, over a slider's positions."""
    return {
        **request.answer_table(over),
        **request.sum_table(over),
        **request.behind_table(over),
        **timeline.timeline_table(drawn, magnified=magnified),
        **levers.levers_table(over),
    }


def overlap_control(state: State) -> State:
    """What may cross while prefill computes: stands at the head of the picture it changes."""
    scenario = state.scenario
    engine = plan_of(scenario).engine
    now = scenario.overlap or engine.overlap
    if "overlap" not in st.session_state:
        st.session_state["overlap"] = now
    options = [o for o in OVERLAPS if o != "layer-both" or engine.first_token == "decode"]
    with st.container(key="overlap_row"):
        chosen = st.segmented_control(controls.label_of("overlap"), options, key="overlap", required=True, help=controls.help_of("overlap"))
    changed = scenario.with_changes(overlap=None if chosen == engine.overlap else chosen)
    new = State(changed, state.turn, state.notes)
    st.session_state["state"] = new
    return new


def behind(over: Over) -> list[Any]:
    """What the headline figures are made of, each with its formula and source."""
    plan = over.plan
    rows = [
        row("KV bytes", at("b.kv"), "Bytes a token: for each layer, KV heads × (key + value elements) × bytes an element; one row of latent and rotary elements under MLA; windows hold their last tokens, states a fixed size.", plan.model),
        row("Prefill time", at("b.prefill"), "Launch, matrix multiplication, attention, all-reduce, activations and weight sweep, each at datasheet peak times a constant fitted to measured operator tables.", plan.prefill.accelerator, at("b.band")),
        row("Wire time", at("b.wire"), "Bytes ÷ (bandwidth of a lane × lanes), plus what the engine spends on messages and copies, plus the link's latency once.", plan.link),
        row("Decode step", at("b.step"), "Weights touched and cache read from device memory, plus launch and all-reduce, each with a fitted constant.", plan.decode.accelerator, at("b.step_band")),
        row("Engine", plan.engine.name, plan.engine.notes or "No note.", plan.engine),
    ]  # fmt: skip
    note = "Left out: queueing, routing, the network outside the link. A calculation, not a measurement."
    return [block("h2", "Behind the numbers", class_="kv-h2"), *rows, block("p", note, class_="kv-note")]


def row(name: str, short: Any, formula: str, source: Sourced, band: Any = None) -> dict[str, Any]:
    """A folded row: the figure in short, then formula, band and source."""
    url = source.source.split()[0].rstrip(",;")
    link = block("a", url, href=url, target="_blank", rel="noopener") if url.startswith("https://") else source.source
    details = [block("p", formula)]
    if band is not None:
        details.append(block("p", "Band: ", band))
    details.append(block("p", "Source: ", link, f", checked {source.checked.isoformat()}"))
    return block("details", block("summary", block("span", name), block("span", short)), *details, class_="kv-row", name="behind")
