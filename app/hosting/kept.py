"""Rendered charts to send again: bounded by bytes, those unasked for longest go first."""

from __future__ import annotations

import gzip
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256

from anyio import CapacityLimiter, to_thread
from brotli import compress as brotli
from starlette.responses import Response

from app.hosting.wire import Headers, header_of

MIN_PACKED = 1_000
"""Bytes below which compression is not worth its header."""
BROTLI = 9
"""Quality of Brotli: a sixth less than gzip's best in its time; the two levels above take ten and twenty times as long."""
RENDERERS = 2
MAX_WAITING = 64
"""Charts that may be drawn or wait for their turn."""


class TooBusyError(Exception):
    """Too many charts wait to be drawn."""


@dataclass(frozen=True, slots=True)
class Body:
    """An answer's bytes, the same compressed, and its tag; what is read by all, compressed once more and better."""

    plain: bytes
    packed: bytes
    tag: str
    policy: bytes = b""
    least: bytes = b""
    """Compressed with Brotli; empty where it is not, or gains nothing."""

    @classmethod
    def of(cls, plain: bytes, *, level: int = 6, policy: bytes = b"", best: bool = False) -> Body:
        """Compress and tag bytes; what does not get smaller stays. The `best` of compressions is for what is sent often."""
        tag = f'W/"{sha256(plain).hexdigest()[:24]}"'
        if len(plain) < MIN_PACKED:
            return cls(plain, plain, tag, policy)
        with ThreadPoolExecutor(1) as beside:
            better = beside.submit(brotli, plain, quality=BROTLI) if best else None
            packed = gzip.compress(plain, level, mtime=0)
            least = better.result() if better else b""
        return cls(plain, packed if len(packed) < len(plain) else plain, tag, policy, least if len(least) < len(packed) else b"")

    def __len__(self) -> int:
        return len(self.plain) + (len(self.packed) if self.packed is not self.plain else 0) + len(self.least)

    def response(self, asked: Headers, *, kind: str, cache_control: str) -> Response:
        """The answer to a request with some headers: nothing where the client has it, else compressed where it takes that."""
        headers = {"vary": "accept-encoding", "etag": self.tag, "cache-control": cache_control}
        if is_known(self.tag, header_of(asked, b"if-none-match")):
            return Response(status_code=304, headers=headers)
        if self.policy:
            headers["content-security-policy"] = self.policy.decode()
        accepted = header_of(asked, b"accept-encoding")
        if self.least and takes("br", accepted):
            return Response(self.least, media_type=kind, headers={**headers, "content-encoding": "br"})
        if self.packed is self.plain or not takes("gzip", accepted):
            return Response(self.plain, media_type=kind, headers=headers)
        return Response(self.packed, media_type=kind, headers={**headers, "content-encoding": "gzip"})


def takes(coding: str, accepted: str) -> bool:
    """Whether an Accept-Encoding header allows a coding; by name, or gzip, which all know, by an asterisk."""
    names = (coding, "*") if coding == "gzip" else (coding,)
    offers = [offer.replace(" ", "").lower() for offer in accepted.split(",")]
    return any(offer.partition(";")[0] in names and not offer.endswith((";q=0", ";q=0.0")) for offer in offers)


def is_known(tag: str, if_none_match: str) -> bool:
    """Whether a client has an answer already, by the tags it sent."""
    tags = [one.strip().removeprefix("W/") for one in if_none_match.split(",")]
    return "*" in tags or tag.removeprefix("W/") in tags


class Kept:
    """Bodies by key, at most `budget` bytes of them."""

    def __init__(self, budget: int) -> None:
        self.budget, self.size = budget, 0
        self.bodies: OrderedDict[Hashable, Body] = OrderedDict()
        self.turns: CapacityLimiter | None = None
        self.waiting = 0

    def get(self, key: Hashable) -> Body | None:
        """A body that is kept."""
        if key in self.bodies:
            self.bodies.move_to_end(key)
        return self.bodies.get(key)

    def put(self, key: Hashable, body: Body) -> None:
        """Keep a body, unless it alone is beyond the budget."""
        old = self.bodies.pop(key, None)
        self.size -= len(old) if old else 0
        if len(body) > self.budget:
            return
        self.bodies[key] = body
        self.size += len(body)
        while self.size > self.budget:
            self.size -= len(self.bodies.popitem(last=False)[1])

    async def made(self, key: Hashable, make: Callable[[], Body]) -> Body:
        """A body, made beside the event loop where it is not kept; few at a time. Raises TooBusyError, and what `make` raises."""
        found = self.get(key)
        if found is None:
            self.turns = self.turns or CapacityLimiter(RENDERERS)
            if self.waiting >= MAX_WAITING:
                raise TooBusyError
            self.waiting += 1
            try:
                found = await to_thread.run_sync(make, limiter=self.turns)
            finally:
                self.waiting -= 1
            self.put(key, found)
        return found
