"""The log: one JSON object a line, without an address, a query or anything else that came from a reader."""

from __future__ import annotations

import json
import logging
import re
import sys
import time
import traceback
from datetime import UTC, datetime
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.hosting.wire import STREAM, path_of

_REQUESTS = logging.getLogger("kv_handoff.requests")
NOISY = ("uvicorn", "uvicorn.error", "uvicorn.asgi", "uvicorn.access", "websockets", "asyncio")
_PREFIXES = ("/embed/", "/files/", "/static/", "/app/static/", "/vendor/", "/_stcore/upload_file/", "/_stcore/", "/media/", "/component/")


def route_of(path: str, views: frozenset[str], charts: frozenset[str]) -> str:
    """What a path asks for: a route with the name of a chart or view that there is, never what a reader typed."""
    if path.strip("/") in views or path in ("/", "/healthz", "/ahead", "/explain", STREAM):
        return path.rstrip("/") or "/"
    prefix = next((prefix for prefix in _PREFIXES if path.startswith(prefix)), "")
    if prefix in ("/embed/", "/files/"):
        name, _, kind = path.removeprefix(prefix).partition(".")
        return f"{prefix}{name}.{kind}" if name in charts and kind in ("html", "json", "csv") else f"{prefix}…"
    return f"{prefix}…" if prefix else "other"


_FILLED = re.compile(r"%(\(\w+\))?[-#0 +]*\d*(\.\d+)?[a-zA-Z]")


class Lines(logging.Formatter):
    """A record as a line of JSON. Of a message only its template is kept, with … for values: they may be a reader's."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        line: dict[str, Any] = {"time": _time(record.created), "level": record.levelname.lower()}
        fields = getattr(record, "fields", None)
        line |= fields if fields is not None else {"logger": record.name, "message": _FILLED.sub("…", str(record.msg))}
        if record.exc_info and record.exc_info[0]:
            line |= {"error": record.exc_info[0].__name__, "at": places(record.exc_info[2])}
        return json.dumps(line, ensure_ascii=False, separators=(",", ":"))


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def places(trace: Any) -> list[str]:
    """Where an exception came from: module, line and function, without values."""
    return [f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(trace)[-6:]]


def set_up(level: str) -> None:
    """Send every logger's lines to standard error as JSON."""
    from streamlit import logger as streamlit_logger

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    others = max(getattr(logging, level.upper()), logging.WARNING)
    streamlit_logger.set_log_level(others)
    known = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "streamlit"]
    for name in {*NOISY, *known}:
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.setLevel(others)
        logger.propagate = True


class Requests:
    """ASGI middleware: a line for each request and each session."""

    def __init__(self, app: ASGIApp, views: frozenset[str], charts: frozenset[str]) -> None:
        self.app, self.views, self.charts = app, views, charts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        began, status, size = time.perf_counter(), 0, 0

        async def sent(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "websocket.accept":
                status = 101
            status = message.get("status", status)
            size += len(message.get("body") or message.get("bytes") or b"")
            await send(message)

        try:
            await self.app(scope, receive, sent)
        finally:
            ms = round((time.perf_counter() - began) * 1e3, 1)
            route = route_of(path_of(scope), self.views, self.charts)
            _REQUESTS.info("request", extra={"fields": {"route": route, "status": status, "ms": ms, "bytes": size}})
