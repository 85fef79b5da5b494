"""A page of this project on a free port, for tests and measurements that need a real one."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import IO


@contextmanager
def page_server(log: IO[bytes] | None = None, **settings: str) -> Iterator[str]:
    """The address of a page with some environment variables; RuntimeError where it does not start. `log` gets what it prints."""
    with page_process(log, **settings) as (address, _):
        yield address


@contextmanager
def page_process(log: IO[bytes] | None = None, *, within: Sequence[str] = (), **settings: str) -> Iterator[tuple[str, int]]:
    """The same, with the number of its process; `within` are words of a command that runs another."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [*within, sys.executable, "-m", "app.cli", "serve", "--port", str(port), "--no-browser"]
    printed = log or subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=printed, stderr=printed, env={**os.environ, **settings})
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(150):
            try:
                urllib.request.urlopen(f"{address}/healthz", timeout=1).read()
                break
            except OSError:
                time.sleep(0.2)
        else:
            raise RuntimeError("the page did not start: `kv-handoff serve` says why")
        yield address, process.pid
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()


@contextmanager
def replicas_of_the_page(count: int, **settings: str) -> Iterator[list[tuple[str, int]]]:
    """Addresses and processes of some pages with the same environment variables, which start at the same time."""
    with ExitStack() as stack, ThreadPoolExecutor(count) as pool:
        yield list(pool.map(lambda _: stack.enter_context(page_process(**settings)), range(count)))


def on_a_page(measure: Callable[[str], None], **settings: str) -> None:
    """Measure the page whose address the command line gives, or one of its own with some environment variables."""
    if len(sys.argv) > 1:
        measure(sys.argv[1])
    else:
        with page_server(**settings) as own:
            measure(own)
