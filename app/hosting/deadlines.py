"""Clients that take too long: a deadline for what they send, and for taking what they get."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from app.hosting.settings import Settings, settings
from app.hosting.wire import reply


class LateError(Exception):
    """A client sent no more of its request in time."""


class Deadlines:
    """ASGI middleware: a request has to arrive whole in time, and each part of its answer to be taken in time."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app, self.seconds = app, settings.slow_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        until = asyncio.get_running_loop().time() + self.seconds
        whole = begun = False

        async def received() -> Message:
            nonlocal whole
            if whole:
                return await receive()
            try:
                async with asyncio.timeout_at(until):
                    message = await receive()
            except TimeoutError:
                raise LateError from None
            whole = not message.get("more_body", False)
            return message

        async def sent(message: Message) -> None:
            nonlocal begun
            begun = True
            async with asyncio.timeout(self.seconds):
                await send(message)

        try:
            await self.app(scope, received, sent)
        except LateError:
            if not begun:
                for message in reply(408, b"The request did not arrive in time.", connection="close"):
                    await sent(message)


class Protocol(H11Protocol):
    """Uvicorn's protocol, which by itself waits for ever for the head of a request."""

    _late: asyncio.TimerHandle | None = None

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
        super().connection_lost(exc)

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
