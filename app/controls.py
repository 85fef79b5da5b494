"""The controls, each made from a field of Scenario: label, help, options, bounds and default come from there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args, get_origin

import streamlit as st

from app.over import batch_positions, nearest, token_positions
from app.state import State
from kvmodel import registry
from kvmodel.display import count_text
from kvmodel.dtypes import PACKED_MLA_ROW_BYTES
from kvmodel.errors import KvModelError
from kvmodel.plan import plan_of
from kvmodel.records.model import Mla, ModelSpec
from kvmodel.scenario import Scenario, allowed_values, read_field
from kvmodel.turn import Turn

ARRIVED = "arrived"
"""Session key: this run shows another view than the last; its widgets start from the state, not from old values."""
TP_DEGREES = (1, 2, 4, 8, 16, 32, 64)
_NAMES: dict[str, Callable[[], Any]] = {
    "model": registry.models,
    "link": registry.links,
    "engine": registry.engines,
    "prefill_accelerator": registry.accelerators,
    "decode_accelerator": registry.accelerators,
}
MORE = (
    ("Prefill side", ("prefill_accelerator", "prefill_pp", "prefill_attention_dp", "prefill_held_tokens", "weight_dtype")),
    ("Wire", ("engine", "lanes", "shared_by", "wire_dtype", "block_tokens", "chunk_tokens")),
    (
        "Decode side",
        ("decode_accelerator", "decode_pp", "decode_attention_dp", "decode_held_tokens", "decode_batch", "output_tokens", "ep"),
    ),
    ("Your own measurements", ("prefill_seconds", "decode_step_seconds", "link_gbytes_per_s")),
)


def label_of(name: str) -> str:
    """A field's label."""
    record = Scenario if name in Scenario.model_fields else Turn
    return str(record.model_fields[name].title)


def help_of(name: str) -> str:
    """A field's help: its docstring, and what it takes."""
    record = Scenario if name in Scenario.model_fields else Turn
    return f"{record.model_fields[name].description} Takes {allowed_values(record, name)}."


def options_of(name: str) -> list[str]:
    """Choices of a field that names one of several."""
    if name in _NAMES:
        rows = _NAMES[name]()
        return sorted(rows, key=(lambda i: rows[i].bandwidth) if name == "link" else (lambda i: rows[i].name.lower()))
    annotation = Scenario.model_fields[name].annotation
    return [str(v) for part in (annotation, *get_args(annotation)) if get_origin(part) is Literal for v in get_args(part)]


def name_of(name: str, value: Any) -> str:
    """How a choice is shown."""
    if name == "model" and not isinstance(value, str):
        return str(value.name)
    return str(_NAMES[name]()[value].name) if name in _NAMES and value in _NAMES[name]() else str(value)


def controls(state: State, *, sliders: Sequence[str] = ("batch", "prompt_tokens")) -> tuple[State, dict[str, Any]]:
    """The six inputs in sight and the folded rest: the state they say, and the places of the sliders' heads."""
    scenario = state.scenario
    with st.container(key="controls"):
        columns = st.columns([2.3, 0.95, 0.95, 1.25, 2.1], gap="small", vertical_alignment="bottom")
        model = _choice(columns[0], scenario, "model")
        changes = {
            "model": model,
            "prefill_tp": _degree(columns[1], scenario, "prefill_tp"),
            "decode_tp": _degree(columns[2], scenario, "decode_tp"),
            "kv_dtype": _choice(columns[3], scenario, "kv_dtype", without=() if has_mla(model) else PACKED_MLA_ROW_BYTES),
            "link": _choice(columns[4], scenario, "link"),
        }
        left, right = st.columns([1, 2.1], gap="medium", vertical_alignment="bottom")
        turn_changes: dict[str, Any] = {}
        heads = {}
        for column, name in ((left, sliders[0]), (right, sliders[1])):
            heads[name], value = token_slider(column, state, name)
            (changes if name in Scenario.model_fields else turn_changes)[name] = value
    with st.container(key="more"):
        changes |= _more(state, turn_changes, with_history="history_tokens" in sliders)
    return _apply(state, changes, turn_changes), heads


def _apply(state: State, changes: dict[str, Any], turn_changes: dict[str, Any]) -> State:
    """The state with the changes, one by one, so that one bad value costs no other."""
    notes = [*state.notes, *changes.pop("notes", [])]
    scenario = state.scenario
    try:
        wanted = scenario.with_changes(**changes)
        plan_of(wanted)
        scenario = wanted
    except KvModelError:
        for name, value in changes.items():
            try:
                wanted = scenario.with_changes(**{name: value})
                plan_of(wanted)
                scenario = wanted
            except KvModelError as error:
                notes.append(f"{str(error)[0].upper()}{str(error)[1:]}. Keeping {_shown(getattr(scenario, name))}.")
    turn = Turn(**{**dict(state.turn), **turn_changes})
    return replace(state, scenario=scenario, turn=turn, notes=notes)


def _shown(value: Any) -> str:
    return "the default" if value is None else str(getattr(value, "id", value))


def _set(name: str, value: Any) -> str:
    """Give a widget its value where the session has none for it, or on a view just come to; returns its key."""
    if name not in st.session_state or st.session_state.get(ARRIVED):
        st.session_state[name] = value
    return name


def _choice(column: Any, scenario: Scenario, name: str, *, without: Collection[str] = ()) -> Any:
    options: list[Any] = [option for option in options_of(name) if option not in without]
    value = getattr(scenario, name)
    value = registry.find_model(value).id if name == "model" and isinstance(value, str) else value
    if value in without:
        value = Scenario.model_fields[name].default
    if value not in options:
        options.insert(0, value)
    if st.session_state.get(name) not in options:
        st.session_state.pop(name, None)
    _set(name, value)
    return column.selectbox(label_of(name), options, key=name, format_func=lambda v: name_of(name, v), help=None)


def has_mla(model: str | ModelSpec) -> bool:
    """Whether any layer of the model keeps a latent row."""
    spec = registry.find_model(model) if isinstance(model, str) else model
    return any(isinstance(group.attention, Mla) for group in spec.groups)


def _degree(column: Any, scenario: Scenario, name: str) -> int:
    value = getattr(scenario, name)
    _set(name, value)
    chosen: int = column.selectbox(label_of(name), sorted({*TP_DEGREES, value}), key=name)
    return chosen


def slider_values(state: State, name: str) -> tuple[int, ...]:
    """Positions of a slider, the value the session started with among them."""
    asked = st.session_state.setdefault(f"asked_{name}", _value(state, name))
    if name == "batch":
        return batch_positions(asked)
    low, high = (1, 2**19) if name == "delta_tokens" else (128, 2**19) if name == "history_tokens" else (128, 2**20)
    return token_positions(asked, low=max(low, 128), high=high)


def _value(state: State, name: str) -> int:
    value: int = getattr(state.scenario if name in Scenario.model_fields else state.turn, name)
    return value


def token_slider(column: Any, state: State, name: str) -> tuple[Any, int]:
    """(place of its head, value) of a slider over powers of two and steps between; its value is the bare number."""
    values, value = slider_values(state, name), _value(state, name)
    _set(name, values[nearest(values, value)])
    with column.container(key=f"slider_{name}"):
        head = st.container(key=f"head_{name}")
        chosen: int = st.select_slider(label_of(name), values, key=name)
    return head, chosen


def _more(state: State, turn_changes: dict[str, Any], *, with_history: bool) -> dict[str, Any]:
    scenario, changes = state.scenario, {}
    notes: list[str] = []
    with st.expander(f"More inputs   :gray[{summary(scenario)}]", key="more_inputs", expanded=False):
        columns = st.columns(4, gap="medium")
        for column, (title, names) in zip(columns, MORE, strict=True):
            column.markdown(f"**{title}**")
            for name in names:
                if options_of(name) and name != "lanes":
                    changes[name] = _choice(column, scenario, name)
                else:
                    changes[name] = _typed(column, Scenario, name, getattr(scenario, name), notes)
        if with_history:
            for name in ("generated_tokens", "local_prefill_tokens"):
                turn_changes[name] = _typed(columns[3], Turn, name, getattr(state.turn, name), notes)
    return {**changes, "notes": notes}


def _typed(column: Any, record: Any, name: str, value: Any, notes: list[str]) -> Any:
    """A number typed as text, read strictly: what cannot be read is named and the last value kept."""
    key = f"text_{name}"
    _set(key, "" if value is None else str(value))
    field = record.model_fields[name]
    text = column.text_input(field.title, key=key, placeholder=_placeholder(name), help=help_of(name), max_chars=40)
    try:
        read = read_field(record, name, text) if text.strip() else field.default
        record(**{name: read})
    except KvModelError as error:
        notes.append(f"{error}. Keeping {_shown(value)}.")
        return value
    return read


def _placeholder(name: str) -> str:
    return {"block_tokens": "the engine's", "chunk_tokens": "the engine's", "link_gbytes_per_s": "the link's"}.get(name, "modelled")


def summary(scenario: Scenario) -> str:
    """The folded inputs in a line."""
    gpus = [registry.accelerators()[g].name for g in (scenario.prefill_accelerator, scenario.decode_accelerator)]
    sides = gpus[0] if gpus[0] == gpus[1] else " → ".join(gpus)
    return (
        f"{registry.engines()[scenario.engine].name} engine · {sides} · lanes {scenario.lanes} · "
        f"output {count_text(scenario.output_tokens)} · decode batch {count_text(scenario.decode_batch)}"
    )
