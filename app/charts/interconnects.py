"""Links against batch: what one handoff of so many prompts takes on each link, in time and in decode steps.

One axis: columns are batches, rows are pixels from the top. Cells of one colour are one path and the words of a
column one text of many lines: redrawing costs by mark and by text.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import dropwhile, groupby
from typing import Any

import numpy as np

from app.charts.full_rate import as_reached, is_far, naming_order
from app.charts.hiding import Reach, last_text, one_chunk, reach_over, sent_ahead, way_text
from app.charts.links import on_link
from app.charts.marks import Label, labels, outlined
from app.charts.odd_links import odd_sentences
from app.charts.spec import Figure, Spec, Table, at
from app.over import BATCHES, Over
from kvmodel import registry
from kvmodel.critical import is_hidden
from kvmodel.display import bytes_text, count_text, digits, time_text
from kvmodel.evaluate import sweep
from kvmodel.plan import plan_of
from kvmodel.records.hardware import Link
from kvmodel.results import Evaluation
from kvmodel.scenario import Scenario
from kvmodel.verdict import Sentence, first_short, plain, supposed

COLUMNS = {"w": (1, 2, 4, 8, 16, 32, 64), "n": (1, 8, 32, 64)}
"""Batches drawn, by layout."""
STEPS = (0.1, 1.0, 5.0, 20.0)
"""Decode steps at which the colour of a cell changes."""
HEAT = tuple(f"heat{i}" for i in range(len(STEPS) + 1))
HEAT_TEXT = tuple(f"heat{i}_text" for i in range(len(STEPS) + 1))
NAMES = ("under 0.1", "0.1 to 1", "1 to 5", "5 to 20", "over 20")
SIZES = {"w": 13, "n": 12}
HEAD, LINES = 28, 2
"""Pixels of the heads above the rows, and lines of text that a row is high."""
LINE = 1.3
"""Plotly's distance of two lines of text, in sizes of their letters."""
DARK_WORDS = 3
"""Levels below this have words in ink, the others in what stands out from a dark cell."""
MOST = BATCHES[-1]
MARK = "✓\u2009"
"""Before the time of a handoff that prefill hides."""
HIDDEN, EXPOSED = "prefill hides it", "prefill cannot hide it"


def drawn_links(scenario: Scenario) -> list[Link]:
    """One link for each bandwidth and scope, the chosen one or else InfiniBand's; fastest first."""
    by_speed: dict[tuple[str, str], Link] = {}
    for link in sorted(registry.links().values(), key=lambda link: naming_order(link, scenario)):
        by_speed.setdefault((f"{link.bandwidth:.2g}", link.scope), link)
    return sorted(by_speed.values(), key=lambda link: -link.bandwidth)


def interconnects_table(scenario: Scenario, field: str, values: Sequence[int]) -> Table:
    """Columns over positions of a slider, prompt length or batch: cells by link and batch, and the answer."""
    reaches = reach_over(sent_ahead(scenario), field, values)
    tokens = values if field == "prompt_tokens" else [scenario.prompt_tokens] * len(values)
    batches = values if field == "batch" else [scenario.batch] * len(values)
    prompts, drawn = np.asarray(tokens), COLUMNS["w"]
    found = [
        sweep(on_link(scenario, link.id), prompt_tokens=prompts[:, None], batch=np.asarray(drawn)[None, :])
        for link in drawn_links(scenario)
    ]
    ahead = [on_link(sent_ahead(scenario), link.id) for link in drawn_links(scenario)]
    layered = [as_reached(one) for one in ahead]
    exposed = [EXPOSED if one is whole else f"{EXPOSED} at what engines reach" for one, whole in zip(layered, ahead, strict=True)]
    bounds = [sweep(one, prompt_tokens=prompts[:, None], batch=np.asarray(drawn)[None, :]).bound for one in layered]
    shape = (len(prompts), len(drawn))
    hides = np.stack([np.broadcast_to(is_hidden(bound), shape) for bound in bounds], axis=1)
    seconds = np.stack([np.broadcast_to(r.transfer.seconds, shape) for r in found], axis=1)
    steps = seconds / np.stack([np.broadcast_to(r.decode.step_seconds, shape) for r in found], axis=1)
    own = sweep(scenario, prompt_tokens=prompts, batch=np.asarray(batches))
    fits = np.broadcast_to(own.feasible, prompts.shape).tolist()
    said = _sentences(scenario, own, prompts, batches, reaches, one_chunk(scenario, field, values))
    sentences = [supposed(one, feasible=feasible) for one, feasible in zip(said, fits, strict=True)]
    return {
        "answer": [[list(part) for part in s] for s in sentences],
        "answer.text": [plain(s) for s in sentences],
        "i.carries": [carries_text(scenario, int(n), int(most)) for n, most in zip(prompts, _carried(scenario, prompts), strict=True)],
        "i.text": [[time_text(v) for v in cell.ravel()] for cell in seconds],
        "i.says": [
            [
                f"{time_text(t)}<br>{digits(v)} decode steps<br>{HIDDEN if one else waits}"
                for t, v, one, waits in zip(at_one.ravel(), cell.ravel(), hiding.ravel(), np.repeat(exposed, len(drawn)), strict=True)
            ]
            for at_one, cell, hiding in zip(seconds, steps, hides, strict=True)
        ],
        **_cells(seconds, steps, hides),
        "i.step": [
            f"Right of the heavy line a handoff outlasts one decode step, {time_text(v)}."
            for v in np.broadcast_to(own.decode.step_seconds, prompts.shape).tolist()
        ],
    }


def odd_table(over: Over) -> Table:
    """Which drawn link takes longer than a slower one, and why, over a slider's positions."""
    links, shape = drawn_links(over.scenario), (len(over.values),)
    found = {link.id: sweep(on_link(over.scenario, link.id), **{over.field: np.asarray(over.values)}) for link in links}
    return {"i.odd": odd_sentences(over, links, {name: np.broadcast_to(r.transfer.seconds, shape) for name, r in found.items()})}


def hidden_text(scenario: Scenario) -> str:
    """What the mark says."""
    last = last_text(scenario)
    return f"{HIDDEN}, {way_text(scenario).lower()}{f', but for {last}' if last else ''}"


def row_height(prefix: str) -> float:
    """Pixels of a row."""
    return round(LINES * LINE * SIZES[prefix], 1)


def level_of(steps: float) -> int:
    """The colour of a cell, by its decode steps."""
    return bisect_right(STEPS, steps)


def _cells(seconds: np.ndarray[Any, Any], steps: np.ndarray[Any, Any], hides: np.ndarray[Any, Any]) -> Table:
    """Paths of each colour, the stairs and the words of each column, over positions, for both layouts."""
    table: Table = {}
    for prefix, columns in COLUMNS.items():
        kept = [COLUMNS["w"].index(batch) for batch in columns]
        texts = [
            [
                [f"{MARK if hidden else ''}{time_text(v)}" for v, hidden in zip(row, hiding, strict=True)]
                for row, hiding in zip(times, at_one, strict=True)
            ]
            for times, at_one in zip(seconds[:, :, kept], hides[:, :, kept], strict=True)
        ]
        levels = [[[level_of(v) for v in row] for row in position[:, kept]] for position in steps]
        table[f"{prefix}.stairs"] = [stairs_of(position[:, kept], prefix) for position in steps]
        for level, heat in enumerate(HEAT):
            table[f"{prefix}.{heat}"] = [_path(position, level, prefix) for position in levels]
        for name, dark in (("on_pale", False), ("on_dark", True)):
            table[f"{prefix}.{name}"] = [_words(*both, dark=dark) for both in zip(texts, levels, strict=True)]
    return table


def _path(levels: Sequence[Sequence[int]], level: int, prefix: str) -> str:
    """Boxes around the cells of one level, side by side cells in one; out of sight where there is none."""
    height, boxes = row_height(prefix), []
    for row, cells in enumerate(levels):
        top, bottom = (f"{HEAD + height * (row + end):.4g}" for end in (0, 1))
        start = 0
        for same, run in groupby(cells, key=lambda one: one == level):
            end = start + len(list(run))
            if same:
                boxes.append(f"M{start},{top}H{end}V{bottom}H{start}Z")
            start = end
    return "".join(boxes) or "M-1,0Z"


def _words(texts: Sequence[Sequence[str]], levels: Sequence[Sequence[int]], *, dark: bool) -> list[str]:
    """The words of each column that stand on pale cells, or on dark ones: a line a row, the lines between left empty.

    Pale cells are above, where links are fast, and dark ones below: what has none below its last word, or above its first, ends there.
    """
    lines = [
        [text if (level >= DARK_WORDS) == dark else "" for text, level in zip(column, heats, strict=True)]
        for column, heats in zip(zip(*texts, strict=True), zip(*levels, strict=True), strict=True)
    ]
    return [_from_first(column) if dark else _from_first(column[::-1], back=True) for column in lines]


def _from_first(lines: Sequence[str], *, back: bool = False) -> str:
    """Lines from the first that says something, in their order or `back` to front; a space where none does."""
    kept = list(dropwhile(lambda text: not text, lines))
    return ("<br>" * LINES).join(reversed(kept) if back else kept) or " "


def stairs_of(steps: np.ndarray[Any, Any], prefix: str) -> str:
    """The line from the top down that has every cell of a decode step or more on its right."""
    passed = (steps < 1.0).sum(axis=1).tolist()
    corners = [f"{x},{HEAD + row_height(prefix) * (row + end):.4g}" for row, x in enumerate(passed) for end in (0, 1)]
    return "M" + "L".join(corners)


def _carried(scenario: Scenario, prompts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """How many prompts of each length the scenario's link carries in one decode step."""
    many = sweep(scenario, prompt_tokens=prompts[:, None], batch=np.arange(1, MOST + 1)[None, :])
    shape = (len(prompts), MOST)
    return np.broadcast_to(np.asarray(many.transfer.seconds) <= np.asarray(many.decode.step_seconds), shape).sum(axis=1)


def carries_text(scenario: Scenario, tokens: int, most: int) -> str:
    """The same in words."""
    many = f"{count_text(most)} prompt{'' if most == 1 else 's'}" if most < MOST else f"{count_text(MOST)} prompts or more"
    link, some = registry.links()[scenario.link].short, f"carries {many}" if most else "cannot carry one prompt"
    return f"In one decode step {link} {some} of {count_text(tokens)} tokens"


def _sentences(
    scenario: Scenario,
    own: Evaluation,
    prompts: np.ndarray[Any, Any],
    batches: Sequence[int],
    reaches: Sequence[Reach],
    alone: Sequence[bool],
) -> list[Sentence]:
    seconds, steps, moved = (np.broadcast_to(v, prompts.shape) for v in (own.transfer.seconds, own.decode.step_seconds, own.kv.wire_bytes))
    return [
        _sentence(scenario, int(n), int(b), None if single else reach, float(t), float(t / step), bool(held <= 0))
        for n, b, reach, single, t, step, held in zip(prompts, batches, reaches, alone, seconds, steps, moved, strict=True)
    ]


def _sentence(scenario: Scenario, tokens: int, batch: int, reach: Reach | None, seconds: float, steps: float, nothing: bool) -> Sentence:
    """The answer; without a `reach` the prompt is one chunk, which nothing hides."""
    if nothing:
        return (("Decode already holds this prompt: ", ""), (bytes_text(0), "wire", "kv.wire_bytes"), (" to move.", ""))
    some = f"{count_text(batch)} × {count_text(tokens)} tokens" if batch > 1 else f"{count_text(tokens)} tokens"
    link, ends = registry.links()[scenario.link].short, (f", {digits(steps)} decode steps.", f", {digits(steps)} steps.", ".")
    if reach is None:
        alone = (f"{some} are one chunk, sent when all is computed: {link} takes ", ""), (time_text(seconds), "wire", "transfer.seconds")
        return first_short([(*alone, (end, "")) for end in ends])
    where = (reach.words(), "wire", "critical_bandwidth_bytes_per_s")
    way = way_text(scenario)
    if plan_of(scenario).overlap == "chunk":
        way, some = "Chunk by chunk", f"all but the last chunk of {some}"
    head = ((f"{way}, prefill hides {some} ", ""), where)
    taken = (f"; whole, {link} takes ", ""), (time_text(seconds), "", "transfer.seconds")
    told: list[Sentence] = [*((*head, *taken, (end, "")) for end in ends), (*head, (".", ""))]
    return first_short(told)


def interconnects_figure(scenario: Scenario) -> Figure:
    """A cell for each link and batch: its time, coloured by decode steps; the stairs mark one step."""
    links = drawn_links(scenario)
    nominal = plan_of(scenario).engine.nominal_link
    layouts = [_layout(links, scenario.link, prefix, nominal=nominal) for prefix in COLUMNS]
    return Figure("interconnects", *layouts, at("answer.text"))


def _layout(links: Sequence[Link], chosen: str, prefix: str, *, nominal: bool) -> Spec:
    columns, wide, size, row = COLUMNS[prefix], prefix == "w", SIZES[prefix], row_height(prefix)
    cells = [
        (k, column, k * len(COLUMNS["w"]) + COLUMNS["w"].index(batch)) for k in range(len(links)) for column, batch in enumerate(columns)
    ]
    told = {
        "type": "scatter",
        "mode": "none",
        "x": [column + 0.5 for _, column, _ in cells],
        "y": [HEAD + row * (k + 0.5) for k, _, _ in cells],
        "customdata": [at("i.says", item) for *_, item in cells],
        "hovertext": [f"{links[k].name}, batch {columns[column]}" for k, column, _ in cells],
        "hovertemplate": "%{hovertext}<br>%{customdata}<extra></extra>",
    }
    bottom = HEAD + row * len(links)
    middle, height = (HEAD + bottom) / 2, bottom + 4
    # Below a point that is half a line above the first row's middle, or above one that is half a line below the last's.
    ends = (HEAD + (row - size) / 2, bottom - (row - size) / 2)
    words = [
        Label(at(f"{prefix}.{name}", i), i + 0.5, y, tone, size, place)
        for i in range(len(columns))
        for name, tone, y, place in (
            ("on_pale", HEAT_TEXT[1], ends[0], "bottom center"),
            ("on_dark", HEAT_TEXT[-1], ends[1], "top center"),
        )
    ]
    words += [Label(f"{'batch ' if i == 0 else ''}{batch}", i + 0.5, HEAD / 2, "muted", size) for i, batch in enumerate(columns)]
    names = ("<br>" * LINES).join(_name(link, chosen, wide=wide, nominal=nominal) for link in links)
    words.append(Label(names, 0, middle, "body", size, "middle left"))
    lines = [f"M{i},{HEAD}V{bottom:g}" for i in range(1, len(columns))]
    lines += [f"M0,{HEAD + row * k:.4g}H{len(columns)}" for k in range(1, len(links))]
    heats = [outlined(at(f"{prefix}.{heat}"), heat, "bg", 0) for heat in HEAT]
    grid, stairs = outlined("".join(lines), "clear", "bg", 2), outlined(at(f"{prefix}.stairs"), "clear", "ink", 2.5)
    layout = {
        "height": height,
        "margin": {"l": 160 if wide else 92, "r": 2, "t": 0, "b": 0},
        "hoverdistance": -1,
        "xaxis": {"range": [-0.01, len(columns)], "visible": False, "fixedrange": True},
        "yaxis": {"range": [height, 0], "visible": False, "showgrid": False, "fixedrange": True},
        "shapes": [*heats, grid, stairs],
    }
    return {"data": [told, labels(words)], "layout": layout}


def _name(link: Link, chosen: str, *, wide: bool, nominal: bool) -> str:
    text = link.name if wide else link.short
    if nominal and is_far(link):  # at a rate that engines do not reach
        text = f"{link.short}{', full rate' * wide}*"
    return f"<b>{text}</b>\u2002" if link.id == chosen else f"{text}\u2002"
