"""The explorer's page: navigation over its views."""

from __future__ import annotations

import re

import streamlit as st

from app.catalog import TITLES
from app.hosting.turns import TURN
from app.state import bad_value
from app.style import apply_style
from app.views import critical_length, interconnects, matrices, measured, method, next_turn, one_request, sensitivity, share, weighs, wire
from app.views.frame import VIEW_NOTES
from app.views.onward import QUESTIONS
from kvmodel import __version__

SHOWN = (one_request, critical_length, next_turn, wire, weighs, interconnects, sensitivity, matrices, measured, method)
VIEWS = [(view.show, title, path) for view, (path, title) in zip(SHOWN, TITLES.items(), strict=True)]
PATHS = [path for *_, path in VIEWS]
_VERSION = re.compile(r"\d{1,4}(\.\d{1,4}){1,3}[a-z0-9.]{0,12}", re.ASCII)


def address_notes(view: str | None, version: str, shown: str) -> list[str]:
    """What is to be said of an address besides its scenario: of a view that there is not, and of another version's numbers."""
    notes = [] if view is None or view in PATHS else [bad_value("view", view, f"allowed: {', '.join(PATHS)}", shown)]
    if _VERSION.fullmatch(version) and version != __version__:
        notes.append(f"This link was made with version {version}; this is {__version__}, whose numbers may differ.")
    return notes


def main() -> None:
    """Show the view that the address names, by its path or by `?view=`; embedded, that view alone, sized to its frame."""
    st.set_page_config(page_title="KV handoff explorer", layout="wide", initial_sidebar_state="collapsed")
    apply_style()
    embedded, asked = st.context.is_embedded, st.query_params.get("view")
    front = asked if embedded and asked in PATHS else PATHS[0]
    pages = [st.Page(show, title=title, url_path=path, default=path == front, help=QUESTIONS[path]) for show, title, path in VIEWS]
    page = st.navigation(pages, position="hidden" if embedded else "top")
    if asked in PATHS and not embedded:
        st.switch_page(pages[PATHS.index(asked)], query_params={k: v for k, v in st.query_params.items() if k != "view"})
    shown = next(path for _, title, path in VIEWS if title == page.title)
    st.session_state[VIEW_NOTES] = address_notes(asked, st.query_params.get("v", ""), shown)
    page.run()
    if "state" in st.session_state:
        (share.draw_embedded if embedded else share.draw)(st.session_state["state"], shown)


with TURN:
    main()
