"""The page as an ASGI application, and the command that starts it."""

from __future__ import annotations

import gc
import sys
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import plotly
import streamlit as st
import uvicorn
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse
from starlette.routing import Route, Router
from starlette.types import ASGIApp
from streamlit.runtime import get_instance

from app import ahead, explaining
from app.catalog import CHARTS
from app.files import ROUTES
from app.hosting import log
from app.hosting.deadlines import Deadlines, Protocol
from app.hosting.headers import Secure
from app.hosting.limit import Limit
from app.hosting.packed import Packed
from app.hosting.sessions import Sessions
from app.hosting.settings import Settings, settings
from app.hosting.sockets import FastDeflate
from app.live import STATIC, version_of
from app.shell import PAGES, Shell

SWITCH_SECONDS = 0.0005
"""How long a script may keep the thread that sends its messages waiting; Python's default is ten times longer."""
MAIN = Path(__file__).with_name("main.py")
PLOTLY_JS = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
MAX_MESSAGE = 2 << 20
"""Bytes of one message from a browser."""
PING_SECONDS = 20
"""How often a browser is asked whether it is still there, and how long it may take to answer."""


async def plotly_js(_: Request) -> FileResponse:
    """The plotly package's own bundle."""
    return FileResponse(PLOTLY_JS, media_type="text/javascript", headers={"cache-control": "public, max-age=86400"})


async def healthz(_: Request) -> PlainTextResponse:
    """Says that the process answers."""
    return PlainTextResponse("ok", headers={"cache-control": "no-store"})


@asynccontextmanager
async def lifespan(_: Any) -> AsyncIterator[dict[str, Any]]:
    """Import and load everything once, then keep the collector from walking it on every run."""
    import pandas  # noqa: F401

    from app import prepared
    from app.views import critical_length, interconnects, matrices, measured, method, next_turn, one_request, sensitivity, weighs, wire  # noqa: F401
    from kvmodel import Scenario, evaluate

    evaluate(Scenario())
    if settings().prepare:
        prepared.prepare()
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    yield {}


def _version(path: str) -> str:
    """The version of one of the page's own static files; empty for what is not one."""
    file = STATIC / path.removeprefix("/app/static/")
    return version_of(file) if path.startswith("/app/static/") and file.is_file() else ""


class Host:
    """The page with all that hosting it needs, outermost first: log, deadlines, headers, limits, compression."""

    def __init__(self, asked: Settings) -> None:
        page = st.App(str(MAIN), lifespan=lifespan, middleware=[Middleware(Shell)])
        routes = [
            Route("/vendor/plotly.min.js", plotly_js),
            Route("/healthz", healthz),
            Route("/ahead", ahead.answer),
            Route("/explain", explaining.answer),
            *ROUTES,
        ]
        self.page: ASGIApp = page
        packed = Packed(GZipMiddleware(Router(routes, default=page, redirect_slashes=False), minimum_size=1_000), _version)
        self.sessions = Sessions(packed, asked, str(MAIN), lambda session: get_instance().is_active_session(session))
        self.whole = log.Requests(Secure(Deadlines(Limit(self.sessions, asked), asked), asked), PAGES - {""}, frozenset(CHARTS))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve a request, a session, or the server's start and end."""
        await (self.page if scope["type"] == "lifespan" else self.whole)(scope, receive, send)


def configuration(asked: Settings) -> uvicorn.Config:
    """How the page is served."""
    return uvicorn.Config(
        Host(asked),
        host=asked.address,
        port=asked.port,
        http=Protocol,
        loop="app.hosting.loop:Woken",
        ws=FastDeflate,
        ws_max_size=MAX_MESSAGE,
        ws_ping_interval=PING_SECONDS,
        ws_ping_timeout=PING_SECONDS,
        ws_per_message_deflate=True,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(asked.trusted_proxies),
        forwarded_allow_ips=asked.trusted_proxies.split(),
        timeout_keep_alive=max(1, min(5, int(asked.slow_seconds))),
        timeout_graceful_shutdown=3,
    )


class Server(uvicorn.Server):
    """Uvicorn's server, which says where the page is once it answers."""

    def __init__(self, asked: Settings, *, browser: bool) -> None:
        super().__init__(configuration(asked))
        self.asked, self.browser = asked, browser

    async def startup(self, sockets: Any = None) -> None:
        """Listen, then say so."""
        await super().startup(sockets)
        host = "127.0.0.1" if self.asked.address in ("0.0.0.0", "::") else self.asked.address
        here = f"http://{host}:{self.asked.port}"
        place = f"{self.asked.public_url}, served from {here}" if self.asked.public_url else here
        print(f"The page is at {place}; Ctrl+C ends it.", flush=True)
        if self.browser:
            webbrowser.open(here)


def serve(asked: Settings, *, browser: bool) -> None:
    """Start the page, open it in a browser where there is one, and stay until it ends."""
    from streamlit import config

    server = Server(asked, browser=browser)
    # After the application is made: Streamlit reads the page's own settings then, and only once.
    config.set_option("server.address", asked.address)
    config.set_option("server.port", asked.port)
    if asked.public_url:
        config.set_option("server.corsAllowedOrigins", [asked.public_url])
    if asked.public_url.startswith("https:") and "//" in asked.page_frame_ancestors:
        # The token of uploads is a cookie, which a browser keeps from a frame in another site's page unless it says so.
        config.set_option("server.xsrfCookieSameSite", "none")
    log.set_up(asked.log_level)
    server.run()


def __getattr__(name: str) -> Host:
    """`app`, for other ASGI servers, made when it is first asked for."""
    if name != "app":
        raise AttributeError(name)
    return globals().setdefault("app", Host(settings()))
