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
_ORIGINS = {"file": "stated in the file", "class default": "default of its class", "derived": "worked out from other fields"}


def take() -> None:
    """Read what was pasted, uploaded or edited in the last run, before anything is drawn."""
    session = st.session_state
    text = _uploaded() or session.get("own_text", "")
    if not text:
        session.pop("own_error", None)
    if text and text != session.get("own_raw"):
        session["own_raw"] = text
        session.pop("own_edits", None)
        _read(text, {})
    edits = _edits()
    if edits and edits != session.get("own_edits"):
        session["own_edits"] = edits
        _read(session["own_raw"], edits)


def _uploaded() -> str:
    file = st.session_state.get("own_file")
    if file is None:
        return ""
    return str(file.getvalue()[: MAX_PASTED + 1].decode("utf-8", errors="replace"))


def _edits() -> dict[str, Any]:
    """Values changed in the table, by path."""
    first: ParsedConfig | None = st.session_state.get("own_first")
    rows = (st.session_state.get("own_fields") or {}).get("edited_rows", {})
    return edits_of(first, rows) if first else {}


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


def _value(text: str) -> Any:
    """A typed value as JSON where it is JSON, else as text."""
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return text


def _read(text: str, edits: dict[str, Any]) -> None:
    """Parse a configuration and choose it as the model; what cannot be read is kept as an error."""
    session = st.session_state
    try:
        parsed = edited(text, edits)
    except KvModelError as error:
        session["own_error"] = str(error)
        return
    session.pop("own_error", None)
    session["own_parsed"] = parsed
    if not edits:
        session["own_first"] = parsed
    session["model"] = parsed.model


def draw() -> None:
    """The panel: paste or upload, then the fields that were used."""
    session = st.session_state
    static_block("own_head", block("h2", "Bring your config.json", class_="kv-h2"))
    left, right = st.columns([1.3, 1], gap="large")
    left.text_area("Paste a config.json", key="own_text", height=140, max_chars=MAX_PASTED, placeholder='{"model_type": "llama", ...}')
    right.file_uploader("Or upload one", type=["json", "txt"], key="own_file", max_upload_size=1)
    if session.get("own_error"):
        kept = f"{session['own_error']}. The model stays as it was."
        static_block("own_error_view", block("p", kept, class_="kv-notice kv-notice-bad", role="alert"))
        return
    parsed: ParsedConfig | None = session.get("own_parsed")
    if parsed is None or session["state"].scenario.model != parsed.model:
        return
    said = [f"Assumed: {text}." for text in parsed.assumed] + [f"Check: {text}." for text in parsed.warnings]
    static_block("own_notes", *(block("p", text, class_="kv-notice") for text in said))
    first: ParsedConfig = session["own_first"]
    rows = [{"Field": f.name, "Value": str(f.value), "From": _ORIGINS.get(f.origin, f.origin), "At": f.path} for f in first.fields]
    st.data_editor(pd.DataFrame(rows), key="own_fields", disabled=["Field", "From", "At"], hide_index=True, width="stretch")
