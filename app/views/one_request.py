"""One request: what its handoff adds, drawn to scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import streamlit as st

from app import controls
from app.charts import ghost, levers, request, timeline
from app.charts.pinned import applies_text, pin_table
from app.charts.pins import bars
from app.charts.spec import Table, at
from app.live import Board, block, first
from app.over import Over, evaluate_over
from app.state import State
from app.views import frame, offers
from app.views.frame import Form
from kvmodel import registry
from kvmodel.records.base import Sourced
from kvmodel.scenario import Scenario

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
MEMORY = (
    ". On each GPU: its share of the weights, the cache of the requests it holds (decode: with all their output), and the workspace "
    "of a pass, which is the residual, ends and inside of the widest layer for each token, or the logits for each request, whichever "
    "is more. A larger batch takes more passes in the same workspace, each of a bounded number of tokens. Usable is 90\u202f% of the "
    "memory a program finds."
)
LEFT_OUT = "Left out: queueing, routing, the network outside the link. A calculation, not a measurement."


class Drawn(NamedTuple):
    """What of the view the scenario itself decides, wherever its sliders go."""

    magnified: bool
    """Whether the exposed part is so small that it is magnified."""
    order: tuple[str, ...]
    """What would change the first token, by name, the most first."""


def show() -> None:
    """Draw the view at the scenario itself, the chart first; then send the tables to drag by."""
    here = frame.frame("one-request")
    scenario, board = here.state.scenario, frame.pictured(picture, here.state.bare())
    with here.figure:
        overlap, chart = st.container(key="overlap_row"), st.container()
    with chart:
        board.mount("timeline_view")
    with here.answer:
        board.mount("answer_view")
    with here.sum:
        board.mount("sum_view")
    with here.rest:
        left, right = st.columns(2, gap="large")
    with left:
        board.mount("levers_view")
    with right:
        board.mount("behind_view")
    with overlap:
        controls.draw_overlap(scenario)
    frame.show_inputs(board, here, tables, form_of(here.state))


def picture(state: State, _: Sequence[int] = ()) -> Board:
    """The view's charts and texts, at the state itself."""
    one, board = _alone(state.scenario), frame.board_of(state, frame.PROMPT_SLIDERS)
    now = first(tables(state, one.field, one.values) | pin_table(state, one.field, one.values))
    drawn = timeline.timeline_figure(magnified=timeline.is_small(one.rows[0]), both=one.plan.overlap == "layer-both")
    board.view("timeline_view", [ghost.with_timeline_pin(drawn) if state.pin else drawn], now)
    frame.describe_answer(
        board,
        state,
        frame.setup_block(state.scenario),
        now,
        beside=offers.other_offer(state),
    )
    board.view("sum_view", [*offers.format_blocks(state), request.sum_block(one, pinned=state.pin is not None)], now)
    found = levers.ranked(one.scenario)
    addresses, told = [] if state.is_own() else [f"?{state.applied(**one.changes).query()}" for one in found], applies_text(state)
    changes, names = levers.levers_figure(addresses), tuple(lever.name for lever in found)
    hollow = [block("p", bars.LEVERS, class_="kv-note")] if state.pin else []
    if state.pin:
        changes = bars.with_levers_pin(changes, state.scenario, state.pin.scenario, names)
    applied = [levers.applied_block(found, addresses, told)] if addresses else []
    board.view(
        "levers_view", [block("h2", "What would change the first token", class_="kv-h2"), changes, *hollow, *applied], now, later=True
    )
    board.view("behind_view", behind(one), now, later=True)
    return board


def form_of(state: State) -> Drawn:
    """What the scenario itself decides: whether the exposed part is magnified, and the order of what would change."""
    order = tuple(lever.name for lever in levers.ranked(state.scenario))
    return Drawn(timeline.is_small(_alone(state.scenario).rows[0]), order)


def tables(state: State, name: str, values: tuple[int, ...], form: Form = None) -> Table:
    """Everything that moves with a slider, over its positions."""
    over, drawn = evaluate_over(state.scenario, name, values), form if isinstance(form, Drawn) else form_of(state)
    if state.pin is None:
        return tables_of(over, drawn)
    (theirs,) = _moments(_alone(state.pin.scenario))
    pinned = ghost.timeline_pin_table(theirs, _moments(over, theirs))
    table = tables_of(over, drawn, theirs)
    return table | pinned | bars.levers_pin_table(table, state.scenario, state.pin.scenario, drawn.order)


def _moments(over: Over, pinned: timeline.Moment | None = None) -> list[timeline.Moment]:
    own: list[timeline.Moment] = over.table("moments", lambda o: {"moments": request.moments(o)})["moments"]
    return own if pinned is None else [ghost.beside(one, pinned) for one in own]


def _alone(scenario: Scenario) -> Over:
    return evaluate_over(scenario, "prompt_tokens", (scenario.prompt_tokens,))


def tables_of(over: Over, drawn: Drawn, pinned: timeline.Moment | None = None) -> Table:
    """Everything the view shows, over a slider's positions; the timeline has room for a pinned one."""
    shown, reach = _moments(over, pinned), pinned.reach if pinned else 0.0
    return {
        **over.table("answer", request.answer_table),
        **over.table("other engine", offers.other_table),
        **over.table("other format", offers.format_table),
        **over.table("sum", request.sum_table),
        **over.table("behind", request.behind_table),
        **over.table(f"levers {drawn.order}", lambda o: levers.levers_table(o, drawn.order)),
        **over.table(f"timeline {drawn.magnified} {reach}", lambda _: timeline.timeline_table(shown, magnified=drawn.magnified)),
    }


def behind(over: Over) -> list[Any]:
    """What the headline figures are made of, each with its formula and source."""
    plan = over.plan
    rows = [
        row("KV bytes", at("b.kv"), BYTES, plan.model, figure="kv.prompt_bytes"),
        row("Prefill time", at("b.prefill"), PREFILL, plan.prefill.accelerator, at("b.band"), figure="prefill.seconds"),
        row("Wire time", at("b.wire"), WIRE, plan.link, figure="transfer.seconds"),
        row("Decode step", at("b.step"), STEP, plan.decode.accelerator, at("b.step_band"), figure="decode.step_seconds"),
        *(
            row(f"{name.title()} memory", at(f"b.{name}_memory"), (at(f"b.{name}_parts"), MEMORY), gpu, page=gpu.hbm_visible_source)
            for name, gpu in (("prefill", plan.prefill.accelerator), ("decode", plan.decode.accelerator))
        ),
        row("Engine", plan.engine.name, plan.engine.notes or "No note.", plan.engine),
    ]
    narrow = registry.lossy_format(over.scenario.kv_dtype, over.scenario.wire_dtype)
    if narrow is not None:
        rows.append(row("Accuracy", f"{narrow.name} is lossy", narrow.accuracy, narrow))
    return [block("h2", "Behind the numbers", class_="kv-h2"), *rows, block("p", LEFT_OUT, class_="kv-note")]


def row(name: str, short: Any, formula: Any, source: Sourced, band: Any = None, *, page: str = "", figure: str = "") -> dict[str, Any]:
    """A folded row: the figure in short, then formula, band and source, which is the record's own unless a `page` is named.

    One of a `figure` that can be explained gets its explanation when it is unfolded, in place of what is said in brief.
    """
    text = page or source.source
    url = text.split()[0].rstrip(",;")
    link = block("a", url, href=url, target="_blank", rel="noopener") if url.startswith("https://") else text
    brief = {"class_": "kv-brief"} if figure else {}
    details = [block("p", *(formula if isinstance(formula, tuple) else (formula,)), **brief)]
    if band is not None:
        details.append(block("p", "Band: ", band))
    details.append(block("p", "Source: ", link, f", checked {source.checked.isoformat()}", **brief))
    asked = {"data_explains": figure} if figure else {}
    return block("details", block("summary", block("span", name), block("span", short)), *details, class_="kv-row", name="behind", **asked)
