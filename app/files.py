"""Charts over HTTP: a page of its own to embed, and files to keep. No Streamlit is needed to show them."""

from __future__ import annotations

from functools import cache, lru_cache
from hashlib import sha256
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from app.catalog import find_chart
from app.export import page, rows
from app.export.command import THEMES, command_of
from app.hosting.address import explorer_of
from app.hosting.headers import chart_policy
from app.hosting.kept import Body, Kept, TooBusyError
from app.hosting.packed import MINUTES, YEAR
from app.hosting.settings import settings
from app.state import State, bad_value, from_link
from kvmodel.errors import KvModelError

MAX_QUERY = 4_000
"""Characters of a scenario's query."""
TYPES = {"html": "text/html", "json": "application/json", "csv": "text/csv"}


def _state(request: Request) -> State:
    """The state that a request's query asks for; what cannot be used falls back as in a link, with a note that names it."""
    if len(request.url.query) > MAX_QUERY:
        raise KvModelError(f"the query has {len(request.url.query):,} characters; allowed: up to {MAX_QUERY:,}")
    return from_link(dict(request.query_params))


def _theme(request: Request) -> tuple[str, tuple[str, ...]]:
    """The theme asked for; the reader's own where there is none of that name, with a note."""
    asked = request.query_params.get("theme", "auto")
    if asked in THEMES:
        return asked, ()
    return "auto", (bad_value("theme", asked, f"allowed: {', '.join(THEMES)}", "auto"),)


@lru_cache(maxsize=256)
def content(name: str, kind: str, query: str, theme: str, explorer: str, notes: tuple[str, ...] = (), *, shared: bool) -> bytes:
    """A chart's file. `query` is that of a link, `notes` what a page says above its answer. Raises KvModelError."""
    chart, state = find_chart(name), from_link(dict(parse_qsl(query))).bare()
    command = command_of(chart, state)
    if kind == "json":
        return rows.chart_json(chart, state, command).encode("utf-8")
    if kind == "csv":
        return rows.chart_csv(chart, state).encode("utf-8")
    version = _script()[1] if shared else ""
    made = page.chart_html(chart, state, theme=theme, shared=shared, explorer=explorer, command=command, notes=notes, version=version)
    return made.encode("utf-8")


async def embed(request: Request) -> Response:
    """`/embed/NAME.html?scenario&theme=`: the chart alone, live, sized to its frame."""
    return await _reply(request, request.path_params["name"], "html", shared=True)


async def download(request: Request) -> Response:
    """`/files/NAME.html|json|csv?scenario`: the chart's file to keep."""
    name, kind = request.path_params["name"], request.path_params["kind"]
    if kind not in TYPES:
        return PlainTextResponse(
            "Files are html, json and csv; svg and png are made in the browser or by kv-handoff chart.", status_code=404
        )
    reply = await _reply(request, name, kind, shared=False)
    if reply.status_code == 200:
        reply.headers["content-disposition"] = f'attachment; filename="kv-handoff-{name}.{kind}"'
    return reply


async def _reply(request: Request, name: str, kind: str, *, shared: bool) -> Response:
    explorer = explorer_of(request, settings(), framed=shared)

    def made() -> Body:
        state = _state(request)
        theme, notes = _theme(request)
        plain = content(name, kind, state.query(), theme, explorer, (*state.notes, *notes), shared=shared)
        return Body.of(plain, policy=chart_policy(plain) if kind == "html" else b"")

    try:
        body = await kept().made((name, kind, shared, request.url.query[: MAX_QUERY + 1], explorer), made)
    except KvModelError as error:
        return PlainTextResponse(f"{error}.", status_code=404)
    except TooBusyError:
        return PlainTextResponse("Many charts are being drawn; try again in a moment.", status_code=503, headers={"retry-after": "5"})
    return body.response(request.scope["headers"], kind=TYPES[kind], cache_control=MINUTES)


@cache
def kept() -> Kept:
    """The charts that were rendered for a while."""
    return Kept(settings().chart_cache_mb << 20)


@cache
def _script() -> tuple[Body, str]:
    plain = page.common_script().encode("utf-8")
    return Body.of(plain, level=9, best=True), sha256(plain).hexdigest()[:12]


def script(request: Request) -> Response:
    """The script that all embedded charts share, to be kept long where its version is asked for."""
    body, version = _script()
    cached = YEAR if request.query_params.get("v") == version else MINUTES
    return body.response(request.scope["headers"], kind="text/javascript", cache_control=cached)


ROUTES = [
    Route(f"/embed/{page.SHARED_NAME}", script),
    Route("/embed/{name}.html", embed),
    Route("/files/{name}.{kind}", download),
]
