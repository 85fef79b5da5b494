"""The page as a person sees it, in Chromium."""

from urllib.parse import parse_qsl, urlparse

import pytest

from kvmodel import Scenario, evaluate

pytestmark = pytest.mark.browser


def test_1600_pixels_do_not_stretch_the_page(visit):
    one = visit(width=1600).open()
    assert one.page.locator(".kv-timeline").bounding_box()["width"] <= 1280


def test_sum_and_name_say_what_the_answer_says_at_every_position_and_the_page_keeps_its_height(visit):
    one = visit().open("/?overlap=layer")
    height = "document.querySelector('[data-testid=stMainBlockContainer]').scrollHeight"
    before = one.page.evaluate(height)

    def agree():
        exposed = one.page.locator(".kv-term", has_text="exposed transfer").locator(".kv-number").inner_text()
        assert exposed.split()[0].split("\u202f")[0] in one.answer()
        assert one.page.locator(".kv-timeline").get_attribute("aria-label") == one.answer()
        assert one.page.evaluate(height) == before

    assert len(set(one.drag("prompt_tokens", [0.42, 0.5, 0.55], look=agree))) == 3


def test_the_keyboard_moves_a_slider_and_commits(visit):
    one = visit().open()
    slider = one.page.get_by_role("slider", name="Prompt tokens")
    slider.focus()
    values = []
    for key in ("ArrowRight", "ArrowLeft", "PageUp", "Home", "End"):
        one.page.keyboard.press(key)
        one.settle()
        values.append(int(slider.get_attribute("aria-valuetext")))
    assert values[0] > 8192
    assert values[1] == 8192
    assert values[2] > 8192
    assert values[3:] == [128, 1_048_576]
    assert "prompt_tokens=1048576" in one.page.url


def test_a_share_link_shows_the_same_scenario_to_another_reader(visit):
    one = visit().open("/?overlap=layer")
    one.page.get_by_role("combobox", name="Link").click()
    one.page.get_by_role("option", name="Ethernet 25", exact=True).click()
    one.settle()
    one.drag("prompt_tokens", [0.45])
    other = visit().open(one.page.url.removeprefix(one.address))
    assert other.answer() == one.answer()
    assert other.answer().startswith("Link-bound")


def test_a_choice_is_drawn_ahead_of_the_run_and_once(visit):
    one = visit().open()
    one.page.evaluate("globalThis.drawn = 0; document.querySelector('.kv-timeline').on('plotly_afterplot', () => { drawn += 1; })")
    answers = []
    one.page.route("**/ahead?*", lambda route: (answers.append(route.request.url), route.continue_()))
    one.page.get_by_role("combobox", name="Link").click()
    with one.page.expect_response("**/ahead?*"):  # who stays on a choice has not made it
        one.page.get_by_role("option", name="Ethernet 25", exact=True).hover()
    assert [url.partition("?")[2] for url in answers] == ["view=one-request&query=&name=link&label=Ethernet+25"]
    assert one.page.evaluate("drawn") == 0
    one.page.mouse.down()
    one.page.mouse.up()
    one.settle()
    assert len(answers) == 1
    assert one.page.evaluate("drawn") == 1
    assert "link=ethernet-25" in one.page.url
    assert one.errors == []


def test_choices_that_a_reader_only_looked_at_change_nothing(visit):
    one = visit().open()
    before, asked = one.answer(), []
    one.page.route(
        "**/ahead?*", lambda route: (asked.append(dict(parse_qsl(urlparse(route.request.url).query))["label"]), route.continue_())
    )
    one.page.get_by_role("combobox", name="Prefill TP").click()
    for key in ("ArrowUp", "ArrowUp"):
        with one.page.expect_response("**/ahead?*"):
            one.page.keyboard.press(key)
    one.page.keyboard.press("Escape")
    one.settle()
    assert asked == ["4", "2"]
    assert one.answer() == before
    assert one.errors == []


def test_a_choice_needs_no_early_drawing(visit):
    late = visit()
    late.page.route("**/ahead?*", lambda route: route.abort())
    late.open()
    late.page.get_by_role("combobox", name="Prefill TP").click()
    late.page.get_by_role("option", name="4", exact=True).click()
    late.answers(evaluate(Scenario(prefill_tp=4)).verdict)
    late.page.wait_for_url(lambda url: "prefill_tp=4" in url)


@pytest.mark.parametrize("finger", [False, True])
def test_a_published_mark_opens_the_page_that_prints_it_to_a_finger_once_it_was_read(visit, finger):
    one = visit(touch=finger).open("/measured?link=roce-200")
    one.page.evaluate("void (window.open = (...words) => { (globalThis.opened ??= []).push(words); })")
    chart = one.page.locator(".kv-measured")
    place = chart.evaluate(
        "n => { const t = n.data.find(d => d.customdata), a = n._fullLayout;"
        " const r = n.querySelector('.nsewdrag').getBoundingClientRect();"
        " return [r.x + a.xaxis.l2p(Math.log10(t.x[0])), r.y + a.yaxis.l2p(Math.log10(t.y[0])), t.customdata[0][1]]; }"
    )
    if finger:
        one.page.touchscreen.tap(place[0], place[1])
        chart.locator(".hoverlayer text").first.wait_for()
        assert one.page.evaluate("globalThis.opened") is None
        one.page.touchscreen.tap(place[0], place[1])
    else:
        one.page.mouse.move(place[0] - 30, place[1] - 30)
        one.page.mouse.move(place[0], place[1], steps=4)
        one.page.wait_for_timeout(300)
        one.page.mouse.click(place[0], place[1])
    one.page.wait_for_function("globalThis.opened")
    assert one.page.evaluate("globalThis.opened") == [[place[2], "_blank", "noopener"]]


def test_a_link_carries_only_what_differs_and_of_a_repeated_parameter_the_last_counts(visit):
    one = visit(fresh=True).open("/?prompt_tokens=8192&link=ib-ndr-400&model=deepseek-v3&model=llama-3.1-8b&utm=x")
    query = urlparse(one.page.url).query
    assert query == "model=llama-3.1-8b&utm=x"
    assert "Llama 3.1 8B" in one.page.locator(".kv-setup").inner_text()


def test_a_bad_value_in_a_link_is_named_beside_the_rest(visit):
    one = visit(fresh=True).open("/?prompt_tokens=12k&decode_tp=4&model=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E")
    notices = one.page.locator(".kv-notice").all_inner_texts()
    assert any("prompt_tokens=12k" in text and "1 to 1,048,576" in text and "8,192" in text for text in notices)
    assert any("<img src=x onerror=alert(1)>" in text for text in notices)
    assert "4 × H100" in one.page.locator(".kv-setup").inner_text()
    assert one.errors == []


def test_a_model_is_found_by_what_people_type(visit):
    one = visit().open()
    for typed, chosen in [("gpt-oss 20", "gpt-oss-20b"), ("meta-llama/Meta-Llama-3-8B", "llama-3-8b")]:
        one.page.get_by_role("combobox", name="Model").click()
        one.page.keyboard.type(typed)
        one.page.get_by_role("option").first.wait_for()
        one.page.keyboard.press("Enter")
        one.page.wait_for_url(lambda url, chosen=chosen: urlparse(url).query == f"model={chosen}")
        one.settle()
    assert one.errors == []


def test_the_overlap_control_changes_picture_and_answer(visit):
    one = visit().open()
    one.page.get_by_role("radio", name="layer", exact=True).or_(one.page.get_by_role("button", name="layer", exact=True)).first.click()
    one.settle()
    assert one.answer().startswith("The wire hides behind prefill")
    assert "overlap=layer" in one.page.url
    assert "magnified" in one.page.locator(".kv-timeline").inner_text()


def test_plotly_comes_from_the_page_itself(visit):
    one = visit(fresh=True).open()
    scripts = [url for url in one.requests if "plotly" in url.lower() and url.endswith((".js", ".js?v=" + url[-12:]))]
    assert scripts
    assert all(url.startswith(one.address) for url in scripts)
    assert one.page.evaluate("globalThis.Plotly.version") == "4.1.1"
    assert one.page.locator("script[src*=plotly]").count() == 1


def test_charts_are_drawn_where_the_early_start_of_plotly_fails(visit):
    one, tried = visit(fresh=True), []

    def refuse_the_first(route):
        tried.append(route.request.url)
        route.abort() if len(tried) == 1 else route.continue_()

    one.page.route("**/*plotly*.js*", refuse_the_first)
    one.open()
    assert len(tried) > 1


def test_touch_moves_the_slider_on_a_phone(visit):
    one = visit(width=390, touch=True).open()
    box = one.page.locator(".st-key-prompt_tokens").last.bounding_box()
    before = one.answer()
    one.page.touchscreen.tap(box["x"] + box["width"] * 0.8, box["y"] + box["height"] - 12)
    one.settle()
    assert one.answer() != before


def test_a_finger_that_scrolls_over_a_slider_changes_nothing_and_one_along_it_drags(visit):
    one = visit(width=390, touch=True).open()
    fingers = one.context.new_cdp_session(one.page)
    thumb = one.slider("prompt_tokens")

    def swipe(x, y):
        at = thumb.evaluate("e => [e.getBoundingClientRect().x + 60, e.getBoundingClientRect().y + 8]")
        for kind, share in [("touchStart", 0), *(("touchMove", i / 10) for i in range(1, 11)), ("touchEnd", None)]:
            points = [] if share is None else [{"x": at[0] + x * share, "y": at[1] + y * share}]
            fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
            one.page.wait_for_timeout(20)
        one.settle()
        return int(thumb.get_attribute("aria-valuetext"))

    assert swipe(-2, -250) == 8192
    assert one.page.evaluate("document.querySelector('[data-testid=stMain]').scrollTop") > 100
    assert swipe(-100, -3) < 8192
    assert not one.errors


def test_on_a_phone_a_word_says_what_it_means_and_a_pin_comes_into_sight(visit):
    one = visit(width=390, touch=True).open()
    one.page.locator("abbr", has_text="lanes").first.tap()
    meaning = one.page.locator(".kv-meaning")
    assert meaning.inner_text().startswith("One link used from one side to the other")
    box = meaning.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    one.page.get_by_role("button", name="Pin to compare").tap()
    one.page.wait_for_selector(".st-key-pinned_view")
    one.settle()
    assert meaning.count() == 0
    assert one.page.locator(".st-key-pinned_view").evaluate(
        "e => { const { top } = e.getBoundingClientRect(); return top > 0 && top < innerHeight; }"
    )
    assert not one.errors


def test_a_pasted_configuration_is_the_model_of_every_view(visit):
    one = visit(fresh=True).open("/weighs")
    config = '{"num_hidden_layers": 4, "hidden_size": 512, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64}'
    box = one.page.get_by_label("Paste a config.json")
    box.fill(config)
    box.press("Control+Enter")
    one.settle()
    assert "2,048" in one.answer()
    assert one.page.locator(".kv-notice").count() >= 1
    one.page.get_by_role("link", name="One request").click()
    one.page.wait_for_selector(".kv-timeline .main-svg")
    one.settle()
    assert one.page.locator(".kv-setup").inner_text().split(", ")[1] == "Your model"
    assert one.errors == []
