"""Pictures of the page and of its charts, to look at and for the README.

python tests/browser/take_pictures.py FOLDER    every view, 390 and 1280 pixels, light and dark, whole pages
python tests/browser/take_pictures.py --readme  the README's own, into `.readme`
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from app.catalog import VIEWS
from app.cli import main as command
from tests.browser.measure_page import ARGS
from tests.page_server import page_server

README = Path(__file__).parents[2] / ".readme"
PAGE = {"page": "/?overlap=layer"}
"""Pictures of the page in the README: its first screen."""
CHARTS = {
    "timeline": ["--overlap", "chunk", "--link", "ethernet-100", "--engine", "vllm-nixl"],
    "critical": ["--link", "ethernet-100"],
    "turn-bars": ["--history-tokens", "30000", "--delta-tokens", "2000"],
    "interconnects": ["--prompt-tokens", "1024", "--batch", "32"],
    "measured": [],
}
"""Charts of the README's gallery, with their scenarios."""


def picture(browser: Browser, address: str, path: Path, *, width: int, theme: str, whole: bool) -> list[str]:
    """Save a view as a person sees it; returns what the console complained of."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, reduced_motion="reduce")
    page, complaints = context.new_page(), []
    page.on("console", lambda m: complaints.append(m.text) if m.type in ("error", "warning", "trace") else None)
    page.goto(address)
    page.wait_for_selector("h1", timeout=30_000)
    page.wait_for_timeout(2500)
    if whole:
        height = page.evaluate("document.querySelector('[data-testid=stMainBlockContainer]').scrollHeight")
        page.set_viewport_size({"width": width, "height": max(900, min(6000, height + 40))})
        page.wait_for_timeout(800)
    page.screenshot(path=str(path))
    context.close()
    return complaints


def every_view(browser: Browser, address: str, folder: Path) -> None:
    """Each view in both widths and themes; prints where each is."""
    for view in (*VIEWS, "method"):
        for width in (390, 1280):
            for theme in ("light", "dark"):
                path = folder / f"{view}-{theme}-{width}.png"
                target = f"{address}/{'' if view == 'one-request' else view}"
                said = picture(browser, target, path, width=width, theme=theme, whole=True)
                print(path, *said)


def readme(browser: Browser, address: str) -> None:
    """The README's pictures: the page's first screen and the gallery's charts, both themes."""
    README.mkdir(exist_ok=True)
    for theme in ("light", "dark"):
        for name, query in PAGE.items():
            picture(browser, address + query, README / f"{name}-{theme}.png", width=1280, theme=theme, whole=False)
        for name, options in CHARTS.items():
            target = README / f"{name}-{theme}.svg"
            if command(["chart", name, *options, "--out", str(target), "--theme", theme, "--size", "900x520"]):
                raise SystemExit(f"{target} was not made")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    with page_server() as own, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), args=ARGS)
        if sys.argv[1] == "--readme":
            readme(chromium, own)
        else:
            Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
            every_view(chromium, own, Path(sys.argv[1]))
