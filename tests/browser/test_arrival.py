"""What a reader meets while the page arrives: controls stay where they are first seen, and answer the first press."""

import pytest

from tests.browser.conftest import Visit
from tests.page_server import page_server

pytestmark = pytest.mark.browser

SEEN = """
globalThis.places = {};
const look = () => {
  for (const name of ["model", "prefill_tp", "link", "slider_batch", "slider_prompt_tokens", "slider_history_tokens"]) {
    const node = document.querySelector(`.st-key-${name}`);
    if (!node || getComputedStyle(node).visibility === "hidden") continue;
    const box = node.getBoundingClientRect(), bottom = Math.round(box.bottom + scrollY);
    const found = (places[name] ??= []);
    if (found.at(-1) !== bottom) found.push(bottom);
  }
  requestAnimationFrame(look);
};
document.addEventListener("DOMContentLoaded", look);
"""
SCRIPTS = "performance.getEntriesByType('resource').map(e => e.name.split('/').at(-1)).filter(name => /[.]js([?]|$)/.test(name))"
MIDDLE = "n => { const r = n.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }"
HELD = "n => { const r = n.getBoundingClientRect(); return document.activeElement === n && r.top >= 0 && r.bottom <= innerHeight; }"


@pytest.mark.parametrize(("path", "width"), [("/", 1280), ("/?prompt_tokens=12k", 390)])
def test_a_control_stays_where_it_is_first_seen_and_the_link_opens_at_the_first_press(browser, path, width):
    with page_server() as address:  # whose first reader waits longest for what comes last
        first_reader(Visit(browser, address, width=width), path)


def first_reader(one, path):
    one.page.add_init_script(SEEN)
    one.context.new_cdp_session(one.page).send("Emulation.setCPUThrottlingRate", {"rate": 2})
    one.page.goto(one.address + path)
    link = one.page.locator(".st-key-link input")
    link.wait_for(timeout=30_000)
    place = link.evaluate(MIDDLE)
    one.page.wait_for_timeout(400)  # a reader takes a moment from seeing to pressing
    one.page.mouse.click(*place)
    one.page.locator("[role=option]").first.wait_for(timeout=5_000)
    one.page.wait_for_selector(".liveview-chart .main-svg", timeout=30_000)
    one.settle()
    assert link.get_attribute("aria-expanded") == "true"
    places = one.page.evaluate("places")
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
    assert len(places) >= 5
    # What is asked for only when a first element of its kind comes keeps the picture waiting.
    whole, asked = one.page.request.get(one.address).text(), one.page.evaluate(SCRIPTS)
    assert len(asked) > 20
    assert [name for name in asked if name not in whole] == []
    one.context.close()


@pytest.mark.parametrize("path", ["/", "/next-turn"])
def test_a_phone_s_first_screen_has_the_answer_the_inputs_and_the_head_of_the_picture(visit, path):
    one = visit(width=390, touch=True)
    one.page.set_viewport_size({"width": 390, "height": 844})
    one.open(path)
    tops = [one.page.locator(at).first.bounding_box() for at in ("h1", ".kv-setup", ".st-key-selects", ".liveview-chart")]
    assert [box["y"] for box in tops] == sorted(box["y"] for box in tops)
    assert tops[-1]["y"] <= 710
    fields = one.page.locator(".st-key-controls :is(.stSelectbox [role=group], .stSelectbox input, .stTextInput input)").all()
    assert min(field.bounding_box()["height"] for field in fields) >= 24
    one.page.get_by_role("button", name="Change engine").click()
    engine = one.page.locator(".st-key-engine input:focus")
    engine.wait_for()
    for _ in range(4):
        one.page.wait_for_timeout(500)
        assert engine.evaluate(HELD)
    assert one.page.evaluate("document.documentElement.scrollWidth") <= 390
