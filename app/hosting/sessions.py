"""A cap on readers at once, in all and from one address, and what one beyond it sees."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, MutableMapping
from html import escape
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from app.hosting.limit import network_of
from app.hosting.settings import Settings
from app.hosting.wire import STREAM, client_of, header_of, path_of, reply, small_page

RETRY_SECONDS = 20
FULL = 1013
"""Code that closes the websocket of a reader who came too late; `shell.js` then loads the page anew, which says why."""
GONE = 4001
"""Code that closes the websocket of a reader who comes back to a session that is no more: it was away for long, or in a process
that has ended. What the browser holds is then older than its address; `shell.js` loads the page anew, which reads that."""
BEHIND = (
    "X-Forwarded-For came along, and KV_HANDOFF_TRUSTED_PROXIES names no proxy: readers behind one count as one address, "
    "and the places of that are taken"
)
NOT_BINARY = 1003
"""Code that closes the websocket of who sends text: a session's messages are binary."""
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


def full_page(settings: Settings, *, of_address: bool = False) -> bytes:
    """What a reader sees when all places are taken, or those of the reader's own address."""
    static = f'<a href="{escape(settings.static_url, quote=True)}">The static copy</a> has every view of the usual scenarios. '
    here = (
        f"{settings.max_sessions_per_address:,} readers from your network are here already; a tab that is closed makes room."
        if of_address
        else f"{settings.max_sessions:,} readers are here already."
    )
    return small_page(
        "All places are taken",
        f"{here} This page tries again every {RETRY_SECONDS} seconds, with your scenario.",
        f"{static if settings.static_url else ''}The same numbers come from the command line: <code>kv-handoff evaluate</code>, or "
        "<code>kv-handoff serve</code> for a page of your own.",
        refresh=RETRY_SECONDS,
    )


def place_of(scope: Scope) -> str:
    """What a session counts towards besides the whole: its client's network.

    Nothing for loopback, which is this machine's own, or a proxy in front that is not named as trusted.
    """
    client = client_of(scope)
    network = network_of(client)
    return "" if network.startswith("127.") or client == "::1" else network


class Sessions:
    """ASGI middleware that counts open sessions and refuses those beyond the cap; a session that dies gives its place back.

    `lives` says whether a session of some id is there.
    """

    def __init__(self, app: ASGIApp, settings: Settings, main: str = "", lives: Callable[[str], bool] = lambda _: True) -> None:
        self.app, self.settings, self.lives = app, settings, lives
        self.open = 0
        self.places: Counter[str] = Counter()
        self.main = main.encode()
        self.told = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request or a session."""
        if scope["type"] == "websocket" and path_of(scope).endswith(STREAM):
            full = self.is_full() or self.is_taken(scope)
            await (self._refuse(scope, receive, send) if full else self._session(scope, receive, send))
        elif scope["type"] == "http" and is_for_page(scope) and (self.is_full() or self.is_taken(scope)):
            page = full_page(self.settings, of_address=not self.is_full())
            for message in reply(503, page, kind="text/html; charset=utf-8", retry_after=str(RETRY_SECONDS)):
                await send(message)
        else:
            await self.app(scope, receive, send)

    def is_full(self) -> bool:
        """Whether all places are taken."""
        return self.open >= self.settings.max_sessions

    def is_taken(self, scope: Scope) -> bool:
        """Whether the places of a client's network are taken; logged once where that may be a proxy's."""
        place, most = place_of(scope), self.settings.max_sessions_per_address
        taken = bool(place and most) and self.places[place] >= most
        if taken and not self.told and not self.settings.trusted_proxies and header_of(scope["headers"], b"x-forwarded-for"):
            self.told = True
            logging.getLogger("kv_handoff.sessions").warning(BEHIND)
        return taken

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Accept, because a browser does not say why it was refused before that, and close with a code that does."""
        await receive()
        await send({"type": "websocket.accept", "subprotocol": offered(scope)[0] or None})
        await send({"type": "websocket.close", "code": FULL, "reason": "All places are taken."})

    async def _session(self, scope: Scope, receive: Receive, send: Send) -> None:
        _, _, earlier = offered(scope)
        accepted = False

        async def sent(message: Message) -> None:
            nonlocal accepted
            accepted = accepted or message["type"] == "websocket.accept"
            await send(self.bare(message))

        async def received() -> Message:
            nonlocal earlier
            # Streamlit accepts, takes the earlier session up where it has it, and only then listens.
            asked, earlier = (earlier, "") if accepted else ("", earlier)
            if asked and not self.lives(asked):
                await send({"type": "websocket.close", "code": GONE, "reason": "The session has ended."})
                return {"type": "websocket.disconnect", "code": GONE}
            message = await receive()
            if message["type"] == "websocket.receive" and message.get("bytes") is None:
                await send({"type": "websocket.close", "code": NOT_BINARY, "reason": "Binary messages only."})
                return {"type": "websocket.disconnect", "code": NOT_BINARY}
            return message

        place = place_of(scope)
        self.open += 1
        self.places[place] += 1
        try:
            await self.app(scope, received, sent)
        finally:
            self.open -= 1
            self.places[place] -= 1
            if not self.places[place]:
                del self.places[place]

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


def offered(scope: Scope) -> tuple[str, str, str]:
    """What a browser of Streamlit's offers as subprotocols: one to choose, a token, and the session that it had before."""
    one, token, earlier, *_ = [*(word.strip() for word in header_of(scope["headers"], b"sec-websocket-protocol").split(",")), "", "", ""]
    return one, token, earlier


def is_for_page(scope: Scope) -> bool:
    """Whether a request is for a view of the page, not for one of its parts."""
    path = path_of(scope)
    return scope["method"] in ("GET", "HEAD") and not path.startswith(_ASSETS) and "." not in path.rpartition("/")[2]
