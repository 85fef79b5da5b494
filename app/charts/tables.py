"""Tables of words as text blocks, which scroll sideways where they are too wide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

ROLES = {"table": "table", "thead": "rowgroup", "tbody": "rowgroup", "tr": "row", "th": "columnheader", "td": "cell"}


def table_block(
    name: str,
    heads: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    look: str = "kv-said",
    long: bool = False,
    wide: Sequence[int] = (),
    stacked: bool = False,
) -> dict[str, Any]:
    """A table as a text block; `look` is a class of the style sheet, a `long` one scrolls within its own height.

    On a phone `wide` columns are left out, and a `stacked` table becomes a block a row, its first two cells on lines of
    their own, each of the others under its head.
    """
    looks = ["kv-wide" if i in wide else "" for i in range(len(heads))]
    named = [{"data-head": head} if stacked else {} for head in heads]
    top = {"tag": "tr", "children": [_cell("th", cell_look, h, scope="col") for cell_look, h in zip(looks, heads, strict=True)]}
    body = [
        {"tag": "tr", "children": [_cell("td", one, cell, **head) for one, head, cell in zip(looks, named, row, strict=True)]}
        for row in rows
    ]
    table = {
        "tag": "table",
        "class": f"kv-table {look}{' kv-stacked' * stacked}".strip(),
        "children": [{"tag": "thead", "children": [top]}, {"tag": "tbody", "children": body}],
    }
    if stacked:
        give_roles(table)
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


def give_roles(node: Any) -> None:
    """Say what each part of a table is, which a browser forgets where rows are no longer laid out as rows."""
    if isinstance(node, dict) and node.get("tag") in ROLES:
        node["role"] = ROLES[node["tag"]]
        for child in node["children"]:
            give_roles(child)
