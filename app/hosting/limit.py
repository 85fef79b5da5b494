"""A limit on how often one client asks for charts."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address

from starlette.types import ASGIApp, Receive, Scope, Send

from app.hosting.settings import Settings
from app.hosting.wire import client_of, path_of, reply

LIMITED = ("/embed/", "/files/", "/ahead", "/explain")
MAX_CLIENTS = 10_000
"""Clients that are remembered; the one unseen for longest is forgotten first."""


def network_of(client: str) -> str:
    """What counts as one client: an IPv4 address, or the /64 that an IPv6 subscriber has to themselves."""
    try:
        address = ip_address(client.partition("%")[0])
    except ValueError:
        return client
    if not isinstance(address, IPv6Address):
        return client
    return str(address.ipv4_mapped) if address.ipv4_mapped else address.exploded[:19]


class Buckets:
    """A token bucket for each client: `burst` at once, `rate` a second in the long run."""

    def __init__(self, *, rate: float, burst: int, clients: int = MAX_CLIENTS, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self.burst, self.clients, self.clock = rate, burst, clients, clock
        self.filled: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, client: str) -> float:
        """Take a token; seconds until there is one, 0 if one was taken."""
        now = self.clock()
        tokens, since = self.filled.pop(client, (float(self.burst), now))
        tokens = min(self.burst, tokens + (now - since) * self.rate)
        taken = tokens >= 1
        self.filled[client] = (tokens - taken, now)
        if len(self.filled) > self.clients:
            self.filled.popitem(last=False)
        return 0 if taken else (1 - tokens) / self.rate


class Limit:
    """ASGI middleware: 429 with Retry-After for a client that asks for charts too often."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self.buckets = Buckets(rate=settings.rate_per_second, burst=settings.rate_burst) if settings.rate_per_second else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or say how long to wait."""
        if self.buckets and scope["type"] == "http" and path_of(scope).startswith(LIMITED):
            seconds = math.ceil(self.buckets.wait(network_of(client_of(scope))))
            if seconds:
                words = f"Too many charts were asked for from this address; try again in {seconds} s."
                for message in reply(429, words.encode(), retry_after=str(seconds)):
                    await send(message)
                return
        await self.app(scope, receive, send)
