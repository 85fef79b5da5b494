"""A number typed beside a slider: digits, with k or M for 1,024s as on the slider's scale."""

from __future__ import annotations

import re
from collections.abc import MutableMapping
from functools import partial
from typing import Any

import streamlit as st

from app.over import COUNTED
from app.state import record_of
from kvmodel.display import count_text
from kvmodel.errors import BadScenarioError
from kvmodel.scenario import bounds

NOTE = "typed_note"
"""Session key: what was typed and could not be used, said by the next run below the controls."""
LONGEST = 40
"""Characters that a field of a number takes; not said to the field, which would count them beside what is typed."""
_TYPED = "typed_text"
"""Session key: what was typed into each slider's field with a letter, and the number that it stands for."""
Typed = tuple[str, int] | None
"""What was typed, and the number that it stands for."""
_NUMBER = re.compile(r"(\d{1,9})([km]?)", re.ASCII | re.IGNORECASE)
_FACTORS = {"": 1, "k": 1024, "m": 1024 * 1024}


def bounded(name: str, text: str) -> str:
    """What was typed for an input, without the space around it. Raises BadScenarioError: too long for a number."""
    found = text.strip()
    if len(found) > LONGEST:
        title = record_of(name).model_fields[name].title
        raise BadScenarioError(f"{title}: got {count_text(len(found))} characters; type a number of at most {LONGEST}")
    return found


def typed_number(name: str, text: str) -> int:
    """The whole number that a text stands for in an input: 8192 for "8k".

    Raises BadScenarioError: anything but digits and one letter, too long, or out of bounds.
    """
    text = bounded(name, text)
    low, high = (int(bound or 0) for bound in bounds(record_of(name), name))
    found = _NUMBER.fullmatch(text)
    value = int(found[1]) * _FACTORS[found[2].lower()] if found else -1
    if not low <= value <= high:
        title = record_of(name).model_fields[name].title
        raise BadScenarioError(
            f"{title}: got {text!r}; type a whole number from {count_text(low)} to {count_text(high)}, such as 8192 or 8k (8 × 1,024)"
        )
    return value


def field_key(name: str) -> str:
    """Session key of the field beside a slider."""
    return f"type_{name}"


def draw(name: str, label: str) -> None:
    """The field beside a slider: empty, for the slider has the value."""
    st.text_input(
        f"{label} as a number: digits, or 8k for 8 × 1,024",
        key=field_key(name),
        placeholder="type 32" if name in COUNTED else "type 8k",
        on_change=partial(take, st.session_state, name),
    )


def take(session: MutableMapping[str, Any], name: str) -> None:
    """Give the slider what was typed; what cannot be used stays in the field and is named."""
    text = session[field_key(name)]
    if not text.strip():
        return
    try:
        value = typed_number(name, text)
    except BadScenarioError as error:
        session[NOTE] = f"{error}."
        return
    session[f"asked_{name}"] = session[name] = value
    session[_TYPED] = {**session.get(_TYPED, {}), name: None if text.strip().isdecimal() else (text.strip(), value)}
    session[field_key(name)] = ""


def typed_into(session: MutableMapping[str, Any], name: str) -> Typed:
    """What was last typed into a slider's field with a letter, and the number that it stands for."""
    found: Typed = session.get(_TYPED, {}).get(name)
    return found
