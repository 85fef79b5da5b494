"""`kv-handoff export-site`: the page as files, for any host."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.site.axes import AXES
from kvmodel.errors import BadScenarioError

if TYPE_CHECKING:
    from app.site.grid import Grid

SUMMARY = "the page as files that any host can serve"
MAX_JOBS = 64


def add_options(command: argparse.ArgumentParser) -> None:
    """The words of the command."""
    command.add_argument("out", metavar="FOLDER", help="folder to write: new, empty, or an earlier export's")
    for axis in AXES:
        command.add_argument(f"--{axis.option}", metavar="A,B,…", help=f"{axis.what} (default {axis.default})")
    command.add_argument("--views", metavar="A,B,…", help="views by the last part of their address, or all (default all)")
    command.add_argument("--app-url", default="", metavar="URL", help="a live page, to open what the copy does not hold")
    command.add_argument("--compress", action="store_true", help="write pages, script and style gzipped as well, as .gz beside them")
    command.add_argument("--jobs", default="", metavar="N", help="processes (default: one a core)")


def run(options: argparse.Namespace, rest: Sequence[str]) -> tuple[dict[str, Any], str]:
    """Write the copy and say what was written. Raises KvModelError."""
    from app.flags import read_flags
    from app.site.folder import refusal
    from app.site.grid import grid_of, values_of
    from app.site.make import make

    read_flags(rest, [])
    given = {axis.option: getattr(options, axis.option.replace("-", "_")) for axis in AXES}
    grid = grid_of(values_of({name: text for name, text in given.items() if text is not None}))
    views, app, jobs = _views(options.views), _address(options.app_url), _jobs(options.jobs)
    began = time.monotonic()
    try:
        files = make(options.out, grid, views, app=app, compress=options.compress, jobs=jobs, progress=_Progress(began))
    except OSError as error:
        raise refusal(options.out, error) from None
    written = _written(options.out, grid, files, views) | {"seconds": round(time.monotonic() - began, 1)}
    return written, _text(written)


def _views(text: str | None) -> list[str]:
    from app.catalog import VIEWS

    words = [word.strip() for word in (text or "all").split(",") if word.strip()]
    strange = next((word for word in words if word not in VIEWS and word != "all"), None)
    if strange is not None or not words:
        raise BadScenarioError(f"views: got {(strange or text or '')[:60]!r}; allowed: all, or some of {', '.join(VIEWS)}")
    return [name for name in VIEWS if name in words or "all" in words]


def _address(text: str) -> str:
    if text and not re.fullmatch(r"https?://[^\s\"'<>?#]+", text):
        raise BadScenarioError(f"app-url: got {text[:60]!r}; allowed: an address that begins with https:// or http://, without a query")
    return text.rstrip("/")


def _jobs(text: str) -> int:
    if not text:
        return max(1, min(MAX_JOBS, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1))
    if not re.fullmatch(r"\d{1,3}", text, re.ASCII) or not 1 <= int(text) <= MAX_JOBS:
        raise BadScenarioError(f"jobs: got {text[:40]!r}; allowed: a whole number from 1 to {MAX_JOBS}")
    return int(text)


class _Progress:
    """Says on standard error how far it is, a line a tenth."""

    def __init__(self, began: float) -> None:
        self.began, self.said = began, 0

    def __call__(self, done: int, whole: int) -> None:
        tenth = 10 * done // whole
        if tenth > self.said:
            self.said, spent = tenth, time.monotonic() - self.began
            print(
                f"{done} of {whole} scenarios, {spent:.0f} s, about {spent * (whole - done) / done:.0f} s left", file=sys.stderr, flush=True
            )


def _written(out: str, grid: Grid, files: Sequence[Path], views: Sequence[str]) -> dict[str, Any]:
    sizes = [path.stat().st_size for path in files]
    refused = [{"query": one.query, "reason": one.reason} for one in grid.refused]
    return {
        "out": out, "scenarios": len(grid.held), "views": list(views), "refused": refused,
        "files": len(files), "bytes": sum(sizes), "largest_bytes": max(sizes),
    }  # fmt: skip


def _text(written: dict[str, Any]) -> str:
    lines = [
        f"wrote {written['out']}: {written['scenarios']:,} scenarios in {len(written['views'])} views, "
        f"{written['files']:,} files, {written['bytes']:,} bytes, {written['seconds']:.0f} s",
        *(
            f"without charts: {one['query'].replace('&', ', ').replace('=', ' ') or 'defaults'}: {one['reason']}"
            for one in written["refused"]
        ),
        f"To look at it: python -m http.server --directory {written['out']}",
    ]
    return "\n".join(lines)
