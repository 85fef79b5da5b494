"""Layers for multi-token prediction: a draft that keeps a cache of its own while speculation is on."""

from __future__ import annotations

from dataclasses import replace

from kvmodel.config.layers import Layer
from kvmodel.config.reader import Reader
from kvmodel.records.model import Compressed, Full, Mla

MAX_PREDICTION_LAYERS = 64


def with_prediction(reader: Reader, layers: list[Layer], *, speculation: bool) -> list[Layer]:
    """The layers, and under speculation as many more like the last that sees every token.

    DeepSeek V4's keep a window alone. Source: vLLM 0.33.0 transformers_utils/model_arch_config_convertor.py.
    """
    count = reader.optional("num_nextn_predict_layers", low=0, high=MAX_PREDICTION_LAYERS) or 0
    if not count:
        return layers
    path = reader.find("num_nextn_predict_layers")[1]
    if not speculation:
        reader.warn(f"{path} {count}: layers for multi-token prediction keep a cache only when speculation is on; they are not counted")
        return layers
    like = next((layer for layer in reversed(layers) if isinstance(layer.attention, Full | Mla | Compressed)), None)
    if like is None:
        reader.warn(f"{path} {count}: no layer sees every token, so the layers for multi-token prediction are not counted")
        return layers
    return [*layers, *[_draft(like, layers)] * count]


def _draft(like: Layer, layers: list[Layer]) -> Layer:
    block = like.ffn or next((layer.ffn for layer in reversed(layers) if layer.ffn), None)
    if isinstance(like.attention, Compressed):
        return replace(like, kind="prediction", attention=like.attention.model_copy(update={"ratio": 0, "overlap": False}), indexer=None)
    return replace(like, kind="prediction", ffn=block)
