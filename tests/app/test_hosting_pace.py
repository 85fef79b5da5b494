"""How a hosted page keeps pace with many readers: runs take turns, the loop is woken once, the first view is made beforehand."""

import re
import socket
import subprocess
import sys
import threading
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from app import prepared
from app.chunks import SCRIPTS, USED, late_scripts
from app.hosting.loop import Woken
from app.hosting.turns import TURN
from app.views import frame

ROOT = Path(__file__).parents[2]
MAIN = str(ROOT / "app" / "main.py")


def opened(**asked):
    page = AppTest.from_file(MAIN, default_timeout=60)
    for name, value in asked.items():
        page.query_params[name] = value
    return page


def test_a_run_waits_for_the_one_that_computes():
    page = opened()
    with TURN:
        run = threading.Thread(target=page.run)
        run.start()
        run.join(0.5)
        assert run.is_alive()
        assert not page.select_slider
    run.join(60)
    assert not run.is_alive()
    assert page.select_slider


def test_a_run_that_goes_to_another_view_or_breaks_leaves_the_turn_to_the_next(monkeypatch):
    opened(view="wire").run()
    assert not TURN.locked()
    monkeypatch.setattr(frame, "show_inputs", lambda *_: 1 / 0)
    assert opened().run().exception
    assert not TURN.locked()


class Counting(Woken):
    """A loop that counts the bytes written to wake it."""

    def __init__(self):
        super().__init__()
        self.pipe = CountingSocket(self._csock)
        self._csock = self.pipe


def look(loop):
    """Let a loop look once for what it was handed."""
    loop.call_soon(loop.stop)
    loop.run_forever()


class CountingSocket:
    def __init__(self, real: socket.socket):
        self.real, self.sent = real, 0

    def send(self, data):
        self.sent += len(data)
        return self.real.send(data)

    def __getattr__(self, name):
        return getattr(self.real, name)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(1, 300), min_size=1, max_size=4))
def test_the_loop_runs_all_that_threads_hand_it_and_is_woken_once_for_what_it_finds_together(counts):
    loop, found = Counting(), []
    whole = sum(counts)

    def took(item):
        found.append(item)
        if len(found) == whole:
            loop.stop()

    def hand(who, count):
        for i in range(count):
            loop.call_soon_threadsafe(took, (who, i))

    loop.call_later(30, loop.stop)
    threads = [threading.Thread(target=hand, args=pair) for pair in enumerate(counts)]
    for thread in threads:
        thread.start()
    loop.run_forever()
    for thread in threads:
        thread.join()
    assert sorted(found) == [(who, i) for who, count in enumerate(counts) for i in range(count)]
    look(loop)
    before = loop.pipe.sent
    for i in range(50):
        loop.call_soon_threadsafe(found.append, i)
    assert loop.pipe.sent == before + 1
    look(loop)
    assert found[-50:] == list(range(50))
    loop.close()


class Meddling(CountingSocket):
    """A reading end at which another thread hands something over, before a byte is read and after."""

    def recv(self, size):
        self.hand()
        try:
            return self.real.recv(size)
        finally:
            self.hand()


def test_what_is_handed_over_while_the_loop_reads_its_byte_does_not_leave_it_asleep():
    loop, found = Counting(), []
    loop._ssock = Meddling(loop._ssock)
    loop._ssock.hand = lambda: loop.call_soon_threadsafe(found.append, "while reading")
    loop.call_soon_threadsafe(found.append, "first")
    late = loop.call_later(20, loop.stop)
    threading.Timer(0.3, lambda: loop.call_soon_threadsafe(loop.stop)).start()
    loop.run_forever()
    assert found[0] == "first"
    assert set(found[1:]) == {"while reading"}
    assert loop.time() < late.when() - 5
    loop.close()


def test_scripts_that_the_page_asks_for_late_are_named_in_its_head_with_all_they_import():
    html = (SCRIPTS.parents[1] / "index.html").read_text()
    late = late_scripts(html)
    assert {name.split(".")[0] for name in late} >= set(USED)
    for name in late:
        assert name not in html
        assert all(f"/{other}" in html or other in late for other in re.findall(r'from"\./([^"]+)"', (SCRIPTS / name).read_text()))
    assert late_scripts(html + "".join(f"/{name}" for name in late)) == ()


def misses():
    return [made.cache_info().misses for made in (frame.pictured, frame.packed_table, frame.infeasible)]


def test_a_page_that_starts_has_imported_all_and_keeps_the_collector_from_walking_it():
    program = """
import asyncio, gc, sys
from app import serve
async def start():
    async with serve.lifespan(None):
        print(gc.get_freeze_count(), {"pandas", "app.views.wire", "app.views.measured"} <= set(sys.modules))
asyncio.run(start())
"""
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, timeout=60, check=True).stdout
    frozen, imported = printed.split()
    assert int(frozen) > 100_000
    assert imported == "True"


def test_what_is_prepared_is_what_a_first_reader_gets():
    for made in (frame.pictured, frame.packed_table):
        made.cache_clear()
    prepared.prepare()
    before = misses()
    for name in frame.PROMPT_SLIDERS:
        page = opened().run()
        options = page.select_slider(key=name).options
        for option in (options[1], options[-1], options[len(options) // 2]):
            page.select_slider(key=name).set_value(option).run()
            assert not page.exception
            assert page.session_state["state"].value(name) == int(option)
    assert misses() == before
