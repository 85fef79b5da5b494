"""What every view shares: the answer above, notices, controls, and the link in the address bar."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from app import controls, reading
from app.charts.scale import TOKEN_TICKS
from app.charts.spec import Table, at
from app.live import Board, Slider, block, static_block
from app.over import COUNTED
from app.state import URL_KEYS, State, from_link
from app.views import explain
from kvmodel.display import count_text, rate_text, tick_text
from kvmodel.evaluate import evaluate
from kvmodel.plan import plan_of
from kvmodel.scenario import Scenario

PROMPT_SLIDERS = ("prompt_tokens", "batch")
SAYS_ITSELF = ("one-request",)
"""Views whose sentence says that a scenario is infeasible."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A view's places, top to bottom, and the state its controls say."""

    state: State
    sliders: Sequence[str]
    answer: Any
    notices: Any
    controls: Any
    more: Any
    sum: Any
    figure: Any
    explain: Any
    rest: Any

    def infeasible(self) -> list[str]:
        """Why the scenario is infeasible, for views whose own sentence does not say it."""
        view = st.session_state["view"]
        if view == "weighs":
            refusal = plan_of(self.state.scenario).refusal
            return [f"Engines refuse this layout: {refusal}."] if refusal else []
        reason = "" if view in SAYS_ITSELF else evaluate(self.state.scenario).reason
        return [f"{reason}. Times are computed all the same."] if reason else []

    def draw_inputs(self) -> dict[str, Any]:
        """Draw notices and controls; returns the places of the sliders' heads. Called after the chart, so that it comes first."""
        show_hint(self.notices, self.state)
        show_notices(self.notices, [*st.session_state["link_notes"], *self.state.notes, *self.infeasible()])
        with self.controls:
            heads = controls.draw_controls(self.state, self.sliders)
        with self.more:
            controls.draw_more(self.state, st.session_state["view"])
        return heads


def frame(view: str, sliders: Sequence[str] = ("batch", "prompt_tokens")) -> Frame:
    """The places of a view, and the state: from the link on the first run, then as the controls say."""
    session = st.session_state
    if "state" not in session:
        session["state"] = from_link(dict(st.query_params))
        session["link_notes"] = session["state"].notes
    session[reading.ARRIVED] = session.get("view") != view
    session["view"] = view
    last: State = session["state"]
    state = reading.read(last.bare(), session, sliders)
    if state.query() != last.query():
        session["link_notes"] = []
    session["state"] = state
    page = st.container(key="page")
    names = ("answer", "notices", "controls", "more", "sum", "figure", "explain", "rest")
    return Frame(state, sliders, *(page.container(key=name) for name in names))


HINT = (
    ("Drag Prompt tokens", ": every chart and sentence follows your thumb."),
    ("Blue", " is prefill, orange the bytes on the wire, hatched what decode has to wait for, green decode."),
    ("A dotted number", " opens its formula, the values put in with their sources, and what would halve it."),
)
"""How to read the page, for those who come for the first time."""


def show_hint(place: Any, state: State) -> None:
    """How to read this: on a first visit without a scenario of one's own, until it is put away."""
    session = st.session_state
    session.setdefault("hint", not state.query() and not st.context.is_embedded)
    if not session["hint"] or session["view"] != "one-request":
        return
    with place:
        lines = [block("p", block("b", head), rest) for head, rest in HINT]
        left, right = st.columns([7, 1], vertical_alignment="center")
    with left:
        static_block("hint_view", block("div", *lines, class_="kv-hint", role="note", aria_label="How to read this"))
    right.button("Got it", key="got_it", on_click=lambda: session.update(hint=False))


def show_notices(place: Any, notes: Sequence[str]) -> None:
    """One box a note."""
    if notes:
        with place:
            blocks = [block("p", note, class_="kv-notice", role="alert") for note in dict.fromkeys(notes)]
            static_block("notices_view", *blocks)


def board_of(state: State, sliders: Sequence[str]) -> Board:
    """An empty board at the state; the views stand at the first of its sliders."""
    return Board(sliders[0], state.value(sliders[0]), {name: state.table_id(name) for name in sliders})


def describe_answer(board: Board, state: State, setup: Any, now: Mapping[str, Any]) -> None:
    """The answer as the page's heading, the scenario in words below it, and the link in the address bar."""
    heading = block("h1", block("span", parts=at("answer")), class_="kv-answer")
    board.view("answer_view", [heading, setup], now, say=now["answer.text"], url=link_data(state))


def head_table(name: str, values: Sequence[int]) -> Table:
    """Texts of a slider's head."""
    return {f"head.{name}": [count_text(v) for v in values]}


def show_slider_head(board: Board, place: Any, name: str, values: Sequence[int], value: int) -> None:
    """Label, live value and ticks of a slider."""
    counted = name in COUNTED
    ticks = [v for v in ((1, 8, 64, 256, 1024) if counted else TOKEN_TICKS) if v in values]
    marks = [
        block("span", str(v) if counted else tick_text(v), style=f"left:{100 * values.index(v) / (len(values) - 1):.2f}%") for v in ticks
    ]
    head = block("div", block("span", controls.label_of(name)), block("b", at(f"head.{name}")), class_="kv-slider-head")
    scale = block("div", *marks, class_="kv-slider-ticks", aria_hidden="true")
    key = f"head_view_{name}"
    board.view(key, [head, scale], {f"head.{name}": count_text(value)})
    with place:
        board.mount(key)


def show_inputs(board: Board, here: Frame, table_of: Callable[[str, tuple[int, ...]], Table]) -> None:
    """The controls, then the table over each slider's positions: `table_of` makes it from name and positions."""
    heads, sliders = here.draw_inputs(), []
    for name in here.sliders:
        values = controls.slider_values(here.state, name)
        show_slider_head(board, heads[name], name, values, here.state.value(name))
        sliders.append(Slider(name, values, table_of(name, values) | head_table(name, values)))
    board.mount_tables(sliders, asked(here))
    with here.explain:
        explain.draw(here.state, st.session_state["view"], st.context.url or "")


def asked(here: Frame) -> dict[str, Any]:
    """How the browser asks ahead for another choice: not for a model that only this session knows."""
    if here.state.is_own():
        return {}
    view: str = st.session_state["view"]
    return {
        "view": view,
        "query": here.state.query(),
        "names": [*reading.IN_SIGHT, "overlap", *(name for name in reading.FILTERS.get(view, ()) if controls.options_of(name))],
    }


def link_data(state: State) -> dict[str, Any]:
    """What the address bar should hold."""
    return {"query": state.query(), "keys": list(URL_KEYS)}


def setup_text(scenario: Scenario) -> str:
    """The scenario in words."""
    plan = plan_of(scenario)
    sides = [f"{side.rank_count} × {side.accelerator.name}" for side in (plan.prefill, plan.decode)]
    where = f"{sides[0]} each side" if sides[0] == sides[1] else f"{sides[0]} to {sides[1]}"
    batch = "" if scenario.batch == 1 else f", {count_text(scenario.batch)} requests at once"
    engine = f"{plan.engine.name} engine" if plan.engine.id == "ideal" else plan.engine.name
    return f"{plan.model.name}, KV in {plan.kv_dtype}, {where}, {link_text(scenario)}{batch}, {engine}"


def link_text(scenario: Scenario) -> str:
    """The link in words: lanes, name, bandwidth of a lane as the scenario has it."""
    plan = plan_of(scenario)
    bandwidth = plan.lane.bandwidth if scenario.link_gbytes_per_s is None else scenario.link_gbytes_per_s * 1e9
    lanes = "one lane" if plan.lanes == 1 else f"{plan.lanes} lanes"
    return f"{lanes} of {plan.link.short} at {rate_text(bandwidth / scenario.shared_by)}"
