"""The share panel in Chromium: copying, saving, and a chart in a frame from another origin."""

import contextlib
import html
import http.server
import io
import re
import threading

import pytest

import kvmodel

pytestmark = pytest.mark.browser


def opened(visit, path="/?link=ethernet-25"):
    one = visit()
    one.context.grant_permissions(["clipboard-read", "clipboard-write"])
    one.open(path)
    one.page.get_by_text("Share and export").click()
    one.page.wait_for_selector(".kv-share")
    one.settle()
    return one


def test_link_and_frame_are_copied(visit):
    one = opened(visit)
    one.page.get_by_role("button", name="Copy link").click()
    link = one.page.evaluate("navigator.clipboard.readText()")
    assert link == f"{one.address}/?link=ethernet-25&v={kvmodel.__version__}"
    one.page.get_by_role("button", name="Copy: Frame").click()
    copied = one.page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith(f'<iframe src="{one.address}/embed/timeline.html?link=ethernet-25"')
    assert one.page.get_by_role("button", name="Copied").count() + one.page.get_by_text("Copied").count() > 0
    assert one.errors == []
    other = visit().open(link.removeprefix(one.address))
    assert other.answer() == one.answer()
    assert other.page.locator(".kv-notice").count() == 0  # of this very version


@pytest.mark.parametrize(("kind", "start"), [("SVG", b"<svg"), ("PNG", b"\x89PNG")])
def test_an_image_is_made_in_the_browser(visit, kind, start):
    one = opened(visit)
    before = len(one.requests)
    with one.page.expect_download() as waiting:
        one.page.locator(".kv-share", has_text="One handoff").get_by_role("button", name=kind).click()
    saved = waiting.value
    assert saved.suggested_filename == f"kv-handoff-timeline.{kind.lower()}"
    drawn = saved.path().read_bytes()
    assert drawn.startswith(start)
    if kind == "SVG":  # what it says, what it is of, and where it comes from
        text = " ".join(re.findall(r">([^<>]+)<", html.unescape(drawn.decode())))
        for part in (
            one.answer().split(" to the first")[0],
            "of Ethernet 25 at",
            "Ideal engine: bandwidth alone",
            "not a measurement",
            f"{one.address}/?link=ethernet-25",
        ):
            assert part in text
    assert [url for url in one.requests[before:] if url.startswith("http")] == []


def test_files_and_lines_hold_the_scenario(visit):
    one = opened(visit)
    starts = {"CSV": "lane,part,start_seconds,end_seconds\n", "JSON": "{", "HTML": "<!doctype html>"}
    for kind, start in starts.items():
        with one.page.expect_download() as waiting:
            one.page.locator(".kv-share", has_text="One handoff").get_by_role("link", name=kind).click()
        text = waiting.value.path().read_text()
        assert waiting.value.suggested_filename == f"kv-handoff-timeline.{kind.lower()}"
        assert text.startswith(start)
        assert kind == "CSV" or "ethernet-25" in text
    line = one.page.locator(".kv-share", has_text="Python").locator("code").inner_text()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(line, "shared", "exec"), {})
    assert printed.getvalue().strip() == one.answer()


def test_a_chart_is_live_in_a_frame_from_another_origin(visit, address, tmp_path):
    (tmp_path / "post.html").write_text(f'<iframe src="{address}/embed/critical.html?link=roce-100" width="700" height="620"></iframe>')

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *words, **named):
            super().__init__(*words, directory=str(tmp_path), **named)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        one = visit(fresh=True)
        one.page.goto(f"http://localhost:{server.server_port}/post.html")
        frame = one.page.frame_locator("iframe")
        frame.locator(".liveview-chart .main-svg").first.wait_for()
        before = frame.locator("h1").inner_text()
        frame.get_by_role("slider").press("End")
        one.page.wait_for_timeout(300)
        assert before.startswith("On RoCE 100")
        assert frame.locator("h1").inner_text() != before
        assert one.sent == []
    finally:
        server.shutdown()
        server.server_close()


def test_the_numbers_behind_a_chart_can_be_read(visit):
    one = visit().open("/critical-length?link=roce-100")
    one.page.get_by_text("The numbers as a table").click()
    one.page.wait_for_selector("[role=region][aria-label='Time on every link against prompt length']")
    cells = one.page.locator("[aria-label='Time on every link against prompt length'] tbody tr").first.locator("td")
    assert cells.first.inner_text() == "128"
    assert one.errors == []
