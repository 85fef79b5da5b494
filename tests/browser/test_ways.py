"""Ways through the page: views by name, Back, a scenario taken along, and views in a frame of another origin."""

import http.server
import threading
from urllib.parse import parse_qsl, urlparse, urlsplit

import pytest

from app.state import from_link
from kvmodel import Scenario, evaluate

pytestmark = pytest.mark.browser


def test_a_view_named_in_the_query_opens_with_its_scenario(visit):
    one = visit(fresh=True).open("/?view=next-turn&model=deepseek-v3")
    one.page.wait_for_selector(".kv-flow .main-svg")
    one.settle()
    assert urlparse(one.page.url)._replace(netloc="", scheme="").geturl() == "/next-turn?model=deepseek-v3"
    assert one.errors == []


def test_back_returns_to_the_preset_and_the_scenario_before(visit):
    one = visit().open("/?link=ethernet-25")
    before = one.answer()
    for name, said in (("Across datacentres", "Every handoff on WAN 100"), ("Llama 2 7B over 100 Gb/s", "Link-bound")):
        one.page.get_by_role("button", name="Examples").click()
        one.page.get_by_role("link", name=name).click()
        one.page.locator("h1", has_text=said).wait_for()
    one.page.go_back()
    one.page.locator("h1", has_text="Every handoff on WAN 100").wait_for()
    one.page.go_back()
    one.page.wait_for_selector(".kv-timeline .main-svg")
    one.settle()
    assert one.answer() == before
    assert one.errors == []


def test_back_returns_to_the_view_before(visit):
    one = visit().open()
    one.page.get_by_role("link", name="Critical length").click()
    one.page.wait_for_selector(".kv-critical .main-svg")
    one.settle()
    assert "/critical-length" in one.page.url
    one.page.go_back()
    one.page.wait_for_selector(".kv-timeline .main-svg")
    one.settle()
    assert one.answer().startswith("The handoff adds")
    assert one.errors == []


def test_a_scenario_goes_along_from_view_to_view(visit):
    one = visit().open("/?model=llama-3.1-8b&prompt_tokens=4096")
    one.page.get_by_role("link", name="Critical length").click()
    one.page.wait_for_selector(".kv-critical .main-svg")
    one.settle()
    assert "Llama 3.1 8B" in one.page.locator(".kv-setup").inner_text()
    assert "model=llama-3.1-8b" in one.page.url


def test_an_embed_has_no_navigation_and_works_from_another_origin(visit, address, tmp_path):
    sources = [f"{address}/?embed=true{rest}&link=ethernet-25" for rest in ("", "&view=critical-length")]
    frames = "".join(f'<iframe src="{source}" width="600" height="560"></iframe>' for source in sources)
    page = f'<html lang="en"><head><link rel="icon" href="data:,"></head><body>{frames}</body></html>'
    (tmp_path / "blog.html").write_text(page)
    handler = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    server = http.server.ThreadingHTTPServer(("localhost", 0), lambda *a: handler(*a, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        one = visit(fresh=True)
        one.page.goto(f"http://localhost:{server.server_port}/blog.html")
        for number, (chart, answer, view) in enumerate(
            [("timeline", "Nothing is hidden", "./?"), ("critical", "On Ethernet 25, a prompt past", "./critical-length?")]
        ):
            frame = one.page.frame_locator("iframe").nth(number)
            frame.locator(f".kv-{chart} .main-svg").first.wait_for(timeout=30_000)
            assert frame.locator("h1").inner_text().startswith(answer)
            link = frame.get_by_role("link", name="Open in the explorer")
            link.wait_for()
            assert link.get_attribute("href") == f"{view}link=ethernet-25"
            assert frame.get_by_role("link", name="Next turn").count() == 0
            assert frame.locator("h1 button, .kv-explain-fold").count() == 0
            assert not frame.get_by_role("combobox", name="Model").is_visible()
            assert frame.locator(".st-key-slider_prompt_tokens").is_visible()
            assert frame.locator("body").evaluate("document.documentElement.scrollWidth") <= 600
        assert one.errors == []
    finally:
        server.shutdown()
        server.server_close()


def test_on_a_phone_the_list_of_views_closes_once_one_is_chosen(visit):
    one = visit(width=390, touch=True).open()
    one.page.get_by_role("button", name="Expand sidebar").click()
    turn = one.page.get_by_role("link", name="Next turn")
    assert turn.locator("p").evaluate("n => getComputedStyle(n, '::after').content").startswith('"What moves when an agent calls again?"')
    turn.click()
    one.page.wait_for_selector(".kv-flow .main-svg")
    one.page.get_by_role("button", name="Expand sidebar").wait_for()
    one.page.locator("h1").click(timeout=5000)  # nothing covers it
    assert one.errors == []


@pytest.mark.parametrize(
    ("start", "control", "choice", "moved", "becomes"),
    [
        ("/", "engine", "SGLang Mooncake", "overlap", Scenario(engine="sglang-mooncake")),
        ("/?model=deepseek-v3&kv_dtype=fp8_ds_mla&engine=sglang-mooncake", "model", "Qwen3 8B", "kv_dtype", None),
    ],
)
def test_a_control_that_a_choice_elsewhere_moves_is_no_choice_of_its_own(visit, start, control, choice, moved, becomes):
    """The engine brings its overlap, a model without a latent its cache's format: both come from the run, none is asked for ahead."""
    page, asked = visit().open(start).page, []
    page.route("**/ahead?*", lambda route: (asked.append(dict(parse_qsl(urlsplit(route.request.url).query))["name"]), route.continue_()))
    if control == "engine":
        page.get_by_role("button", name="Change engine").click()
    page.locator(f".st-key-{control} input").click()
    page.locator(f".st-key-{control} input").fill(choice)
    page.get_by_role("option", name=choice).first.click()
    page.wait_for_url(lambda url: f"{control}=" in url and "kv_dtype" not in url)
    page.wait_for_timeout(1_500)
    assert moved not in asked
    scenario = becomes or from_link(dict(parse_qsl(urlsplit(page.url).query))).scenario
    assert getattr(scenario, control) == ("sglang-mooncake" if control == "engine" else "qwen3-8b")
    assert page.locator("h1").inner_text().replace("\n", " ") == evaluate(scenario).verdict
    assert from_link(dict(parse_qsl(urlsplit(page.url).query))).scenario == scenario


def test_a_link_is_followed_in_place_and_back_and_forward_return(visit):
    one = visit().open("/?link=ethernet-100")
    page, loaded = one.page, len([url for url in one.requests if url.endswith(".js")])
    page.get_by_role("button", name="Examples").click()
    page.locator(".kv-presets a", has_text="DeepSeek-V3 on H200 over NDR").click()
    page.wait_for_url(lambda url: "model=deepseek-v3" in url)
    page.locator(".kv-setup", has_text="DeepSeek-V3").wait_for()
    one.settle()
    preset = one.answer()
    assert page.locator(".kv-presets").count() == 0
    page.get_by_role("link", name="FP8 KV").or_(page.locator(".kv-levers a")).first.click()
    page.locator(".kv-pin-said").wait_for()
    one.settle()
    assert "pin=" in page.url
    assert "go=" not in page.url
    for way, said in ((page.go_back, "DeepSeek-V3"), (page.go_back, "Llama 3 70B"), (page.go_forward, "DeepSeek-V3")):
        way()
        page.locator(".kv-setup", has_text=said).wait_for()
        one.settle()
    assert one.answer() == preset
    assert page.locator(".kv-pin-said").count() == 0
    assert page.locator(".st-key-model input").input_value().startswith("DeepSeek-V3")
    assert len([url for url in one.requests if url.endswith(".js")]) == loaded
    assert one.errors == []


def test_a_link_pressed_for_another_tab_opens_there(visit):
    one = visit().open()
    before = one.page.url
    with one.context.expect_page() as opened:
        one.page.get_by_role("link", name="with vLLM NIXL").click(modifiers=["ControlOrMeta"])
    opened.value.locator(".kv-setup", has_text="vLLM NIXL").wait_for()
    opened.value.close()
    assert one.page.url == before
