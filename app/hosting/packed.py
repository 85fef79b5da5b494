"""Scripts and styles, compressed once and kept, with headers that let browsers keep them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from urllib.parse import parse_qs

import brotli
from anyio import to_thread
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.hosting.kept import Body
from app.hosting.wire import header_of, path_of, without

FOLDERS = ("/static/", "/app/static/", "/vendor/")
_TEXTS = ("text/javascript", "application/javascript", "text/css", "application/json", "image/svg+xml")
LARGEST = 8 << 20
LARGE, HARDEST = 1 << 20, 10
"""Bytes from which a file is compressed once more, and Brotli's quality then: a twelfth less for ten times the work."""
SETTLED_SECONDS = 15.0
"""Wait before that, so that it does not take the processor from the page of who asked."""
YEAR = "public, max-age=31536000, immutable"
MINUTES = "public, max-age=600"


class Packed:
    """ASGI middleware. Files do not change while the page runs, so that each is read and compressed once.

    A file asked for with the version it has (`?v=`) may be kept for a year. `version` gives that of a path.
    A large one is compressed harder `pause` seconds after it was first asked for.
    """

    def __init__(self, app: ASGIApp, version: Callable[[str], str] = lambda _: "", *, pause: float = SETTLED_SECONDS) -> None:
        self.app, self.version, self.pause = app, version, pause
        self.later: set[asyncio.Task[None]] = set()
        self.bodies: dict[str, tuple[Body, str, str]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD") or not path_of(scope).startswith(FOLDERS):
            await self.app(scope, receive, send)
            return
        path = path_of(scope)
        if path not in self.bodies and not await self._read(path, scope, receive, send):
            return
        body, kind, kept_for = self.bodies[path]
        asked = parse_qs(scope["query_string"].decode("latin-1")).get("v", [""])[0]
        cached = YEAR if asked and asked == self.version(path) else kept_for
        response = body.response(scope["headers"], kind=kind, cache_control=cached)
        response.headers["access-control-allow-origin"] = "*"
        await response(scope, receive, send)

    async def _read(self, path: str, scope: Scope, receive: Receive, send: Send) -> bool:
        """Take a file from the application and keep it; False where what came was sent on as it is."""
        start: Message = {}
        content = bytearray()
        plain = without(scope["headers"], b"accept-encoding", b"range", b"if-none-match", b"if-modified-since", b"if-range")

        async def taken(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start" and is_text(message):
                start = message
            elif start:
                content.extend(message.get("body", b""))
            else:
                await send(message)

        await self.app({**scope, "method": "GET", "headers": plain}, receive, taken)
        if not start:
            return False
        body = await to_thread.run_sync(lambda: Body.of(bytes(content), best=True))
        kind = header_of(start["headers"], b"content-type")
        self.bodies[path] = (body, kind, header_of(start["headers"], b"cache-control") or MINUTES)
        if len(body.plain) >= LARGE:
            task = asyncio.create_task(self._harder(path))
            self.later.add(task)
            task.add_done_callback(self.later.discard)
        return True

    async def _harder(self, path: str) -> None:
        """Replace a file's compressed bytes by fewer."""
        await asyncio.sleep(self.pause)
        body, *rest = self.bodies[path]
        least = await to_thread.run_sync(partial(brotli.compress, body.plain, quality=HARDEST), abandon_on_cancel=True)
        if len(least) < len(body.least):
            self.bodies[path] = (replace(body, least=least), *rest)


def is_text(start: Message) -> bool:
    """Whether an answer is a text that is worth keeping."""
    kind = header_of(start["headers"], b"content-type").partition(";")[0].strip()
    size = header_of(start["headers"], b"content-length")
    return start["status"] == 200 and kind in _TEXTS and size.isdigit() and int(size) <= LARGEST
