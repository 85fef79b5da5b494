"""Clients that take too long to send a request, or to take an answer."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from app.hosting.settings import Settings, settings


class Deadlines:
    """ASGI middleware: a request has to arrive whole in time."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app, self.seconds = app, settings.slow_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        until = asyncio.get_running_loop().time() + self.seconds
        whole = False

        async def received() -> Message:
            nonlocal whole
            if whole:
                return await receive()
            try:
                async with asyncio.timeout_at(until):
                    message = await receive()
            except TimeoutError:
                # Starlette, within, makes this the answer.
                raise HTTPException(408, "The request did not arrive in time.", {"connection": "close"}) from None
            whole = not message.get("more_body", False)
            return message

        await self.app(scope, received, send)


class Protocol(H11Protocol):
    """Uvicorn's protocol, which by itself waits for ever for the head of a request, and for an answer to be taken."""

    _late: asyncio.TimerHandle | None = None
    _stuck: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Read; what leaves no request under way leaves one awaited."""
        super().data_received(data)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop()
        self.resume_writing()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """A client takes less than it is sent: watch whether it takes any."""
        super().pause_writing()
        self._watch(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """It took what there was."""
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None
        super().resume_writing()

    def _watch(self, left: int) -> None:
        self._stuck = self.loop.call_later(settings().slow_seconds, self._look, left)

    def _look(self, before: int) -> None:
        left = self.transport.get_write_buffer_size()
        if left < before:
            self._watch(left)
        else:
            self.transport.abort()

    def _wait(self) -> None:
        """Start the clock where a request is awaited, unless it runs; stop it once there is one."""
        awaited = self.cycle is None or self.cycle.response_complete
        upgraded = self.transport.get_protocol() is not self
        if not awaited or upgraded:
            self._stop()
        elif self._late is None:
            self._late = self.loop.call_later(settings().slow_seconds, self._give_up)

    def _stop(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _give_up(self) -> None:
        self._late = None
        if not self.transport.is_closing() and (self.cycle is None or self.cycle.response_complete):
            self.transport.abort()
