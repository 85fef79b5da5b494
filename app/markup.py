"""Text blocks as HTML, for what a page says before or without a script."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from app.charts.spec import fill

_NO_ATTRIBUTES = ("tag", "children", "parts")


def html_of(spec: Any, now: Mapping[str, Any] | None = None) -> str:
    """A text block, its placeholders filled with the values of `now`; all that is text is escaped."""
    if now is not None:
        return html_of(fill(spec, {name: [value] for name, value in now.items()}, 0, {}))
    if not isinstance(spec, dict):
        return html.escape(str(spec))
    attributes = "".join(f' {name}="{html.escape(str(value), quote=True)}"' for name, value in spec.items() if name not in _NO_ATTRIBUTES)
    inside = parts_html(spec["parts"]) if "parts" in spec else "".join(html_of(child) for child in spec.get("children", ()))
    tag = spec.get("tag", "span")
    return f"<{tag}{attributes}>{inside}</{tag}>"


def parts_html(parts: Iterable[Sequence[str]]) -> str:
    """A sentence in parts of a text and a meaning, each in the colour of its meaning."""
    return "".join(
        f'<span class="kv-{html.escape(meaning, quote=True)}">{html.escape(text)}</span>' if meaning else html.escape(text)
        for text, meaning, *_ in parts
    )
