"""The data of one view of one scenario, as a static copy's page gets it."""

from __future__ import annotations

import gzip
import json
from typing import Any

from app.catalog import VIEWS
from app.charts.spec import placed
from app.export.page import moved
from app.live import Board
from app.state import State
from app.views.frame import infeasible, notice_blocks
from kvmodel.idle import idle_notes
from kvmodel.plan import plan_of

LEFT_TO_THE_PAGE = ("themes", "plotly", "url", "key")
"""What every view has alike: the page puts it in."""
NOTICES = "notices_view"


def view_data(name: str, state: State) -> dict[str, Any]:
    """A view's charts and texts, the sliders that move them, and the tables that they move by."""
    view = VIEWS[name]
    board = view.at(state)
    scenario = state.whole() if "delta_tokens" in view.sliders else state.scenario
    notes = [*idle_notes(plan_of(state.scenario), state.scenario), *infeasible(name, scenario)]
    board.view(NOTICES, notice_blocks(notes), {})
    shown = {key: _bare(one) for key, one in board.views.items()}
    names = placed([one["items"] for one in shown.values()], "$at")
    found = [one for slider in view.sliders if (one := moved(view, board, state, slider, names))]
    return {"views": shown, "sliders": [slider for slider, _ in found], "tables": {slider["name"]: table for slider, table in found}}


def _bare(view: dict[str, Any]) -> dict[str, Any]:
    """A view without what all have alike; its numbers open no explanations, which only the page can make."""
    items = [item if "wide" in item else still(item) for item in view["items"]]
    return {**{key: value for key, value in view.items() if key not in LEFT_TO_THE_PAGE}, "items": items}


def still(spec: Any) -> Any:
    """A text block whose numbers and inputs are text, and not buttons that open them; its links do not pin what was, nor say so."""
    if isinstance(spec, list):
        return [still(item) for item in spec]
    if not isinstance(spec, dict):
        return spec
    if "data-explain" in spec or "data-open" in spec:
        return {"tag": "span", "children": still(spec["children"])}
    pins = str(spec.get("href", "")).startswith("?")
    return {key: still(value) for key, value in spec.items() if key != "data-explains" and not (pins and key == "title")}


def packed(data: dict[str, Any]) -> bytes:
    """Data as compressed JSON, the same bytes whenever they are made."""
    text = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return gzip.compress(text.encode("utf-8"), compresslevel=9, mtime=0)


def places(board: Board) -> list[str]:
    """The views of a board below its answer, top to bottom."""
    return [key for key in board.views if key != "answer_view"]
