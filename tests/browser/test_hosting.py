"""The hosted page in a browser: frames in other sites, the policy for scripts, what a reader beyond the cap sees."""

import json
import threading
import urllib.request
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

import pytest
from websockets.sync.client import connect

from app.hosting.wire import STREAM
from tests.browser.test_own_config import paste
from tests.configs import QWEN3
from tests.page_server import page_server

pytestmark = pytest.mark.browser

FRAMES = ("/embed/timeline.html?link=ethernet-25", "/?embed=true&view=critical-length&link=ethernet-25", "/wire")


@contextmanager
def blog(address):
    """Another site, which frames a chart, an embedded view and the whole page."""
    frames = "".join(f'<iframe name="f{i}" src="{address}{path}" width="700" height="600"></iframe>' for i, path in enumerate(FRAMES))

    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(f"<!doctype html><title>A post</title>{frames}".encode())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://localhost:{server.server_port}/post"
    server.shutdown()
    server.server_close()


def read(browser, post):
    """A reader of the post: its page, and what the browser refused to frame."""
    page = browser.new_context(viewport={"width": 800, "height": 1900}).new_page()
    page.said = []
    page.on("console", lambda m: page.said.append(m.text) if m.type == "error" else None)
    page.goto(post)
    return page


def test_another_site_may_frame_charts_and_embedded_views_but_not_the_whole_page(browser, address):
    with blog(address) as post:
        page = read(browser, post)
        for name in ("f0", "f1"):
            page.frame(name=name).wait_for_selector(".liveview-chart .main-svg", timeout=30_000)
        link = page.frame(name="f0").get_by_role("link", name="Open in the explorer")
        assert link.evaluate("a => a.href") == f"{address}/?link=ethernet-25"
        assert page.frame(name="f2").url.startswith("chrome-error:")
        assert len(page.said) == 1
        assert "frame-ancestors 'self'" in page.said[0]
        page.context.close()


@pytest.fixture(scope="module")
def strict(browser):
    with page_server(
        KV_HANDOFF_FRAME_ANCESTORS="https://blog.example",
        KV_HANDOFF_PAGE_FRAME_ANCESTORS="https://space.example",
        KV_HANDOFF_PUBLIC_URL="https://kv.example",
        KV_HANDOFF_MAX_SESSIONS="1",
    ) as url:
        yield url


def test_files_can_be_uploaded_where_another_site_may_frame_the_page(strict, address):
    def cookie(page):
        return urllib.request.urlopen(f"{page}/_stcore/health").headers["set-cookie"]

    assert cookie(strict).endswith("SameSite=None; Secure")
    assert cookie(address).endswith("SameSite=Lax")


def test_frames_can_be_kept_to_named_sites(browser, strict):
    with blog(strict) as post:
        page = read(browser, post)
        page.wait_for_timeout(1500)
        assert all(page.frame(name=f"f{i}").url.startswith("chrome-error:") for i in range(3))
        assert sum("frame-ancestors https://blog.example" in said for said in page.said) == 2
        page.context.close()


def test_a_reader_who_comes_too_late_sees_why_and_keeps_the_scenario(browser, strict):
    page = browser.new_context().new_page()
    with ExitStack() as stack:
        taken = []

        def last_place_goes(route):
            """Between this reader's page and its session, another takes the place."""
            if not taken:
                taken.append(
                    stack.enter_context(connect(strict.replace("http", "ws") + STREAM, subprotocols=["streamlit"], close_timeout=0.3))
                )
            route.continue_()

        page.route("**/_stcore/health", last_place_goes)
        page.goto(f"{strict}/wire?link=ethernet-25")
        page.get_by_role("heading", name="All places are taken").wait_for(timeout=20_000)
        assert page.url == f"{strict}/wire?link=ethernet-25"
        assert page.reload().status == 503
    assert len(taken) == 1
    page.wait_for_timeout(500)
    page.reload()
    page.wait_for_selector(".liveview-chart .main-svg", timeout=30_000)
    assert "link=ethernet-25" in page.url
    page.context.close()


def test_the_policy_stops_scripts_that_are_not_the_page_s(visit):
    one = visit(fresh=True).open("/wire")
    assert one.errors == []
    one.page.evaluate("document.body.append(Object.assign(document.createElement('script'), {textContent: 'globalThis.owned = 1'}))")
    one.page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"globalThis.owned = 1\">')")
    one.page.wait_for_timeout(300)
    assert one.page.evaluate("globalThis.owned") is None
    assert sum("Content Security Policy" in error for error in one.errors) >= 2


HOSTILE = "<img src=x onerror=globalThis.owned=1><script>globalThis.owned=1</script>"


def test_names_in_a_configuration_and_in_the_address_stay_text(visit):
    address = quote(HOSTILE)
    one = visit(fresh=True).open(
        f"/weighs?model={address}&link={address}&engine={address}&pin=link%3D{address}&{address}={address}&theme={address}"
    )
    named = QWEN3 | {"_name_or_path": HOSTILE, HOSTILE: HOSTILE}
    for config in (named, named | {"model_type": HOSTILE, "architectures": [HOSTILE], "torch_dtype": HOSTILE}):
        paste(one, json.dumps(config))
        if config is named:
            one.answers("147,456")
            assert HOSTILE in one.page.locator("body").inner_text()
        for view in ("One request", "What it weighs"):
            one.page.get_by_role("link", name=view).click()
            one.settle()
            assert one.page.locator("img[src='x']").count() == 0
            assert not any("owned" in text for text in one.page.locator("script").all_text_contents())
    assert one.page.evaluate("globalThis.owned") is None
