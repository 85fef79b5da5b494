"""Bytes that a first visit takes over the wire, per view, in Chromium with nothing kept. Prints, asserts nothing.

python tests/browser/first_load.py [ADDRESS]      starts a page of its own where no address is given
"""

from __future__ import annotations

import os

from playwright.sync_api import sync_playwright

from app.live import plotly_url
from tests.browser.measure_page import ARGS, CHART, VIEWS
from tests.page_server import on_a_page

SAID_MB = 2.5


def measure(address: str) -> None:
    """Print megabytes of each view: files as they come, and what the session sends before it is compressed."""
    print(f"Plotly: {plotly_url().partition('?')[0].rpartition('/')[2]}; to be at most {SAID_MB} MB")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), args=ARGS)
        for view in (*VIEWS, "/embed/timeline.html"):
            page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
            client = page.context.new_cdp_session(page)
            client.send("Network.enable")
            files: list[float] = []
            frames: list[int] = []
            client.on("Network.loadingFinished", lambda event, to=files: to.append(event["encodedDataLength"]))
            page.on("websocket", lambda session, to=frames: session.on("framereceived", lambda frame: to.append(len(frame))))
            page.goto(address + view)
            page.wait_for_selector(CHART)
            page.wait_for_timeout(1500)
            print(f"  {view:24} {sum(files) / 1e6:5.2f} MB in {len(files)} files, and {sum(frames) / 1e6:5.2f} MB of session, unpacked")
            page.context.close()


if __name__ == "__main__":
    on_a_page(measure)
