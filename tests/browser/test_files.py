"""Charts as files, opened as a reader would: from disk, without a server; images drawn by the browser."""

import struct

import pytest
from axe_playwright_python.sync_playwright import Axe

from app.catalog import CHARTS, find_chart
from app.export.command import write_chart
from app.export.image import chart_image
from app.state import State
from kvmodel import Scenario

pytestmark = pytest.mark.browser


def opened(browser, path, *, width=1000, theme="light"):
    page = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=theme).new_page()
    page.wrong = []
    page.on("console", lambda m: page.wrong.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda e: page.wrong.append(str(e)))
    page.on("request", lambda r: page.wrong.append(r.url) if r.url.startswith("http") else None)
    page.goto(f"file://{path}")
    page.wait_for_selector(".liveview-chart .main-svg")
    return page


@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_opens_from_disk_and_asks_nothing(browser, tmp_path, name):
    path = tmp_path / f"{name}.html"
    write_chart(name, State(), str(path), size="", theme="auto", shared=True, explorer="")
    width, theme = ((1000, "light"), (390, "dark"))[list(CHARTS).index(name) % 2]
    page = opened(browser, path, width=width, theme=theme)
    assert page.wrong == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert Axe().run(page).response["violations"] == []
    page.context.close()


def test_a_file_is_live_by_the_keyboard(browser, tmp_path):
    path = tmp_path / "t.html"
    write_chart(
        "timeline", State(Scenario(link="ethernet-25")), str(path), size="", theme="light", shared=False, explorer="https://example.org"
    )
    page = opened(browser, path)
    before = page.locator("h1").inner_text()
    slider = page.get_by_role("slider", name="Prompt tokens")
    slider.focus()
    slider.press("End")
    page.wait_for_function("before => document.querySelector('h1').innerText !== before", arg=before)
    assert slider.get_attribute("aria-valuetext") == "1048576"
    assert page.locator("label b").inner_text() == "1,048,576"
    assert page.get_by_role("link", name="Open in the explorer").get_attribute("href") == "https://example.org/?link=ethernet-25"
    assert page.wrong == []
    page.context.close()


def test_a_file_can_be_printed(browser, tmp_path):
    path = tmp_path / "c.html"
    write_chart("critical", State(), str(path), size="", theme="light", shared=True, explorer="")
    page = opened(browser, path)
    page.emulate_media(media="print")
    assert not page.get_by_role("slider").is_visible()
    assert len(page.pdf()) > 10_000
    page.context.close()


def test_one_scenario_gives_one_svg(browser):
    first, second = (chart_image(find_chart("turn-bars"), State(), kind="svg", theme="light", size=(700, 420)) for _ in range(2))
    assert first == second
    assert b"Recompute and ship" in first
    assert b"http" not in first.replace(b"http://www.w3.org", b"")


def test_a_png_has_the_size_asked_for_at_two_pixels_a_point(browser):
    image = chart_image(find_chart("growth"), State(), kind="png", theme="dark", size=(600, 360))
    assert image[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", image[16:24]) == (1200, 720)
