"""The HTML that carries the page: early loading of what the views need, their rules, title and description."""

from __future__ import annotations

import re
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.catalog import TITLES
from app.chunks import late_scripts
from app.hosting.headers import page_policy
from app.hosting.wire import path_of, reply, small_page, without
from app.live import STATIC, plotly_url, version_of

DESCRIPTION = "What moving the KV cache from prefill to decode costs in disaggregated LLM serving: bytes, time, and when it matters."
TEXT_ONLY = "/method"
"""Path of the view without charts."""
PAGES = frozenset(("", *TITLES))
"""Paths of the views, without slashes around them."""
NO_PAGE = small_page(
    "Nothing is here",
    'No view has this address. <a href="/">The explorer</a> begins with one request; a chart is at <code>/embed/NAME.html</code>.',
)
SCRIPTS = ("liveview.js", "ahead.js", "share.js", "explain.js", "open.js", "touch.js")
RULES = f"app/static/page.css?v={version_of(STATIC / 'page.css')}"
"""Address of the rules of the page, which stand there before its elements do: what comes late finds its place kept."""
_LAST = f'<link rel="stylesheet" href="./{RULES}">\n  </body>'.encode()
"""After the rules of Streamlit's own, which stand in the head, so that of two as strong the page's hold."""
_TOLD = "The KV handoff explorer draws with JavaScript. The same numbers come from the command line: kv-handoff evaluate."
WITHOUT_SCRIPTS = f"<noscript><p>{_TOLD}</p></noscript>".encode()
_NOSCRIPT = re.compile(rb"<noscript>.*?</noscript>", re.DOTALL)
_FIRST_SCRIPT = b'<script type="module"'


def head_html(*, drawn: bool) -> bytes:
    """Elements to put into the page's head, before its first script; `drawn` pages will need Plotly."""
    shell, links = STATIC / "shell.js", STATIC / "links.js"
    lines = [
        f'<meta name="description" content="{DESCRIPTION}">',
        f'<link rel="preload" as="style" href="./{RULES}">',
        f'<script src="./app/static/{shell.name}?v={version_of(shell)}"></script>',
        f'<script type="module" src="./app/static/{links.name}?v={version_of(links)}"></script>',
        *(f'<link rel="modulepreload" href="./app/static/{name}?v={version_of(STATIC / name)}">' for name in SCRIPTS),
    ]
    if drawn:
        lines.append(f'<link rel="preload" as="script" href="./{plotly_url()}">')
    return "\n    ".join(lines).encode()


class Shell:
    """ASGI middleware that completes the head of Streamlit's HTML page; all else passes untouched."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.head = {drawn: head_html(drawn=drawn) for drawn in (True, False)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http" or scope["method"] != "GET":
            await self.app(scope, receive, send)
            return
        is_page = path_of(scope).strip("/") in PAGES
        start: dict[str, Any] = {}
        body = bytearray()

        async def complete(message: Message) -> None:
            if message["type"] == "http.response.start" and _is_html(message):
                start.update(message)
                return
            if start and not is_page:
                # Streamlit answers every address with its page, which then asks for its scripts below that address.
                if not message.get("more_body"):
                    for part in reply(404, NO_PAGE, kind="text/html; charset=utf-8"):
                        await send(part)
                return
            if not start:
                await send(message)
                return
            body.extend(message.get("body", b""))
            if message.get("more_body"):
                return
            head = self.head[not scope["path"].rstrip("/").endswith(TEXT_ONLY)]
            late = "".join(f'    <link rel="modulepreload" href="./static/js/{name}">\n' for name in late_scripts(body.decode()))
            page = bytes(body).replace(_FIRST_SCRIPT, head + b"\n    " + _FIRST_SCRIPT, 1)
            page = page.replace(b"</head>", late.encode() + b"  </head>", 1)
            page = _NOSCRIPT.sub(WITHOUT_SCRIPTS, page, 1)
            page = page.replace(b"</body>", _LAST, 1)
            page = page.replace(b"<title>Streamlit</title>", b"<title>KV handoff explorer</title>")
            kept = [(name, value) for name, value in start["headers"] if name.lower() not in (b"content-length", b"etag", b"last-modified")]
            headers = [*kept, (b"content-length", str(len(page)).encode()), (b"content-security-policy", page_policy(page))]
            await send({**start, "headers": headers})
            await send({"type": "http.response.body", "body": page})

        plain = {**scope, "headers": without(scope["headers"], b"accept-encoding")} if is_page else scope
        await self.app(plain, receive, complete)


def _is_html(message: Message) -> bool:
    return any(name.lower() == b"content-type" and value.startswith(b"text/html") for name, value in message["headers"])
