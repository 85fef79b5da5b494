"""The controls, each made from a field of its record: label, help, options, bounds and default come from there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Literal, get_args, get_origin

import streamlit as st

from app.live import block, static_block
from app.over import batch_positions, nearest, token_positions
from app.reading import ARRIVED, MORE, MORE_TURN, has_mla, overlaps, text_key
from app.state import State
from kvmodel import registry
from kvmodel.display import count_text
from kvmodel.dtypes import PACKED_MLA_ROW_BYTES
from kvmodel.scenario import MAX_PROMPT_TOKENS, Scenario, allowed_values
from kvmodel.turn import Turn

TP_DEGREES = (1, 2, 4, 8, 16, 32, 64)
_NAMES: dict[str, Callable[[], Any]] = {
    "model": registry.models,
    "link": registry.links,
    "engine": registry.engines,
    "prefill_accelerator": registry.accelerators,
    "decode_accelerator": registry.accelerators,
}
_PLACEHOLDERS = {"block_tokens": "the engine's", "chunk_tokens": "the engine's", "link_gbytes_per_s": "the link's"}


def field_of(name: str) -> Any:
    """The declaration of an input."""
    return (Scenario if name in Scenario.model_fields else Turn).model_fields[name]


def label_of(name: str) -> str:
    """An input's label."""
    return str(field_of(name).title)


def help_of(name: str) -> str:
    """An input's help: its docstring, and what it takes."""
    record = Scenario if name in Scenario.model_fields else Turn
    return f"{field_of(name).description} Takes {allowed_values(record, name)}."


def options_of(name: str) -> list[str]:
    """Choices of an input that names one of several."""
    if name in _NAMES:
        rows = _NAMES[name]()
        return sorted(rows, key=(lambda i: rows[i].bandwidth) if name == "link" else (lambda i: rows[i].name.lower()))
    annotation = field_of(name).annotation
    return [str(v) for part in (annotation, *get_args(annotation)) if get_origin(part) is Literal for v in get_args(part)]


def name_of(name: str, value: Any) -> str:
    """How a choice is shown; a model with its repository on Hugging Face behind, as the picker searches what it shows."""
    if name == "model" and not isinstance(value, str):
        return str(value.name)
    row = _NAMES[name]().get(value) if name in _NAMES else None
    if row is None:
        return str(value)
    repository = next((alias for alias in row.aliases if "/" in alias), "") if name == "model" else ""
    return f"{row.name} · {repository}" if repository else str(row.name)


def draw_controls(state: State, sliders: Sequence[str]) -> dict[str, Any]:
    """Draw the inputs in sight; returns the places of the sliders' heads."""
    scenario = state.scenario
    columns = st.columns([2.3, 0.95, 0.95, 1.25, 2.1], gap="small", vertical_alignment="bottom")
    _choice(columns[0], scenario, "model")
    _degree(columns[1], scenario, "prefill_tp")
    _degree(columns[2], scenario, "decode_tp")
    _choice(columns[3], scenario, "kv_dtype", without=() if has_mla(scenario.model) else PACKED_MLA_ROW_BYTES)
    _choice(columns[4], scenario, "link")
    halves = st.columns([1, 2.1], gap="medium", vertical_alignment="bottom")
    return {name: _slider(column, state, name) for column, name in zip(halves, sliders, strict=True)}


def draw_more(state: State, *, with_turn: bool) -> None:
    """Draw the folded inputs, while they are unfolded."""
    static_block("summary_view", block("p", summary(state.scenario), class_="kv-summary"))
    folder = st.expander("More inputs", key="more_inputs", on_change="rerun")
    if not folder.open:
        return
    with folder:
        columns = st.columns(4, gap="medium")
        for column, (title, names) in zip(columns, MORE, strict=True):
            column.markdown(f"**{title}**")
            for name in names:
                if options_of(name) and name != "lanes":
                    _choice(column, state.scenario, name)
                else:
                    _typed(column, name, getattr(state.scenario, name))
        for name in MORE_TURN if with_turn else ():
            _typed(columns[3], name, getattr(state.turn, name))


def draw_overlap(scenario: Scenario) -> None:
    """What may cross while prefill computes: stands at the head of the picture it changes."""
    st.segmented_control(label_of("overlap"), overlaps(scenario), key="overlap", required=True, help=help_of("overlap"))


def _set(key: str, value: Any) -> str:
    """Give a widget its value where the session has none for it, or on a view just come to; returns its key."""
    if key not in st.session_state or st.session_state.get(ARRIVED):
        st.session_state[key] = value
    return key


def _choice(column: Any, scenario: Scenario, name: str, *, without: Collection[str] = ()) -> None:
    options: list[Any] = [option for option in options_of(name) if option not in without]
    value = getattr(scenario, name)
    value = registry.find_model(value).id if name == "model" and isinstance(value, str) else value
    own = st.session_state.get("own_parsed") if name == "model" else None
    options = [own.model, *options] if own is not None else options
    if value not in options:
        options.insert(0, value)
    if st.session_state.get(name) not in options:
        st.session_state.pop(name, None)
    _set(name, value)
    column.selectbox(label_of(name), options, key=name, format_func=lambda v: name_of(name, v))


def _degree(column: Any, scenario: Scenario, name: str) -> None:
    value = getattr(scenario, name)
    _set(name, value)
    column.selectbox(label_of(name), sorted({*TP_DEGREES, value}), key=name)


def slider_values(state: State, name: str) -> tuple[int, ...]:
    """Positions of a slider, the value the session started with among them."""
    asked = st.session_state.setdefault(f"asked_{name}", _value(state, name))
    if name == "batch":
        return batch_positions(asked)
    return token_positions(asked, high=MAX_PROMPT_TOKENS if name == "prompt_tokens" else MAX_PROMPT_TOKENS // 2)


def _value(state: State, name: str) -> int:
    value: int = getattr(state.scenario if name in Scenario.model_fields else state.turn, name)
    return value


def _slider(column: Any, state: State, name: str) -> Any:
    """A slider over powers of two and steps between; its value is the bare number. Returns the place of its head."""
    values, value = slider_values(state, name), _value(state, name)
    _set(name, values[nearest(values, value)])
    with column.container(key=f"slider_{name}"):
        head = st.container(key=f"head_{name}")
        st.select_slider(label_of(name), values, key=name)
    return head


def _typed(column: Any, name: str, value: Any) -> None:
    """A number typed as text, so that what cannot be read is named and never reinterpreted."""
    key = _set(text_key(name), "" if value is None else str(value))
    column.text_input(label_of(name), key=key, placeholder=_PLACEHOLDERS.get(name, "modelled"), help=help_of(name), max_chars=40)


def summary(scenario: Scenario) -> str:
    """The folded inputs in a line."""
    gpus = [registry.accelerators()[g].name for g in (scenario.prefill_accelerator, scenario.decode_accelerator)]
    sides = gpus[0] if gpus[0] == gpus[1] else " → ".join(gpus)
    return (
        f"{registry.engines()[scenario.engine].name} engine · {sides} · lanes {scenario.lanes} · "
        f"output {count_text(scenario.output_tokens)} · decode batch {count_text(scenario.decode_batch)}"
    )
