"""A view's charts and texts for another choice, before the page's own run has drawn them.

Streamlit redraws the whole page after a choice. The browser asks here for the charts alone, over plain
HTTP, while that goes on; what the run then sends is the same, and drawn once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response

from app import controls, reading
from app.live import Board
from app.over import token_positions
from app.state import State, from_link
from app.views import critical_length, measured, next_turn, one_request, weighs, wire
from kvmodel import registry

MAX_QUERY = 2_000
"""Characters of a scenario's query."""


def _over_prompt(picture: Callable[[State, tuple[int, ...]], Board], state: State) -> Board:
    return picture(state, token_positions(state.scenario.prompt_tokens))


PICTURES: dict[str, tuple[Callable[[State], Board], tuple[str, ...]]] = {
    "one-request": (one_request.picture, ("batch", "prompt_tokens")),
    "critical-length": (partial(_over_prompt, critical_length.picture), ("batch", "prompt_tokens")),
    "next-turn": (next_turn.picture, next_turn.SLIDERS),
    "wire": (partial(_over_prompt, wire.picture), ("in_flight", "prompt_tokens")),
    "measured": (measured.picture, ("batch", "prompt_tokens")),
    "weighs": (partial(_over_prompt, weighs.picture), ("batch", "prompt_tokens")),
}
"""By view: how its pictures are described, and its sliders."""


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
    picture, sliders = PICTURES[view]
    before = from_link(dict(parse_qsl(query[:MAX_QUERY])))
    engine = registry.engines()[before.scenario.engine]
    session = {
        "overlap": before.scenario.overlap or engine.overlap,
        "overlap_engine": engine.id,
        "view": view,
        name: choice_of(name, label),
    }
    state = reading.read(before.bare(), session, sliders)
    return json.dumps({"views": picture(state).views}, allow_nan=False, separators=(",", ":")).encode()


def answer(request: Request) -> Response:
    """`/ahead?view=…&query=…&name=…&label=…` as JSON; 404 for what there is not."""
    asked: Mapping[str, str] = request.query_params
    try:
        found = ahead(*(asked.get(key, "") for key in ("view", "query", "name", "label")))
    except KeyError:
        return Response(status_code=404)
    return Response(found, media_type="application/json", headers={"cache-control": "no-store"})
