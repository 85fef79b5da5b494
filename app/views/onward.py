"""What each view answers, and which views answer what one asks next."""

from __future__ import annotations

from typing import Any

import streamlit as st

from app.live import block, still_block
from app.state import State
from app.views.presets import path_of

QUESTIONS = {
    "one-request": "What does one handoff add to a request?",
    "critical-length": "From which prompt on does the link matter?",
    "next-turn": "What moves when an agent calls again?",
    "wire": "Where does the time of a handoff go?",
    "weighs": "How many bytes does a prompt's cache have?",
    "interconnects": "Which link is fast enough?",
    "sensitivity": "Which input changes the first token most?",
    "matrices": "Why do only K and V cross?",
    "measured": "How near does the model come to published transfers?",
    "method": "How are the numbers made?",
}
"""What a view answers, by the last part of its address."""
NEXT = {
    "one-request": ("critical-length", "next-turn", "wire"),
    "critical-length": ("interconnects", "wire", "sensitivity"),
    "next-turn": ("one-request", "weighs", "critical-length"),
    "wire": ("sensitivity", "interconnects", "measured"),
    "weighs": ("matrices", "critical-length", "next-turn"),
    "interconnects": ("critical-length", "wire", "measured"),
    "sensitivity": ("wire", "critical-length", "measured"),
    "matrices": ("weighs", "one-request", "method"),
    "measured": ("wire", "sensitivity", "method"),
}
"""Views that answer what a reader of one asks next."""


def draw(place: Any, state: State, view: str) -> None:
    """The line below a view's picture; no link can carry a model of the reader's own, and a frame of another page has no other views."""
    if view in NEXT and not state.is_own() and not st.context.is_embedded:
        with place:
            still_block(onward_line(state, view))


def onward_line(state: State, view: str) -> dict[str, Any]:
    """The questions that come next, each a link to the view that answers it, of the same scenario."""
    query = state.query()
    tail = f"?{query}" if query else ""
    links = [block("a", QUESTIONS[name], href=f"{path_of(name)}{tail}") for name in NEXT[view]]
    return block("p", block("span", "Next:"), *links, class_="kv-onward")
