"""A configuration of the reader's own: pasted or uploaded, read field by field, each of them editable."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from app.live import block, static_block
from kvmodel.config import ParsedConfig, parse_model_config, with_value
from kvmodel.config.text import read_object
from kvmodel.errors import KvModelError

MAX_PASTED = 200_000
"""Characters of a pasted or uploaded configuration."""
EXAMPLE = """{
  "model_type": "qwen3",
  "num_hidden_layers": 36,
  "hidden_size": 4096,
  "num_attention_heads": 32,
  "num_key_value_heads": 8,
  "head_dim": 128,
  "torch_dtype": "bfloat16"
}"""
"""The fields of a published configuration that the cache depends on: Qwen/Qwen3-8B."""
EMPTY = (
    "The fields of your model belong here, each with where its value comes from and open to editing. Paste a config.json from Hugging "
    "Face, or upload it: JSON, up to 200,000 characters. It stays in this session."
)
_ORIGINS = {"file": "stated in the file", "class default": "default of its class", "derived": "worked out from other fields"}


def take() -> None:
    """Read what was pasted, uploaded or edited in the last run, before anything is drawn."""
    session = st.session_state
    for seen, text in (("own_file_seen", _uploaded()), ("own_text_seen", session.get("own_text", session.get("own_text_seen", "")))):
        if text != session.get(seen, ""):
            session[seen] = text
            _start(text)
    _edit(_edits())


def _uploaded() -> str:
    file = st.session_state.get("own_file")
    if file is None:
        return ""
    return str(file.getvalue()[: MAX_PASTED + 1].decode("utf-8", errors="replace"))


def _start(text: str) -> None:
    """Read a new configuration and choose it as the model; one that cannot be read is kept as an error."""
    session = st.session_state
    session.pop("own_error", None)
    if not text:
        return
    try:
        parsed = edited(text, {})
    except KvModelError as error:
        session["own_error"] = str(error)
        return
    session.update(own_raw=text, own_first=parsed, own_edits={}, own_number=session.get("own_number", 0) + 1)
    _choose(parsed)


def _table_key() -> str:
    """Key of the table of fields: each configuration has a table of its own, so that edits of one never reach another."""
    return f"own_fields_{st.session_state.get('own_number', 0)}"


def _edits() -> dict[str, Any]:
    """All changed values by path: those the table began with, and those typed into it since."""
    session = st.session_state
    table = session.get(_table_key())
    if table is None:
        return dict(session.get("own_edits", {}))
    return {**session["own_base_edits"], **edits_of(session["own_base"], table.get("edited_rows", {}))}


def _edit(edits: dict[str, Any]) -> None:
    """Read the configuration with changed values; those that cannot be used leave the model as it was, with an error."""
    session = st.session_state
    session.pop("own_edit_error", None)
    if edits == session.get("own_edits", {}):
        return
    try:
        parsed = edited(session["own_raw"], edits)
    except KvModelError as error:
        session["own_edit_error"] = str(error)
        return
    session["own_edits"] = edits
    _choose(parsed)


def _choose(parsed: ParsedConfig) -> None:
    st.session_state["own_parsed"] = parsed
    st.session_state["model"] = parsed.model


def edits_of(first: ParsedConfig, rows: Mapping[int | str, Mapping[str, str]]) -> dict[str, Any]:
    """Changed values by their path in the configuration, from the changed rows of the table of its fields."""
    return {first.fields[int(i)].path: _value(change["Value"]) for i, change in rows.items() if "Value" in change}


def edited(text: str, edits: Mapping[str, Any]) -> ParsedConfig:
    """A configuration read with some of its values stated anew. Raises KvModelError."""
    if len(text) > MAX_PASTED:
        raise KvModelError(f"config: more than {MAX_PASTED:,} characters")
    config = read_object(text)
    for path, value in edits.items():
        config = with_value(config, path, value)
    return parse_model_config(config, name="Your model")


def _shown(value: Any) -> str:
    """A value as one would type it."""
    return value if isinstance(value, str) else json.dumps(value)


def _value(text: str) -> Any:
    """A typed value as JSON where it is JSON, else as text."""
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return text


def changes_text(first: ParsedConfig, edits: Mapping[str, Any]) -> list[str]:
    """A sentence for each value that differs from what the configuration said or left to be assumed."""
    before = {field.path: field for field in first.fields}
    said = []
    for path, value in edits.items():
        old = before.get(path)
        if old is None:
            said.append(f"Changed: {path} is {_shown(value)}.")
        elif old.value != value:
            was = f"the file says {_shown(old.value)}" if old.origin == "file" else f"{_shown(old.value)} was assumed"
            said.append(f"Changed: {path} is {_shown(value)}; {was}.")
    return said


def draw() -> None:
    """The panel: paste or upload, then the fields that were used."""
    session = st.session_state
    static_block("own_head", block("h2", "Bring your config.json", class_="kv-h2"))
    left, right = st.columns([1.3, 1], gap="large")
    left.text_area(
        "Paste a config.json",
        key="own_text",
        height=140,
        max_chars=MAX_PASTED,
        placeholder='{"model_type": "llama", ...}',
        persist_state="session",
    )
    right.file_uploader("Or upload one", type=["json", "txt"], key="own_file", max_upload_size=1)
    error = session.get("own_error") or session.get("own_edit_error")
    if error:
        static_block("own_error_view", block("p", f"{error}. The model stays as it was.", class_="kv-notice kv-notice-bad", role="alert"))
    parsed: ParsedConfig | None = session.get("own_parsed")
    if parsed is None and not error:
        static_block("own_empty", block("div", block("p", EMPTY), class_="kv-empty"))
        st.button("Try an example", key="own_example", on_click=lambda: session.update(own_text=EXAMPLE))
    if session.get("own_error") or parsed is None or session["state"].scenario.model != parsed.model:
        return
    said = changes_text(session["own_first"], session["own_edits"])
    said += [f"Assumed: {text}." for text in parsed.assumed] + [f"Check: {text}." for text in parsed.warnings]
    static_block("own_notes", *(block("p", text, class_="kv-notice") for text in said))
    _fields_table(parsed)


def _fields_table(parsed: ParsedConfig) -> None:
    """The fields that were used, each value editable; values that follow from an edited one follow it."""
    session, key = st.session_state, _table_key()
    if key not in session:
        session["own_base"], session["own_base_edits"] = parsed, session["own_edits"]
    base: ParsedConfig = session["own_base"]
    rows = field_rows(base, parsed, session["own_edits"], session["own_base_edits"])
    st.data_editor(pd.DataFrame(rows), key=key, disabled=["Field", "From", "At"], hide_index=True, width="stretch")


def field_rows(base: ParsedConfig, now: ParsedConfig, edits: Mapping[str, Any], base_edits: Mapping[str, Any]) -> list[dict[str, str]]:
    """A row for each field of the configuration the table began with, as edits made since count from its rows.

    Values and origins are those of `now`, but for what was edited, over which the table lays the typed value.
    """
    latest = {field.path: field for field in now.fields if field.path not in edits}
    fields = [latest.get(field.path, field) for field in base.fields]
    origins = {field.path: _ORIGINS.get(field.origin, field.origin) for field in fields} | dict.fromkeys(base_edits, "changed by you")
    return [{"Field": f.name, "Value": _shown(f.value), "From": origins[f.path], "At": f.path} for f in fields]
