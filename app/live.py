"""The live view: Python sends specs and a table over each slider's positions, the browser indexes them.

One read-only component serves every chart and text that moves; see `app/static/liveview.js`.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from zlib import compress

import streamlit as st

from app.charts.spec import Figure, Table, placed
from app.markup import html_of
from app.palette import THEMES

STATIC = Path(__file__).parent / "static"
_HTML = '<div class="liveview"></div>'


@dataclass(frozen=True, slots=True)
class Slider:
    """A native slider the views follow, and the table over its positions."""

    key: str
    values: Sequence[int]
    table: Table

    def data(self, names: AbstractSet[str]) -> dict[str, Any]:
        """What the browser gets: only columns that are used, those that never change as one value."""
        table = {name: _shortened(self.table[name]) for name in sorted(names & self.table.keys())}
        return {"positions": [str(value) for value in self.values], "table": table}

    def packed(self, names: AbstractSet[str]) -> PackedTable:
        """The same, deflated, as text: a tenth of it, made once for all readers of a table."""
        text = b64encode(compress(_encoded(self.data(names)), 6)).decode()
        mark = hashlib.sha256(text.encode()).hexdigest()[:16]
        return PackedTable(mark, _encoded({"slider": self.key, "mark": mark, "packed": text}))


@dataclass(frozen=True, slots=True)
class PackedTable:
    """A slider's table as it is sent."""

    mark: str
    """What it is known by: tables of one mark are the same."""
    data: bytes


def _shortened(column: list[Any]) -> Any:
    return {"$same": column[0]} if all(value == column[0] for value in column) else column


def version_of(path: Path) -> str:
    """A short hash of a static file: changes when the file does, so that caches do not keep an old one."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


@cache
def plotly_url() -> str:
    """Where the browser gets Plotly: the basic bundle where a build step put it, else the plotly package's own."""
    basic = STATIC / "vendor" / "plotly-basic.min.js"
    return f"app/static/vendor/{basic.name}?v={version_of(basic)}" if basic.is_file() else "vendor/plotly.min.js"


@st.cache_resource
def _mounter() -> Any:
    url = '(new URL("app/static/{0}?v={1}", document.baseURI).href);\n'
    loader = (
        "(globalThis.liveviewStore ??= { sliders: {} }).explains = !/[?&]embed=true/.test(location.search);\n"
        f"const view = import{url.format('liveview.js', version_of(STATIC / 'liveview.js'))}"
        f"import{url.format('ahead.js', version_of(STATIC / 'ahead.js'))}"
        f"import{url.format('share.js', version_of(STATIC / 'share.js'))}"
        f"import{url.format('explain.js', version_of(STATIC / 'explain.js'))}"
        f"import{url.format('open.js', version_of(STATIC / 'open.js'))}"
        f"import{url.format('touch.js', version_of(STATIC / 'touch.js'))}"
        "export default args => {\n"
        "  let close;\n"
        "  let gone = false;\n"
        "  view.then(module => { if (!gone) close = module.default(args); });\n"
        "  return () => { gone = true; close?.(); };\n"
        "};\n"
    )
    return st.components.v2.component("liveview", html=_HTML, js=loader, css=None, isolate_styles=False)


@dataclass
class Board:
    """The live views of one scenario: each with the values it stands at, then one table for all to move by.

    `slider` and `value` say which slider the views stand at, and where; `tables` names the table of each
    slider that goes with the scenario, so that no view moves by another scenario's. Filling a board draws
    nothing: `mount` does, where Streamlit stands.
    """

    slider: str
    value: int
    tables: Mapping[str, str] = field(default_factory=dict)
    views: dict[str, dict[str, Any]] = field(default_factory=dict)

    def view(
        self,
        key: str,
        items: Sequence[Figure | Mapping[str, Any]],
        now: Mapping[str, Any],
        *,
        columns: Table | None = None,
        later: bool = False,
        say: str = "",
        url: Mapping[str, Any] | None = None,
    ) -> None:
        """Describe figures and text blocks. `now` holds the values at the slider's position, `columns` whole curves.

        A view drawn `later` follows a drag one frame behind the others, so that they are painted first;
        `say` is read out to screen readers when it changes; `url` is what the address bar should hold.
        """
        specs = [item.item() if isinstance(item, Figure) else dict(item) for item in items]
        self.views[key] = {
            "key": key,
            "items": specs,
            "now": {name: now[name] for name in sorted(placed(specs, "$at"))},
            "columns": {name: (columns or {})[name] for name in sorted(placed(specs, "$col"))},
            "main": self.slider,
            "value": str(self.value),
            "tables": dict(self.tables),
            "themes": THEMES if any(isinstance(item, Figure) for item in items) else {},
            "plotly": plotly_url(),
            "later": later,
            "say": say,
            **({} if url is None else {"url": dict(url)}),
        }

    def done(self) -> Picture:
        """The views as the browser gets them."""
        names = frozenset(name for view in self.views.values() for name in view["now"])
        return Picture({key: _encoded(view) for key, view in self.views.items()}, names, dict(self.tables))

    def mount(self, *keys: str) -> None:
        """Draw views that were described."""
        self.done().mount(*keys)


@dataclass(frozen=True, slots=True)
class Picture:
    """Views that are described in full: as bytes, so that readers of the same scenario share them."""

    views: Mapping[str, bytes]
    names: frozenset[str]
    """Columns that the views take values from."""
    tables: Mapping[str, str]
    """The table of each slider that goes with them."""

    def mount(self, *keys: str) -> None:
        """Draw some of the views where Streamlit stands."""
        for key in keys:
            _mounter()(key=key, data=self.views[key])

    def mount_tables(self, packed: Mapping[str, PackedTable], asked: Mapping[str, Any] | None = None) -> None:
        """Mount the packed tables, by slider, that all views of this run move by; last, so that nothing waits for them.

        Each is mounted by itself, so that one that stays is not sent again. `asked` says how the browser may ask
        for the views of another choice before the page answers, if it may.
        """
        for key, table in packed.items():
            _mounter()(key=f"table_{key}", data=table.data)
        tables = {key: {"id": self.tables.get(key, ""), "mark": table.mark} for key, table in packed.items()}
        _mounter()(key="tables", data=_encoded({"sliders": tables, "asked": dict(asked or {})}))


def _encoded(data: Any) -> bytes:
    return json.dumps(data, allow_nan=False, separators=(",", ":")).encode()


def first(table: Table) -> dict[str, Any]:
    """The only row of a table over one position."""
    return {name: column[0] for name, column in table.items()}


def at_value(table: Table, positions: Sequence[int], value: int) -> dict[str, Any]:
    """The row of a table at one of its positions."""
    index = positions.index(value)
    return {name: column[index] for name, column in table.items()}


def block(tag: str, *children: Any, **attributes: Any) -> dict[str, Any]:
    """A text block: `block("p", "TTFT ", at("ttft"), class_="kv-note")`."""
    named = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items() if name != "parts"}
    parts = {"parts": attributes["parts"]} if "parts" in attributes else {}
    return {"tag": tag, **named, **parts, "children": list(children)}


def still_block(*items: Mapping[str, Any]) -> None:
    """Put text blocks of HTML on the page that follow nothing and open nothing: a tenth of the work of a live one."""
    st.html("".join(html_of(item) for item in items))


def static_block(key: str, *items: Mapping[str, Any]) -> None:
    """Mount text blocks that follow no slider."""
    board = Board("none", 0)
    board.view(key, list(items), {})
    board.mount(key)
