"""Layers sent in groups: what is left exposed by the size of a group, as text."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.charts.spec import Table, at
from app.over import Over
from kvmodel.display import time_text
from kvmodel.evaluate import amounts_of
from kvmodel.layer_groups import sent_in_groups
from kvmodel.plan import plan_of
from kvmodel.progress import progress

LEAST = 1e-6
"""Share by which a size of group must be better to be worth a word."""


def groups_table(over: Over) -> Table:
    """Sentences over a slider's positions: the best group with layers apart, and with blocks that hold all layers."""
    (single, best, whole), (_, joined, _) = (_exposed(over, cross_layer) for cross_layer in ("no", "yes"))
    return {"p.groups": [_sentence(*at_one) for at_one in zip(single, best, whole, joined, over.rows, strict=True)]}


def _exposed(over: Over, cross_layer: str) -> list[list[tuple[int, float]]]:
    """(layers of a group, seconds exposed) at each position: single layers, the best group, all layers at once."""
    plan = plan_of(over.scenario, overlap="layer-group", group_layers=None, cross_layer=cross_layer)
    amounts = amounts_of(over.scenario, **{over.field: np.asarray(over.values)})
    p, found = progress(plan, amounts), []
    for sizes in ((1,), None, (plan.model.layers,)):
        sent = sent_in_groups(plan, amounts, p, sizes)
        both = np.broadcast_arrays(sent.layers, sent.exposed_seconds, np.asarray(over.values))
        found.append([(int(layers), float(seconds)) for layers, seconds in zip(*both[:2], strict=True)])
    return found


def _sentence(single: tuple[int, float], best: tuple[int, float], whole: tuple[int, float], joined: tuple[int, float], row: Any) -> str:
    if row.kv.wire_bytes <= 0:
        return "Nothing moves, so layers need no groups."
    first = f"Of layers that cross together, groups of {best[0]}" if best[0] > 1 else "Of layers that cross together, single ones"
    text = f"{first} expose least, {time_text(best[1])}"
    if best[0] > 1:
        text += f" (single layers: {time_text(single[1])})"
    if joined[0] > 1 and joined[1] < best[1] * (1 - LEAST):
        text += f"; with blocks that hold all layers groups of {joined[0]} would expose {time_text(joined[1])}"
    return f"{text}. All at once, when the last is computed but not yet the first token: {time_text(whole[1])}."


def groups_line() -> dict[str, Any]:
    """The sentence as a text block."""
    return {"tag": "p", "class": "kv-note", "children": [at("p.groups")]}
