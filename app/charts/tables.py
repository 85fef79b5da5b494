"""Tables of words as text blocks, which scroll sideways where they are too wide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def table_block(
    name: str, heads: Sequence[str], rows: Sequence[Sequence[Any]], *, look: str = "kv-said", long: bool = False
) -> dict[str, Any]:
    """A table as a text block; `look` is a class of the style sheet, a `long` one scrolls within its own height."""
    top = {"tag": "tr", "children": [{"tag": "th", "scope": "col", "children": [h]} for h in heads]}
    body = [{"tag": "tr", "children": [{"tag": "td", "children": [cell]} for cell in row]} for row in rows]
    table = {
        "tag": "table",
        "class": f"kv-table {look}".strip(),
        "children": [{"tag": "thead", "children": [top]}, {"tag": "tbody", "children": body}],
    }
    return {
        "tag": "div",
        "class": "kv-scroll kv-long" if long else "kv-scroll",
        "tabindex": "0",
        "role": "region",
        "aria-label": name,
        "children": [table],
    }
