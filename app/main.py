"""The explorer's page: navigation over its views."""

from __future__ import annotations

import streamlit as st

from app.style import apply_style
from app.views import critical_length, interconnects, matrices, measured, method, next_turn, one_request, share, weighs, wire

VIEWS = (
    (one_request.show, "One request", "one-request"),
    (critical_length.show, "Critical length", "critical-length"),
    (next_turn.show, "Next turn", "next-turn"),
    (wire.show, "On the wire", "wire"),
    (weighs.show, "What it weighs", "weighs"),
    (interconnects.show, "Interconnects", "interconnects"),
    (matrices.show, "Matrices", "matrices"),
    (measured.show, "Measured", "measured"),
    (method.show, "Method", "method"),
)


def main() -> None:
    """Show the view that the address names."""
    st.set_page_config(page_title="KV handoff explorer", layout="wide", initial_sidebar_state="collapsed")
    apply_style()
    pages = [st.Page(show, title=title, url_path=path, default=i == 0) for i, (show, title, path) in enumerate(VIEWS)]
    page = st.navigation(pages, position="hidden" if st.context.is_embedded else "top")
    page.run()
    shown = next(path for _, title, path in VIEWS if title == page.title)
    if "state" in st.session_state and not st.context.is_embedded:
        share.draw(st.session_state["state"], shown)


main()
