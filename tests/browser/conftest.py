"""A page of this project on a free port, and Debian's Chromium to open it.

Where no browser is found the tests skip and say so, unless KV_HANDOFF_TEST_BROWSER is `required`.
"""

import os
import shutil
import time

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.absent import absent
from tests.browser.measure_page import ARGS
from tests.page_server import page_server

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="package")
def address():
    if CHROMIUM is None:
        absent("BROWSER", "no Chromium was found on PATH; CHROMIUM names one elsewhere")
    with page_server() as url:
        yield url


@pytest.fixture(scope="package")
def playwright(address):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="package")
def browser(playwright):
    opened = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
    yield opened
    opened.close()


@pytest.fixture(scope="package")
def returning(playwright, tmp_path_factory):
    """The context of a browser that keeps compiled scripts, as one does for who comes again: a page opens in three quarters of the time."""
    context = playwright.chromium.launch_persistent_context(tmp_path_factory.mktemp("profile"), executable_path=CHROMIUM, args=ARGS)
    yield context
    context.close()


CLEAN = """
!document.querySelector("[data-testid=stMain] details[open], .kv-explained, [aria-expanded=true], .st-key-pin_box, dialog[open]")
  && !document.querySelector(".st-key-own_text textarea")?.value && location.pathname !== "/method"
  && !document.activeElement?.matches(".stTextInput input, textarea")
"""
"""Whether nothing on the page stands open or was typed that the next reader of it would wonder at."""
QUIET, DONE, MOST = 0.5, 0.15, 3.0
"""Seconds without a message either way after which a page has settled: as it is, after a run that it asked for, and at most of
waiting for that run."""


class Visit:
    """One reader's page, with what went wrong on it and what it sent; in a context of its own but where one is given."""

    def __init__(self, browser, address, *, width=1280, theme="light", touch=False, within=None):
        self.address = address
        self.context = within or browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, has_touch=touch)
        self.page, self.own = self.context.new_page(), within is None
        if within:
            self.page.set_viewport_size({"width": width, "height": 900})
            self.page.emulate_media(color_scheme=theme)
        self.errors, self.sent, self.requests = [], [], []
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type in ("error", "trace") else None)
        self.page.on("pageerror", lambda e: self.errors.append(str(e)))
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.asked, self.heard, self.ran, self.settled = 0.0, 0.0, 0.0, 0.0
        self.page.on("websocket", self.listen)

    def begin(self, width):
        """Be the next reader of a page that is open, or is not yet."""
        self.page.unroute_all()
        self.page.set_viewport_size({"width": width, "height": 900})
        for seen in (self.errors, self.sent, self.requests):
            seen.clear()

    def listen(self, socket):
        """Keep what the page sends, and when it last sent something, got something, and a run of the script ended."""

        def sent(frame):
            self.sent.append(frame)
            self.asked = time.monotonic()

        def got(frame):
            self.heard = time.monotonic()
            told = ForwardMsg.FromString(frame)
            if told.HasField("script_finished") and told.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                self.ran = self.heard

        socket.on("framesent", sent)
        socket.on("framereceived", got)

    def open(self, path="/", *, charts=True):
        """Come to an address: by a link of the page, where one is open."""
        if self.page.url.startswith(self.address) and "embed=" not in self.page.url + path:
            self.page.evaluate("path => { history.pushState(null, '', path); dispatchEvent(new PopStateEvent('popstate')); }", path)
            self.settle()
        else:
            self.page.goto(self.address + path)
        self.page.wait_for_selector(".liveview-chart .main-svg" if charts else "h1", timeout=30_000)
        self.settle()
        return self

    def settle(self):
        """Wait until the script has run and what it sent is drawn."""
        began = time.monotonic()
        while True:
            self.page.wait_for_timeout(50)
            now, last = time.monotonic(), max(began, self.asked, self.heard)
            done = DONE if self.settled < self.asked <= self.ran else QUIET
            if now - last > (done if self.heard >= self.asked else MOST):
                break
        self.settled = now
        self.page.wait_for_function("!document.querySelector('[data-testid=stStatusWidget]')", timeout=30_000)

    def close(self):
        """Leave nothing behind of what the page kept in the browser but its scripts."""
        if self.own:
            self.context.close()
            return
        if not self.page.is_closed():
            self.page.context.new_cdp_session(self.page).send(
                "Storage.clearDataForOrigin", {"origin": self.address, "storageTypes": "cookies,local_storage,indexeddb"}
            )
            self.page.close()
        self.context.clear_cookies()
        self.context.clear_permissions()

    def answer(self):
        return self.page.locator("h1").inner_text()

    def answers(self, text):
        """Wait for an answer that says something; fails where none comes."""
        self.page.locator("h1", has_text=text).wait_for(timeout=30_000)

    def slider(self, name):
        return self.page.locator(f".st-key-{name} input[type=range]")

    def drag(self, name, shares, *, release=True, look=lambda: None):
        """Drag a slider's thumb over shares of its rail, and look at each; returns the answers seen on the way."""
        thumb, rail = self.slider(name).bounding_box(), self.page.locator(f".st-key-{name}").last.bounding_box()
        y = thumb["y"] + thumb["height"] / 2
        self.page.mouse.move(thumb["x"] + thumb["width"] / 2, y)
        self.page.mouse.down()
        seen = [self.answer()]
        for share in shares:
            self.page.mouse.move(rail["x"] + 16 + (rail["width"] - 32) * share, y, steps=3)
            seen.append(self.next_answer(seen[-1]))
            look()
        if release:
            self.page.mouse.up()
            self.settle()
        return seen[1:]

    def next_answer(self, last):
        """The answer once it is another and stays so; the last one where none comes within a second."""
        for _ in range(10):
            self.page.wait_for_timeout(100)
            now = self.answer()
            if now != last and now == self.answer():
                return now
        return last


@pytest.fixture(scope="package")
def kept(returning):
    """The page that a test left open for the next."""
    pages = []
    yield pages
    for one in pages:
        one.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    item.failed = getattr(item, "failed", False) or report.failed
    return report


@pytest.fixture
def visit(request, browser, returning, kept, address):
    """Opens pages: the first of a desk where the last test left one open; others in contexts of their own.

    `fresh` is for what a page does as it loads, and for a script that would go on watching it.
    """
    visits = []

    def make(*, touch=False, fresh=False, width=1280, theme="light"):
        if visits or touch or fresh or theme != "light":
            visits.append(Visit(browser, address, width=width, theme=theme, touch=touch))
        else:
            visits.append(kept.pop() if kept else Visit(browser, address, within=returning))
            visits[-1].begin(width)
        return visits[-1]

    yield make
    for one in visits:
        if not one.own and not request.node.failed and one.errors == [] and one.page.evaluate(CLEAN):
            kept.append(one)
        else:
            one.close()
