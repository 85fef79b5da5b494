"""Ways in which bytes travel, with the constants that published measurements give them."""

from __future__ import annotations

from pydantic import Field

from kvmodel.records.base import BytesPerSecond, Record, Seconds, Share, Sourced


class Constants(Record):
    """What a transport adds to bytes over nominal bandwidth."""

    achieved: Share
    """Fraction of nominal bandwidth that large transfers reach."""
    latency: Seconds
    """From the call until the last byte is known to be there, whatever the bytes."""
    message_seconds: Seconds
    """Cost of posting one message."""
    host_bandwidth: BytesPerSecond
    """Most that host memory of one node lets through, however many NICs."""


class Transport(Sourced):
    """One way in which bytes travel."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    """As people type it."""
    name: str
    """As the page writes it."""
    what: str
    """What belongs to it."""
    posts_while_sending: bool
    """Posting overlaps the wire (the slower counts) or precedes it (they add)."""
    constants: Constants
    """Fitted by tests/fit_transports.py, or the default where no measurement tells."""
    fitted: dict[str, int]
    """For each constant, how many sources bear on it; 0 leaves the default."""
    defaults: Constants
    """What holds where no measurement is left."""
    defaults_source: str
    """Where the defaults come from."""
    usual_bandwidth: BytesPerSecond
    """Nominal rate assumed for a measurement that states none."""
