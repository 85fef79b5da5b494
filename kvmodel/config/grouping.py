"""Layers alike become one group; their order is kept."""

from __future__ import annotations

from itertools import groupby

from kvmodel.config.layers import Layer
from kvmodel.records.model import LayerGroup, Moe


def grouped(layers: list[Layer]) -> tuple[tuple[LayerGroup, ...], tuple[str, ...]]:
    """(groups, order) of a sequence of layers."""
    counts: dict[Layer, int] = {}
    for layer in layers:
        counts[layer] = counts.get(layer, 0) + 1
    names = _names(list(counts))
    groups = tuple(
        LayerGroup(name=names[layer], count=count, attention=layer.attention, ffn=layer.ffn, indexer=layer.indexer, state=layer.state)
        for layer, count in counts.items()
    )
    runs = [(name, len(list(same))) for name, same in groupby(names[layer] for layer in layers)]
    order = tuple(name if length == 1 else f"{name}*{length}" for name, length in runs)
    return groups, order if len(groups) > 1 else ()


def _names(kinds: list[Layer]) -> dict[Layer, str]:
    """A name for each kind of layer: what it attends with, then its experts, then a number."""
    plain = [layer.kind for layer in kinds]
    words = [
        f"{layer.kind}-{'moe' if isinstance(layer.ffn, Moe) else 'dense'}" if plain.count(layer.kind) > 1 and layer.ffn else layer.kind
        for layer in kinds
    ]
    names = {}
    for index, layer in enumerate(kinds):
        number = f"-{words[:index].count(words[index]) + 1}" if words.count(words[index]) > 1 else ""
        names[layer] = words[index] + number
    return names
