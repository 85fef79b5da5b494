"""The live view: Python sends specs and a table over each slider's positions, the browser indexes them.

One read-only component serves every chart and text that moves; see `app/static/liveview.js`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from app.charts.spec import Figure, Table, used
from app.palette import THEMES

STATIC = Path(__file__).parent / "static"
_HTML = '<div class="liveview"></div>'


@dataclass(frozen=True, slots=True)
class Slider:
    """A native slider the views follow, and the table over its positions."""

    key: str
    values: Sequence[int]
    at: int
    table: Table

    def data(self, names: set[str]) -> dict[str, Any]:
        """What the browser gets: only the columns that are used."""
        return {
            "positions": [str(value) for value in self.values],
            "at": self.at,
            "observe": f".st-key-{self.key}",
            "table": {name: self.table[name] for name in sorted(names)},
        }


def version_of(path: Path) -> str:
    """A short hash of a static file: changes when the file does, so that caches do not keep an old one."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def plotly_url() -> str:
    """Where the browser gets Plotly: the basic bundle where a build step put it, else the plotly package's own."""
    basic = STATIC / "vendor" / "plotly-basic.min.js"
    return f"app/static/vendor/{basic.name}?v={version_of(basic)}" if basic.is_file() else "vendor/plotly.min.js"


@st.cache_resource
def _mounter() -> Any:
    script = STATIC / "liveview.js"
    loader = (
        f'const view = import(new URL("app/static/liveview.js?v={version_of(script)}", document.baseURI).href);\n'
        "export default args => {\n"
        "  let close;\n"
        "  let gone = false;\n"
        "  view.then(module => { if (!gone) close = module.default(args); });\n"
        "  return () => { gone = true; close?.(); };\n"
        "};\n"
    )
    return st.components.v2.component("liveview", html=_HTML, js=loader, css=None, isolate_styles=False), plotly_url()


def live(
    key: str,
    items: Sequence[Figure | Mapping[str, Any]],
    sliders: Sequence[Slider],
    *,
    later: bool = False,
    say: str = "",
    url: Mapping[str, Any] | None = None,
) -> None:
    """Mount figures and text blocks that follow the sliders; the first slider is the main one.

    A view drawn `later` follows a drag one frame behind the others, so that they are painted first;
    `say` is read out to screen readers when it changes; `url` is what the address bar should hold.
    """
    mount, plotly = _mounter()
    specs = _with_constants([item.item() if isinstance(item, Figure) else dict(item) for item in items], sliders)
    names = used(specs)
    data: dict[str, Any] = {
        "items": specs,
        "sliders": {slider.key: slider.data(names) for slider in sliders},
        "main": sliders[0].key,
        "themes": THEMES if any(isinstance(item, Figure) for item in items) else {},
        "plotly": plotly,
        "later": later,
        "say": say,
    }
    if url is not None:
        data["url"] = dict(url)
    mount(key=key, data=data)


def _with_constants(spec: Any, sliders: Sequence[Slider]) -> Any:
    """The spec with columns that never change put in as values: less to send, less to fill."""
    fixed: dict[str, Any] = {}
    for name in used(spec):
        columns = [slider.table[name] for slider in sliders if name in slider.table]
        if columns and all(value == columns[0][0] for column in columns for value in column):
            fixed[name] = columns[0][0]
    return _put(spec, fixed)


def _put(spec: Any, fixed: Mapping[str, Any]) -> Any:
    if isinstance(spec, list | tuple):
        return [_put(item, fixed) for item in spec]
    if not isinstance(spec, dict):
        return spec
    if spec.get("$at") in fixed:
        value = fixed[spec["$at"]]
        return value[spec["$i"]] if "$i" in spec else value
    return {key: value if key == "parts" else _put(value, fixed) for key, value in spec.items()}


def block(tag: str, *children: Any, **attributes: Any) -> dict[str, Any]:
    """A text block: `block("p", "TTFT ", at("ttft"), class_="kv-note")`."""
    named = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items() if name != "parts"}
    parts = {"parts": attributes["parts"]} if "parts" in attributes else {}
    return {"tag": tag, **named, **parts, "children": list(children)}


def static_block(html_key: str, *items: Mapping[str, Any]) -> None:
    """Mount text blocks that follow no slider."""
    live(html_key, list(items), [Slider("none", [0], 0, {})])
