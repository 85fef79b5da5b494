"""Small words of ASGI that the parts of hosting share."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from starlette.types import Message, Scope

Headers = Iterable[tuple[bytes, bytes]]
STREAM = "/_stcore/stream"
"""Path, below the page's own, of the websocket of a session."""
PAGE_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:15vh auto;padding:0 1rem;color:#1b2230;background:#fff}"
    "@media(prefers-color-scheme:dark){body{color:#f3f5f8;background:#0e1117}a{color:#7dbcf5}}"
)


def header_of(headers: Headers, name: bytes) -> str:
    """The first value of a header, whose name is given in lower case; empty where there is none."""
    return next((value.decode("latin-1") for key, value in headers if key.lower() == name), "")


def path_of(scope: Scope) -> str:
    """A request's path below the page's own."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] or "/" if root and path.startswith(root) else path


def without(headers: Headers, *names: bytes) -> list[tuple[bytes, bytes]]:
    """Headers less those of some names."""
    return [(key, value) for key, value in headers if key.lower() not in names]


def client_of(scope: Scope) -> str:
    """The address of a request's client, as the server or a trusted proxy says it."""
    return str((scope.get("client") or ("",))[0])


def reply(status: int, body: bytes, *, kind: str = "text/plain; charset=utf-8", **headers: str) -> list[Message]:
    """The messages of a whole answer; `retry_after="5"` is the header Retry-After."""
    named = {"content-type": kind, "content-length": str(len(body)), "cache-control": "no-store"}
    named |= {name.replace("_", "-"): value for name, value in headers.items()}
    raw = [(name.encode(), value.encode()) for name, value in named.items()]
    return [{"type": "http.response.start", "status": status, "headers": raw}, {"type": "http.response.body", "body": body}]


def small_page(title: str, *paragraphs: str, refresh: int = 0) -> bytes:
    """A page that needs nothing else; its paragraphs are HTML."""
    again = f'<meta http-equiv="refresh" content="{refresh}">' if refresh else ""
    said = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">{again}'
        f"<title>{escape(title)}</title><style>{PAGE_STYLE}</style></head><body><main><h1>{escape(title)}</h1>{said}</main></body></html>"
    ).encode()
