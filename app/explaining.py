"""Explanations over plain HTTP, asked for when a number is opened: the page sends none of them before."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response

from app import own_models
from app.ahead import MAX_QUERY
from app.explained import headline
from app.state import State, from_link
from app.views import explain
from kvmodel.errors import KvModelError
from kvmodel.explain import FIGURES

MAX_PAGE = 300
"""Characters of a page's address."""


@lru_cache(maxsize=512)
def explaining(view: str, query: str, figure: str, own: str, page: str) -> bytes:
    """One figure explained, as JSON, or all of a view's where none is named, at the scenario of `query`.

    `own` names a model of the reader's own (`app.own_models`), `page` is the address that reports name.
    Raises KeyError: no such view, figure or model.
    """
    shown, state = explain.SHOWN[view], state_of(query, own)
    if not figure:
        found: dict[str, Any] = {"items": explain.blocks(state, view, page)}
    else:
        one = explain.told(FIGURES[figure], explain.case_of(state))
        others = {*shown, *(name for name in FIGURES if FIGURES[name].family == FIGURES[figure].family)}
        found = {"name": one.name, "value": headline(one), "items": explain.parts(one, others, state, view, page)}
    return json.dumps(found, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()


def state_of(query: str, own: str) -> State:
    """The state of a link, with a model of the reader's own where one is named. Raises KeyError."""
    state = from_link(dict(parse_qsl(query[:MAX_QUERY]))).bare().unpinned()
    if not own:
        return state
    try:
        return State(state.scenario.with_changes(model=own_models.find(own)), state.turn, traffic=state.traffic, seen=state.seen)
    except KvModelError as error:
        raise KeyError(own) from error


def answer(request: Request) -> Response:
    """`/explain?view=…&query=…&figure=…` as JSON; nothing (204) for what there is not."""
    asked = request.query_params
    page = asked.get("page", "")[:MAX_PAGE]
    try:
        found = explaining(*(asked.get(key, "") for key in ("view", "query", "figure", "own")), page if page.startswith("http") else "")
    except KeyError:
        return Response(status_code=204)
    return Response(found, media_type="application/json", headers={"cache-control": "no-store"})
