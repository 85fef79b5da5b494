"""Tables of words as text blocks, which scroll sideways where they are too wide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def table_block(
    name: str, heads: Sequence[str], rows: Sequence[Sequence[Any]], *, look: str = "kv-said", long: bool = False, wide: Sequence[int] = ()
) -> dict[str, Any]:
    """A table as a text block; `look` is a class of the style sheet, a `long` one scrolls within its own height.

    `wide` columns are left out on a phone.
    """
    looks = ["kv-wide" if i in wide else "" for i in range(len(heads))]
    top = {"tag": "tr", "children": [_cell("th", cell_look, h, scope="col") for cell_look, h in zip(looks, heads, strict=True)]}
    body = [{"tag": "tr", "children": [_cell("td", cell_look, cell) for cell_look, cell in zip(looks, row, strict=True)]} for row in rows]
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


def _cell(tag: str, look: str, content: Any, **attributes: str) -> dict[str, Any]:
    return {"tag": tag, **({"class": look} if look else {}), **attributes, "children": [content]}
