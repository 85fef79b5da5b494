"""The pinned turn in the flow pictures: dashed outlines of its arrows to the same scale, and its bytes in words."""

from __future__ import annotations

from collections.abc import Sequence

from app.charts.flow import GEOMETRY, edges_path, largest_edge
from app.charts.marks import Label
from app.charts.pins.marks import added, outline, said, with_pin
from app.charts.spec import Figure, Spec, Table, at
from app.charts.turn import DRAWN, TurnRow
from kvmodel.display import bytes_text


def flow_pin_table(pinned: TurnRow, rows: Sequence[TurnRow]) -> Table:
    """Outlines of the pinned turn's arrows where they are others, to the scale of those of each row."""
    most = [max(largest_edge(row), largest_edge(pinned)) for row in rows]
    return {
        f"{prefix}.pin_edges": [edges_path(g, pinned, largest, row) for largest, row in zip(most, rows, strict=True)]
        for prefix, g in GEOMETRY.items()
    }


def with_flow_pin(figure: Figure, pinned: TurnRow) -> Figure:
    """The pictures with the pinned turn's arrows and bytes."""

    def more(spec: Spec, prefix: str) -> Spec:
        g, wide = GEOMETRY[prefix], prefix == "w"
        texts = [f"pin {bytes_text(pinned.by_key[key].unique_bytes)}" for key in DRAWN]
        corners = [(x + g.cell, y + (36 if wide else 26)) for x, y in map(g.origin, range(len(DRAWN)))]
        words = [Label(text, x, y, "muted", 12 if wide else 11, "middle left") for text, (x, y) in zip(texts, corners, strict=True)]
        return said(added(spec, shapes=[outline(at(f"{prefix}.pin_edges"))]), words)

    return with_pin(figure, more)
