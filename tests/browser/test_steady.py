"""What stays in place while a reader is quick: the slider under the hand, and the words and charts beside it."""

import pytest

pytestmark = pytest.mark.browser

WATCH = """
globalThis.blank = [];
document.querySelectorAll("h1, .kv-setup, .liveview-chart").forEach(n => { n.mine = true; });
const look = () => {
  for (const node of document.querySelectorAll(".st-key-answer h1 > span, .st-key-answer .kv-setup, .kv-sum"))
    if (!node.textContent.trim()) blank.push(node.className || node.parentNode.tagName);
  requestAnimationFrame(() => setTimeout(look));
};
look();
"""


def test_keys_in_a_quick_row_leave_no_text_empty_and_make_nothing_anew(visit):
    one = visit(fresh=True).open()
    one.page.evaluate(WATCH)
    one.slider("prompt_tokens").focus()
    one.page.keyboard.press("Home")
    for press in range(60):
        one.page.keyboard.press("PageUp" if press % 5 == 4 else "ArrowRight")
        one.page.wait_for_timeout(25)
    one.settle()
    assert one.page.evaluate("blank") == []
    kept = "[...document.querySelectorAll('h1, .liveview-chart')].filter(n => !n.mine).map(n => n.outerHTML.slice(0, 80))"
    assert one.page.evaluate(kept) == []
    assert one.errors == []


def test_the_wheel_over_an_explanation_scrolls_the_page(visit):
    one = visit().open()
    one.page.locator(".kv-sum .kv-open").first.click()
    box = one.page.locator(".kv-explained")
    box.wait_for()
    one.settle()
    place = box.bounding_box()
    one.page.mouse.move(place["x"] + place["width"] / 2, place["y"] + 40)
    for _ in range(4):  # past what the explanation itself may scroll
        one.page.mouse.wheel(0, 600)
        one.page.wait_for_timeout(150)
    assert one.page.evaluate("document.querySelector('[data-testid=stMain]').scrollTop") > 200


def test_what_is_typed_shows_everywhere_and_what_is_refused_gives_way_to_what_is_typed_next(visit):
    one = visit().open()
    field = one.page.locator(".st-key-type_prompt_tokens input")
    field.fill("32k")
    field.press("Enter")
    one.page.locator("h1", has_text="215").wait_for()
    one.settle()
    sums = one.page.locator(".kv-sum").inner_text()
    assert "10.7" in sums
    assert "215" in sums
    assert one.slider("prompt_tokens").get_attribute("aria-valuetext") == "32768"
    field.fill("abc")
    field.press("Enter")
    one.page.get_by_role("alert").filter(has_text="got 'abc'").wait_for()
    one.page.locator("h1").click()
    field.click()
    one.page.keyboard.type("5000")
    assert field.input_value() == "5000"
