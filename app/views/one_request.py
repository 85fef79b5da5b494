"""One request: what its handoff adds, drawn to scale."""

from __future__ import annotations

from typing import Any

import streamlit as st

from app import controls
from app.charts import levers, request, timeline
from app.charts.spec import Table, at
from app.live import Slider, block, live
from app.over import Over, evaluate_over
from app.views import frame
from kvmodel.records.base import Sourced

BYTES = (
    "Bytes a token: for each layer, KV heads × (key + value elements) × bytes an element; one row of latent and rotary elements "
    "under MLA. Windows hold their last tokens, states a fixed size."
)
PREFILL = (
    "Launch, matrix multiplication, attention, all-reduce, activations and weight sweep, each at datasheet peak times a constant "
    "fitted to published operator tables."
)
WIRE = (
    "Bytes ÷ (bandwidth of a lane × lanes), with what the engine spends on messages and copies, plus the link's latency once. "
    "1 GB is 10⁹ bytes."
)
STEP = "Weights touched and cache read from device memory, plus launch and all-reduce, each times a fitted constant."
LEFT_OUT = "Left out: queueing, routing, the network outside the link. A calculation, not a measurement."


def show() -> None:
    """Draw the view: the chart first, then the answer, then the controls and the rest."""
    here = frame.frame("one-request")
    over = [evaluate_over(here.state.scenario, name, controls.slider_values(here.state, name)) for name in ("prompt_tokens", "batch")]
    main = over[0]
    answers = [o.table("answer", request.answer_table) for o in over]
    with here.figure:
        overlap, chart = st.container(key="overlap_row"), st.container()
    with chart:
        draw_timeline(over, answers)
    setup = block("p", frame.setup_text(here.state.scenario), class_="kv-setup")
    frame.show_answer(here.answer, here.state, setup, sliders_of(over, answers))
    with here.sum:
        live("sum_view", [request.sum_block(main)], sliders_of(over, [o.table("sum", request.sum_table) for o in over]))
    heads = here.draw_inputs()
    with overlap:
        controls.draw_overlap(here.state.scenario)
    for o in over:
        frame.show_slider_head(heads[o.field], o.field, o.values, o.at)
    with here.rest:
        left, right = st.columns(2, gap="large")
    with left:
        bars = [block("h2", "What would change the first token", class_="kv-h2"), levers.levers_figure()]
        live("levers_view", bars, sliders_of(over, [o.table("levers", levers.levers_table) for o in over]), later=True)
    with right:
        live("behind_view", behind(main), sliders_of(over, [o.table("behind", request.behind_table) for o in over]), later=True)


def draw_timeline(over: list[Over], answers: list[Table]) -> None:
    """The request to scale, over both sliders."""
    magnified = timeline.is_small(over[0].rows[over[0].at])
    drawn = [o.table(f"timeline {magnified}", lambda o: timeline.timeline_table(request.moments(o), magnified=magnified)) for o in over]
    live("timeline_view", [timeline.timeline_figure(magnified=magnified)], sliders_of(over, answers, drawn))


def sliders_of(over: list[Over], *tables: list[Table]) -> list[Slider]:
    """The sliders with the tables merged, one list of tables a slider."""
    merged = [{name: column for table in of_slider for name, column in table.items()} for of_slider in zip(*tables, strict=True)]
    return [Slider(o.field, o.values, o.at, table) for o, table in zip(over, merged, strict=True)]


def behind(over: Over) -> list[Any]:
    """What the headline figures are made of, each with its formula and source."""
    plan = over.plan
    rows = [
        row("KV bytes", at("b.kv"), BYTES, plan.model),
        row("Prefill time", at("b.prefill"), PREFILL, plan.prefill.accelerator, at("b.band")),
        row("Wire time", at("b.wire"), WIRE, plan.link),
        row("Decode step", at("b.step"), STEP, plan.decode.accelerator, at("b.step_band")),
        row("Engine", plan.engine.name, plan.engine.notes or "No note.", plan.engine),
    ]
    return [block("h2", "Behind the numbers", class_="kv-h2"), *rows, block("p", LEFT_OUT, class_="kv-note")]


def row(name: str, short: Any, formula: str, source: Sourced, band: Any = None) -> dict[str, Any]:
    """A folded row: the figure in short, then formula, band and source."""
    url = source.source.split()[0].rstrip(",;")
    link = block("a", url, href=url, target="_blank", rel="noopener") if url.startswith("https://") else source.source
    details = [block("p", formula)]
    if band is not None:
        details.append(block("p", "Band: ", band))
    details.append(block("p", "Source: ", link, f", checked {source.checked.isoformat()}"))
    return block("details", block("summary", block("span", name), block("span", short)), *details, class_="kv-row", name="behind")
