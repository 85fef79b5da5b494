"""A view's charts and texts for another choice, before the page's own run has drawn them.

Streamlit redraws the whole page after a choice. The browser asks here for the charts alone, over plain
HTTP, while that goes on; what the run then sends is the same, and drawn once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response

from app import controls, reading
from app.catalog import VIEWS
from app.state import from_link
from kvmodel import registry

MAX_QUERY = 4_000
"""Characters of a scenario's query."""


def choice_of(name: str, label: str) -> Any:
    """The value that a control shows as `label`. Raises KeyError: no such control, or no such choice."""
    if name in ("prefill_tp", "decode_tp"):
        return {str(degree): degree for degree in controls.TP_DEGREES}[label]
    if name not in (*reading.IN_SIGHT, "overlap", "measured_link", "measured_engine"):
        raise KeyError(name)
    return {controls.name_of(name, value): value for value in controls.options_of(name)}[label]


@lru_cache(maxsize=256)
def ahead(view: str, query: str, name: str, label: str) -> bytes:
    """The views of a page, as JSON, at the scenario of `query` with one control set to what it shows as `label`.

    Raises KeyError: no such view, control or choice.
    """
    shown = VIEWS[view]
    before = from_link(dict(parse_qsl(query[:MAX_QUERY])))
    engine = registry.engines()[before.scenario.engine]
    session = {
        "overlap": before.scenario.overlap or engine.overlap,
        "overlap_engine": engine.id,
        "view": view,
        name: choice_of(name, label),
    }
    state = reading.read(before.bare(), session, shown.sliders)
    return json.dumps({"views": shown.at(state).views}, allow_nan=False, separators=(",", ":")).encode()


def answer(request: Request) -> Response:
    """`/ahead?view=…&query=…&name=…&label=…` as JSON; nothing (204) for what there is not."""
    asked: Mapping[str, str] = request.query_params
    try:
        found = ahead(*(asked.get(key, "") for key in ("view", "query", "name", "label")))
    except KeyError:
        return Response(status_code=204)
    return Response(found, media_type="application/json", headers={"cache-control": "no-store"})
