"""Every view as a person first sees it and drags its slider, in Chromium: one page for a view at a desk, one on a phone."""

from urllib.parse import urlparse

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.browser.conftest import Visit

pytestmark = pytest.mark.browser

ANSWERS = {
    "/": "The handoff adds 53.7",
    "/critical-length": "On InfiniBand NDR 400",
    "/next-turn": "Pull back: 157",
    "/interconnects": "Sent layer by layer, prefill hides 8,192 tokens on RoCE 100 or faster",
    "/wire": "Decode waits 53.7",
    "/sensitivity": "Prompt length moves the first token most, −19",
    "/matrices": "Of everything one layer computes, only K and V cross",
    "/weighs": "A prompt of 8,192 tokens weighs 2.68",
    "/measured": "The model is within 25",
    "/method": "How the numbers are made",
}
VIEWS = [*ANSWERS]
MOVING = VIEWS[:8]
"""Views with sliders."""
ON_A_PHONE = [*VIEWS[2:4], *VIEWS[:2], *VIEWS[4:]]
"""Those whose sliders are tried come first: lists that begin alike share their pages."""
NAMELESS = "[...document.querySelectorAll('.liveview-chart')].filter(n => n.getAttribute('role') !== 'img' || !n.ariaLabel).length"
COVERED = """(() => {
  const range = document.createRange();
  range.selectNodeContents(document.querySelector("h1"));
  return document.querySelector("[data-testid=stHeader]").getBoundingClientRect().bottom - range.getBoundingClientRect().top - 4;
})()"""
"""Pixels by which the head of the page covers the answer's letters, which begin 4 below their line's top."""
UNFOLDED = "[...document.querySelectorAll('[data-testid=stMainBlockContainer] details')].filter(n => n.open).length"
SIGNS = "all => all.map(e => [getComputedStyle(e).fontSize, getComputedStyle(e, '::before').content])"
SLIDERS = {"/": ("prompt_tokens", "batch"), "/next-turn": ("delta_tokens", "history_tokens")}
FOLLOW = """
[globalThis.answers, globalThis.tops] = [new Set(), new Set()];
const follow = () => {
  answers.add(document.querySelector("h1").textContent);
  tops.add(Math.round(document.querySelector(".st-key-prompt_tokens, .st-key-delta_tokens").getBoundingClientRect().y));
  requestAnimationFrame(() => setTimeout(follow));
};
follow();
"""
DRAWN = "new Promise(done => requestAnimationFrame(() => setTimeout(done, 20)))"


@pytest.fixture(scope="module")
def desk(request, browser, returning, address):
    yield from opened(request.param, Visit(browser, address, within=returning))


@pytest.fixture(scope="module")
def phone(request, browser, returning, address):
    yield from opened(request.param, Visit(browser, address, width=390, theme="dark", within=returning))


def opened(view, one):
    yield view, one.open(view, charts=view != "/method")
    one.close()


def opens_well(view, one):
    assert one.answer().startswith(ANSWERS[view])
    assert one.errors == []
    assert one.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    clipped = one.page.evaluate(
        "[...document.querySelectorAll('.liveview-chart')].filter(n => n.scrollWidth > n.clientWidth + 1).map(n => n.className)"
    )
    assert clipped == []
    assert one.page.evaluate(NAMELESS) == 0
    assert one.page.evaluate(UNFOLDED) == 0
    assert one.page.evaluate(COVERED) <= 0
    assert {urlparse(url).hostname for url in one.requests if url.startswith("http")} == {"127.0.0.1"}
    # Signs are drawn by rules of the page's own: the font that has them all is large.
    drawn = one.page.locator("[data-testid=stIconMaterial]").evaluate_all(SIGNS)
    assert len(drawn) >= (4 if view in MOVING else 0)
    assert {size for size, _ in drawn} <= {"0px"}
    assert all(content not in ("none", "normal") for _, content in drawn)
    assert not [url for url in one.requests if "MaterialSymbols" in url]
    found = Axe().run(one.page).response["violations"]
    assert [(v["id"], node["html"][:200]) for v in found for node in v["nodes"]] == []


@pytest.mark.parametrize("desk", VIEWS, indirect=True)
def test_a_view_opens_at_a_desk_without_an_error_an_overflow_or_what_axe_finds(desk):
    opens_well(*desk)


@pytest.mark.parametrize("phone", ON_A_PHONE, indirect=True)
def test_a_view_opens_on_a_phone_without_an_error_an_overflow_or_what_axe_finds(phone):
    opens_well(*phone)


@pytest.mark.parametrize("desk", MOVING, indirect=True)
def test_charts_and_answer_follow_a_drag_without_a_message_or_a_remount(desk):
    view, one = desk
    one.page.evaluate("document.querySelectorAll('.liveview-chart, h1').forEach(n => { n.mine = true; })")
    drawing = one.page.locator(".liveview-chart").first
    for name in SLIDERS.get(view, ("prompt_tokens",)):
        before, first = len(one.sent), drawing.inner_html()
        seen = one.drag(name, [0.3, 0.55, 0.8], release=False)
        assert len(set(seen)) == 3
        assert drawing.inner_html() != first
        assert len(one.sent) == before
        one.page.mouse.up()
        one.settle()
        assert len(one.sent) > before
        assert one.answer() == seen[-1]
        assert one.page.evaluate("[...document.querySelectorAll('.liveview-chart, h1')].every(n => n.mine)")
        one.page.wait_for_url(lambda url, name=name: f"{name}=" in url)
    assert one.errors == []


def stays_under_the_hand(one):
    one.slider("delta_tokens" if "next-turn" in one.page.url else "prompt_tokens").focus()
    one.page.keyboard.press("Home")
    one.settle()
    one.page.evaluate(FOLLOW)
    for press in range(30):
        one.page.keyboard.press("PageUp" if press % 3 == 2 else "ArrowRight")
        one.page.evaluate(DRAWN)
    answers, tops = one.page.evaluate("[[...answers], [...tops]]")
    assert len(answers) >= 5
    assert len(tops) == 1


@pytest.mark.parametrize("desk", VIEWS[:2], indirect=True)
def test_the_slider_stays_under_the_hand_from_end_to_end(desk):
    stays_under_the_hand(desk[1])


@pytest.mark.parametrize("phone", ON_A_PHONE[:2], indirect=True)
def test_the_slider_stays_under_the_thumb_from_end_to_end(phone):
    stays_under_the_hand(phone[1])


def test_the_slider_stays_under_the_thumb_where_notes_come_and_go(visit):
    stays_under_the_hand(visit(width=390, fresh=True).open("/?overlap=chunk&link=ethernet-100"))
