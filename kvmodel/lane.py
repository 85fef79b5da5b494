r"""How long bytes and messages keep one lane busy.

.. math:: x = (\max\text{ or }\sum)\left(\frac{p\,o}{threads},\ \max\left(\frac{bytes}{bandwidth / shared},
          \frac{m\,latency + bytes / (bandwidth / shared)}{outstanding}\right)\right) + rank\ bytes \cdot extra

with :math:`m` messages, of which a rank posts :math:`p` at a cost of :math:`o` each. The link's
latency comes once, after the last byte, and does not keep the lane.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kvmodel.numeric import Num, maximum
from kvmodel.records.engine import Engine
from kvmodel.records.hardware import Accelerator, Link


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
    """Seconds a byte of one rank's cache costs in staging, host copies and compression."""
    outstanding: int | None = None
    """Messages in flight before the engine waits for the oldest; None for as many as there are."""

    def busy(self, lane_bytes: Num, messages: Num, rank_bytes: Num, shared_by: Num, *, posted: Num | None = None) -> Num:
        """Seconds the lane is busy with `lane_bytes` bytes in `messages` messages, of which a rank posts `posted`, or all."""
        send = lane_bytes * shared_by / self.bandwidth
        if self.outstanding:
            send = send + self.waiting(send, messages)
        if self.message_seconds:
            send = send + self.posting(send, messages if posted is None else posted)
        return send + rank_bytes * self.extra_per_byte if self.extra_per_byte else send

    def waiting(self, send: Num, messages: Num) -> Num:
        """Seconds beyond sending in which the engine waits for messages in flight."""
        return maximum((messages * self.latency + send) / self.outstanding - send, 0.0) if self.outstanding else 0.0 * send

    def posting(self, send: Num, posted: Num) -> Num:
        """Seconds beyond `send` that posting takes."""
        post = posted * self.message_seconds
        return maximum(post - send, 0.0) if self.posts_while_sending else post


def lane_of(link: Link, engine: Engine, measured: Num | None, extra_per_byte: float, ceiling: float | None = None) -> Lane:
    """The lane of a link under an engine; `measured` bytes per second replace nominal and achieved, `ceiling` caps them."""
    bandwidth = reached(link, engine) if measured is None else measured
    cost = 0.0 if engine.nominal_link else link.message_seconds
    cost = (cost if engine.message_seconds is None else engine.message_seconds) / engine.posting_threads
    latency = 0.0 if engine.nominal_link else link.latency
    bandwidth = bandwidth if ceiling is None else min(bandwidth, ceiling)
    return Lane(bandwidth, latency, cost, engine.posts_while_sending, extra_per_byte, engine.outstanding_messages)


def reached(link: Link, engine: Engine) -> float:
    """Bytes per second of one lane that an engine reaches on a link."""
    return link.bandwidth * (1.0 if engine.nominal_link else link.achieved)


class Extra(NamedTuple):
    """Seconds a byte of one rank's uncompressed cache costs beyond the link."""

    staging: float
    """Passes through device memory, each read once and written once."""
    host: float
    """Copies from device to host and from host to device."""
    quantize: float
    """Reading the cache and writing its narrow form, on the sending side."""
    dequantize: float
    """The reverse, on the receiving side."""

    @property
    def per_byte(self) -> float:
        """All of them."""
        return self.staging + self.host + self.quantize + self.dequantize


def extra_seconds(
    engine: Engine, ratio: float, sender: Accelerator, receiver: Accelerator, *, pcie_achieved: float, converts: bool
) -> Extra:
    """What a byte costs beyond the link, with `ratio` bytes on the wire for one of cache, at memory speed.

    `converts` says whether the wire has another format than the cache, if of the same width.
    `pcie_achieved` is the share of its nominal bandwidth that a copy to or from the host reaches. An engine that
    gathers makes one pass on each side.
    """
    passes = engine.staging_copies + (2 if engine.gathers else 0)
    narrow = (1 + ratio) if converts else 0.0
    host = ratio / pcie_achieved * (1 / sender.host_bandwidth + 1 / receiver.host_bandwidth)
    return Extra(
        staging=passes * 2 * ratio / min(sender.hbm_bandwidth, receiver.hbm_bandwidth),
        host=host if engine.host_bounce else 0.0,
        quantize=narrow / sender.hbm_bandwidth,
        dequantize=narrow / receiver.hbm_bandwidth,
    )


def host_ceiling(engine: Engine, *, node_bandwidth: float, nodes: int, lanes: int) -> float | None:
    """Bytes per second of one lane that host memory lets through, shared by the node's lanes; None where it is not used."""
    return node_bandwidth * nodes / lanes if engine.host_bounce else None
