"""The pages of a static copy: the first one, a page a view, and the method. Addresses are relative; nothing is asked of another host."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import kvmodel
from app.catalog import TITLES, VIEWS
from app.controls import NAMED, label_of
from app.live import Board
from app.markup import html_of, parts_html
from app.shell import DESCRIPTION
from app.site.axes import AXES, Axis
from app.site.data import NOTICES, places
from app.site.grid import Grid, query_of
from app.state import URL_KEYS, State
from app.views import method
from app.views.hint import HINT
from kvmodel import registry

NAME = "KV handoff explorer"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'"
)
HALVES = ("levers_view", "behind_view", "links_view", "ratio_view", "congestion_view", "failure_view", "matrices_view", "roofline_view")
"""Views that stand two beside each other where the page is wide."""
ONE = "One slider moves at a time here: moving one puts the other back to where the scenario has it."


class Files(NamedTuple):
    """Addresses of what the pages load."""

    script: str
    style: str
    plotly: str
    grid: str
    app: str
    """Address of a live page, or empty."""
    views: tuple[str, ...]
    """Views that have a page."""

    def view(self, name: str) -> str:
        """The view itself where it has a page, else the first that has."""
        return name if name in self.views else self.views[0]

    def address(self, view: str, query: str) -> str:
        """A page with a scenario, as an attribute has it."""
        return html.escape(f"{self.view(view)}.html{f'?{query}' if query else ''}", quote=True)


def choice_name(field: str, value: Any) -> str:
    """A value of an axis as people read it."""
    if value is None:
        return "the engine's"
    return str(NAMED[field]()[value].name) if field in NAMED else str(value)


def view_page(name: str, board: Board, grid: Grid, files: Files) -> str:
    """The page of a view: its answer at the defaults, the controls, and places that its script fills."""
    answer = board.views["answer_view"]
    roots = [
        f'<div data-key="{key}" class="liveview{" kv-half" if key in HALVES else ""}"></div>' for key in places(board) if key != NOTICES
    ]
    body = [
        f'<main id="main" data-view="{name}" data-grid="{files.grid}">',
        f'<div data-key="answer_view" class="liveview">{_filled(answer)}</div>',
        '<div data-place="notices" role="status"></div>',
        f'<div data-key="{NOTICES}" class="liveview"></div>',
        f'<div data-place="controls" class="kv-selects">{"".join(_select(axis, grid) for axis in AXES)}</div>',
        f'<div data-place="sliders" class="kv-ranges"></div><p data-place="one" class="kv-note kv-one" hidden>{ONE}</p>',
        f'<div class="kv-views">{"".join(roots)}</div><div data-place="tables" hidden></div>',
        "<noscript><p class=kv-notice>Charts and sliders need JavaScript.</p></noscript></main>",
    ]
    said = str(answer["say"])
    return _page(f"{TITLES[name]} · {NAME}", said, name, body, files, len(grid.held))


def _filled(view: dict[str, Any]) -> str:
    return "".join(html_of(item, view["now"]) for item in view["items"])


def _select(axis: Axis, grid: Grid) -> str:
    """The choices of an axis, those that only presets have apart; nothing where there is but one, or the model decides."""
    field, values = axis.fields[0], grid.values[axis.option]
    if axis.option == "gpu" or (len(values) < 2 and field != "model"):
        return ""
    others = dict.fromkeys(getattr(one.state.scenario, field) for one in grid.held if one.preset)
    more = [value for value in others if value not in values]
    choices = _options(field, values) + (f'<optgroup label="In one scenario">{_options(field, more)}</optgroup>' if more else "")
    label = "TP, each side" if len(axis.fields) > 1 else label_of(field)
    return f'<label>{html.escape(label)}<select data-keys="{" ".join(axis.fields)}" autocomplete="off">{choices}</select></label>'


def _options(field: str, values: Iterable[Any]) -> str:
    return "".join(
        f'<option value="{html.escape("" if value is None else str(value), quote=True)}">{html.escape(choice_name(field, value))}</option>'
        for value in values
    )


def method_page(grid: Grid, files: Files) -> str:
    """How the numbers are made, with the formulas at the defaults."""
    body = ['<main id="main" class="kv-text">', *(html_of(item) for item in method.blocks(State())), "</main>"]
    return _page(f"{TITLES['method']} · {NAME}", DESCRIPTION, "method", body, files, len(grid.held))


def first_page(answers: Sequence[tuple[str, Sequence[Any]]], here: dict[str, Any], grid: Grid, files: Files) -> str:
    """Answers first: each preset with its sentence, then a search over all that can be looked at. `here` is the answer at the defaults."""
    presets = registry.presets()
    cards = [
        f'<li><a class="kv-card" href="{files.address(presets[name].view, presets[name].query)}"><b>{html.escape(presets[name].name)}</b>'
        f"<strong>{parts_html(parts)}</strong><span>{html.escape(presets[name].what)}</span></a></li>"
        for name, parts in answers
    ]
    groups = [
        ("Scenarios", [_found(one.name, (one.id, one.what), files.address(one.view, one.query), quiet=True) for one in presets.values()]),
        ("Models", _models(grid, files)),
        ("Links", [_found(row.name, (row.id, row.short), files.address("critical-length", f"link={row.id}")) for row in _links(grid)]),
        ("Views", [_found(title, (name,), f"{name}.html", quiet=True) for name, title in _titles(files)]),
    ]
    listed = "".join(
        f"<section data-group{'' if any(' hidden>' not in item for item in found) else ' hidden'}>"
        f'<h2 class="kv-h2">{name}</h2><ul class="kv-finds">{"".join(found)}</ul></section>'
        for name, found in groups
    )
    how = "".join(f"<p><b>{html.escape(head)}</b>{html.escape(rest)}</p>" for head, rest in HINT[:2])
    body = [
        f'<main id="main" class="kv-first" data-keys="{" ".join(URL_KEYS)}" data-views="{" ".join(name for name, _ in _titles(files))}">',
        f'<div class="liveview">{_filled(here)}</div>',
        f'<p class="kv-prose">{html.escape(DESCRIPTION)} <a href="{files.address("one-request", "")}">Look at this handoff</a>,',
        "or start from another:</p>",
        f'<ul class="kv-cards">{"".join(cards)}</ul>',
        f'<div class="kv-hint" role="note" aria-label="How to read this">{how}</div>',
        '<label class="kv-search">Find a model, a link, a scenario or a view',
        '<input type="search" autocomplete="off" maxlength="80"></label>',
        f'<p data-place="found" class="kv-note" role="status"></p>{listed}</main>',
    ]
    return _page(NAME, DESCRIPTION, "", body, files, len(grid.held))


def _links(grid: Grid) -> list[Any]:
    return [registry.links()[name] for name in grid.values["links"]]


def _models(grid: Grid, files: Files) -> list[str]:
    """Every model: those of the copy open here, others in the live explorer, where there is one."""
    held = set(grid.values["models"])
    found = []
    for row in sorted(registry.models().values(), key=lambda row: (row.id not in held, row.name.lower())):
        names = (row.id, row.family, *row.aliases)
        if row.id in held:
            found.append(_found(row.name, names, files.address("one-request", query_of(grid, row.id))))
        else:
            note = "in the live explorer" if files.app else "not in this copy"
            found.append(_found(row.name, names, f"{files.app}/?model={row.id}" if files.app else "", note=note))
    return found


def _found(name: str, names: Iterable[str], address: str, *, note: str = "", quiet: bool = False) -> str:
    """A line of the search: a link, or a name alone; a `quiet` one, or one with a `note`, shows only when it is looked for."""
    words = html.escape(" ".join([name, *names]).lower(), quote=True)
    text = f'<a href="{address}">{html.escape(name)}</a>' if address else html.escape(name)
    other = f" <small>{note}</small>" if note else ""
    return f'<li data-find="{words}"{" data-other hidden" if note or quiet else ""}>{text}{other}</li>'


def _page(title: str, description: str, current: str, body: Sequence[str], files: Files, count: int) -> str:
    nav = "".join(_nav_link(name, text, current) for name, text in [("", "Scenarios"), *_titles(files)])
    live = f' <a data-live href="{files.app}/">The live explorer</a> takes every input.' if files.app else ""
    early = (
        f'<link rel="preload" as="script" href="{files.plotly}"><link rel="preload" as="fetch" crossorigin href="{files.grid}">'
        if current in VIEWS
        else ""
    )
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}"><meta name="referrer" content="same-origin">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<title>{html.escape(title)}</title><meta name="description" content="{html.escape(description, quote=True)}">',
            f'<link rel="icon" href="data:,"><link rel="stylesheet" href="{files.style}">{early}',
            f'<script defer src="{files.script}"></script></head>',
            f'<body><a class="kv-skip" href="#main">To the answer</a><header><nav aria-label="Views">{nav}</nav></header>',
            *body,
            f"<footer>A calculation, not a measurement. A copy of {count} scenarios,",
            f"made by kv-handoff {kvmodel.__version__}.{live}</footer>",
            "</body></html>\n",
        ]
    )


def _nav_link(name: str, text: str, current: str) -> str:
    to = f' data-to="{name}"' if name else ""
    here = ' aria-current="page"' if name == current else ""
    return f'<a href="{name or "index"}.html"{to}{here}>{html.escape(text)}</a>'


def _titles(files: Files) -> list[tuple[str, str]]:
    """Pages as the navigation names them; the method is always there."""
    return [(name, title) for name, title in TITLES.items() if name in files.views or name not in VIEWS]
