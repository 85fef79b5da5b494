"""What a reader meets on the page, in one session at a desk and one on a phone: each test opens the view that it needs."""

import re
from urllib.parse import urlparse

import pytest

from app.catalog import VIEWS
from app.palette import DARK, LIGHT
from app.state import State
from kvmodel.turn import Turn
from tests.browser.conftest import Visit

pytestmark = pytest.mark.browser

FOLD = {1280: 800, 390: 844}
OPEN = "[...document.querySelectorAll('[data-testid=stMainBlockContainer] details')].filter(n => n.open).length"
MOTION = (
    "[...document.querySelectorAll('*')].filter(n => { const s = getComputedStyle(n);"
    " return parseFloat(s.transitionDuration) > 0 || (s.animationName !== 'none' && parseFloat(s.animationDuration) > 0); }).length"
)
COLOURS = "[...new Set(document.querySelector('.kv-timeline').data.flatMap(t => [t.marker?.color ?? [], t.fillcolor ?? []].flat()))]"
HATCHED = "document.querySelector('.kv-timeline').data.filter(t => t.marker?.pattern?.shape).flatMap(t => t.marker.color)"
FREE = "(n, [x, y]) => { const at = document.elementFromPoint(x, y); return n.contains(at) || Boolean(at?.contains(n)); }"
CONTROLS = "[...document.querySelectorAll('.st-key-selects, [class*=st-key-slider_], .st-key-more')].map(n => n.getBoundingClientRect().y)"
AXES = "n => [n._fullLayout.xaxis.ticktext, n._fullLayout.xaxis.title.text, n._fullLayout.yaxis.ticktext]"
ON_CURVE = """n => {
  const t = n.data.find(d => d.line?.width === 3.5), { xaxis, yaxis } = n._fullLayout;
  const r = n.querySelector('.nsewdrag').getBoundingClientRect();
  return [r.x + xaxis.l2p(Math.log10(t.x[30])), r.y + yaxis.l2p(Math.log10(t.y[30]))];
}"""
DIMMED = """(chart, ms) => {
  chart.closest('.stElementContainer').dataset.stale = 'true';
  return new Promise(done => setTimeout(() => done(getComputedStyle(chart).opacity), ms));
}"""


@pytest.fixture(scope="module")
def reader(browser, address):
    one = Visit(browser, address)
    yield one
    one.context.close()


@pytest.fixture(scope="module")
def phone(browser, address):
    one = Visit(browser, address, width=390, theme="dark", touch=True)
    yield one
    one.context.close()


def at(one, path):
    """The view, opened anew only where the last test left another one."""
    if one.page.url != one.address + path:
        one.open(path)
    return one.page


def in_sight(one, seen):
    """Whether all of an element is above the fold, and nothing covers its middle."""
    box = seen.bounding_box()
    free = seen.evaluate(FREE, [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2])
    return free and box["y"] >= 0 and box["y"] + box["height"] <= one.page.viewport_size["height"]


@pytest.mark.parametrize("who", ["reader", "phone"])
def test_answer_presets_engine_and_slider_are_above_the_fold_on_a_first_visit(request, who):
    one = request.getfixturevalue(who)
    width = one.page.viewport_size["width"]
    one.page.set_viewport_size({"width": width, "height": FOLD[width]})
    page = at(one, "/")
    slider = page.locator(".st-key-slider_prompt_tokens")
    for seen in (page.locator("h1"), page.get_by_role("button", name="Examples"), page.get_by_text("Change engine"), slider):
        assert in_sight(one, seen), seen
    assert page.evaluate(OPEN) == 0
    hint, inputs = page.locator(".kv-hint"), page.locator(".st-key-selects")
    assert hint.inner_text().startswith("Drag Prompt tokens")
    assert hint.bounding_box()["height"] <= (24 if width > 640 else 40)
    assert hint.bounding_box()["y"] < inputs.bounding_box()["y"]
    assert one.errors == []


def test_what_is_opened_or_refused_covers_no_control_and_moves_none(reader):
    page = at(reader, "/")
    page.locator("h1 .kv-open").click()
    button, panel = (page.locator(name).bounding_box() for name in (".st-key-presets", "h1 ~ .kv-explained"))
    assert button["y"] + button["height"] <= panel["y"]
    page.keyboard.press("Escape")
    before = page.evaluate(CONTROLS)
    field = page.locator(".st-key-type_prompt_tokens input")
    field.fill("2M")
    field.press("Enter")
    page.get_by_role("alert").filter(has_text="Prompt tokens: got '2M'").wait_for()
    assert (page.evaluate(CONTROLS), field.input_value()) == (before, "2M")


def test_presets_open_at_the_head_and_lead_to_their_views(phone):
    page = at(phone, "/")
    page.get_by_role("button", name="Examples").click()
    links = page.locator(".kv-presets a")
    links.first.wait_for()
    assert set(links.all_inner_texts()) == {
        "70B over InfiniBand", "Llama 2 7B over 100 Gb/s", "DeepSeek-V3 on H200 over NDR", "70B over 100 GbE, vLLM", "Across datacentres",
        "Same node, NVLink", "An agent at 150k tokens",
    }  # fmt: skip
    links.filter(has_text="An agent at 150k tokens").click()
    page.locator("h1", has_text="but would stall any neighbour").wait_for()
    assert "/next-turn?model=" in page.url
    assert "beyond its stated context" not in page.locator(".kv-setup").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_chart_that_waits_is_dimmed_in_place_after_a_while_and_one_that_follows_is_not(reader):
    page = at(reader, "/")
    chart, view = page.locator(".kv-timeline"), page.locator(".st-key-timeline_view .liveview")
    view.evaluate("n => n.classList.remove('kv-current')")
    assert [chart.evaluate(DIMMED, ms) for ms in (100, 200)] == ["1", "0.6"]
    view.evaluate("n => n.classList.add('kv-current')")
    assert chart.evaluate(DIMMED, 300) == "1"


def test_no_width_from_a_phone_to_a_wide_screen_overflows(reader):
    page = at(reader, "/")
    for width in (390, 480, 640, 641, 800, 1024, 1600, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(100)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, width


def test_the_engine_is_a_click_away_and_says_what_another_costs(reader):
    page = at(reader, "/")
    assert re.search(r"with vLLM NIXL the handoff adds 7\d\.\d", page.locator(".kv-setup").inner_text())
    assert page.locator(".kv-setup abbr").get_attribute("title").startswith("One link used from one side to the other")
    page.get_by_role("button", name="Change engine").click()
    page.locator(".st-key-engine input:focus").wait_for()
    page.get_by_role("link", name="with vLLM NIXL").click()
    page.wait_for_url(lambda url: "engine=vllm-nixl" in url)
    page.locator(".kv-setup", has_text="vLLM NIXL · Change engine").wait_for()


def test_applying_a_change_shows_what_was_beside_what_is(reader):
    page = at(reader, "/")
    page.get_by_role("link", name="FP8 KV").click()
    page.wait_for_url(lambda url: "kv_dtype=fp8&pin=defaults" in url, wait_until="commit")
    page.locator(".kv-pin-said", has_text="KV dtype fp8 in place of bf16").wait_for()
    assert page.locator(".kv-pin-bar > span").all_inner_texts() == ["Pinned: KV dtype bf16", "Now: KV dtype fp8"]
    box = page.locator(".st-key-pin_box")
    assert "Only this one is in FP8. Lossy" in box.inner_text()
    box.locator("summary", has_text="Both in figures").click()
    assert re.search(r"Requests that fit on decode\s+164\s+327\s+\+163, 1.99×", box.inner_text())


def test_words_of_a_turns_setup_open_the_inputs_they_stand_for(reader):
    page = at(reader, "/next-turn")
    for words, field in (("500 of the history generated on decode", "generated_tokens"), ("nobody decoded beside it", "decode_batch")):
        page.get_by_role("button", name=words).click()
        page.locator(f".st-key-text_{field} input:focus").wait_for()
    page.locator(".st-key-text_decode_batch input").fill("32")
    page.keyboard.press("Enter")
    page.locator("h1", has_text="stalls 31 neighbours").wait_for()
    assert "31 requests decoded beside it" in page.locator(".kv-setup").inner_text()


def test_a_number_typed_beside_a_slider_moves_it_and_a_comma_is_named(browser, address):
    context = browser.new_context(viewport={"width": 1280, "height": 900}, locale="de-DE")
    page = context.new_page()
    page.goto(f"{address}/next-turn")
    field = page.get_by_label("History tokens as a number")
    field.fill("100k")
    field.press("Enter")
    page.wait_for_url(lambda url: "history_tokens=102400" in url)
    takes = page.get_by_role("link", name="Llama 3.1 70B takes it")
    takes.wait_for()
    assert takes.get_attribute("href") == "?model=llama-3.1-70b&history_tokens=102400"
    page.locator('.st-key-history_tokens [aria-valuetext="102400"]').wait_for(state="attached")
    before = VIEWS["next-turn"].at(State(turn=Turn(history_tokens=102_400))).views["answer_view"]["say"]
    page.locator("h1", has_text=before).wait_for()
    field.fill("0,8")
    field.press("Enter")
    page.locator(".kv-notice", has_text="History tokens: got '0,8'; type a whole number from 0 to 524,288, such as 8192 or 8k").wait_for()
    assert page.locator("h1").inner_text() == before
    assert urlparse(page.url).query == "history_tokens=102400"
    context.close()


def test_a_number_typed_reaches_what_is_out_of_sight(browser, address):
    context = browser.new_context(viewport={"width": 1280, "height": 400})
    page = context.new_page()
    page.goto(f"{address}/")
    rows = page.locator(".kv-row")
    rows.filter(has_text="2.68\u202fGB (2.50\u202fGiB) a request").wait_for(state="attached")
    page.wait_for_timeout(500)
    field = page.get_by_label("Prompt tokens as a number")
    field.fill("32k")
    field.press("Enter")
    page.wait_for_url(lambda url: "prompt_tokens=32768" in url)
    rows.filter(has_text="10.7\u202fGB (10.0\u202fGiB) a request").wait_for(state="attached")
    context.close()


def test_steps_of_a_slider_grow_with_its_value(reader):
    page = at(reader, "/interconnects?prompt_tokens=2048")
    slider = page.get_by_role("slider", name="Prompt tokens")

    def value(key):
        slider.press(key)
        return int(slider.get_attribute("aria-valuetext"))

    low = [value(key) for key in ("Home", "ArrowRight")]
    high = [value(key) for key in ("End", "ArrowLeft")]
    assert low[1] / low[0] == pytest.approx(high[0] / high[1], rel=0.01)
    assert high[0] == 8192 * low[0]


def test_ticks_are_human_hover_has_three_digits_and_each_yardstick_is_named(reader):
    page = at(reader, "/critical-length?link=ethernet-100")
    chart = page.locator(".kv-critical")
    axes = chart.evaluate(AXES)
    assert axes[:2] == [["128", "1k", "8k", "128k", "1M"], "prompt tokens"]
    assert all(re.fullmatch(r"[\d.,]+\u202f(µs|ms|s)", text) for text in axes[2])
    x, y = chart.evaluate(ON_CURVE)
    page.mouse.move(x - 25, y - 25)
    page.mouse.move(x, y, steps=4)
    hover = chart.locator(".hoverlayer text", has_text="tokens over Ethernet 100 (kernel TCP)").first
    hover.wait_for()
    assert re.search(r"TCP\)\D*(\d\.\d\d|\d\d\.\d|\d\d\d)\u202fm?s", hover.text_content())
    said = page.locator("body").inner_text()
    for part in ("Yardstick here: one decode step", "The other yardstick: can prefill hide it?", "The ratio rises from"):
        assert part in said


def test_inputs_that_flip_the_verdict_are_drawn_and_listed(reader):
    page = at(reader, "/sensitivity")
    rows = page.locator(".st-key-turned_view tbody tr td:first-child").all_inner_texts()
    drawn = page.locator(".kv-tornado").inner_text()
    assert len(rows) >= 8
    assert all(row in drawn for row in rows)


@pytest.mark.parametrize("view", ["critical-length", "wire"])
def test_curves_that_are_level_or_nothing_are_drawn(reader, view):
    before = len(reader.errors)
    at(reader, f"/{view}?decode_held_tokens=1048576&prompt_tokens=1048576")
    assert reader.answer().startswith(("Decode already holds this prompt", "Nothing moves"))
    assert reader.errors[before:] == []


def test_colours_are_those_of_the_theme_and_what_decode_waits_for_is_hatched(reader, phone):
    for one, theme in ((reader, LIGHT), (phone, DARK)):
        page = at(one, "/?overlap=layer&link=ethernet-25")
        assert {theme[meaning] for meaning in ("prefill", "wire", "decode")} <= set(page.evaluate(COLOURS))
        assert theme["exposed"] in page.evaluate(HATCHED)


def test_what_is_empty_says_what_belongs_there_and_how_to_fill_it(reader):
    reader.page.goto(f"{reader.address}/measured?measured_link=efa-200&measured_engine=splitwise")
    way = reader.page.locator(".kv-empty").get_by_role("link", name="Show all of them")
    way.wait_for()
    assert way.get_attribute("href") == "?measured_link=all"
    page = at(reader, "/weighs")
    assert "JSON, up to 200,000 characters" in page.locator(".kv-empty").inner_text()
    page.get_by_role("button", name="Try an example").click()
    page.locator("h1", has_text="147,456").wait_for()
    page.locator(".kv-empty").wait_for(state="detached")


def test_an_embed_with_options_keeps_working_and_links_without_them(reader):
    page = at(reader, "/?embed=true&embed_options=light_theme&model=llama-3.1-8b")
    page.get_by_role("slider", name="Prompt tokens").press("End")
    page.wait_for_url(lambda url: "prompt_tokens=1048576" in url)
    assert {"embed=true", "embed_options=light_theme", "model=llama-3.1-8b"} <= set(urlparse(page.url).query.split("&"))
    link = page.get_by_role("link", name="Open in the explorer").and_(page.locator("[href='./?model=llama-3.1-8b&prompt_tokens=1048576']"))
    link.wait_for()
    assert not page.get_by_role("button", name="Examples").is_visible()
    assert not page.get_by_label("Prompt tokens as a number").is_visible()


def test_numbers_in_a_link_are_whole_and_all_bad_ones_are_named(reader):
    bad = ("decode_tp=abc", "batch=-5", "output_tokens=1e6", "kv_dtype=NaN", "link=0", "decode_batch=99999999999")
    page = at(reader, f"/?prompt_tokens=24576&prefill_tp=16&{'&'.join(bad)}")
    assert page.get_by_role("slider", name="Prompt tokens").get_attribute("aria-valuetext") == "24576"
    assert "16 × H100" in page.locator(".kv-setup").inner_text()
    notes = " ".join(page.locator(".kv-notice").all_inner_texts())
    assert [one for one in bad if one not in notes] == []


def test_a_chart_that_cannot_be_drawn_says_so_keeps_its_place_and_can_be_tried_again(visit):
    one = visit(fresh=True)
    one.page.emulate_media(reduced_motion="reduce")
    one.page.route("**/*plotly*.js*", lambda route: route.abort())
    one.page.goto(one.address + "/")
    alert = one.page.locator(".kv-timeline [role=alert]")
    alert.wait_for()
    assert alert.inner_text().startswith("The chart could not be drawn, because the drawing library did not load.")
    assert one.page.locator(".kv-timeline").bounding_box()["height"] >= 296
    one.page.unroute("**/*plotly*.js*")
    alert.get_by_role("button", name="Try again").click()
    one.page.locator(".kv-timeline .main-svg").first.wait_for()
    assert alert.count() == 0
    assert one.page.evaluate(MOTION) == 0
