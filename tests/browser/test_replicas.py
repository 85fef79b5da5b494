"""Two replicas behind nginx under load, and one of them ends: its readers go on at the other, with what they saw."""

import asyncio
import os
import signal
import threading
import time
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from app.hosting.wire import STREAM
from tests.absent import absent
from tests.browser.conftest import Visit
from tests.load_page import Reader
from tests.nginx_server import NGINX, nginx_server
from tests.page_server import replicas_of_the_page

pytestmark = pytest.mark.browser
LINK = "link=ethernet-25&batch=2"


@contextmanager
def others_read(address, count=4):
    """Other readers, who commit and come back when they are cut off; yields when each commit ended, reader by reader."""
    ended, commits = threading.Event(), [[] for _ in range(count)]

    async def read(number):
        cookie = f"kv_replica={number % 2}"
        while not ended.is_set():
            try:
                async with connect(
                    address.replace("http", "ws") + STREAM,
                    subprotocols=["streamlit"],
                    additional_headers={"cookie": cookie},
                    max_size=None,
                    close_timeout=0.3,
                ) as line:
                    reader = Reader(line, link=LINK)
                    await reader.run()
                    while not ended.is_set():
                        await reader.run(value=reader.options[(len(commits[number]) * 7 + number) % len(reader.options)])
                        commits[number].append(time.monotonic())
                        await asyncio.sleep(1.5)
            except (ConnectionClosed, OSError):
                pass

    async def all_read():
        await asyncio.gather(*(read(number) for number in range(count)))

    thread = threading.Thread(target=lambda: asyncio.run(all_read()))
    thread.start()
    try:
        yield commits
    finally:
        ended.set()
        thread.join(timeout=30)


def replica_of(visit):
    return next(cookie["value"] for cookie in visit.context.cookies() if cookie["name"] == "kv_replica")


def test_when_a_replica_ends_under_load_its_readers_go_on_with_the_same_scenario(browser, tmp_path):
    if NGINX is None:
        absent("NGINX", "no nginx was found on PATH or in /usr/sbin")
    with (
        replicas_of_the_page(2, KV_HANDOFF_TRUSTED_PROXIES="127.0.0.1") as pages,
        nginx_server([urlsplit(address).netloc for address, _ in pages], tmp_path) as place,
        others_read(f"http://{place}") as commits,
    ):
        visits = [Visit(browser, f"http://{place}").open(f"/?{LINK}") for _ in range(2)]
        visits.sort(key=replica_of)
        assert [replica_of(visit) for visit in visits] == ["0", "1"]
        for visit in visits:
            visit.slider("prompt_tokens").focus()
            visit.page.keyboard.press("ArrowRight")
            visit.page.wait_for_url("**prompt_tokens=**")
            visit.settle()
        seen = [(visit.answer(), visit.page.url) for visit in visits]
        assert seen[0] == seen[1]

        with visits[0].page.expect_event("load", timeout=20_000):
            os.kill(pages[0][1], signal.SIGKILL)
        ended = time.monotonic()
        visits[0].page.wait_for_selector(".liveview-chart .main-svg", timeout=30_000)
        visits[0].settle()
        assert [(visit.answer(), visit.page.url) for visit in visits] == seen
        assert [replica_of(visit) for visit in visits] == ["1", "1"]
        for visit in visits:
            visit.slider("prompt_tokens").focus()
            visit.page.keyboard.press("ArrowRight")
        for visit in visits:
            visit.page.wait_for_url(lambda url: url != seen[0][1])
            visit.settle()
        after = [(visit.answer(), visit.page.url) for visit in visits]
        assert after[0] == after[1] != seen[0]
        until = time.monotonic() + 15
        while not all(one and one[-1] > ended for one in commits) and time.monotonic() < until:
            visits[0].page.wait_for_timeout(200)
        assert all(one and one[-1] > ended for one in commits)
        for visit in visits:
            visit.context.close()
