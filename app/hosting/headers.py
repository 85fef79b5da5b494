"""Headers that every answer carries, and errors that say nothing of the machine."""

from __future__ import annotations

import logging
import re
from base64 import b64encode
from functools import lru_cache
from hashlib import sha256
from urllib.parse import parse_qs, urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.hosting.address import is_answered
from app.hosting.settings import Settings
from app.hosting.wire import Headers, header_of, path_of, reply, without

_INLINE = re.compile(rb"<script(?![^>]*\bsrc=)(?![^>]*application/json)[^>]*>(.*?)</script>", re.DOTALL)
_CLOSED = "default-src 'none'; base-uri 'none'; form-action 'none'; "
_PAGE = (
    "default-src 'none'; script-src 'self' blob:{hashes}; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "font-src 'self' data:; connect-src 'self'; media-src 'self'; manifest-src 'self'; base-uri 'self'; form-action 'self'; "
)
_CHART = _CLOSED + "script-src 'self'{hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
_PLAIN = _CLOSED + "style-src 'unsafe-inline'; "
ALWAYS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=(), browsing-topics=()"),
]
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")
_CLOSED_PATHS = ("/_stcore/metrics", "/_stcore/agent/", "/_stcore/script-health-check")
"""Streamlit's own routes that no reader needs: counters, and an interface for programs."""
MAX_TARGET = 10_000
"""Characters of a path and its query."""
_LOGGER = logging.getLogger("kv_handoff.errors")


def _hashes(html: bytes) -> str:
    """The scripts that stand in a page, as a policy allows them."""
    found = [b64encode(sha256(script).digest()).decode() for script in _INLINE.findall(html)]
    return "".join(f" 'sha256-{one}'" for one in found)


@lru_cache(maxsize=64)
def page_policy(html: bytes) -> bytes:
    """The Content-Security-Policy of Streamlit's page, without who may frame it."""
    return _PAGE.format(hashes=_hashes(html)).encode()


def chart_policy(html: bytes) -> bytes:
    """The Content-Security-Policy of a chart's page, without who may frame it."""
    return _CHART.format(hashes=_hashes(html)).encode()


def may_be_framed(scope: Scope, settings: Settings) -> str:
    """Who may frame an answer: charts and embedded views have a rule of their own."""
    query = parse_qs(bytes(scope["query_string"]).decode("latin-1"))
    embedded = path_of(scope).startswith("/embed/") or query.get("embed", [""])[-1].lower() == "true"
    return settings.frame_ancestors if embedded else settings.page_frame_ancestors


def is_own_page(headers: Headers, settings: Settings) -> bool:
    """Whether a websocket is opened by the page itself: by its host, by its public address, on this machine, or by no browser."""
    origin = header_of(headers, b"origin")
    try:
        asked = urlsplit(origin)
    except ValueError:
        return False
    own = {header_of(headers, b"host"), urlsplit(settings.public_url).netloc} - {""}
    return not origin or asked.netloc in own or asked.hostname in _THIS_MACHINE


def secured(headers: Headers, ancestors: str) -> list[tuple[bytes, bytes]]:
    """An answer's headers with the others put in; its own policy, if it has one, is kept."""
    own = next((value for name, value in headers if name.lower() == b"content-security-policy"), _PLAIN.encode())
    policy = own + f"frame-ancestors {ancestors}".encode()
    kept = without(headers, b"content-security-policy", b"server", b"x-powered-by", *(name for name, _ in ALWAYS))
    return [*kept, *ALWAYS, (b"content-security-policy", policy)]


class Secure:
    """ASGI middleware: the headers, hosts that are answered, and one plain sentence for what went wrong."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app, self.settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] == "websocket":
            known = is_answered(scope["headers"], self.settings) and is_own_page(scope["headers"], self.settings)
            # Without the origin, which is checked: Streamlit would ask a server outside for this machine's address to check it.
            inside = {**scope, "headers": without(scope["headers"], b"origin")}
            await (self.app(inside, receive, send) if known else send({"type": "websocket.close", "code": 1008}))
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        ancestors = may_be_framed(scope, self.settings)
        begun = ended = False

        async def sent(message: Message) -> None:
            nonlocal begun, ended
            if message["type"] == "http.response.start":
                begun = True
                message = {**message, "headers": secured(message.get("headers", []), ancestors)}
            else:
                ended = not message.get("more_body", False)
            await send(message)

        async def say(status: int, words: str) -> None:
            for message in reply(status, words.encode()):
                await sent(message)

        if path_of(scope) != "/healthz" and not is_answered(scope["headers"], self.settings):
            await say(400, "This host name is not served here.")
        elif len(scope["query_string"]) + len(scope["path"]) > MAX_TARGET:
            await say(414, f"The address is too long; allowed: up to {MAX_TARGET:,} characters.")
        elif path_of(scope).startswith(_CLOSED_PATHS):
            await say(404, "Not Found")
        else:
            try:
                await self.app(scope, receive, sent)
            except Exception:
                _LOGGER.exception("a request failed")
                if begun and not ended:
                    raise
                if not begun:
                    await say(500, "Something went wrong here; the fault was noted.")
