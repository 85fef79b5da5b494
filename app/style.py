"""The colours of the page, from the palette; its rules are in `static/page.css`, which the HTML names."""

from __future__ import annotations

import streamlit as st

from app.palette import DARK, LIGHT
from app.views.onward import QUESTIONS


@st.cache_data
def variables(mode: str) -> str:
    """The colours of a theme as variables, and what each view answers, for the list of views on a phone."""
    colours = DARK if mode == "dark" else LIGHT
    said = "".join(
        f'[data-testid="stSidebarNavLink"][href$="/{"" if path == "one-request" else path}"] p::after{{content:"{question}" / ""}}'
        for path, question in QUESTIONS.items()
    )
    named = "".join(f"--kv-{name.replace('_', '-')}:{value};" for name, value in colours.items())
    return f"<style>:root{{{named}}}{said}</style>"


def apply_style() -> None:
    """Put the colours on the page, those of the reader's theme."""
    mode = getattr(st.context.theme, "type", None) or "light"
    st.html(variables(mode))
