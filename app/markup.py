"""Text blocks as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

_OWN = frozenset({"tag", "children"})


def html_of(items: Iterable[Mapping[str, Any] | str]) -> str:
    """Blocks of fixed texts as HTML, everything in them escaped. Raises KeyError: a text that a slider moves has none."""
    return "".join(escape(item, quote=False) if isinstance(item, str) else _element(item) for item in items)


def _element(block: Mapping[str, Any]) -> str:
    tag = block["tag"]
    named = "".join(f' {name}="{escape(str(value))}"' for name, value in block.items() if name not in _OWN)
    return f"<{tag}{named}>{html_of(block['children'])}</{tag}>"
