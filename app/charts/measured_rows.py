"""Published measurements as a table, and what is published of other kinds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from app.charts.measured import CLOSE, Point
from app.charts.tables import table_block
from kvmodel import registry
from kvmodel.display import bytes_text, digits, share_text, time_text


def elsewhere_block() -> dict[str, Any]:
    """Published figures that are no transfer of stated bytes, each beside the model's own."""
    rows = registry.measurements()
    knee, overlap = rows["kvwire-knee/knee"], rows["kvwire-overlap/equal times"]
    lines = [
        (
            f"kvwire reaches {share_text(knee.share_of_ceiling or 0)} of its ceiling with messages of "
            f"{bytes_text(knee.message_bytes or 0)}",
            f"a lane that posts while it sends is full from message cost × bandwidth on: {bytes_text(_knee('transfer-engine'))} for a "
            f"transfer engine at 400 Gb/s, {bytes_text(_knee('rdma'))} for a thin library",
            knee,
        ),
        (
            f"kvwire gains {digits(overlap.speed_up or 0)} times from two buffers when both sides take equally long",
            f"24 layers sent one by one gain 2 × 24 ÷ 25 = {digits(2 * 24 / 25)} times",
            overlap,
        ),
    ]
    items = [{"tag": "p", "class": "kv-note", "children": [f"{said}; here {ours}. ", _link(row.source)]} for said, ours, row in lines]
    return {"tag": "div", "children": items}


def _knee(transport: str) -> float:
    """Bytes of a message whose posting takes as long as its sending, on one 400 Gb/s NIC."""
    constants = registry.transports()[transport].constants
    return constants.message_seconds * constants.achieved * 50e9


def _link(address: str) -> dict[str, Any]:
    return {"tag": "a", "href": address, "target": "_blank", "rel": "noopener", "children": ["Source"]}


def rows_block(shown: Sequence[Point]) -> dict[str, Any]:
    """Every row in a table, the worst first, each with a link to its source."""
    heads = ("Published", "Bytes", "Measured", "Model", "Off by", "Bytes ÷ bandwidth")
    ordered = sorted(shown, key=lambda p: (abs(p.modelled / p.seconds - 1) <= CLOSE, -abs(math.log(p.ratio))))
    return table_block("Published transfers", heads, [_row(p) for p in ordered], look="", long=True, wide=(1, 5))


def _row(p: Point) -> list[Any]:
    link = {"tag": "a", "href": p.row.source, "title": p.row.note, "target": "_blank", "rel": "noopener", "children": [p.row.id]}
    off = p.modelled / p.seconds - 1
    ideal = "–" if p.row.ideal_seconds is None else time_text(p.row.ideal_seconds) if p.row.ideal_seconds >= 1e-9 else "<1\u202fns"
    off_by = f"{'+' if off > 0 else '−'}{abs(off) * 100:.0f}\u202f%"
    return [link, bytes_text(p.bytes), time_text(p.seconds), time_text(p.modelled), off_by, ideal]
