"""Pin a scenario to compare with: the buttons, and what they do to the state."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from functools import partial
from typing import Any

import streamlit as st

from app import reading
from app.live import Picture
from app.state import State

_ASKED = "pin_asked"
_DONE: dict[str, Callable[[State], State]] = {"pin": State.pinned, "swap": State.swapped, "unpin": State.unpinned}


def acted(state: State, session: MutableMapping[str, Any]) -> State:
    """The state after the button that was pressed, if one was; a swap makes the controls start from it."""
    asked = session.pop(_ASKED, None)
    if asked == "swap":
        session[reading.ARRIVED] = True
        reading.forget_positions(session)
    return _DONE[asked](state) if asked in _DONE else state


def draw(actions: Any, box: Any, drawn: Picture, state: State) -> None:
    """The Pin button, and the box of what is pinned, with Swap and Unpin; a frame of another page has no buttons."""
    with_buttons = not st.context.is_embedded
    if with_buttons:
        _button(actions, "Pin this instead" if state.pin else "Pin to compare", "pin", "Keep this scenario to compare others with")
    if state.pin is None:
        return
    with box.container(border=True, key="pin_box"):
        drawn.mount("pinned_view")
        if with_buttons:
            row = st.container(horizontal=True, key="pin_buttons")
            _button(row, "Swap", "swap", "Show the pinned scenario and pin this one")
            _button(row, "Unpin", "unpin", "Compare no longer")


def _button(place: Any, label: str, asked: str, told: str) -> None:
    place.button(label, key=f"do_{asked}", help=told, on_click=partial(st.session_state.__setitem__, _ASKED, asked))
