"""Every view as a person first sees it, in Chromium: its answer, nothing wrong, nothing that axe finds."""

from urllib.parse import urlparse

import pytest

pytestmark = pytest.mark.browser

VIEWS = {
    "/": "The handoff adds 53.7",
    "/critical-length": "On InfiniBand NDR 400",
    "/next-turn": "Pull back takes 157",
    "/wire": "Decode waits 53.7",
    "/interconnects": "Sent layer by layer, prefill hides 8,192 tokens on RoCE 100 or faster",
    "/sensitivity": "Prompt length moves the first token most, −19",
    "/matrices": "Of everything one layer computes, only K and V cross",
    "/measured": "The model is within 25",
    "/weighs": "A prompt of 8,192 tokens weighs 2.68",
}
NAMELESS = "[...document.querySelectorAll('.liveview-chart')].filter(n => n.getAttribute('role') !== 'img' || !n.ariaLabel).length"
COVERED = """(() => {
  const range = document.createRange();
  range.selectNodeContents(document.querySelector("h1"));
  return document.querySelector("[data-testid=stHeader]").getBoundingClientRect().bottom - range.getBoundingClientRect().top - 4;
})()"""
"""Pixels by which the head of the page covers the answer's letters, which begin 4 below their line's top."""
UNFOLDED = "[...document.querySelectorAll('[data-testid=stMainBlockContainer] details')].filter(n => n.open).length"


@pytest.mark.parametrize(("width", "theme"), [(390, "dark"), (1280, "light")])
@pytest.mark.parametrize("view", [*VIEWS, "/method"])
def test_each_view_opens_cold_without_an_error_an_overflow_or_what_axe_finds(visit, view, width, theme):
    from axe_playwright_python.sync_playwright import Axe

    one = visit(width=width, theme=theme).open(view, charts=view != "/method")
    assert one.answer().startswith(VIEWS.get(view, "How the numbers are made"))
    assert one.errors == []
    assert one.page.evaluate("document.documentElement.scrollWidth") <= width
    clipped = one.page.evaluate(
        "[...document.querySelectorAll('.liveview-chart')].filter(n => n.scrollWidth > n.clientWidth + 1).map(n => n.className)"
    )
    assert clipped == []
    assert one.page.evaluate(NAMELESS) == 0
    assert one.page.evaluate(UNFOLDED) == 0
    assert one.page.evaluate(COVERED) <= 0
    assert {urlparse(url).hostname for url in one.requests if url.startswith("http")} == {"127.0.0.1"}
    found = Axe().run(one.page).response["violations"]
    assert [(v["id"], node["html"][:200]) for v in found for node in v["nodes"]] == []
