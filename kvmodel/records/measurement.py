"""Published measurements: one row is one number somebody measured, with its conditions and where it is printed."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from kvmodel.records.base import Bytes, BytesPerSecond, Seconds, Share, Sourced

Category = Literal[
    "kv_transfer",
    "kv_production",
    "link_bw",
    "latency",
    "per_message",
    "h2d",
    "storage",
    "quant",
    "overlap",
    "prefill_decode",
]


class Measurement(Sourced):
    """One measured number. A field is None where the source does not state it."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*/.+$")
    """Series and row: `mooncake-vllm-h800/8192 tokens`."""
    source: str = Field(pattern=r"^https://")
    """Page that prints it."""
    category: Category
    """What was measured: a request's cache, a link, one message, a copy to or from the host, a drive, a codec, compute."""
    phase: Literal["prefill", "decode"] | None = None
    """Which phase a `prefill_decode` row times: TTFT or time per output token."""
    model: str | None = None
    """Model, as the source names it."""
    dtype: str | None = None
    """Format of the cache, or of weights and cache."""
    prefill_tp: int | None = Field(default=None, ge=1)
    """Tensor-parallel ranks that send, or that compute."""
    decode_tp: int | None = Field(default=None, ge=1)
    """Tensor-parallel ranks that receive, or that compute."""
    tokens: int | None = Field(default=None, ge=1)
    """Prompt tokens of one request."""
    batch: int | None = Field(default=None, ge=1)
    """Requests together."""
    gpu: str | None = None
    """Accelerator on either side."""
    link: str | None = None
    """What the bytes crossed, as the source describes it."""
    near: str | None = None
    """Id of the link in `links.toml` whose curve the row belongs beside."""
    engine: str | None = None
    """Id of the engine in `engines.toml` that the method resembles."""
    method: str | None = None
    """Program and way of measuring."""
    transport: str | None = None
    """Id of the transport that predicts the row; None where the row states too little to be predicted."""
    host_memory: bool = False
    """The bytes lie in, or pass through, host memory."""
    nics: int | None = Field(default=None, ge=1)
    """NICs used together."""
    message_bytes: Bytes | None = None
    """Bytes of one message or block."""
    messages: int | None = Field(default=None, ge=1)
    """Messages that carry the bytes."""
    nominal: BytesPerSecond | None = None
    """Nominal rate of everything used together, one direction."""
    nominal_source: str | None = None
    """Where the nominal rate comes from."""
    bytes: Bytes | None = None
    """Bytes moved."""
    seconds: Seconds | None = None
    """Time measured."""
    bandwidth: BytesPerSecond | None = None
    """Rate measured, where the source prints no time."""
    share_of_ceiling: Share | None = None
    """Share of the best rate reached, where only that is printed."""
    speed_up: float | None = Field(default=None, gt=1)
    """Times faster with overlap than without."""
    steady: bool = False
    """A rate kept up with many messages in flight, so that latency does not show."""
    loaded: bool = False
    """Other transfers shared the link meanwhile, in number unknown."""
    overlapped: Literal["no", "yes"] | None = None
    """Whether compute ran beside the transfer."""
    approximate: bool = False
    """Rounded or read as about so much by the source."""
    derived: bool = False
    """Follows from what is printed by arithmetic or assumption that the note names."""
    confidence: Literal["high", "medium", "low"]
    """How well source and conditions bear the number."""
    note: str = ""
    """Conditions and traps, in our words."""
    miss: str = ""
    """Why a transport's prediction may be far off."""

    @model_validator(mode="after")
    def _states_a_number(self) -> Measurement:
        if all(value is None for value in (self.seconds, self.bandwidth, self.share_of_ceiling, self.speed_up)):
            raise ValueError("states neither seconds, bandwidth, share_of_ceiling nor speed_up")
        if (self.nominal is None) != (self.nominal_source is None):
            raise ValueError("nominal and nominal_source go together")
        return self

    @property
    def series(self) -> str:
        """The rows measured together."""
        return self.id.split("/", 1)[0]

    @property
    def time(self) -> float | None:
        """Seconds the bytes took, measured or from the rate; None without bytes."""
        if self.bytes is None:
            return None
        if self.seconds is not None:
            return self.seconds
        return None if self.bandwidth is None else self.bytes / self.bandwidth

    @property
    def rate(self) -> float | None:
        """Bytes per second, measured or from the time; None where neither gives one."""
        if self.bandwidth is not None:
            return self.bandwidth
        return self.bytes / self.seconds if self.bytes and self.seconds else None

    @property
    def ideal_seconds(self) -> float | None:
        """Bytes over nominal bandwidth; None where either is unknown."""
        return None if self.bytes is None or self.nominal is None else self.bytes / self.nominal
