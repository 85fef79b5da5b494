"""The page as an ASGI application, and the command that starts it."""

from __future__ import annotations

import gc
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import plotly
import streamlit as st
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse
from starlette.routing import Route

from app.ahead import answer
from app.files import ROUTES
from app.shell import Shell

SWITCH_SECONDS = 0.0005
"""How long a script may keep the thread that sends its messages waiting; Python's default is ten times longer."""
PLOTLY_JS = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"


async def plotly_js(_: Request) -> FileResponse:
    """The plotly package's own bundle."""
    return FileResponse(PLOTLY_JS, media_type="text/javascript", headers={"cache-control": "public, max-age=86400"})


async def healthz(_: Request) -> PlainTextResponse:
    """Says that the process answers."""
    return PlainTextResponse("ok")


@asynccontextmanager
async def lifespan(_: Any) -> AsyncIterator[dict[str, Any]]:
    """Import and load everything once, then keep the collector from walking it on every run."""
    import pandas  # noqa: F401

    from app.views import critical_length, interconnects, matrices, measured, method, next_turn, one_request, weighs, wire  # noqa: F401
    from kvmodel import Scenario, evaluate

    evaluate(Scenario())
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    yield {}


app = st.App(
    str(Path(__file__).with_name("main.py")),
    lifespan=lifespan,
    middleware=[Middleware(Shell)],
    routes=[Route("/vendor/plotly.min.js", plotly_js), Route("/healthz", healthz), Route("/ahead", answer), *ROUTES],
)


def serve(*, port: str, address: str, browser: bool) -> None:
    """Start the page, open it in a browser where there is one, and stay until it ends."""
    from streamlit.web.cli import main

    flags = [f"--server.port={port}", f"--server.address={address}", "--server.showEmailPrompt=false"]
    flags += [] if browser else ["--server.headless=true"]
    sys.argv = ["streamlit", "run", str(Path(__file__)), *flags]
    main()
