"""Configurations of readers' own, by their content: so that a request beside the session can name one that no link carries."""

from __future__ import annotations

from collections import OrderedDict
from hashlib import sha256

from kvmodel.records.model import ModelSpec

MOST = 128
"""Models that are kept; the one unused for longest goes first."""
_KEPT: OrderedDict[str, ModelSpec] = OrderedDict()


def keep(model: ModelSpec) -> str:
    """Keep a model and name it: only who has its content can tell the name."""
    name = sha256(model.model_dump_json().encode()).hexdigest()[:32]
    _KEPT[name] = model
    _KEPT.move_to_end(name)
    while len(_KEPT) > MOST:
        _KEPT.popitem(last=False)
    return name


def find(name: str) -> ModelSpec:
    """A model that was kept. Raises KeyError."""
    return _KEPT[name]
