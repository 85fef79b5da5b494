"""Share and export: the link, the frame, the commands and the files of what is on the page."""

from __future__ import annotations

import html
from typing import Any

import streamlit as st

import kvmodel
from app.behind import behind
from app.catalog import CHARTS, VIEWS
from app.charts.pinned import OWN
from app.charts.tables import table_block
from app.export.command import command_of
from app.hosting.settings import settings
from app.live import STATIC, block, static_block
from app.state import State
from app.views.presets import path_of
from kvmodel.scenario import Inputs, Scenario


def draw(state: State, view: str) -> None:
    """The folded table and panel; each made only while it is open."""
    charts = [chart for chart in CHARTS.values() if chart.view == view]
    if not charts:
        return
    table = st.expander("The numbers as a table", key="numbers", on_change="rerun")
    if table.open:
        with table:
            static_block("numbers_view", *numbers(state, view))
    folder = st.expander("Share and export", key="share", on_change="rerun")
    if not folder.open:
        return
    with folder:
        static_block("share_view", *blocks(state, view, settings().public_url or base_of(st.context.url or "")))


def draw_embedded(state: State, view: str) -> None:
    """What stands below an embedded view, which has its answer, its first picture and its sliders and nothing else."""
    st.html(f"<style>{(STATIC / 'embedded.css').read_text(encoding='utf-8')}</style>")
    query = state.query()
    link = block("a", "Open in the explorer", href=f"{path_of(view)}{f'?{query}' if query else ''}", target="_blank", rel="noopener")
    static_block("embedded_view", block("p", "A calculation, not a measurement. ", link, class_="kv-note"))


def numbers(state: State, view: str) -> list[dict[str, Any]]:
    """The rows behind the view's charts, in base units."""
    blocks = []
    for chart in CHARTS.values():
        if chart.view == view:
            blocks += [block("h2", chart.title, class_="kv-h2"), table_of(behind(chart.name, state), chart.title)]
    return blocks


def table_of(rows: list[dict[str, Any]], title: str) -> dict[str, Any]:
    """Rows as a table; its head names the units as files do."""
    heads = [name.replace("_", " ") for name in rows[0]]
    return table_block(title, heads, [[_cell(value) for value in row.values()] for row in rows], look="", long=True)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"
    return "–" if value is None else f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def base_of(address: str) -> str:
    """The address below which the page's routes lie, from that of one of its views."""
    bare = address.partition("?")[0].rstrip("/")
    head, _, last = bare.rpartition("/")
    return head if last in VIEWS else bare


def blocks(state: State, view: str, base: str) -> list[dict[str, Any]]:
    """What the panel says; a model of the reader's own cannot be linked to, only computed."""
    charts = [chart for chart in CHARTS.values() if chart.view == view]
    if state.is_own():
        return [block("p", "A configuration of your own stays in this session: no link or file can carry it.", class_="kv-note")]
    query = state.query()
    tail = f"?{query}" if query else ""
    frame = f"{html.escape(base)}/embed/{charts[0].name}.html{html.escape(tail)}"
    pinned = state.pin.scenario if state.pin and not state.pin.is_own() else None
    link = block("button", "Copy link", type="button", data_copy="link", data_version=kvmodel.__version__, class_="kv-button")
    rows = [
        block("div", link, class_="kv-share"),
        _copied("Frame", f'<iframe src="{frame}" width="800" height="{780 if state.pin else 600}"></iframe>'),
        _copied("Shell", command_of(charts[0], state) + f" --out {charts[0].name}.html"),
        _copied("Python", turn_python(state) if view == "next-turn" else python_of(state.scenario, pinned)),
    ]
    if state.pin is not None and state.pin.is_own():
        rows.insert(0, block("p", OWN, class_="kv-note"))
    for chart in charts:
        links = [
            block("a", kind.upper(), href=f"./files/{chart.name}.{kind}{tail}", download=f"kv-handoff-{chart.name}.{kind}")
            for kind in ("html", "json", "csv")
        ]
        images = [
            block("button", kind.upper(), type="button", class_="kv-button", data_image=kind, data_chart=f"kv-{chart.name}")
            for kind in ("svg", "png")
        ]
        rows.append(block("div", block("span", chart.title), *links, *images, class_="kv-share"))
    return rows


def _copied(title: str, text: str) -> dict[str, Any]:
    button = block("button", "Copy", type="button", data_copy=text, class_="kv-button", aria_label=f"Copy: {title}")
    return block("div", block("span", title), block("code", text), button, class_="kv-share")


def python_of(scenario: Scenario, pinned: Scenario | None = None) -> str:
    """The lines that reproduce the numbers, with a pin those of both."""
    if pinned is None:
        return f"import kvmodel; print(kvmodel.evaluate({_made(scenario)}).verdict)"
    return f"import kvmodel.compare; print(kvmodel.compare.compare({_made(pinned)}, {_made(scenario)}).as_dict()['sentence'])"


def turn_python(state: State) -> str:
    """The line that reproduces the first token and the bytes of each design of a turn."""
    made = f"kvmodel.agent_turn({_made(state.scenario)}, {_made(state.turn)})"
    return f"import kvmodel; print([(d.id, d.warm, d.ttft_seconds, d.unique_bytes) for d in {made}.designs])"


def _made(inputs: Inputs) -> str:
    """The call that makes a record of inputs."""
    return f"kvmodel.{type(inputs).__name__}({', '.join(f'{name}={value!r}' for name, value in inputs.changed().items())})"
