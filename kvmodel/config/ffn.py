"""Feed-forward blocks: dense or experts, by layer."""

from __future__ import annotations

from typing import Any

from kvmodel.config.heads import hidden_size
from kvmodel.config.reader import MAX_SIZE, Reader
from kvmodel.config.text import shown
from kvmodel.errors import BadConfigError
from kvmodel.records.model import Dense, Ffn, Moe


def has_experts(reader: Reader) -> bool:
    """Whether any layer routes its tokens to experts."""
    if reader.has("enable_moe_block") and not reader.flag("enable_moe_block"):
        return False
    return (_number(reader, "num_experts", 0) or 0) > 1


def feed_forward(reader: Reader, layer: int, layers: int) -> Ffn:
    """The block of a layer that follows its attention."""
    if has_experts(reader) and _routes(reader, layer, layers):
        return experts(reader, layer)
    return dense(reader, layer)


def dense(reader: Reader, layer: int) -> Dense:
    """A dense block."""
    for name in ("intermediate_size_mlp", "dense_intermediate_size", "ffn_config.ffn_hidden_size", "intermediate_size"):
        inter = reader.optional(name, layer=layer)
        if inter is not None:
            return Dense(inter=max(1, inter // 2) if reader.family.half_inter else inter, gated=_gated(reader))
    hidden = hidden_size(reader)
    ratio = reader.optional("expansion_ratio") or 4
    reader.note("intermediate_size", ratio * hidden, "derived", why=f"{ratio} times the hidden size")
    return Dense(inter=ratio * hidden, gated=_gated(reader))


def experts(reader: Reader, layer: int) -> Moe:
    """A mixture of experts."""
    inter = _number(reader, "moe_intermediate_size", layer, low=1) or reader.whole("intermediate_size", layer=layer)
    count, top_k = _number(reader, "num_experts", layer), _number(reader, "num_experts_per_tok", layer)
    if not count or not top_k or top_k > count:
        path = reader.find("num_experts_per_tok")[1]
        raise BadConfigError(f"config: {path}: got {top_k or 'nothing'} of {count or 'no'} experts; allowed: from 1 to their number")
    return Moe(
        experts=count,
        top_k=top_k,
        inter=inter,
        shared_inter=_shared(reader, layer, inter),
        gated=_gated(reader),
        latent=reader.optional("moe_latent_size", low=0) or 0,
    )


def _number(reader: Reader, name: str, layer: int, *, low: int = 0) -> int | None:
    """A whole number; of a list that has no entry for each layer, the first (for text, others for images)."""
    listed, path = reader.stated(name)
    if not isinstance(listed, list) or len(listed) == reader.layers:
        return reader.optional(name, low=low, layer=layer)
    first = listed[0] if listed else None
    if isinstance(first, bool) or not isinstance(first, int) or not low <= first <= MAX_SIZE:
        raise BadConfigError(f"config: {path}[0]: got {shown(first)}; allowed: a whole number from {low:,} to {MAX_SIZE:,}")
    reader.note(name, first, "file", f"{path}[0]")
    return first


def _gated(reader: Reader) -> bool:
    acts = (reader.stated("mlp_hidden_act")[0], reader.stated("hidden_act")[0])
    return reader.family.gated and "relu2" not in acts


def _shared(reader: Reader, layer: int, inter: int) -> int:
    """Width of the expert that every token visits."""
    if reader.has("enable_moe_block"):
        return dense(reader, layer).inter
    if reader.family.shared_expert:
        return reader.whole("intermediate_size", layer=layer)
    width = reader.optional("shared_expert_intermediate_size", low=0)
    number = _number(reader, "n_shared_experts", layer)
    if width is not None:
        return min(width * max(1, number or 1), 10_000_000)
    return min((number or 0) * inter, 10_000_000)


def _routes(reader: Reader, layer: int, layers: int) -> bool:
    """Whether a layer of a model with experts has them."""
    listed = _by_list(reader, layer, layers)
    return _by_rule(reader, layer, layers) if listed is None else listed


def _by_list(reader: Reader, layer: int, layers: int) -> bool | None:
    kinds = reader.items("mlp_layer_types", count=layers)
    if kinds is not None:
        return kinds[layer] in ("sparse", "moe", "hash_moe")
    chosen = _chosen(reader)
    if chosen is not None:
        return layer in chosen
    if isinstance(reader.stated("moe_layer_freq")[0], list):
        return bool((reader.items("moe_layer_freq", count=layers) or [])[layer])
    return None


def _chosen(reader: Reader) -> list[Any] | None:
    """Numbers of the layers with experts: a list, or a text such as `"4,5,6"`."""
    for name in ("moe_layers", "moe_layers_enum"):
        stated = reader.stated(name)[0]
        if isinstance(stated, str):
            text = reader.text(name) or ""
            return [int(part) for part in text.split(",") if part.strip().isascii() and part.strip().isdigit() and len(part) < 8]
        if stated is not None:
            return reader.items(name)
    return None


def _by_rule(reader: Reader, layer: int, layers: int) -> bool:
    if layer in (reader.items("mlp_only_layers") or []):
        return False
    if layer < (reader.optional("first_k_dense_replace", low=0) or 0):
        return False
    if reader.has("expert_layer_period"):
        return layer % reader.whole("expert_layer_period") == (reader.optional("expert_layer_offset", low=0) or 0)
    if reader.has("interleave_moe_layer_step"):
        return (layer + 1) % reader.whole("interleave_moe_layer_step") == 0
    if reader.has("moe_layer_start_index"):
        return _from_start(reader, layer, layers)
    if reader.has("decoder_sparse_step"):
        return (layer + 1) % reader.whole("decoder_sparse_step") == 0
    return layer % (reader.optional("moe_layer_freq") or 1) == 0


def _from_start(reader: Reader, layer: int, layers: int) -> bool:
    """ERNIE 4.5: experts from one layer to another, at an interval. Entries of a list are for text and images."""
    first, last = _number(reader, "moe_layer_start_index", layer), _number(reader, "moe_layer_end_index", layer, low=-1)
    interval = reader.optional("moe_layer_interval") or 1
    inside = (first or 0) <= layer <= (layers - 1 if last in (None, -1) else last)
    return inside and (layer + 1) % interval == 0
