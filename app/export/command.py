"""`kv-handoff chart`: one chart of one scenario as a file."""

from __future__ import annotations

import gzip
import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.catalog import Chart, find_chart
from app.compare_command import against_texts
from app.export import image, page, rows
from app.flags import flag
from app.model_names import scenario_of
from app.state import BESIDE, State, pin_text, record_of
from kvmodel.errors import BadScenarioError
from kvmodel.scenario import Scenario, read_field

KINDS = ("html", "svg", "png", "json", "csv")
THEMES = ("light", "dark", "auto")
SMALLEST, LARGEST = 200, 4000


def state_of(scenario: Scenario, texts: Mapping[str, str], against: str | None = None) -> State:
    """The state of a scenario and inputs beside it, as typed, with another to compare with. Raises KvModelError."""
    values = {name: read_field(record_of(name), name, text) for name, text in texts.items() if name in BESIDE}
    state = State(scenario).with_values(values)
    if against is None:
        return state
    pinned = against_texts(against, (*Scenario.model_fields, *BESIDE))
    other = scenario_of({name: text for name, text in pinned.items() if name not in BESIDE})
    return replace(state, pin=state_of(other, pinned))


def size_of(text: str) -> tuple[int, int] | None:
    """Pixels from `600x360`; None from an empty text. Raises BadScenarioError."""
    if not text:
        return None
    found = re.fullmatch(r"(\d{1,5})x(\d{1,5})", text, re.ASCII)
    sides = (int(found[1]), int(found[2])) if found else (0, 0)
    if not all(SMALLEST <= side <= LARGEST for side in sides):
        raise BadScenarioError(f"size: got {text[:40]!r}; allowed: WIDTHxHEIGHT in pixels, each from {SMALLEST} to {LARGEST:,}")
    return sides


def kind_of(out: str) -> str:
    """The format a file name asks for. Raises BadScenarioError."""
    kind = Path(out).suffix.lower().lstrip(".")
    if kind not in KINDS:
        raise BadScenarioError(f"out: got {out[-60:]!r}; allowed: a file name that ends in {', '.join('.' + k for k in KINDS)}")
    return kind


def command_of(chart: Chart, state: State) -> str:
    """The command line that makes the chart again."""
    changed = [(name, getattr(value, "id", value)) for name, value in state.scenario.changed().items()]
    changed += [(name, state.value(name)) for name in BESIDE if state.value(name) != record_of(name).model_fields[name].default]
    words = " ".join(f"{flag(name)} {value}" for name, value in changed)
    words += f" --against {shlex.quote(pin_text(state.pin))}" if state.pin and not state.pin.is_own() else ""
    return f"kv-handoff chart {chart.name} {words.strip()}".strip()


def write_chart(name: str, state: State, out: str, *, size: str, theme: str, shared: bool, explorer: str) -> dict[str, Any]:
    """Write one chart to a file; returns what was written. Raises KvModelError."""
    chart, kind, pixels = find_chart(name), kind_of(out), size_of(size)
    if theme not in THEMES:
        raise BadScenarioError(f"theme: got {theme[:40]!r}; allowed: {', '.join(THEMES)}")
    if explorer and not re.match(r"https?://", explorer):
        raise BadScenarioError(f"explorer: got {explorer[:60]!r}; allowed: an address that begins with https:// or http://")
    content = _content(chart, state, kind, pixels, theme, shared, explorer)
    path = Path(out)
    _write(path, content)
    written = {"chart": chart.name, "out": out, "bytes": len(content)}
    if kind == "html":
        written |= {"gzip_bytes": len(gzip.compress(content)), "plotly": "basic" if page.bundle()[1] else "full"}
        if shared:
            common = page.common_script().encode("utf-8")
            _write(path.with_name(page.SHARED_NAME), common)
            written |= {"shared": page.SHARED_NAME, "shared_bytes": len(common), "shared_gzip_bytes": len(gzip.compress(common))}
    return written


def _content(chart: Chart, state: State, kind: str, size: tuple[int, int] | None, theme: str, shared: bool, explorer: str) -> bytes:
    command = command_of(chart, state)
    if kind == "json":
        return rows.chart_json(chart, state, command).encode("utf-8")
    if kind == "csv":
        return rows.chart_csv(chart, state).encode("utf-8")
    if kind == "html":
        return page.chart_html(chart, state, theme=theme, shared=shared, explorer=explorer, command=command).encode("utf-8")
    return image.chart_image(chart, state, kind=kind, theme=theme, size=size)


def _write(path: Path, content: bytes) -> None:
    if not path.parent.is_dir():
        raise BadScenarioError(f"out: cannot write {path.name[:60]!r}: there is no directory {str(path.parent)[-120:]!r}")
    try:
        path.write_bytes(content)
    except OSError as error:
        raise BadScenarioError(f"out: cannot write {path.name[:60]!r}: {error.strerror or type(error).__name__}") from None


def written_text(written: Mapping[str, Any]) -> str:
    """What was written, for a reader."""
    lines = [f"wrote {written['out']}, {written['bytes']:,} bytes"]
    if "gzip_bytes" in written:
        lines[0] += f" ({written['gzip_bytes']:,} gzipped)"
    if "shared" in written:
        lines.append(f"wrote {written['shared']} beside it, {written['shared_bytes']:,} bytes ({written['shared_gzip_bytes']:,} gzipped)")
    if written.get("plotly") == "full":
        lines.append("With npm there, .ci/fetch-plotly-basic fetches Plotly's basic bundle, and files get a third of the size.")
    return "\n".join(lines)
