"""Pinning a scenario in Chromium: press, change, drag, swap, and open the address again."""

import re
from urllib.parse import parse_qs, urlparse

import pytest

pytestmark = pytest.mark.browser

HOLLOW = "document.querySelector('.kv-timeline').data.filter(t => t.type === 'bar' && t.marker.line?.width === 1.5).map(t => [t.x, t.base])"


def test_a_pinned_scenario_is_compared_overlaid_and_shared(visit):
    from axe_playwright_python.sync_playwright import Axe

    one = visit().open("/?overlap=layer")
    one.page.get_by_role("button", name="Pin", exact=True).click()
    one.settle()
    said = one.page.locator(".kv-pin-said")
    assert said.inner_text() == "Both are the same scenario."
    one.page.get_by_role("combobox", name="Link").click()
    one.page.get_by_role("option", name="Ethernet 25", exact=True).click()
    one.settle()
    assert said.inner_text().startswith("Link Ethernet 25 in place of NDR 400: the first token comes 51")
    assert "pinned, hollow: first token 35" in one.page.locator(".kv-timeline").inner_text()
    assert re.search(r"pin 35\d, \+51\d", one.page.locator(".kv-total").inner_text())
    before, first, sent = said.inner_text(), one.page.evaluate(HOLLOW), len(one.sent)
    height = "document.querySelector('[data-testid=stMainBlockContainer]').scrollHeight"
    tall = one.page.evaluate(height)
    one.drag("prompt_tokens", [0.75], release=False)
    assert (len(one.sent), one.page.evaluate(height)) == (sent, tall)
    assert said.inner_text() != before
    assert "Prompt tokens" in one.page.locator(".kv-one-line").inner_text()
    assert one.page.evaluate(HOLLOW) != first
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
