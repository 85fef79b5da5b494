"""Query and KV heads of attention layers that keep keys and values."""

from __future__ import annotations

from dataclasses import dataclass

from kvmodel.config.families import UNKNOWN
from kvmodel.config.reader import Reader
from kvmodel.config.text import shown
from kvmodel.errors import BadConfigError
from kvmodel.records.model import MAX_CONTEXT


@dataclass(frozen=True, slots=True)
class Heads:
    """Head counts and sizes of one layer."""

    q_heads: int
    kv_heads: int
    k_dim: int
    v_dim: int


def hidden_size(reader: Reader) -> int:
    """Width of the residual stream; worked out from the heads where nothing states it."""
    hidden = reader.optional("hidden_size")
    if hidden is not None:
        return hidden
    heads, dim = query_heads(reader), reader.whole("head_dim")
    reader.note("hidden_size", heads * dim, "derived", why="attention heads times head_dim")
    reader.warn("hidden_size is not stated: parameters and times are rough, the cache does not depend on it")
    return heads * dim


def context_length(reader: Reader) -> int | None:
    """Longest context the file states."""
    stated = reader.stated("max_position_embeddings")[0] is not None
    return None if not stated else reader.optional("max_position_embeddings", high=MAX_CONTEXT)


def query_heads(reader: Reader, layer: int | None = None) -> int:
    """Attention heads; as many as KV heads where only those and their size are stated."""
    heads = reader.optional("num_attention_heads", layer=layer)
    if heads is not None:
        return heads
    stated = reader.stated("num_key_value_heads")[0] is not None and reader.stated("head_dim")[0] is not None
    if not stated:
        return reader.whole("num_attention_heads", layer=layer)
    heads = reader.whole("num_key_value_heads", layer=layer)
    reader.note("num_attention_heads", heads, "derived", why="as many as KV heads")
    reader.warn("num_attention_heads is not stated: prefill time and the TP check are rough, the cache does not depend on it")
    return heads


def heads_of(reader: Reader, layer: int) -> Heads:
    """Heads of a layer. Raises BadConfigError where the counts contradict each other."""
    q_heads = query_heads(reader, layer)
    kv_heads = _kv_heads(reader, q_heads, layer)
    dim = _head_dim(reader, q_heads, layer)
    return checked(reader, Heads(q_heads, kv_heads, dim, reader.optional("v_head_dim", low=0, layer=layer) or dim))


def checked(reader: Reader, heads: Heads) -> Heads:
    """The heads, if each KV head serves the same number of query heads. Raises BadConfigError."""
    if heads.kv_heads > heads.q_heads or heads.q_heads % heads.kv_heads:
        path, origin = reader.find("num_key_value_heads")[1:]
        came = f"{heads.kv_heads} KV heads" + (" (the class default)" if origin == "class default" else "")
        raise BadConfigError(f"config: {path}: got {came} for {heads.q_heads} attention heads; allowed: a divisor of the attention heads")
    return heads


def _kv_heads(reader: Reader, q_heads: int, layer: int) -> int:
    single = _shares_one_head(reader)
    if single is not None:
        return single or q_heads
    kv_heads = reader.optional("num_key_value_heads", layer=layer)
    if kv_heads is None:
        _refuse_unknown_default(reader)
        reader.note("num_key_value_heads", q_heads, "derived", why="as many as attention heads")
        return q_heads
    return kv_heads


def _refuse_unknown_default(reader: Reader) -> None:
    """Null means as many as attention heads; what leaving the field out means, only the class knows."""
    model_type = reader.values.get("model_type")
    if reader.family is UNKNOWN and model_type and not reader.mentions("num_key_value_heads"):
        came = f"model_type {shown(model_type)} is not understood"
        raise BadConfigError(f"config: num_key_value_heads is not stated, and {came}: its attention heads may share keys; state it")


def _shares_one_head(reader: Reader) -> int | None:
    """1 where all queries share a KV head, 0 where each has its own, None where a count decides."""
    if reader.has("new_decoder_architecture") and reader.flag("new_decoder_architecture"):
        return None
    if reader.has("multi_query"):
        return 1 if reader.flag("multi_query") else 0
    if reader.stated("multi_query_attention")[0] is not None:
        return None if reader.flag("multi_query_attention") else 0
    return 1 if reader.stated("attn_config.attn_type")[0] == "multiquery_attention" else None


def _head_dim(reader: Reader, q_heads: int, layer: int) -> int:
    dim = reader.optional("head_dim", layer=layer)
    if dim is not None:
        return dim
    hidden = reader.whole("hidden_size")
    if hidden % q_heads:
        raise BadConfigError(f"config: no head_dim, and hidden size {hidden} does not divide by {q_heads} attention heads")
    reader.note("head_dim", hidden // q_heads, "derived", why="hidden size over attention heads")
    return hidden // q_heads
