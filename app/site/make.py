"""Make a static copy: the data of every scenario on all cores, then the pages that show them."""

from __future__ import annotations

import gzip
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from hashlib import sha256
from pathlib import Path
from typing import Any

from app.catalog import VIEWS
from app.controls import NAMED, label_of
from app.export.page import bundle, style, view_script
from app.live import STATIC
from app.palette import THEMES
from app.site import pages
from app.site.axes import AXES
from app.site.data import packed, view_data
from app.site.folder import PARTIAL, hashed, opened, taken, token_of
from app.site.grid import Grid, Held, stored_dtypes
from app.state import BESIDE, PIN, URL_KEYS, State, record_of
from kvmodel import registry

WEIGHTS = {"model": 1000, "link": 300, "prefill_tp": 50, "decode_tp": 50, "kv_dtype": 50}
"""How much an input counts where the nearest scenario is looked for; others count 10, what a slider moves 1."""
PART_OF = {"turn": ("next-turn",), "traffic": ("wire",), "seen": ("measured", "matrices")}
"""Views in which inputs beside the scenario's play a part."""
Family = Sequence[Held]
Progress = Callable[[int, int], None]


def write_family(folder: Path, family: Family, views: Sequence[str]) -> list[tuple[str, str]]:
    """Write the data of some scenarios; returns names and hashes."""
    written = []
    for held in family:
        for view in views:
            content, name = packed(view_data(view, held.state)), f"{view}/{held.name}.json.gz"
            (folder / name).write_bytes(content)
            written.append((name, sha256(content).hexdigest()))
    return written


def make(out: str, grid: Grid, views: Sequence[str], *, app: str, compress: bool, jobs: int, progress: Progress) -> list[Path]:
    """Write a copy into a folder; returns its files. Raises BadScenarioError for a folder that may not be written, OSError."""
    folder = opened(out)
    partial = folder / PARTIAL
    data = partial / "data"
    for view in views:
        (data / view).mkdir(parents=True)
    digests = list(_written(data, grid.families, views, jobs, progress))
    token = f"data-{token_of(digests)}"
    data.rename(partial / token)
    for name, content in site_files(grid, views, data=token, app=app).items():
        (partial / name).write_bytes(content)
        if compress and not name.endswith(".gz"):
            (partial / f"{name}.gz").write_bytes(gzip.compress(content, compresslevel=9, mtime=0))
    taken(folder, last=[path.name for path in partial.glob("*.html*")])
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and _is_own(path.relative_to(folder))]


def _is_own(path: Path) -> bool:
    return not path.parts[0].startswith(".")


def _written(data: Path, families: Sequence[Family], views: Sequence[str], jobs: int, progress: Progress) -> Iterator[tuple[str, str]]:
    """Names and hashes of all data; families are made side by side."""
    done, whole = 0, sum(map(len, families))
    for count, written in _made(data, families, views, jobs):
        done += count
        progress(done, whole)
        yield from written


def _made(data: Path, families: Sequence[Family], views: Sequence[str], jobs: int) -> Iterator[tuple[int, list[tuple[str, str]]]]:
    if jobs == 1:
        for family in families:
            yield len(family), write_family(data, family, views)
        return
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        asked = {pool.submit(write_family, data, family, views): len(family) for family in families}
        try:
            for future in as_completed(asked):
                yield asked[future], future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def site_files(grid: Grid, views: Sequence[str], *, data: str, app: str) -> dict[str, bytes]:
    """Everything beside the data: pages, script, style and what the copy holds, each by name."""
    made: dict[str, bytes] = {}

    def kept(name: str, content: bytes) -> str:
        made[hashed(name, content)] = content
        return hashed(name, content)

    plotly = kept("plotly.min.js", bundle()[0].read_bytes())
    files = pages.Files(
        script=kept("site.js", script().encode()),
        style=kept("site.css", (style("auto") + (STATIC / "site.css").read_text(encoding="utf-8")).encode()),
        plotly=plotly,
        grid=kept("grid.json.gz", packed(held(grid, data=data, plotly=plotly, app=app))),
        app=app,
        views=tuple(views),
    )
    boards = {name: VIEWS[name].at(State()) for name in views}
    html = {f"{name}.html": pages.view_page(name, board, grid, files) for name, board in boards.items()}
    answers = [(one.preset, _answer(one, files.view(registry.presets()[one.preset].view))) for one in grid.held if one.preset]
    here = VIEWS[files.view("one-request")].at(State()).views["answer_view"]
    html |= {"method.html": pages.method_page(grid, files), "index.html": pages.first_page(answers, here, grid, files)}
    return made | {name: text.encode("utf-8") for name, text in html.items()}


def _answer(held: Held, view: str) -> Any:
    """The sentence of a view, in parts."""
    return VIEWS[view].at(held.state).views["answer_view"]["now"]["answer"]


def script() -> str:
    """The explorer's view, its sliders and the copy's own part, as one script."""
    parts = [view_script(), (STATIC / "site.js").read_text(encoding="utf-8")]
    return '(() => {\n"use strict";\n' + "\n".join(parts) + "\n})();\n"


def held(grid: Grid, *, data: str, plotly: str, app: str) -> dict[str, Any]:
    """What a page has to know of the copy: its scenarios by their links' queries, and what inputs are called."""
    models = sorted({str(one.state.scenario.model) for one in grid.held})
    sliders = list(dict.fromkeys(name for view in VIEWS.values() for name in view.sliders))
    keys = [key for key in URL_KEYS if key != PIN]
    return {
        "app": app,
        "data": data,
        "plotly": plotly,
        "themes": THEMES,
        "defaults": {key: _text(record_of(key).model_fields[key].default) for key in keys},
        "names": {field: {name: row.name for name, row in rows().items()} for field, rows in NAMED.items()},
        "labels": {key: label_of(key) for key in keys},
        "apart": {view: _apart(view) for view in VIEWS},
        "axes": [field for axis in AXES for field in axis.fields if field != "link"],
        "follows": next(axis.fields for axis in AXES if axis.option == "gpu"),
        "weights": {**WEIGHTS, **dict.fromkeys(sliders, 1)},
        "aliases": {alias.lower(): name for name in models for alias in registry.models()[name].aliases},
        "stored": stored_dtypes(models),
        "scenarios": [{"name": one.name, "query": one.state.query()} for one in grid.held],
        "refused": [{"query": one.query, "reason": one.reason} for one in grid.refused],
    }


def _apart(view: str) -> list[str]:
    """Inputs that play no part in a view; a turn's prompt is its history and what is new."""
    beside = [name for name, (part, _) in BESIDE.items() if view not in PART_OF[part]]
    return ["prompt_tokens", *beside] if view == "next-turn" else beside


def _text(value: Any) -> str:
    """A value as a link has it."""
    return "" if value is None else str(value)
