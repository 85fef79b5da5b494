"""A static copy opened as a reader would: from a plain file server, the app being down."""

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe

from app.catalog import TITLES, VIEWS
from app.site.grid import Grid, grid_of, values_of
from app.site.make import make
from app.state import from_link
from kvmodel import Scenario, evaluate, registry
from kvmodel.display import bytes_text, digits

pytestmark = pytest.mark.browser
LIVE = "https://kv.example"
SHOWN = ["one-request", "critical-length", "next-turn", "wire", "matrices"]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site(browser, tmp_path_factory):
    """The address of a copy below a path of its server: four scenarios, in some views."""
    folder = tmp_path_factory.mktemp("files")
    whole = grid_of(values_of({"models": "llama-3-70b,llama-3.1-8b", "links": "ethernet-25", "tp": "1,8", "kv-dtype": "auto"}))
    kept = [family for family in whole.families if family[0].preset in ("", "published", "agent-150k") and "tp1" not in family[0].name]
    make(
        str(folder / "kv"), Grid(tuple(kept), whole.refused, whole.values), SHOWN, app=LIVE, compress=False, jobs=1,
        progress=lambda *_: None,
    )  # fmt: skip
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/kv/"
    server.shutdown()
    server.server_close()


@pytest.fixture
def reader(browser, site):
    contexts = []

    def opened(path, *, width=1280, theme="light", charts=True):
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme))
        page = contexts[-1].new_page()
        page.wrong, page.asked = [], []
        page.on("console", lambda m: page.wrong.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda e: page.wrong.append(str(e)))
        page.on("request", lambda r: page.asked.append(r.url))
        page.goto(site + path)
        if charts:
            page.wait_for_selector(".liveview-chart .main-svg")
        return page

    yield opened
    for context in contexts:
        context.close()


def answer(page):
    return page.locator("h1").inner_text()


def until_answer_changes(page, before):
    page.wait_for_function("before => document.querySelector('h1').innerText !== before", arg=before)


@pytest.mark.parametrize(("path", "width", "theme"), [
    ("index.html", 390, "light"), ("one-request.html", 1280, "light"), ("critical-length.html", 390, "dark"),
    ("next-turn.html", 1600, "dark"), ("wire.html", 390, "light"), ("matrices.html", 800, "dark"), ("method.html", 390, "dark"),
])  # fmt: skip
def test_a_page_is_drawn_from_files_of_its_own_host_alone(reader, site, path, width, theme):
    page = reader(path, width=width, theme=theme, charts=path.removesuffix(".html") in VIEWS)
    assert Axe().run(page).response["violations"] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert all(url.startswith((site, "data:")) for url in page.asked)
    assert page.wrong == []


def test_sliders_are_live_without_a_request_and_one_at_a_time(reader):
    page = reader("one-request.html")
    prompt, batch = page.get_by_role("slider", name="Prompt tokens"), page.get_by_role("slider", name="Batch")
    page.wait_for_timeout(300)
    asked, box = len(page.asked), prompt.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.46, box["y"] + box["height"] / 2)
    page.mouse.down()
    seen = []
    for share in (0.5, 0.6, 0.7, 0.9):
        before = answer(page)
        page.mouse.move(box["x"] + box["width"] * share, box["y"] + box["height"] / 2, steps=3)
        until_answer_changes(page, before)
        seen.append(answer(page))
    page.mouse.up()
    assert len(set(seen)) == 4
    tokens = prompt.get_attribute("aria-valuetext")
    page.wait_for_function("tokens => location.search === `?prompt_tokens=${tokens}`", arg=tokens)
    assert digits(evaluate(Scenario(prompt_tokens=int(tokens))).ttft_seconds) in page.locator(".kv-total").inner_text()
    batch.focus()
    batch.press("ArrowRight")
    page.wait_for_function("document.querySelector('.kv-setup').isConnected && location.search === '?batch=2'")
    assert prompt.get_attribute("aria-valuetext") == "8192"
    page.wait_for_function("text => document.querySelector('.kv-total').innerText.includes(text)",
                           arg=digits(evaluate(Scenario(batch=2)).ttft_seconds * 1e3))  # fmt: skip
    assert len(page.asked) == asked
    assert page.wrong == []


def test_what_is_out_of_sight_follows_when_the_slider_is_let_go(reader):
    page = reader("one-request.html")
    page.set_viewport_size({"width": 1280, "height": 300})
    prompt, row = page.get_by_role("slider", name="Prompt tokens"), page.locator(".kv-row", has_text="KV bytes").first
    prompt.scroll_into_view_if_needed()
    page.wait_for_timeout(300)
    box, before, first = prompt.bounding_box(), row.text_content(), answer(page)
    page.mouse.move(box["x"] + box["width"] * 0.46, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + box["height"] / 2, steps=3)
    until_answer_changes(page, first)
    assert row.text_content() == before
    page.mouse.up()
    page.wait_for_function("before => document.querySelector('.kv-row').textContent !== before", arg=before)
    tokens = int(prompt.get_attribute("aria-valuetext"))
    assert bytes_text(evaluate(Scenario(prompt_tokens=tokens)).kv.prompt_bytes) in row.text_content()


def test_a_choice_keeps_the_slider_and_the_way_back(reader):
    page = reader("one-request.html?prompt_tokens=32768")
    page.wait_for_function("location.search === '?prompt_tokens=32768'")
    first = answer(page)
    page.get_by_label("Model").select_option("llama-3.1-8b")
    until_answer_changes(page, first)
    assert from_link(dict(parse_qsl(urlsplit(page.url).query))).scenario == Scenario(
        model="llama-3.1-8b", link="ethernet-25", prompt_tokens=32_768
    )
    assert "This copy does not hold Link InfiniBand NDR 400 (shown: Ethernet 25)" in page.get_by_role("status").all_inner_texts()[-1]
    second = answer(page)
    page.go_back()
    until_answer_changes(page, second)
    assert answer(page) == first
    page.get_by_role("link", name="Critical length").click()
    page.wait_for_url("**/critical-length.html?prompt_tokens=32768")
    page.wait_for_selector(".liveview-chart .main-svg")
    assert page.get_by_role("slider", name="Prompt tokens").get_attribute("aria-valuetext") == "32768"
    assert page.wrong == []


def test_what_a_copy_lacks_is_said_with_a_link_to_the_live_page(reader):
    page = reader("critical-length.html?link=ethernet-25&engine=vllm-nixl&batch=4")
    told = page.locator("[data-place=notices]")
    told.get_by_role("link").wait_for()
    assert told.inner_text() == (
        "This copy does not hold Batch 4 (shown: 1), Engine vLLM NIXL (shown: Ideal). Open it in the live explorer."
    )
    assert told.get_by_role("link").get_attribute("href") == f"{LIVE}/critical-length?batch=4&link=ethernet-25&engine=vllm-nixl"
    page.wait_for_function("location.search === '?link=ethernet-25'")
    page.get_by_label("TP, each side").select_option("1")
    page.get_by_text("do not fit").wait_for()
    assert evaluate(Scenario(prefill_tp=1, decode_tp=1)).reason in told.inner_text()
    assert page.get_by_label("TP, each side").input_value() == "8"


def test_a_link_of_the_page_opens_its_view_and_the_turn_stands_where_it_says(reader):
    query = registry.presets()["agent-150k"].query
    page = reader(f"?view=next-turn&{query}")
    page.wait_for_url(f"**/next-turn.html?{query}")
    page.wait_for_function("document.querySelectorAll('input[type=range]').length === 2")
    assert page.get_by_role("slider", name="New tokens").get_attribute("aria-valuetext") == "900"
    assert page.locator("[data-place=notices]").inner_text() == ""
    assert set(TITLES) >= {urlsplit(url).path.rpartition("/")[2].removesuffix(".html") for url in page.asked if ".html" in url}


def test_the_search_finds_what_is_held_and_what_only_the_live_page_has(reader):
    page = reader("index.html", charts=False)
    box = page.get_by_role("searchbox")
    box.fill("meta-llama 8b")
    page.get_by_text("found", exact=False).wait_for()
    assert page.get_by_role("link", name="Llama 3.1 8B").is_visible()
    box.fill("gemma 27b")
    assert page.get_by_role("link", name="Gemma 3 27B").get_attribute("href") == f"{LIVE}/?model=gemma-3-27b"
    box.fill("ethernet 25")
    page.get_by_role("link", name="Ethernet 25").press("Enter")
    page.wait_for_selector(".liveview-chart .main-svg")
    assert answer(page).startswith("On Ethernet 25")
    assert page.wrong == []
