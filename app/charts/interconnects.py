"""Links against batch: what one handoff of so many prompts takes on each link, in time and in decode steps.

One bar a cell in one trace, one axis: columns are batches, rows are pixels from the top.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np

from app.charts.links import on_link
from app.charts.marks import Label, labels
from app.charts.spec import Figure, Spec, Table, at, colour, pick
from app.over import BATCHES
from kvmodel import registry
from kvmodel.display import bytes_text, count_text, digits, time_text
from kvmodel.evaluate import sweep
from kvmodel.records.hardware import Link
from kvmodel.results import Evaluation
from kvmodel.scenario import Scenario
from kvmodel.verdict import Sentence, plain, supposed

COLUMNS = {"w": (1, 2, 4, 8, 16, 32, 64), "n": (1, 8, 32, 64)}
"""Batches drawn, by layout."""
STEPS = (0.1, 1.0, 5.0, 20.0)
"""Decode steps at which the colour of a cell changes."""
HEAT = tuple(f"heat{i}" for i in range(len(STEPS) + 1))
HEAT_TEXT = tuple(f"heat{i}_text" for i in range(len(STEPS) + 1))
NAMES = ("under 0.1", "0.1 to 1", "1 to 5", "5 to 20", "over 20")
ROW, HEAD = 38, 28
"""Pixels of a row, and of the heads above them."""
MOST = BATCHES[-1]


def drawn_links(scenario: Scenario) -> list[Link]:
    """One link for each bandwidth and scope, the chosen one or else InfiniBand's; fastest first."""
    by_speed: dict[tuple[str, str], Link] = {}
    for link in sorted(registry.links().values(), key=lambda link: (link.id != scenario.link, not link.id.startswith("ib-"), link.id)):
        by_speed.setdefault((f"{link.bandwidth:.2g}", link.scope), link)
    return sorted(by_speed.values(), key=lambda link: -link.bandwidth)


def interconnects_table(scenario: Scenario, tokens: Sequence[int], batches: Sequence[int]) -> Table:
    """Columns over positions, each a prompt length and a batch: cells by link and batch, and the answer."""
    prompts, drawn = np.asarray(tokens), COLUMNS["w"]
    found = [
        sweep(on_link(scenario, link.id), prompt_tokens=prompts[:, None], batch=np.asarray(drawn)[None, :])
        for link in drawn_links(scenario)
    ]
    shape = (len(prompts), len(drawn))
    seconds = np.stack([np.broadcast_to(r.transfer.seconds, shape) for r in found], axis=1)
    steps = seconds / np.stack([np.broadcast_to(r.decode.step_seconds, shape) for r in found], axis=1)
    own = sweep(scenario, prompt_tokens=prompts, batch=np.asarray(batches))
    fits = np.broadcast_to(own.feasible, prompts.shape).tolist()
    said = _sentences(scenario, own, prompts, batches)
    sentences = [supposed(one, feasible=feasible) for one, feasible in zip(said, fits, strict=True)]
    return {
        "answer": [[list(part) for part in s] for s in sentences],
        "answer.text": [plain(s) for s in sentences],
        "i.text": [[time_text(v) for v in cell.ravel()] for cell in seconds],
        "i.level": [[bisect_right(STEPS, v) for v in cell.ravel()] for cell in steps],
        "i.says": [[f"{digits(v)} decode steps" for v in cell.ravel()] for cell in steps],
        **{f"{prefix}.stairs": [stairs_of(cell, columns) for cell in steps] for prefix, columns in COLUMNS.items()},
        "i.step": [
            f"Right of the heavy line a handoff outlasts one decode step, {time_text(v)}."
            for v in np.broadcast_to(own.decode.step_seconds, prompts.shape).tolist()
        ],
    }


def stairs_of(steps: np.ndarray[Any, Any], columns: Sequence[int]) -> str:
    """The line from the top down that has every cell of a decode step or more on its right."""
    kept = steps[:, [COLUMNS["w"].index(batch) for batch in columns]]
    passed = (kept < 1.0).sum(axis=1).tolist()
    corners = [f"{x},{HEAD + ROW * (row + end)}" for row, x in enumerate(passed) for end in (0, 1)]
    return "M" + "L".join(corners)


def _sentences(scenario: Scenario, own: Evaluation, prompts: np.ndarray[Any, Any], batches: Sequence[int]) -> list[Sentence]:
    whole = np.arange(1, MOST + 1)
    many = sweep(scenario, prompt_tokens=prompts[:, None], batch=whole[None, :])
    shape = (len(prompts), MOST)
    fits = np.broadcast_to(np.asarray(many.transfer.seconds) <= np.asarray(many.decode.step_seconds), shape).sum(axis=1)
    seconds, steps, moved = (np.broadcast_to(v, prompts.shape) for v in (own.transfer.seconds, own.decode.step_seconds, own.kv.wire_bytes))
    name = registry.links()[scenario.link].short
    return [
        _sentence(name, int(n), int(b), int(most), float(t), float(t / step), bool(held <= 0))
        for n, b, most, t, step, held in zip(prompts, batches, fits, seconds, steps, moved, strict=True)
    ]


def _sentence(link: str, tokens: int, batch: int, most: int, seconds: float, steps: float, nothing: bool) -> Sentence:
    if nothing:
        return (("Decode already holds this prompt: ", ""), (bytes_text(0), "wire", "kv.wire_bytes"), (" to move.", ""))
    taken = f"at batch {count_text(batch)} the handoff takes {time_text(seconds)}, {digits(steps)} steps."
    of = f" of {count_text(tokens)} tokens in one decode step; {taken}"
    if most == 0:
        return ((f"{link} carries ", ""), ("no prompt", "wire"), (of, ""))
    many = f"{count_text(most)} prompt{'' if most == 1 else 's'}" if most < MOST else f"{count_text(MOST)} prompts or more"
    return ((f"{link} carries ", ""), (many, "wire"), (of, ""))


def interconnects_figure(scenario: Scenario) -> Figure:
    """A cell for each link and batch: its time, coloured by decode steps; the stairs mark one step."""
    links = drawn_links(scenario)
    return Figure("interconnects", _layout(links, scenario.link, "w"), _layout(links, scenario.link, "n"), at("answer.text"))


def _layout(links: Sequence[Link], chosen: str, prefix: str) -> Spec:
    columns, wide = COLUMNS[prefix], prefix == "w"
    size = 13 if wide else 12
    cells = [
        (row, column, row * len(COLUMNS["w"]) + COLUMNS["w"].index(batch))
        for row in range(len(links))
        for column, batch in enumerate(columns)
    ]
    middle = [HEAD + ROW * (row + 0.5) for row in range(len(links))]
    data = {
        "type": "bar",
        "orientation": "h",
        "base": [column for _, column, _ in cells],
        "x": [1] * len(cells),
        "y": [middle[row] for row, _, _ in cells],
        "width": ROW,
        "marker": {"color": [pick("i.level", item, HEAT) for _, _, item in cells], "line": {"width": 2, "color": colour("bg")}},
        "customdata": [at("i.says", item) for _, _, item in cells],
        "hovertext": [f"{links[row].name}, batch {columns[column]}" for row, column, _ in cells],
        "hovertemplate": "%{hovertext}<br>%{customdata}<extra></extra>",
    }
    words = [Label(at("i.text", item), column + 0.5, middle[row], pick("i.level", item, HEAT_TEXT), size) for row, column, item in cells]
    words += [Label(f"{'batch ' if i == 0 else ''}{batch}", i + 0.5, HEAD / 2, "muted", size) for i, batch in enumerate(columns)]
    words += [
        Label(_name(link, chosen, wide=wide), 0, y, "ink" if link.id == chosen else "body", size, "middle left")
        for link, y in zip(links, middle, strict=True)
    ]
    height = HEAD + ROW * len(links) + 4
    stairs = {"type": "path", "path": at(f"{prefix}.stairs"), "xref": "x", "yref": "y", "line": {"width": 2.5, "color": colour("ink")}}
    layout = {
        "height": height,
        "margin": {"l": 160 if wide else 92, "r": 2, "t": 0, "b": 0},
        "barmode": "overlay",
        "xaxis": {"range": [-0.01, len(columns)], "visible": False, "fixedrange": True},
        "yaxis": {"range": [height, 0], "visible": False, "showgrid": False, "fixedrange": True},
        "shapes": [stairs],
    }
    return {"data": [data, labels(words)], "layout": layout}


def _name(link: Link, chosen: str, *, wide: bool) -> str:
    text = link.name if wide else link.short
    return f"<b>{text}</b>\u2002" if link.id == chosen else f"{text}\u2002"
