"""A cap on readers at once, and what one beyond it sees."""

from __future__ import annotations

from collections.abc import MutableMapping
from html import escape
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from app.hosting.settings import Settings
from app.hosting.wire import STREAM, header_of, path_of, reply, small_page

RETRY_SECONDS = 20
FULL = 1013
"""Code that closes the websocket of a reader who came too late; `shell.js` then loads the page anew, which says why."""
_ASSETS = (
    "/static/",
    "/app/static/",
    "/vendor/",
    "/embed/",
    "/files/",
    "/ahead",
    "/explain",
    "/healthz",
    "/_stcore/",
    "/media/",
    "/component/",
)


def full_page(settings: Settings) -> bytes:
    """What a reader sees when all places are taken."""
    static = f'<a href="{escape(settings.static_url, quote=True)}">The static copy</a> has every view of the usual scenarios. '
    return small_page(
        "All places are taken",
        f"{settings.max_sessions:,} readers are here already. This page tries again every {RETRY_SECONDS} seconds, with your scenario.",
        f"{static if settings.static_url else ''}The same numbers come from the command line: <code>kv-handoff evaluate</code>, or "
        "<code>kv-handoff serve</code> for a page of your own.",
        refresh=RETRY_SECONDS,
    )


class Sessions:
    """ASGI middleware that counts open sessions and refuses those beyond the cap; a session that dies gives its place back."""

    def __init__(self, app: ASGIApp, settings: Settings, main: str = "") -> None:
        self.app, self.settings = app, settings
        self.open = 0
        self.main = main.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request or a session."""
        full = self.open >= self.settings.max_sessions
        if scope["type"] == "websocket" and path_of(scope).endswith(STREAM):
            await (self._refuse(scope, receive, send) if full else self._session(scope, receive, send))
        elif full and scope["type"] == "http" and is_for_page(scope):
            page = full_page(self.settings)
            for message in reply(503, page, kind="text/html; charset=utf-8", retry_after=str(RETRY_SECONDS)):
                await send(message)
        else:
            await self.app(scope, receive, send)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Accept, because a browser does not say why it was refused before that, and close with a code that does."""
        await receive()
        offered = header_of(scope["headers"], b"sec-websocket-protocol").split(",")[0].strip()
        await send({"type": "websocket.accept", "subprotocol": offered or None})
        await send({"type": "websocket.close", "code": FULL, "reason": "All places are taken."})

    async def _session(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sent(message: Message) -> None:
            await send(self.bare(message))

        self.open += 1
        try:
            await self.app(scope, receive, sent)
        finally:
            self.open -= 1

    def bare(self, message: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """A message to the browser without what Streamlit tells of the machine: its folders, Python and system."""
        data = message.get("bytes")
        if not self.main or not data or self.main not in data:
            return message
        forward = ForwardMsg.FromString(data)
        if forward.WhichOneof("type") != "new_session":
            return message
        new = forward.new_session
        new.main_script_path = "main.py"
        new.initialize.environment_info.python_version = ""
        new.initialize.environment_info.server_os = ""
        return {**message, "bytes": forward.SerializeToString()}


def is_for_page(scope: Scope) -> bool:
    """Whether a request is for a view of the page, not for one of its parts."""
    path = path_of(scope)
    return scope["method"] in ("GET", "HEAD") and not path.startswith(_ASSETS) and "." not in path.rpartition("/")[2]
