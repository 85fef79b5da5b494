"""What a transport predicts for a measurement: the lane of `kvmodel.lane`, with the transport's constants."""

from __future__ import annotations

from kvmodel.lane import Lane
from kvmodel.records.measurement import Measurement
from kvmodel.records.transport import Constants, Transport


def transport_lane(transport: Transport, *, nominal: float, nics: int, host_memory: bool, constants: Constants | None = None) -> Lane:
    """One of `nics` lanes that together have `nominal` bytes per second, as the transport uses it.

    Host memory lets no more through than its own bandwidth, which all NICs share.
    """
    c = constants or transport.constants
    together = nominal * c.achieved
    if host_memory:
        together = min(together, c.host_bandwidth)
    return Lane(together / nics, c.latency, c.message_seconds, transport.posts_while_sending, 0.0)


def messages_of(row: Measurement) -> float:
    """Messages that carry a row's bytes: as stated, or by their size, or one a NIC."""
    if row.messages is not None:
        return float(row.messages)
    if row.message_bytes and row.bytes:
        return max(1.0, row.bytes / row.message_bytes)
    return float(row.nics or 1)


def predicted_seconds(row: Measurement, transport: Transport, constants: Constants | None = None) -> float | None:
    """Seconds a transport needs for a row's bytes; None where the row states no bytes.

    Bytes and messages divide over the NICs; the latency shows once, unless the row is a steady rate.
    """
    if row.bytes is None:
        return None
    nics = row.nics or 1
    lane = _lane(row, transport, constants)
    busy = float(lane.busy(row.bytes / nics, messages_of(row) / nics, row.bytes / nics, 1))
    return busy if row.steady else busy + lane.latency


def predicted_rate(row: Measurement, transport: Transport, constants: Constants | None = None) -> float:
    """Bytes per second for a row: of its bytes where it states them, else kept up with messages of its size."""
    seconds = predicted_seconds(row, transport, constants)
    if seconds is not None and row.bytes is not None:
        return row.bytes / seconds
    lane = _lane(row, transport, constants)
    nics = row.nics or 1
    if row.message_bytes is None:
        return nics * float(lane.bandwidth)
    return nics * row.message_bytes / float(lane.busy(row.message_bytes, 1.0, row.message_bytes, 1))


def _lane(row: Measurement, transport: Transport, constants: Constants | None) -> Lane:
    nominal = row.nominal or transport.usual_bandwidth
    return transport_lane(transport, nominal=nominal, nics=row.nics or 1, host_memory=row.host_memory, constants=constants)
