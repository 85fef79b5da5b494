"""Scenarios to start from, a click away at the head of every view."""

from __future__ import annotations

from typing import Any

import streamlit as st

from app.live import block, still_block
from kvmodel import registry


def draw(place: Any) -> None:
    """The button that opens the list; a frame of another page has none."""
    if st.context.is_embedded:
        return
    with place.popover("Examples", key="presets"):
        still_block(presets_list())


def presets_list() -> dict[str, Any]:
    """Scenarios as links that Back returns from, each with what it shows."""
    rows = [
        block("li", block("a", preset.name, href=f"{path_of(preset.view)}?{preset.query}"), block("span", preset.what))
        for preset in registry.presets().values()
    ]
    return block("ul", *rows, class_="kv-presets")


def path_of(view: str) -> str:
    """A view's address below the page's own."""
    return f"./{'' if view == 'one-request' else view}"
