"""A chart's numbers as JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import kvmodel
from app.behind import behind
from app.catalog import VIEWS, Chart
from app.charts.spec import fill
from app.live import Board
from app.palette import LIGHT
from app.state import State

_FORMULA = ("=", "+", "-", "@")


def chart_json(chart: Chart, state: State, command: str) -> str:
    """The chart as one JSON object: answer, scenario, rows in base units, and the Plotly figure filled in."""
    board = VIEWS[chart.view].at(state)
    view = board.views[chart.mount]
    figures = [filled(item, view, LIGHT) for item in view["items"] if "wide" in item]
    whole = {
        "chart": chart.name,
        "title": chart.title,
        "answer": answer_of(board.views["answer_view"]),
        "scenario": scenario_of(state),
        **pinned_of(state, board),
        "rows": behind(chart.name, state),
        "figures": figures,
        "command": command,
        "version": kvmodel.__version__,
    }
    return json.dumps(whole, allow_nan=False, ensure_ascii=False)


def pinned_of(state: State, board: Board) -> dict[str, Any]:
    """The pinned scenario and the sentence on the difference; nothing without a pin."""
    if state.pin is None:
        return {}
    sentence = board.views["pinned_view"]["now"]["pin.sentence"]
    return {"pinned": scenario_of(state.pin), "difference": "".join(text for text, _ in sentence)}


def filled(item: dict[str, Any], view: dict[str, Any], colours: dict[str, str], width: str = "wide") -> dict[str, Any]:
    """A figure of a view with every placeholder replaced by the values it stands at."""
    now = {name: [value] for name, value in view["now"].items()}
    figure: dict[str, Any] = fill({"data": item[width]["data"], "layout": item[width]["layout"]}, now, 0, colours, view["columns"])
    return figure


def answer_of(view: dict[str, Any]) -> str:
    """The answer sentence of a view."""
    return str(view["say"])


def scenario_of(state: State) -> dict[str, Any]:
    """Every input of a state by name."""
    shown = {name: value if isinstance(value, str | int | float | None) else value.id for name, value in state.scenario}
    return {**shown, **dict(state.turn), **dict(state.traffic), **dict(state.seen)}


def chart_csv(chart: Chart, state: State) -> str:
    """The chart's rows with a header, base units named in it; text that a spreadsheet could run is quoted."""
    rows = behind(chart.name, state)
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return out.getvalue()


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return "" if value is None else value
    text = value.replace("\r", " ")  # which a reader may take for the end of a row
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text
