"""How to read the page, for those who come for the first time: one line above the controls."""

from __future__ import annotations

from typing import Any

import streamlit as st

from app.live import block, still_block
from app.state import State

HINT = (
    ("Drag Prompt tokens", ": every chart follows."),
    ("Blue", " is prefill, orange the wire, hatched what decode waits for, green decode."),
    ("A dotted number", " opens its formula."),
)
"""What stands in that line; on a phone without its middle."""


def draw(place: Any, state: State) -> None:
    """The line: on a first visit without a scenario of one's own, until it is put away."""
    session = st.session_state
    session.setdefault("hint", not state.query() and not st.context.is_embedded)
    if not session["hint"] or session["view"] != "one-request":
        return
    said = [block("span", block("b", head), rest, " ") for head, rest in HINT]
    with place.container(horizontal=True, vertical_alignment="center", key="hint_row"):
        still_block(block("p", *said, class_="kv-hint", role="note", aria_label="How to read this"))
        st.button("Got it", key="got_it", on_click=lambda: session.update(hint=False))
