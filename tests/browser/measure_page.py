"""Measure the page in Chromium: drag, model change, view change, cold load. Prints, asserts nothing.

    python tests/browser/measure_page.py [ADDRESS]      starts a page of its own without an address

Quiet numbers need a quiet machine: the load average is printed beside them.
"""

from __future__ import annotations

import os
import statistics
import time

from playwright.sync_api import Browser, Page, sync_playwright

from tests.page_server import on_a_page

ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
VIEWS = ("/", "/?overlap=layer", "/critical-length", "/next-turn", "/wire", "/weighs", "/interconnects", "/sensitivity", "/matrices")
CHART = ".liveview-chart .main-svg"
FRAMES = """if (!globalThis.liveviewFrame) {
  const began = () => { globalThis.liveviewFrame = performance.now(); requestAnimationFrame(began); };
  began();
}"""
"""Notes when each frame begins: what was drawn in the one before is then painted, whatever else this one draws."""


def percentile(values: list[float], share: float) -> float:
    """A percentile of measured values, NaN of none."""
    return sorted(values)[min(len(values) - 1, round(share * (len(values) - 1)))] if values else float("nan")


def line(name: str, values: list[float], unit: str = "ms") -> None:
    """Print median and p95."""
    print(f"  {name:44} p50 {percentile(values, 0.5):7.1f}  p95 {percentile(values, 0.95):7.1f} {unit}  (n={len(values)})")


def open_view(browser: Browser, address: str) -> tuple[Page, list[float]]:
    """A fresh page on a view, settled; and the list that collects times of sent messages."""
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    sent: list[float] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda _: sent.append(time.time())))
    page.goto(address)
    page.wait_for_selector(CHART)
    page.wait_for_timeout(1500)
    return page, sent


def drag(page: Page, key: str, moves: int = 60) -> tuple[list[float], list[float], list[float]]:
    """Drag a slider: milliseconds from the thumb's move to (first view painted, main chart painted, all painted)."""
    box = page.locator(f".st-key-{key} input[type=range]").first.bounding_box()
    rail = page.locator(f".st-key-{key}").first.bounding_box()
    assert box is not None
    assert rail is not None
    y = box["y"] + box["height"] / 2
    x = box["x"] + box["width"] / 2
    page.evaluate("globalThis.liveviewProbe = []")
    page.evaluate(FRAMES)
    page.mouse.move(x, y)
    page.mouse.down()
    left, right = rail["x"] + 20, rail["x"] + rail["width"] - 20
    for i in range(moves):
        share = abs(((i * 7) % (2 * moves)) / moves - 1)
        page.mouse.move(left + (right - left) * (0.25 + 0.5 * share), y)
        page.wait_for_timeout(40)
    page.wait_for_timeout(300)
    events = page.evaluate("globalThis.liveviewProbe")
    page.mouse.up()
    return latencies(events)


def spent(page: Page) -> list[float]:
    """Milliseconds that each drawing of charts took, of the last drag."""
    return [float(event[5]) for event in page.evaluate("globalThis.liveviewProbe") if event[0] == "painted" and event[4]]


def latencies(events: list[list[object]]) -> tuple[list[float], list[float], list[float]]:
    """Split the view's probe into latencies of moves whose drawing was finished before the next move."""
    first, main, every = [], [], []
    moves = [i for i, event in enumerate(events) if event[0] == "input"]
    for a, b in zip(moves, [*moves[1:], len(events)], strict=True):
        start, at = float(events[a][1]), events[a][3]
        drawn = [event for event in events[a + 1 : b] if event[0] == "painted" and event[3] == at]
        if not drawn:
            continue
        times = [float(event[1]) - start for event in drawn]
        charts = [float(event[1]) - start for event in drawn if event[4]]
        first.append(min(times))
        if charts:
            main.append(charts[0])
        every.append(max(times))
    return first, main, every


def change_model(page: Page, rounds: int = 12) -> tuple[list[float], list[float]]:
    """Choose a model: milliseconds from the choice to (first chart, all charts) painted."""
    first, every = [], []
    names = ["Llama 3.1 8B", "DeepSeek-V3", "Qwen3 32B", "Llama 3 70B"]
    for i in range(rounds):
        page.get_by_role("combobox", name="Model").click()
        page.get_by_role("combobox", name="Model").fill(names[i % len(names)])
        page.wait_for_timeout(150)
        page.evaluate("globalThis.liveviewProbe = []")
        start = page.evaluate("performance.now()")
        page.keyboard.press("Enter")
        page.wait_for_timeout(900)
        events = [e for e in page.evaluate("globalThis.liveviewProbe") if e[0] == "painted" and e[4]]
        if events:
            first.append(events[0][1] - start)
            every.append(events[-1][1] - start)
    return first, every


def switch_views(page: Page, rounds: int = 3) -> list[float]:
    """Go from view to view: milliseconds from the click to the first chart of the new one painted."""
    times = []
    for name in ["Critical length", "Next turn", "On the wire", "Interconnects", "Matrices", "One request"] * rounds:
        page.evaluate("globalThis.liveviewProbe = []")
        start = page.evaluate("performance.now()")
        page.get_by_role("link", name=name, exact=True).click()
        page.wait_for_timeout(1500)
        drawn = [event for event in page.evaluate("globalThis.liveviewProbe") if event[0] == "painted" and event[4]]
        if drawn:
            times.append(drawn[0][1] - start)
    return times


def cold_load(browser: Browser, address: str, rounds: int = 5) -> list[float]:
    """Seconds from navigation to the first chart, nothing cached."""
    times = []
    for _ in range(rounds):
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        page = context.new_page()
        start = time.perf_counter()
        page.goto(address, wait_until="commit")
        page.wait_for_selector(CHART)
        times.append(time.perf_counter() - start)
        context.close()
        time.sleep(0.5)
    return times


def measure(address: str) -> None:
    """Print everything for one server."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), args=ARGS)
        print(f"load average {os.getloadavg()[0]:.2f}")
        for view in VIEWS:
            page, sent = open_view(browser, address + view)
            key = "delta_tokens" if "turn" in view else "prompt_tokens"
            drag(page, key, 10)
            page.wait_for_timeout(800)
            before = len(sent)
            first, main, every = drag(page, key)
            during = len(sent) - before
            print(f"{view}: messages sent while dragging: {max(0, during - 1)}")
            line("thumb moves -> first view painted", first)
            line("thumb moves -> main chart painted", main)
            line("thumb moves -> all in sight painted", every)
            line("one drawing of a view's charts", spent(page))
            if view == "/":
                some, every = change_model(page)
                line("model chosen -> first chart painted", some)
                line("model chosen -> all charts painted", every)
                line("view chosen -> first chart painted", switch_views(page))
            page.context.close()
        loads = cold_load(browser, address + "/")
        print(f"cold load to first chart: median {statistics.median(loads):.2f} s, worst {max(loads):.2f} s (n={len(loads)})")
        print(f"load average {os.getloadavg()[0]:.2f}")


if __name__ == "__main__":
    on_a_page(measure)
