"""Where the page is found, as far as it can be told without believing a request."""

from __future__ import annotations

from starlette.requests import Request

from app.hosting.settings import Settings
from app.hosting.wire import header_of

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


def host_of(header: str) -> str:
    """The name in a Host header, lower case, without its port."""
    host = header.strip().lower()
    return host.partition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]


def is_listed(host: str, listed: str) -> bool:
    """Whether a host is one of `listed`, where *.name stands for all below a name."""
    return any(host == one or (one.startswith("*.") and host.endswith(one[1:])) for one in listed.split())


def is_answered(headers: list[tuple[bytes, bytes]], settings: Settings) -> bool:
    """Whether a request's Host may be answered."""
    return not settings.allowed_hosts or is_listed(host_of(header_of(headers, b"host")), settings.allowed_hosts)


def explorer_of(request: Request, settings: Settings, *, framed: bool) -> str:
    """The address that a chart's link to the explorer begins with.

    A chart may be kept by caches that many share, so the Host that one request claims is never put into it,
    unless it is this machine's own or is listed. In a frame the link can be relative; a file on disk without
    a known address goes without.
    """
    if settings.public_url:
        return settings.public_url
    if framed:
        return ".."
    host = host_of(request.headers.get("host", ""))
    known = host in LOOPBACK or is_listed(host, settings.allowed_hosts)
    return str(request.base_url).rstrip("/") if known else ""
