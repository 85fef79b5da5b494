"""What crosses the link: bytes and messages of each layer, how often each byte crosses, and over how many lanes.

How long that keeps a lane busy: `kvmodel.lane`.
"""

from __future__ import annotations

from dataclasses import dataclass

from kvmodel.cache import LayerCache
from kvmodel.dtypes import BYTES_PER_ELEMENT
from kvmodel.errors import BadScenarioError
from kvmodel.numeric import Num, ceil_div, maximum, minimum
from kvmodel.records.engine import Engine
from kvmodel.records.hardware import Accelerator
from kvmodel.records.model import Compressed, LayerGroup, Linear, Mla


@dataclass(frozen=True, slots=True)
class LayerWire:
    """One layer group on the wire."""

    count: int
    """Layers alike."""
    cache: LayerCache
    """One copy of one layer's cache, in bytes."""
    copies: float
    """Times each KV byte crosses: replicas of KV heads, or latent copies, on the receiving ranks."""
    ratio: float
    """Bytes on the wire for one byte of cache, under compression."""
    block_messages: float
    """Messages for each block of a layer."""
    token_messages: float = 0.0
    """Messages for each token of a layer, where an engine sends tokens apart."""
    least_messages: float = 1.0
    """Messages of a layer sent as one run: one for each rank that a rank exchanges heads with."""
    spread_per_byte: float = 0.0
    """Seconds a byte costs until every receiving rank has it, beyond the link."""
    joined: bool = False
    """Whether layers of the group that leave together share their messages."""
    whole_share: float = 1.0
    """Messages of a layer sent with all others at once for one of a layer that leaves apart."""
    posted_share: float = 1.0
    """Messages that a rank posts for one that is counted on a lane."""
    rank_count: int = 1
    """Ranks over which the bytes spread, each staging or converting its own."""

    def bytes(self, tokens: Num, known: Num) -> Num:
        """Bytes of one layer for one request whose receiver holds the first `known` tokens, copies included."""
        kv = self.cache.moved(tokens, known)
        if self.ratio != 1.0:
            plain = self.cache.own_format(tokens - known)
            kv = plain + (kv - plain) * self.ratio
        if self.copies == 1.0:
            return kv
        state = self.cache.state * (tokens > known) if self.cache.state else 0.0
        return (kv - state) * self.copies + state

    def messages(self, tokens: Num, known: Num, block: int) -> Num:
        """Messages of one layer for one request on one lane."""
        missing, some = ceil_div(tokens - known, block), 1.0 * (tokens > known)
        least = self.least_messages * some
        if self.cache.growing or self.cache.indexer:
            return maximum(missing * self.block_messages + (tokens - known) * self.token_messages, least)
        if self.cache.capped:
            cap = self.cache.cap_tokens
            apart = minimum(tokens - known, cap) * self.token_messages
            return maximum(minimum(missing, -(-cap // block)) * self.block_messages + apart, least)
        return some if self.cache.state else 0.0 * missing


def copies_of(group: LayerGroup, engine: Engine, decode_tp: int) -> float:
    """Times each KV byte of a layer crosses to reach all decode ranks.

    Every decode rank reads whole KV heads, so heads are copied once TP exceeds their number. An MLA
    or compressed row goes to each rank, to one, or in parts to all, as the engine does. State is sharded, once.
    Sources: vLLM 0.33.0 nixl/tp_mapping.py; SGLang 0.5.23 disaggregation/common/conn.py.
    """
    attention = group.attention
    if isinstance(attention, Mla | Compressed):
        return float(decode_tp) if engine.mla_copies == "per-rank" else 1.0
    if isinstance(attention, Linear) or not hasattr(attention, "kv_heads"):
        return 1.0
    return max(1.0, decode_tp / attention.kv_heads)


def wire_ratio(kv_dtype: str, wire_dtype: str) -> float:
    """Bytes on the wire for a byte of cache. Raises BadScenarioError where the wire would be wider, or the row is packed."""
    if wire_dtype in ("same", kv_dtype):
        return 1.0
    if kv_dtype not in BYTES_PER_ELEMENT:
        raise BadScenarioError(f"wire_dtype: got {wire_dtype!r}, but {kv_dtype} rows are packed; allowed: same")
    ratio = BYTES_PER_ELEMENT[wire_dtype] / BYTES_PER_ELEMENT[kv_dtype]
    if ratio > 1:
        raise BadScenarioError(f"wire_dtype: got {wire_dtype!r}, wider than the cache's {kv_dtype}; allowed: same or a narrower format")
    return ratio


def rank_slices(group: LayerGroup, prefill_ranks: int, decode_ranks: int) -> int:
    """Ranks of the wider side that a rank of the narrower one exchanges a layer's heads with; 1 where TP is equal.

    A decode side that is wider takes every copy; a prefill side that is wider is read once for each head.
    Source: vLLM 0.33.0 nixl/tp_mapping.py.
    """
    heads = getattr(group.attention, "kv_heads", 0)
    if not heads or prefill_ranks == decode_ranks:
        return 1
    if decode_ranks > prefill_ranks:
        return -(-decode_ranks // prefill_ranks)
    return max(1, min(prefill_ranks, heads) // min(decode_ranks, heads))


def joins(group: LayerGroup, engine: Engine, prefill_ranks: int, decode_ranks: int) -> bool:
    """Whether one message carries a block of all the layers of a group that leave together."""
    sliced = bool(getattr(group.attention, "kv_heads", 0)) and prefill_ranks != decode_ranks
    return engine.cross_layer and not engine.gathers and not sliced and not isinstance(group.attention, Linear)


def senders_of(group: LayerGroup, engine: Engine, prefill_ranks: int, decode_ranks: int) -> int:
    """Ranks that each send, or read, the messages that are counted for one: a latent's readers, else those of the narrower side."""
    if isinstance(group.attention, Mla | Compressed) and engine.mla_copies != "split":
        return decode_ranks if engine.mla_copies == "per-rank" else 1
    return min(prefill_ranks, decode_ranks)


def posted_share(group: LayerGroup, engine: Engine, prefill_ranks: int, decode_ranks: int) -> float:
    """Messages that each rank posts of those counted on a lane.

    Slices that a rank of the narrower side exchanges with several of the wider one are posted by it alone, or by each of
    them its own. A latent is one rank's to send or to read: a prefill rank that writes to several decode ranks posts for each.
    """
    wider_posts = prefill_ranks > decode_ranks if engine.direction == "push" else decode_ranks > prefill_ranks
    if isinstance(group.attention, Mla | Compressed):
        copied = engine.mla_copies == "per-rank" and engine.direction == "push"
        return float(-(-decode_ranks // prefill_ranks)) if copied else 1.0
    return 1.0 / rank_slices(group, prefill_ranks, decode_ranks) if wider_posts else 1.0


def layer_messages(
    group: LayerGroup, engine: Engine, prefill_ranks: int, decode_ranks: int, *, apart: bool = False
) -> tuple[float, float, float]:
    """(messages a block, messages a token, least messages) of one layer on one lane.

    A slice of a block's heads touches no other block's, so runs do not form across blocks, nor layers, unless the
    engine gathers them first. Layers of a group that lie together share a message, with their keys and values, unless
    they leave `apart`, each when it is computed. A latent has no keys and values to split.
    """
    slices = rank_slices(group, prefill_ranks, decode_ranks)
    unequal = bool(getattr(group.attention, "kv_heads", 0)) and prefill_ranks != decode_ranks
    if engine.gathers:
        return 0.0, 0.0, float(slices)
    if unequal and engine.unequal_tp == "tokens":
        return 0.0, float(engine.kv_split * slices), float(slices)
    if unequal:
        return float(engine.kv_split * slices), 0.0, float(slices)
    joined = joins(group, engine, prefill_ranks, decode_ranks)
    runs = 1.0 if joined or not hasattr(group.attention, "kv_heads") else float(engine.kv_split)
    runs = runs / group.count if joined and not apart else runs
    return runs * engine.fragmentation, 0.0, runs


def spread_seconds(group: LayerGroup, engine: Engine, decode_ranks: int, receiver: Accelerator) -> float:
    """Seconds a byte of a latent that came in parts costs until every rank has all of it, over the node's own fabric."""
    if engine.mla_copies != "split" or not isinstance(group.attention, Mla | Compressed):
        return 0.0
    return (decode_ranks - 1) / decode_ranks / receiver.scale_up_bandwidth
