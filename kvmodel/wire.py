r"""What crosses the link and how long each layer keeps its lane busy.

A lane is busy with one layer for

.. math:: x = (\max\text{ or }\sum)\left(\frac{m\,o}{threads},\ \frac{bytes / lanes}{achieved \cdot nominal / shared}\right)
          + staging + compression

with :math:`m` messages of cost :math:`o`. The link's latency comes once, after the last byte.
"""

from __future__ import annotations

from dataclasses import dataclass

from kvmodel.cache import LayerCache
from kvmodel.dtypes import BYTES_PER_ELEMENT
from kvmodel.errors import BadScenarioError
from kvmodel.numeric import Num, ceil_div, maximum
from kvmodel.records.engine import Engine
from kvmodel.records.hardware import Accelerator, Link
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
        missing = ceil_div(tokens - known, block)
        if self.cache.growing or self.cache.indexer:
            return maximum(missing * self.block_messages, 1.0 * (missing > 0))
        if self.cache.capped:
            return maximum(self.block_messages * _fewer(missing, -(-self.cache.cap_tokens // block)), 1.0 * (missing > 0))
        return 1.0 * (missing > 0) if self.cache.state else 0.0 * missing


def _fewer(a: Num, b: float) -> Num:
    return -maximum(-a, -b)


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


def derived_lanes(
    link: Link, engine: Engine, sender: Accelerator, receiver: Accelerator, sender_tp: int, receiver_tp: int, *, one_reader: bool
) -> int:
    """Lanes an engine would use side by side: the NICs of the narrower side.

    One NIC a GPU multiplies with TP; a node's or a site's pipe does not; a cache that a single rank
    reads travels on that rank's lane.
    """
    if link.scope == "site" or one_reader:
        return 1
    if link.scope == "node":
        return max(1, min(-(-sender_tp // sender.gpus_per_node), -(-receiver_tp // receiver.gpus_per_node)))
    rails = 1.0 if link.scope == "same-node" else min(sender.nics_per_gpu, receiver.nics_per_gpu)
    rails = min(rails, engine.max_lanes_per_gpu or rails)
    return max(1, int(min(sender_tp, receiver_tp) * rails))


@dataclass(frozen=True, slots=True)
class Lane:
    """One lane as the engine uses it."""

    bandwidth: float
    """Bytes per second, one direction, achieved, before sharing."""
    latency: float
    """Seconds from the last byte sent to the last byte usable."""
    message_seconds: float
    """Seconds to post one message, all posting threads together."""
    posts_while_sending: bool
    """The slower of posting and sending counts; else they add."""
    extra_per_byte: float
    """Seconds a byte of one rank's cache costs in staging copies and compression."""

    def busy(self, lane_bytes: Num, messages: Num, rank_bytes: Num, shared_by: Num) -> Num:
        """Seconds the lane is busy with `lane_bytes` bytes in `messages` messages."""
        send = lane_bytes * shared_by / self.bandwidth
        if self.message_seconds:
            post = messages * self.message_seconds
            send = maximum(send, post) if self.posts_while_sending else send + post
        return send + rank_bytes * self.extra_per_byte if self.extra_per_byte else send


def lane_of(link: Link, engine: Engine, measured: Num | None, extra_per_byte: float) -> Lane:
    """The lane of a link under an engine; `measured` bytes per second replace nominal and achieved."""
    bandwidth = link.bandwidth * (1.0 if engine.nominal_link else link.achieved) if measured is None else measured
    cost = 0.0 if engine.nominal_link else link.message_seconds
    cost = (cost if engine.message_seconds is None else engine.message_seconds) / engine.posting_threads
    latency = 0.0 if engine.nominal_link else link.latency
    return Lane(bandwidth, latency, cost, engine.posts_while_sending, extra_per_byte)


def extra_seconds_per_byte(engine: Engine, ratio: float, sender: Accelerator, receiver: Accelerator) -> float:
    """Seconds a byte of one rank's uncompressed cache costs beyond the link.

    A staging copy reads and writes device memory once; compression reads the cache and writes the
    narrow form on one side, and the reverse on the other, at memory speed.
    """
    copies = engine.staging_copies * 2 * ratio / min(sender.hbm_bandwidth, receiver.hbm_bandwidth)
    if ratio == 1.0:
        return copies
    return copies + (1 + ratio) * (1 / sender.hbm_bandwidth + 1 / receiver.hbm_bandwidth)
