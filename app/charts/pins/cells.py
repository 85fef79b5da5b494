"""The pinned scenario among links and batches: where its handoffs pass one decode step, as dashed stairs."""

from __future__ import annotations

import numpy as np

from app.charts.interconnects import COLUMNS, drawn_links, stairs_of
from app.charts.links import on_link
from app.charts.pins.marks import added, outline, with_pin
from app.charts.spec import Figure, Spec
from kvmodel.evaluate import sweep
from kvmodel.scenario import Scenario

NOTE = "Dashed: the heavy line under the pinned scenario, its prompt and its decode step."


def with_cells_pin(figure: Figure, scenario: Scenario, pinned: Scenario) -> Figure:
    """The cells with the stairs of the pinned scenario over the same links."""
    links = [link.id for link in drawn_links(scenario)]
    found = [sweep(on_link(pinned, link), batch=np.asarray(COLUMNS["w"])) for link in links]
    steps = np.array([np.broadcast_to(r.transfer.seconds / r.decode.step_seconds, len(COLUMNS["w"])) for r in found])

    def more(spec: Spec, prefix: str) -> Spec:
        kept = [COLUMNS["w"].index(batch) for batch in COLUMNS[prefix]]
        return added(spec, shapes=[outline(stairs_of(steps[:, kept], prefix))])

    return with_pin(figure, more)
