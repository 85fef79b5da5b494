"""A chart as SVG or PNG, drawn by Plotly in a headless Chromium through kaleido."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import kvmodel
from app.catalog import VIEWS, Chart
from app.charts.scale import text_width
from app.export.rows import answer_of, filled
from app.palette import DARK, LIGHT, THEMES
from app.state import State
from kvmodel.errors import BadScenarioError

DEFAULT_WIDTH = 1120
NARROW_BELOW = 640
_RANDOM = re.compile(r"(?<=[a-z\-])([0-9a-f]{6})(?=[\"'\)xy\-\s]|legend|cbcoloraxis)")


def chart_figure(chart: Chart, state: State, *, theme: str, size: tuple[int, int] | None) -> dict[str, Any]:
    """A Plotly figure with the answer above it and a line below that says what made it.

    `size` is (width, height) in pixels; below 640 wide the narrow layout is used. None keeps the layout's own height.
    """
    colours = DARK if theme == "dark" else LIGHT
    width = size[0] if size else DEFAULT_WIDTH
    board = VIEWS[chart.view].at(state)
    view = board.views[chart.mount]
    item = next(item for item in view["items"] if "wide" in item)
    figure = filled(item, view, colours, "narrow" if width < NARROW_BELOW else "wide")
    layout = figure["layout"]
    lines = _wrapped(answer_of(board.views["answer_view"]), width - 32, 18)
    top, bottom = 24 * len(lines) + 24, 28
    margin = {"l": 0, "r": 0, "t": 8, "b": 40} | layout.get("margin", {})
    inner = layout["height"] - margin["t"] - margin["b"]
    height = size[1] if size else layout["height"] + top + bottom
    margin = {"l": margin["l"] + 16, "r": margin["r"] + 16, "t": margin["t"] + top, "b": margin["b"] + bottom}
    inner = max(60, height - margin["t"] - margin["b"]) if size else inner
    paper = {"xref": "paper", "yref": "paper", "showarrow": False, "xanchor": "left", "align": "left"}
    left = -(margin["l"] - 16) / max(1, width - margin["l"] - margin["r"])
    title = {
        "text": "<br>".join(f"<b>{line}</b>" for line in lines),
        "x": left,
        "y": 1,
        "yanchor": "bottom",
        "yshift": margin["t"] - top + 8,
    }
    said = f"kv-handoff {kvmodel.__version__} · arithmetic, not a measurement · {setup_of(state)}"
    source = {"text": said, "x": left, "y": 0, "yanchor": "top", "yshift": -(margin["b"] - 22)}
    notes = [
        {**paper, **title, "font": {"size": 18, "color": colours["ink"]}},
        {**paper, **source, "font": {"size": 11, "color": colours["muted"]}},
    ]
    more = {
        "template": THEMES["dark" if theme == "dark" else "light"]["template"],
        "width": width,
        "height": margin["t"] + inner + margin["b"],
        "margin": margin,
        "annotations": [*layout.get("annotations", []), *notes],
        "paper_bgcolor": colours["bg"],
        "plot_bgcolor": colours["bg"],
    }
    return {"data": figure["data"], "layout": {**layout, **more}}


def setup_of(state: State) -> str:
    """The inputs that differ from the defaults, in words."""
    return state.query().replace("&", ", ").replace("=", " ").replace("_", " ") or "default scenario"


def _wrapped(text: str, width: float, size: int) -> list[str]:
    lines, line = [], ""
    for word in text.split(" "):
        longer = f"{line} {word}".strip()
        if line and text_width(longer, size) * 1.06 > width:
            lines.append(line)
            longer = word
        line = longer
    return [*lines, line]


def chart_image(chart: Chart, state: State, *, kind: str, theme: str, size: tuple[int, int] | None) -> bytes:
    """The image's bytes; `kind` is svg or png. Raises BadScenarioError where kaleido or Chromium is missing."""
    figure = chart_figure(chart, state, theme=theme, size=size)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"chart.{kind}"
        _draw(figure, path, kind)
        drawn = path.read_bytes()
    return stable(drawn.decode("utf-8")).encode("utf-8") if kind == "svg" else drawn


def _draw(figure: dict[str, Any], path: Path, kind: str) -> None:
    try:
        import kaleido
    except ImportError:
        raise BadScenarioError("out: PNG and SVG need kaleido: pip install 'kv-handoff[images]'; html, json and csv do not") from None
    browser = os.environ.get("BROWSER_PATH") or shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")
    if browser is None:
        raise BadScenarioError("out: PNG and SVG need Chromium; BROWSER_PATH names one that is not on PATH; html, json and csv need none")
    options = {"format": kind, "width": figure["layout"]["width"], "height": figure["layout"]["height"], "scale": 2 if kind == "png" else 1}
    try:
        kaleido.write_fig_sync(figure, path=str(path), opts=options, kopts={"path": browser})
    except Exception as error:  # whatever the browser says, the reader gets a sentence
        raise BadScenarioError(f"out: the browser did not draw the chart: {type(error).__name__}") from None


def stable(svg: str) -> str:
    """The SVG with Plotly's random ids numbered in order, so that one scenario gives one file."""
    names: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        return names.setdefault(match.group(1), f"k{len(names):05d}")

    return _RANDOM.sub(number, svg)
