"""Explanations in Chromium: a number opens its own, which stays open and follows the scenario."""

import pytest

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(("width", "theme"), [(390, "light")])
def test_a_number_opens_its_explanation_which_follows_the_scenario(visit, width, theme):
    from axe_playwright_python.sync_playwright import Axe

    one = visit(width=width, theme=theme).open("/?link=ethernet-25")
    one.page.get_by_role("button", name="859", exact=True).click()
    row = one.page.locator('details[data-figure="transfer.exposed_seconds"]')
    row.get_by_text("t_exposed = t_wire − hidden").wait_for()
    one.settle()
    assert one.page.evaluate("document.activeElement.closest('details').dataset.figure") == "transfer.exposed_seconds"
    assert 0 <= row.locator("summary").bounding_box()["y"] < 900
    assert row.get_by_role("link").first.get_attribute("href").startswith("https://")
    assert row.get_by_text("Halve it").is_visible()

    one.slider("prompt_tokens").press("End")
    row.locator("summary", has_text="110").wait_for(timeout=15_000)  # seconds: 128 times as many bytes
    assert row.get_by_text("t_exposed = t_wire − hidden").is_visible()
    row.get_by_role("button", name="its own explanation").first.click()
    wire = one.page.locator('details[data-figure="kv.wire_bytes"]')
    assert wire.get_by_text("B_wire = ").is_visible()
    assert not row.get_by_text("t_exposed = t_wire").is_visible()  # one at a time
    assert one.page.evaluate("document.documentElement.scrollWidth") <= width
    assert one.errors == []
    found = Axe().run(one.page).response["violations"]
    assert [(v["id"], node["html"][:200]) for v in found for node in v["nodes"]] == []
