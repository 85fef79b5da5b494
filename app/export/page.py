"""A chart as one HTML file: no server, no request to anywhere, live by the explorer's own view and table."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import plotly

import kvmodel
from app.catalog import VIEWS, Chart, View
from app.charts.pinned import pin_table
from app.charts.spec import placed
from app.controls import label_of
from app.export.rows import answer_of
from app.live import STATIC, Board, Slider
from app.over import positions_of
from app.palette import DARK, LIGHT, THEMES
from app.state import State
from app.views.frame import context_table
from kvmodel.display import count_text

SHARED_NAME = "kv-handoff-charts.js"
"""The common script that charts made with `shared` load from their own folder."""
_BASIC = STATIC / "vendor" / "plotly-basic.min.js"


def bundle() -> tuple[Path, bool]:
    """Plotly's script, and whether it is the small one."""
    full = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
    return (_BASIC, True) if _BASIC.is_file() else (full, False)


@cache
def common_script() -> str:
    """Plotly and the view, as one classic script: files opened from disk may not load modules."""
    own = (STATIC / "standalone.js").read_text(encoding="utf-8")
    return f"{bundle()[0].read_text(encoding='utf-8')}\n(() => {{\n{view_script()}\nglobalThis.kvHandoffMount = mount;\n{own}\n}})();\n"


def view_script() -> str:
    """The view and its sliders, to stand inside a classic script."""
    view = re.sub(r"^export (default .*|(?=function ))", "", (STATIC / "liveview.js").read_text(encoding="utf-8"), flags=re.MULTILINE)
    return view + (STATIC / "range.js").read_text(encoding="utf-8")


def style(theme: str) -> str:
    """Rules and colours; `auto` follows the reader's system."""
    rules = "".join((STATIC / name).read_text(encoding="utf-8") for name in ("page.css", "standalone.css"))
    if theme == "auto":
        return f":root{{{_variables(LIGHT)}}}@media(prefers-color-scheme:dark){{:root{{{_variables(DARK)}}}}}{rules}"
    return f":root{{{_variables(DARK if theme == 'dark' else LIGHT)};color-scheme:{theme}!important}}{rules}"


def _variables(colours: dict[str, str]) -> str:
    named = "".join(f"--kv-{name.replace('_', '-')}:{value};" for name, value in colours.items())
    return f"{named}--st-background-color:{colours['bg']};"


def chart_data(chart: Chart, state: State) -> dict[str, Any]:
    """What the page's script gets: answer, chart, sliders and the tables they move by."""
    view = VIEWS[chart.view]
    board = view.at(state)
    pinned = {"pinned": board.views["pinned_view"]} if state.pin else {}
    shown = {"answer": board.views["answer_view"], "chart": board.views[chart.mount], **pinned}
    shown = {name: {key: value for key, value in one.items() if key != "url"} for name, one in shown.items()}
    names = placed([one["items"] for one in shown.values()], "$at")
    found = moved(view, board, state, view.sliders[0], names)
    if found is None:
        return {**shown, "sliders": [], "tables": None}
    slider, table = found
    return {**shown, "sliders": [slider], "tables": {slider["name"]: table}}


def moved(view: View, board: Board, state: State, name: str, names: set[str]) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """A slider, and the table by which it moves what is placed under `names`; None where it moves nothing of the view's own."""
    values = positions_of(name, state.value(name))
    own = view.tables(state, name, values) | pin_table(state, name, values)
    if not any(isinstance(column, list) for column in Slider(name, values, own).data(names)["table"].values()):
        return None
    table = Slider(name, values, own | context_table(state, name, values)).data(names)
    slider = {"name": name, "label": label_of(name), "positions": table["positions"], "at": values.index(state.value(name))}
    return {**slider, "texts": [count_text(value) for value in values]}, {"id": board.tables[name], **table}


def chart_html(
    chart: Chart, state: State, *, theme: str, shared: bool, explorer: str, command: str, notes: Sequence[str] = (), version: str = ""
) -> str:
    """The file. `explorer` is the address of a page to open the scenario in, or empty; `notes` stand above the answer.

    The address of a shared script ends in its `version`, so that a browser that keeps an older one asks anew.
    """
    data = chart_data(chart, state)
    kept = {"light": ("light",), "dark": ("dark",), "auto": ("light", "dark")}[theme]
    for one in ("answer", "chart", *(["pinned"] if state.pin else [])):
        data[one]["themes"] = {mode: THEMES[mode] for mode in kept} if data[one]["themes"] else {}
    answer = html.escape(answer_of(data["answer"]))
    script = (
        f'<script src="{SHARED_NAME}{f"?v={version}" if version else ""}"></script>'
        if shared
        else f"<script>{_inert(common_script())}</script>"
    )
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<title>{html.escape(chart.title)}</title><meta name="description" content="{answer}">',
            f"<style>{style(theme)}</style></head><body><main>",
            *(f'<p class="kv-notice" role="alert">{html.escape(note)}</p>' for note in notes),
            '<div data-place="answer" class="liveview"></div>',
            *(['<div data-place="pinned" class="liveview"></div>'] if state.pin else []),
            '<div data-place="sliders"></div>',
            '<div data-place="chart" class="liveview"></div><div data-place="tables" hidden></div>',
            f'<p class="kv-foot">Arithmetic, not a measurement. {_source(explorer, state, command)}</p>',
            "</main>",
            f'<script type="application/json" id="kv-data">{_json(data)}</script>',
            script,
            '<script>kvHandoffChart(document.querySelector("main"), JSON.parse(document.getElementById("kv-data").textContent), '
            "kvHandoffMount);</script>",
            "</body></html>\n",
        ]
    )


def _source(explorer: str, state: State, command: str) -> str:
    made = f"Made with kv-handoff {kvmodel.__version__}: <code>{html.escape(command)}</code>"
    if not explorer:
        return made
    query = state.query()
    address = html.escape(explorer.rstrip("/") + (f"/?{query}" if query else "/"), quote=True)
    return f'<a href="{address}" target="_blank" rel="noopener">Open in the explorer</a>. {made}'


def _json(data: dict[str, Any]) -> str:
    text = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _inert(script: str) -> str:
    """A script that cannot end the element it stands in."""
    return re.sub(r"</(script)", r"<\\/\1", script, flags=re.IGNORECASE).replace("<!--", "<\\!--")
