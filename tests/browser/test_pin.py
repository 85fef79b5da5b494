"""Pinning a scenario in Chromium: press, change, drag, swap, and open the address again."""

import re
from urllib.parse import parse_qs, urlparse

import pytest

pytestmark = pytest.mark.browser

HOLLOW = "document.querySelector('.kv-timeline').data.filter(t => t.type === 'bar' && t.marker.line?.width === 1.5).map(t => [t.x, t.base])"

BARS = "[...document.querySelectorAll('.kv-pin-track')].map(t => t.lastChild.offsetLeft - t.firstChild.offsetLeft)"
OUTLINE = "document.querySelector('.kv-flow').layout.shapes.at(-1).path"
OVERLAPS = """() => {
  const boxes = [...document.querySelectorAll('.kv-flow .textpoint text')].map(node => [node.textContent, node.getBoundingClientRect()]);
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 2 && b.top < a.bottom - 2;
  return boxes.flatMap(([text, a], i) => boxes.slice(i + 1).filter(([, b]) => meet(a, b)).map(([other]) => [text, other]));
}"""


def test_a_pinned_turn_is_outlined_in_the_pictures_and_follows_the_slider(visit):
    one = visit(width=390).open("/next-turn?kv_dtype=fp8&pin=delta_tokens%3D9000%26generated_tokens%3D2000")
    before, sent = one.page.evaluate(OUTLINE), len(one.sent)
    assert one.page.evaluate(OVERLAPS) == []
    one.drag("delta_tokens", [0.9], release=False)
    assert one.page.evaluate(OUTLINE) != before  # to the scale of what is drawn now
    assert one.page.evaluate(OVERLAPS) == []
    assert len(one.sent) == sent
    one.page.mouse.up()
    assert one.errors == []


def test_a_pinned_scenario_is_compared_overlaid_and_shared(visit):
    from axe_playwright_python.sync_playwright import Axe

    one = visit().open("/?overlap=layer")
    one.page.get_by_role("button", name="Pin to compare", exact=True).click()
    one.settle()
    said = one.page.locator(".kv-pin-said")
    assert said.inner_text() == "Both are the same scenario."
    one.page.get_by_role("combobox", name="Link").click()
    one.page.get_by_role("option", name="Ethernet 25", exact=True).click()
    one.settle()
    assert said.inner_text().startswith("Link Ethernet 25 in place of NDR 400: the first token comes 51")
    assert "pinned, hollow: first token 35" in one.page.locator(".kv-timeline").inner_text()
    assert re.search(r"pin 35\d, \+51\d", one.page.locator(".kv-total").inner_text())
    assert one.page.locator(".kv-pin-bar > span").all_inner_texts() == ["Pinned: NDR 400", "Now: Ethernet 25"]
    shares, bars = one.page.evaluate(BARS), one.page.locator(".kv-pin-track").all_inner_texts()
    assert shares[0] / shares[1] == pytest.approx(float(bars[0].split()[0]) / float(bars[1].split()[0]), rel=0.02)
    before, first, sent = said.inner_text(), one.page.evaluate(HOLLOW), len(one.sent)
    height = "document.querySelector('[data-testid=stMainBlockContainer]').scrollHeight"
    tall = one.page.evaluate(height)
    one.drag("prompt_tokens", [0.75], release=False)
    assert (len(one.sent), one.page.evaluate(height)) == (sent, tall)
    assert said.inner_text() != before
    assert "Prompt tokens" in one.page.locator(".kv-one-line").inner_text()
    assert one.page.evaluate(HOLLOW) != first
    assert one.page.evaluate(BARS) != shares
    assert one.page.locator(".kv-pin-bar > span").all_inner_texts()[1].startswith("Now: ")
    one.page.mouse.up()
    one.settle()
    assert parse_qs(urlparse(one.page.url).query)["pin"] == ["overlap=layer"]
    assert Axe().run(one.page).response["violations"] == []
    other = visit(width=390, theme="dark").open(one.page.url.removeprefix(one.address))
    assert other.page.locator(".kv-pin-said").inner_text() == said.inner_text()
    assert other.page.evaluate(HOLLOW) == one.page.evaluate(HOLLOW)
    assert other.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert Axe().run(other.page).response["violations"] == []
    one.page.get_by_role("button", name="Swap").click()
    one.settle()
    assert one.page.locator(".kv-pin-said").inner_text() != before
    assert one.answer().startswith("The wire hides behind prefill")
    one.page.get_by_role("button", name="Unpin").click()
    one.settle()
    assert urlparse(one.page.url).query == "overlap=layer"
    assert one.page.locator(".kv-pin-said").count() == 0
    assert one.errors == other.errors == []
