"""Ask a page for one chart as fast as it answers, from its cache. Prints requests a second; asserts nothing.

python tests/load_charts.py [ADDRESS]      starts a page of its own, without a rate limit, where no address is given
"""

from __future__ import annotations

import http.client
import os
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

from tests.page_server import on_a_page

SECONDS = 5.0
PATHS = ("/embed/timeline.html?link=ethernet-25", "/embed/critical.html", "/files/ratio.json")


def ask(address: str, path: str, headers: dict[str, str]) -> tuple[int, int]:
    """Answers in SECONDS on one connection, and bytes of one of them."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=10)
    until, answers, size = time.monotonic() + SECONDS, 0, 0
    while time.monotonic() < until:
        connection.request("GET", path, headers=headers)
        reply = connection.getresponse()
        size = len(reply.read())
        if reply.status not in (200, 304):
            raise SystemExit(f"{path}: status {reply.status}; a page under load needs KV_HANDOFF_RATE_PER_SECOND=0")
        answers += 1
    return answers, size


def measure(address: str) -> None:
    """Print requests a second for some charts, compressed, on four connections."""
    print(f"load average {os.getloadavg()[0]:.2f}")
    for path in PATHS:
        headers = {"accept-encoding": "gzip"}
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda _: ask(address, path, headers), range(4)))  # noqa: B023
        print(f"  {path:44} {sum(n for n, _ in found) / SECONDS:7.0f} requests a second, {found[0][1]:,} bytes each")


if __name__ == "__main__":
    on_a_page(measure, KV_HANDOFF_RATE_PER_SECOND="0", KV_HANDOFF_LOG_LEVEL="warning")
