"""The event loop of a hosted page: a thread that hands it many messages wakes it once."""

from __future__ import annotations

import asyncio


class Woken(asyncio.SelectorEventLoop):
    """A loop that is not woken again while it has yet to look.

    A run of the page hands over some seventy messages, and each would be a byte written to the loop and read by it.
    What is handed over while a byte waits is in the queue that the loop walks before it sleeps again.
    """

    _called = False
    """Whether a byte waits, or is about to: never without one, or the loop would sleep through what comes next."""

    def _write_to_self(self) -> None:
        if not self._called:
            self._called = True
            super()._write_to_self()

    def _read_from_self(self) -> None:
        super()._read_from_self()
        self._called = False
