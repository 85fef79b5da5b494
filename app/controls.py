"""The controls, each made from a field of its record: label, help, options, bounds and default come from there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Literal, get_args, get_origin

import streamlit as st

from app import typed
from app.charts.layer_tables import kind_name
from app.charts.matrices import group_of, kinds_of
from app.charts.measured import ALL, YOURS, engines_measured, links_measured
from app.live import block, still_block
from app.over import nearest, positions_of
from app.overlap_words import overlap_line
from app.reading import ARRIVED, KNOBS, MORE, MORE_BESIDE, has_mla, overlaps, text_key
from app.state import State, record_of
from kvmodel import registry
from kvmodel.changes import unset_text
from kvmodel.display import count_text
from kvmodel.dtypes import PACKED_MLA_ROW_BYTES
from kvmodel.plan import plan_of
from kvmodel.scenario import Scenario, allowed_values

TP_DEGREES = (1, 2, 4, 8, 16, 32, 64)
NAMED: dict[str, Callable[[], Any]] = {
    "model": registry.models,
    "link": registry.links,
    "engine": registry.engines,
    "prefill_accelerator": registry.accelerators,
    "decode_accelerator": registry.accelerators,
}
"""Rows that an input names one of."""
_FILTERS: dict[str, Callable[[], Sequence[str]]] = {
    "measured_link": lambda: (YOURS, ALL, *links_measured()),
    "measured_engine": lambda: (ALL, *engines_measured()),
}
_FILTER_NAMES = {YOURS: "the chosen link", ALL: "all"}
_PLACEHOLDERS = {"decode_pool_gbytes": "what is left", "group_layers": "the best found", "nics_per_gpu": "the node's"}


def field_of(name: str) -> Any:
    """The declaration of an input."""
    return record_of(name).model_fields[name]


def label_of(name: str) -> str:
    """An input's label."""
    return str(field_of(name).title)


def help_of(name: str) -> str:
    """An input's help: its docstring, and what it takes."""
    takes = "" if name == "overlap" else f" Takes {allowed_values(record_of(name), name)}."
    return f"{field_of(name).description}{takes}"


def options_of(name: str) -> list[Any]:
    """Choices of an input that names one of several."""
    if name in NAMED:
        rows = NAMED[name]()
        return sorted(rows, key=(lambda i: rows[i].bandwidth) if name == "link" else (lambda i: rows[i].name.lower()))
    if name in _FILTERS:
        return list(_FILTERS[name]())
    annotation = field_of(name).annotation
    own: list[Any] = [] if name == "overlap" or field_of(name).default is not None else [None]
    said = [str(v) for part in (annotation, *get_args(annotation)) if get_origin(part) is Literal for v in get_args(part)]
    return [*own, *said] if said else []


def name_of(name: str, value: Any) -> str:
    """How a choice is shown; a model with its repository on Hugging Face behind, as the picker searches what it shows."""
    if value is None:
        return "the engine's"
    if name == "model" and not isinstance(value, str):
        return str(value.name)
    if name in _FILTERS:
        rows: Any = registry.links() if name == "measured_link" else registry.engines()
        return _FILTER_NAMES.get(value) or str(rows[value].name)
    row = NAMED[name]().get(value) if name in NAMED else None
    if row is None:
        return str(value)
    repository = next((alias for alias in row.aliases if "/" in alias), "") if name == "model" else ""
    return f"{row.name} · {repository}" if repository else str(row.name)


def draw_controls(state: State, sliders: Sequence[str]) -> dict[str, Any]:
    """Draw the inputs in sight; returns the places of the sliders' heads."""
    scenario = state.scenario
    columns = st.container(key="selects").columns([2.3, 0.95, 0.95, 1.25, 2.1], gap="small", vertical_alignment="bottom")
    _choice(columns[0], state, "model")
    _degree(columns[1], scenario, "prefill_tp")
    _degree(columns[2], scenario, "decode_tp")
    _choice(columns[3], state, "kv_dtype", without=() if has_mla(scenario.model) else PACKED_MLA_ROW_BYTES)
    _choice(columns[4], state, "link")
    halves = st.columns([1, 2.1], gap="medium", vertical_alignment="bottom")
    return {name: _slider(column, state, name) for column, name in zip(halves, sliders, strict=True)}


def draw_more(state: State, view: str) -> None:
    """Draw the folded inputs, while they are unfolded."""
    still_block(block("p", summary(state.scenario), class_="kv-summary"))
    folder = st.expander("More inputs", key="more_inputs", on_change="rerun")
    if not folder.open:
        return
    with folder:
        _draw_groups(state, [*MORE, *([MORE_BESIDE[view]] if view in MORE_BESIDE else [])])
        still_block(block("h2", "In place of the engine's and the link's own", class_="kv-h2"))
        _draw_groups(state, KNOBS)


def _draw_groups(state: State, groups: Sequence[tuple[str, Sequence[str]]]) -> None:
    """A column of inputs for each group."""
    columns = st.columns(len(groups), gap="medium")
    for column, (title, names) in zip(columns, groups, strict=True):
        column.markdown(f"**{title}**")
        for name in names:
            _input(column, state, name)


def _input(column: Any, state: State, name: str) -> None:
    """A choice of several, or a number typed as text."""
    if options_of(name) and name != "lanes":
        _choice(column, state, name)
    else:
        _typed(column, name, state.value(name))


def draw_overlap(scenario: Scenario) -> None:
    """What may cross while prefill computes, and whose own way that is: stands at the head of the picture it changes."""
    with st.container(horizontal=True, vertical_alignment="center", key="overlap_choice"):
        st.segmented_control(label_of("overlap"), overlaps(scenario), key="overlap", required=True, help=help_of("overlap"))
        still_block(overlap_line(scenario))


def draw_filters(state: State) -> None:
    """Which measurements are shown: stands at the head of their picture."""
    left, right, _ = st.columns([1, 1, 1.2], gap="small")
    _choice(left, state, "measured_link")
    _choice(right, state, "measured_engine")


def draw_layer(state: State) -> None:
    """Which kind of layer is drawn: stands at the head of its picture."""
    model = plan_of(state.scenario).model
    kinds = kinds_of(model)
    shown = group_of(model, state.seen.layer)
    names = {number: kind_name(model, group) for number, group in kinds}
    value = next(number for number, group in kinds if group == shown)
    if st.session_state.get("layer") not in names:
        st.session_state.pop("layer", None)
    column, _ = st.columns([1, 1.2], gap="small")
    column.selectbox(label_of("layer"), sorted(names), key=_set("layer", value), format_func=names.__getitem__)


def _set(key: str, value: Any) -> str:
    """Give a widget its value where the session has none for it, or on a view just come to; returns its key."""
    if key not in st.session_state or st.session_state.get(ARRIVED):
        st.session_state[key] = value
    return key


def _choice(column: Any, state: State, name: str, *, without: Collection[str] = ()) -> None:
    options: list[Any] = [option for option in options_of(name) if option not in without]
    value = state.value(name)
    value = registry.find_model(value).id if name == "model" and isinstance(value, str) else value
    own = st.session_state.get("own_parsed") if name == "model" else None
    options = [own.model, *options] if own is not None else options
    if value not in options:
        options.insert(0, value)
    if st.session_state.get(name) not in options:
        st.session_state.pop(name, None)
    _set(name, value)
    words = {"help": help_of(name)} if name in (*_PLACEHOLDERS, "kv_dtype") else {}
    words |= {"placeholder": _PLACEHOLDERS[name]} if name in _PLACEHOLDERS else {}
    column.selectbox(label_of(name), options, key=name, format_func=lambda v: name_of(name, v), **words)


def _degree(column: Any, scenario: Scenario, name: str) -> None:
    value = getattr(scenario, name)
    _set(name, value)
    column.selectbox(label_of(name), sorted({*TP_DEGREES, value}), key=name, help=help_of(name))


def slider_values(state: State, name: str) -> tuple[int, ...]:
    """Positions of a slider, the value the session started with among them."""
    return positions_of(name, st.session_state.setdefault(f"asked_{name}", state.value(name)))


def _slider(column: Any, state: State, name: str) -> Any:
    """A slider over powers of two and steps between; its value is the bare number. Returns the place of its head."""
    values, value = slider_values(state, name), state.value(name)
    _set(name, values[nearest(values, value)])
    with column.container(key=f"slider_{name}"):
        head = st.container(key=f"head_{name}")
        typed.draw(name, label_of(name))
        st.select_slider(label_of(name), values, key=name)
    return head


def _typed(column: Any, name: str, value: Any) -> None:
    """A number typed as text, so that what cannot be read is named and never reinterpreted."""
    key = _set(text_key(name), "" if value is None else str(value))
    column.text_input(label_of(name), key=key, placeholder=_PLACEHOLDERS.get(name) or unset_text(name), help=help_of(name))


def summary(scenario: Scenario) -> str:
    """The folded inputs in a line."""
    gpus = [registry.accelerators()[g].name for g in (scenario.prefill_accelerator, scenario.decode_accelerator)]
    sides = gpus[0] if gpus[0] == gpus[1] else " → ".join(gpus)
    return (
        f"{registry.engines()[scenario.engine].name} engine · {sides} · lanes {scenario.lanes} · "
        f"output {count_text(scenario.output_tokens)} · decode batch {count_text(scenario.decode_batch)}"
    )
