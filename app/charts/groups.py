"""Layers sent in groups: what is left exposed by the size of a group, as text."""

from __future__ import annotations

from typing import Any

from app.charts.spec import Table, at
from app.over import Over
from kvmodel.display import time_text
from kvmodel.layer_groups import best_group, layer_groups


def groups_table(over: Over) -> Table:
    """Sentences over a slider's positions: the best group with layers apart, and with blocks that hold all layers."""
    return {"p.groups": [_sentence(over, i) for i in range(len(over.values))]}


def _sentence(over: Over, index: int) -> str:
    amounts = over.amounts(index)
    apart = layer_groups(over.plan, amounts, together=False)
    joined = layer_groups(over.plan, amounts, together=True)
    single, best, better = apart[0], best_group(apart), best_group(joined)
    if over.rows[index].kv.wire_bytes <= 0:
        return "Nothing moves, so layers need no groups."
    first = f"With each layer apart, groups of {best.layers}" if best.layers > 1 else "With each layer apart, single layers"
    text = f"{first} expose least, {time_text(best.exposed_seconds)}"
    if best.layers > 1:
        text += f" (single layers: {time_text(single.exposed_seconds)})"
    if better.layers > 1 and better.exposed_seconds < best.exposed_seconds * (1 - 1e-6):
        text += f"; with blocks that hold all layers groups of {better.layers} would expose {time_text(better.exposed_seconds)}"
    pass_ = " With prefill in one pass throughout." if over.plan.chunk is not None else ""
    return f"{text}. In one piece after prefill: {time_text(apart[-1].exposed_seconds)}.{pass_}"


def groups_line() -> dict[str, Any]:
    """The sentence as a text block."""
    return {"tag": "p", "class": "kv-note", "children": [at("p.groups")]}
