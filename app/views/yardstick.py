"""Which question a view's yardstick answers, and where the other one is asked."""

from __future__ import annotations

from typing import Any

from app.live import block
from app.state import State

STEP = (
    "Yardstick here: one decode step, the wait for one more token. It asks when a handoff that nothing hides is felt. "
    "Whether prefill can hide it is another question, measured by prefill: "
)


def yardstick(state: State, *, here: bool) -> dict[str, Any]:
    """The line below a picture in decode steps; the other question is asked `here`, further down, or in another view."""
    query = "" if state.is_own() else state.query()
    other: Any = "below." if here else block("a", "see Critical length", href=f"./critical-length{f'?{query}' if query else ''}")
    return block("p", STEP, other, class_="kv-note kv-page-only")
