"""The pinned scenario among links and batches: where its handoffs pass one decode step, as dashed stairs."""

from __future__ import annotations

import numpy as np

from app.charts.interconnects import COLUMNS, HEAD, drawn_links, row_height, stairs_of
from app.charts.links import on_link
from app.charts.marks import Label
from app.charts.pins.marks import added, outline, said, with_pin
from app.charts.spec import Figure, Spec
from kvmodel.evaluate import sweep
from kvmodel.scenario import Scenario

FOOT = 18
"""Pixels below the last row for the word."""
NOTE = "Dashed: the same line under the pinned scenario, its prompt and its decode step."


def with_cells_pin(figure: Figure, scenario: Scenario, pinned: Scenario) -> Figure:
    """The cells with the stairs of the pinned scenario over the same links."""
    links = [link.id for link in drawn_links(scenario)]
    found = [sweep(on_link(pinned, link), batch=np.asarray(COLUMNS["w"])) for link in links]
    steps = np.array([np.broadcast_to(r.transfer.seconds / r.decode.step_seconds, len(COLUMNS["w"])) for r in found])

    def more(spec: Spec, prefix: str) -> Spec:
        kept = [COLUMNS["w"].index(batch) for batch in COLUMNS[prefix]]
        path, foot = stairs_of(steps[:, kept], prefix), HEAD + row_height(prefix) * len(links)
        height = spec["layout"]["height"] + FOOT
        last = float(path.rpartition("L")[2].partition(",")[0])
        place = "middle right" if last < len(COLUMNS[prefix]) / 2 else "middle left"
        taller = added(spec, shapes=[outline(path)], height=height, yaxis={**spec["layout"]["yaxis"], "range": [height, 0]})
        return said(taller, [Label("pin", last, foot + FOOT / 2, "muted", 12, place)])

    return with_pin(figure, more)
