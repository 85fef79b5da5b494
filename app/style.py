"""The colours of the page, from the palette; its rules are in `static/page.css`, which the HTML names."""

from __future__ import annotations

import streamlit as st

from app.palette import DARK, LIGHT


@st.cache_data
def variables(mode: str) -> str:
    """The colours of a theme as variables."""
    colours = DARK if mode == "dark" else LIGHT
    named = "".join(f"--kv-{name.replace('_', '-')}:{value};" for name, value in colours.items())
    return f"<style>:root{{{named}}}</style>"


def apply_style() -> None:
    """Put the colours on the page, those of the reader's theme."""
    mode = getattr(st.context.theme, "type", None) or "light"
    st.html(variables(mode))
