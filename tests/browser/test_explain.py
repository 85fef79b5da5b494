"""Explanations in Chromium: a number opens its own where it stands, one at a time, and it follows the scenario."""

import pytest

pytestmark = pytest.mark.browser


def faults(page):
    from axe_playwright_python.sync_playwright import Axe

    return [(v["id"], node["html"][:200]) for v in Axe().run(page).response["violations"] for node in v["nodes"]]


@pytest.mark.parametrize(("width", "theme"), [(390, "dark")])
def test_a_number_opens_its_explanation_where_it_stands(visit, width, theme):
    one = visit(width=width, theme=theme).open("/?link=ethernet-25")
    page, sent = one.page, len(one.sent)
    number = page.get_by_role("button", name="859", exact=True)
    number.focus()
    above = page.locator(".kv-slider-head").first.bounding_box()
    page.keyboard.press("Enter")
    box = page.locator(".kv-explained")
    box.get_by_text("t_exposed = t_wire − hidden").wait_for()
    assert number.get_attribute("aria-expanded") == "true"
    assert page.evaluate("document.activeElement.dataset.explain") == "transfer.exposed_seconds"
    top, under = number.bounding_box(), box.bounding_box()
    assert 0 < under["y"] - top["y"] - top["height"] < 40  # under the number itself, on a phone as well
    assert page.locator(".kv-slider-head").first.bounding_box() == above
    assert len(one.sent) == sent  # no run of the page
    assert box.get_by_text("Halve it").is_visible()
    assert box.get_by_role("link").first.get_attribute("href").startswith("https://")
    assert faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width

    box.get_by_role("button", name="its own explanation").first.click()
    box.get_by_text("t_wire = ").first.wait_for()
    assert box.count() == 1
    box.get_by_role("button", name="Back").click()
    box.get_by_text("t_exposed = t_wire − hidden").wait_for()
    one.slider("prompt_tokens").scroll_into_view_if_needed()
    one.drag("prompt_tokens", [0.75], release=False)
    assert "kv-stale" in box.get_attribute("class")  # what it says is of another prompt
    page.mouse.up()
    one.settle()
    one.slider("prompt_tokens").press("End")
    box.locator(".kv-explained-head", has_text="110").wait_for(timeout=15_000)  # seconds: 128 times as many bytes
    assert "kv-stale" not in box.get_attribute("class")

    page.locator("h1 .kv-open").click()
    page.locator("h1 ~ .kv-explained").get_by_text("Halve it").wait_for()
    assert box.count() == 1
    page.keyboard.press("Escape")
    assert box.count() == 0
    assert page.evaluate("document.activeElement.closest('h1') !== null")
    page.locator("details[data-explains='prefill.seconds'] > summary").click()
    page.locator("details[data-explains='prefill.seconds']").get_by_text("t_prefill = ").wait_for()
    page.locator(".kv-explain-fold > summary").click()
    page.locator("details[data-figure='tpot_seconds'] > summary").click()
    page.locator("details[data-figure='tpot_seconds']").get_by_text("Left out:").wait_for()
    assert box.count() == 0
    assert one.errors == []
