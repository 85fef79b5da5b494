"""What every view shares: the answer above, notices, controls, and the link in the address bar."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import streamlit as st

from app import controls, own_models, reading
from app.answers import SUPPOSED
from app.charts.pinned import pin_blocks, pin_table
from app.charts.spec import Table, at
from app.live import Board, PackedTable, Picture, Slider, block, first, static_block
from app.state import TURN_FIELDS, URL_KEYS, State, from_link
from app.typed import NOTE, Typed, typed_into
from app.views import explain, heads, hint, offers, onward, presets
from app.views.arrivals import arrived
from app.views.pin import acted
from app.views.pin import draw as draw_pin
from app.words import explained_words
from kvmodel import registry
from kvmodel.context import context_words
from kvmodel.display import count_text, rate_text, share_text
from kvmodel.evaluate import evaluate, remedies
from kvmodel.idle import idle_notes
from kvmodel.lanes import lanes_notes
from kvmodel.plan import plan_of
from kvmodel.records.model import ModelSpec
from kvmodel.results import Remedy
from kvmodel.scenario import Scenario
from kvmodel.verdict import reached_share

PROMPT_SLIDERS = ("prompt_tokens", "batch")
Form = Hashable
"""What a view's tables take from where the scenario itself stands, such as the order of its rows."""
Tables = Callable[[State, str, tuple[int, ...], Form], Table]
"""Everything a view shows, over a slider's positions; without a form, that of the state itself."""
PLACES = (
    "answer", "start", "actions", "pinned", "notices", "hint", "controls", "more", "refused", "sum", "figure", "onward", "explain", "rest",
)  # fmt: skip
"""Places of a view, top to bottom."""
VIEW_NOTES = "view_notes"
"""Session key: what is to be said of the address besides its scenario."""
SAYS_ITSELF = ("one-request",)
"""Views whose sentence says that a scenario is infeasible."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A view's places, top to bottom, and the state its controls say."""

    state: State
    sliders: Sequence[str]
    answer: Any
    start: Any
    actions: Any
    pinned: Any
    notices: Any
    hint: Any
    controls: Any
    more: Any
    refused: Any
    sum: Any
    figure: Any
    onward: Any
    explain: Any
    rest: Any

    def infeasible(self) -> list[Any]:
        """Why the scenario is infeasible, and what would make each side fit; the reason where no sentence of the view's says it."""
        return infeasible(st.session_state["view"], self.state.whole() if "delta_tokens" in self.sliders else self.state.scenario)

    def draw_inputs(self) -> dict[str, Any]:
        """Draw notices, controls, and what of them was refused; returns the places of the sliders' heads. Called after the chart."""
        hint.draw(self.hint, self.state)
        kept = [*st.session_state.get(VIEW_NOTES, ()), *st.session_state["link_notes"]]
        typed = [st.session_state.pop(NOTE)] if NOTE in st.session_state else []
        idle = idle_notes(plan_of(self.state.scenario), self.state.scenario)
        show_notices(self.notices, kept)
        with self.controls:
            heads = controls.draw_controls(self.state, self.sliders)
        with self.more:
            controls.draw_more(self.state, st.session_state["view"])
        # What comes of a control is said below them, so that none moves from under the reader's hand.
        refused = [*typed, *(note for note in self.state.notes if note not in kept)]
        show_notices(self.refused, [*refused, *idle, *self.infeasible()], "refused_view")
        return heads


@lru_cache(maxsize=256)
def infeasible(view: str, scenario: Scenario) -> list[Any]:
    """Why a scenario is infeasible, as a view says it, and what would make each side fit."""
    if view == "weighs":
        refusal = plan_of(scenario).refusal
        return [f"Engines refuse this layout: {refusal}."] if refusal else []
    reason = evaluate(scenario).reason
    if not reason:
        return []
    why = "" if view in SAYS_ITSELF else f"{_upper(reason)}. "
    return [block("div", block("p", f"{why}{SUPPOSED}"), *ways_blocks(remedies(scenario)), class_="kv-notice", role="alert")]


def frame(view: str, sliders: Sequence[str] = ("batch", "prompt_tokens")) -> Frame:
    """The places of a view, and the state: from the link on the first run, then as the controls say."""
    session = st.session_state
    if "state" not in session:
        session["state"] = from_link(dict(st.query_params))
        session["link_notes"] = session["state"].notes
    session[reading.ARRIVED] = arrived(session, dict(st.query_params)) or session.get("view") != view
    session["view"] = view
    last: State = session["state"]
    state = acted(reading.read(last.bare(), session, sliders), session)
    if session[reading.ARRIVED]:
        state = reading.read(state, session, sliders)
    if state.query() != last.query():
        session["link_notes"] = []
    session["state"] = state
    page = st.container(key="page")
    return Frame(state, sliders, *(page.container(key=name) for name in PLACES))


def show_notices(place: Any, notes: Sequence[Any], key: str = "notices_view") -> None:
    """One box a note: a text, or a block of its own."""
    if notes:
        with place:
            static_block(key, *notice_blocks(notes))


def notice_blocks(notes: Sequence[Any]) -> list[Any]:
    """The boxes of notices, each text once."""
    texts = dict.fromkeys(note for note in notes if isinstance(note, str))
    boxes = [block("p", note, class_="kv-notice", role="alert") for note in texts]
    return [*boxes, *(note for note in notes if not isinstance(note, str))]


def ways_blocks(ways: Sequence[Remedy]) -> list[Any]:
    """What would make each side fit, a folded list for each side."""
    found: list[Any] = []
    for side in dict.fromkeys(way.side for way in ways):
        items = [block("li", block("b", _upper(way.use)), f": {way.cost}") for way in ways if way.side == side]
        title = block("summary", f"What would make {side} fit", f": {ways_text(len(items))}")
        found.append(block("details", title, block("ul", *items)))
    return found


def ways_text(count: int) -> str:
    """How many ways there are."""
    return "one way" if count == 1 else f"{count} ways, each alone"


def _upper(text: str) -> str:
    return text[0].upper() + text[1:]


def context_table(state: State, name: str, values: Sequence[int]) -> Table:
    """What the setup adds where a prompt is beyond the model's context, over a slider's positions."""
    model, scenario, turn = plan_of(state.scenario).model, state.scenario, state.turn
    fixed = {"history_tokens": turn.delta_tokens, "delta_tokens": turn.history_tokens, "prompt_tokens": 0}
    prompts = [value + fixed[name] for value in values] if name in fixed else [scenario.prompt_tokens] * len(values)
    notes = [context_words(model, prompt) for prompt in prompts]
    return {"context": notes}


def board_of(state: State, sliders: Sequence[str]) -> Board:
    """An empty board at the state; the views stand at the first of its sliders."""
    return Board(sliders[0], state.value(sliders[0]), {name: state.table_id(name) for name in sliders})


def describe_answer(
    board: Board, state: State, setup: Any, now: Mapping[str, Any], *, beside: Sequence[Any] = (), second: Sequence[Any] = ()
) -> None:
    """The answer as the page's heading, a `second` line of it, the scenario in words below, and the link in the address bar."""
    heading = block("div", block("h1", block("span", parts=at("answer")), class_="kv-answer"))
    said = [part for child in setup["children"] for part in (explained_words(child, "lane") if isinstance(child, str) else [child])]
    beyond = [block("span", at("context"), class_="kv-beyond"), *offers.model_offer(state, board.slider)]
    engine = block("span", ", ", *engine_words(state.scenario))
    away = [_apart(engine), *beyond, *(_apart(offer) for offer in (*beside, *offers.engine_offer(state)))]
    # On a phone the scenario is a line to push sideways, and what stands a click away is below it.
    line = block("span", *said, class_="kv-said-line", role="group", aria_label="Scenario", tabindex="0")
    described = {**setup, "children": [line, block("span", *away, class_="kv-away")]}
    values = {**now, **first(context_table(state, board.slider, (state.value(board.slider),)))}
    board.view("answer_view", [heading, *second, described], values, say=now["answer.text"], url=link_data(state))
    if state.pin is not None:
        told = first(pin_table(state, board.slider, (board.value,)))
        board.view("pinned_view", pin_blocks(state, turn=board.slider in TURN_FIELDS), told)


def _apart(offer: dict[str, Any]) -> dict[str, Any]:
    """An offer whose first sign, which parts it from what is before it, can be left out."""
    sign, *rest = offer["children"]
    return {**offer, "children": [block("span", sign, class_="kv-apart"), *rest]}


@lru_cache(maxsize=256)
def pictured(picture: Callable[[State, Sequence[int]], Board], state: State, positions: tuple[int, ...] = ()) -> Picture:
    """A view's charts and texts at a state, without its notes: described once for all readers of the same."""
    return picture(state, positions).done()


def show_inputs(drawn: Picture, here: Frame, tables: Tables, form: Form = None) -> None:
    """The controls, then the table over each slider's positions: `tables` makes it from state, name and positions.

    What in a view's tables follows from where the sliders stand is said by `form`; the rest is shared by all
    who differ in the slider alone.
    """
    presets.draw(here.start)
    draw_pin(here.actions, here.pinned, drawn, here.state)
    places, state = here.draw_inputs(), here.state
    values = {name: controls.slider_values(state, name) for name in here.sliders}
    typed = {name: typed_into(st.session_state, name) for name in here.sliders}
    tops, packed = heads_and_tables(drawn, state, tables, form, values, typed)
    for name, top in tops.items():
        with places[name]:
            top.mount(heads.head_key(name))
    drawn.mount_tables(packed, asked(here))
    onward.draw(here.onward, state, st.session_state["view"])
    with here.explain:
        explain.draw()


def heads_and_tables(
    drawn: Picture, state: State, tables: Tables, form: Form, values: Mapping[str, tuple[int, ...]], typed: Mapping[str, Typed]
) -> tuple[dict[str, Picture], dict[str, PackedTable]]:
    """The head of each slider, and the table over its positions."""
    tops = {name: heads.slider_head(name, of, state.value(name), drawn.tables[name], typed[name]) for name, of in values.items()}
    names = drawn.names.union(*(top.names for top in tops.values()))
    packed = {name: packed_table(tables, state.moved(name, of[-1]), name, of, form, names, typed[name]) for name, of in values.items()}
    return tops, packed


@lru_cache(maxsize=512)
def packed_table(
    tables: Tables, state: State, name: str, values: tuple[int, ...], form: Form, names: frozenset[str], typed: Typed
) -> PackedTable:
    """The table over a slider's positions as the browser gets it: the view's, the pin's and the slider's own."""
    around = pin_table(state, name, values) | heads.head_table(name, values, typed) | context_table(state, name, values)
    return Slider(name, values, tables(state, name, values, form) | around).packed(names)


def asked(here: Frame) -> dict[str, Any]:
    """How the browser asks for explanations, and ahead for another choice: not ahead for a model that only this session knows."""
    view, state = st.session_state["view"], here.state
    found = {"view": view, "query": state.query(), "at": {name: str(state.value(name)) for name in here.sliders}}
    if isinstance(state.scenario.model, ModelSpec):
        found["own"] = own_models.keep(state.scenario.model)
    if state.is_own() or (state.pin is not None and state.pin.is_own()):
        return {**found, "names": []}
    filters = (name for name in reading.FILTERS.get(view, ()) if controls.options_of(name))
    return {**found, "names": [*reading.IN_SIGHT, "overlap", *filters]}


def link_data(state: State) -> dict[str, Any]:
    """What the address bar should hold."""
    return {"query": state.query(), "keys": list(URL_KEYS)}


def setup_block(scenario: Scenario) -> dict[str, Any]:
    """The scenario in words, but for the engine. A phone leaves out what the controls below say."""
    plan = plan_of(scenario)
    sides = [f"{side.rank_count} × {side.accelerator.name}" for side in (plan.prefill, plan.decode)]
    where = f"{sides[0]} each side" if sides[0] == sides[1] else f"{sides[0]} to {sides[1]}"
    apart = f"timed by the last; decode batch {count_text(scenario.decode_batch)}"
    batch = "" if scenario.batch == 1 else f", {count_text(scenario.batch)} requests prefilled at once, {apart}"
    note = "".join(f" ({note.removesuffix('.')})" for note in lanes_notes(plan))
    what = block("span", f"{plan.model.name}, {kv_text(scenario)}, ", class_="kv-wide")
    return block("p", f"{_upper(link_text(scenario))}, ", what, f"{where}{batch}{note}", class_="kv-setup")


def kv_text(scenario: Scenario) -> str:
    """The format of the cache in words, and that of the wire where it is another."""
    kept, sent = plan_of(scenario).kv_dtype, scenario.wire_dtype
    return f"KV in {kept}" if sent in ("same", kept) else f"KV in {kept}, {sent} on the wire"


def engine_words(scenario: Scenario) -> list[Any]:
    """The engine; of the ideal one, where real ones reach less than half of the bandwidth, how much they do."""
    name, reached = registry.engines()[scenario.engine].name, reached_share(scenario)
    if scenario.engine != "ideal":
        return [name]
    far = [block("span", ", of which ", block("b", f"engines reach at most {share_text(reached)}"), class_="kv-beside")] if reached else []
    latent = any(group.attention.kind == "mla" for group in plan_of(scenario).model.groups) and plan_of(scenario).decode.attention_ranks > 1
    return [f"{name} engine: bandwidth alone{', the latent sent once' if latent else ''}", *far]


def link_text(scenario: Scenario) -> str:
    """The link in words: lanes, name, bandwidth of a lane as the scenario has it."""
    plan = plan_of(scenario)
    bandwidth = plan.lane.bandwidth if scenario.link_gbytes_per_s is None else scenario.link_gbytes_per_s * 1e9
    count = "one" if plan.lanes == 1 else count_text(plan.lanes)
    some = count if plan.lanes >= plan.offered_lanes else f"{count} of {count_text(plan.offered_lanes)}"
    lanes = f"{some} lane{'s' * (max(plan.lanes, plan.offered_lanes) > 1)}"
    return f"{lanes} of {plan.link.short} at {rate_text(bandwidth / scenario.shared_by)}"
