"""The page's style sheet: one file of rules, colours from the palette."""

from __future__ import annotations

import streamlit as st

from app.live import STATIC
from app.palette import DARK, LIGHT


@st.cache_data
def style_sheet(mode: str) -> str:
    """Rules with the colours of a theme as variables."""
    colours = DARK if mode == "dark" else LIGHT
    variables = "".join(f"--kv-{name.replace('_', '-')}:{value};" for name, value in colours.items())
    rules = (STATIC / "page.css").read_text(encoding="utf-8")
    return f"<style>:root{{{variables}}}{rules}</style>"


def apply_style() -> None:
    """Put the style sheet on the page, in the colours of the reader's theme."""
    mode = getattr(st.context.theme, "type", None) or "light"
    st.html(style_sheet(mode))
