"""How a serving engine performs the handoff."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from kvmodel.records.base import Seconds, Sourced

Overlap = Literal["serial", "chunk", "layer", "layer-group", "layer-both"]


class Engine(Sourced):
    """Every way in which an engine's handoff differs from bytes over bandwidth."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    """As people type it."""
    name: str
    """As the page writes it."""
    overlap: Overlap
    """What may cross while prefill still computes: nothing, finished chunks, finished layers one by one or in groups."""
    direction: Literal["push", "pull"]
    """Whether prefill writes or decode reads."""
    nominal_link: bool = False
    """Use the link's nominal bandwidth with no latency and no cost a message."""
    block_tokens: int = Field(ge=1, le=65_536)
    """Tokens a cache block holds: the unit of a message and of prefix reuse."""
    chunk_tokens: int | None = Field(default=None, ge=1, le=1_048_576)
    """Tokens of one prefill chunk, None for the whole prompt at once."""
    kv_split: int = Field(default=1, ge=1, le=2)
    """2 where K and V of a block are separate messages."""
    cross_layer: bool = False
    """Keeps all layers of a block together, so that one message carries them."""
    fragmentation: float = Field(default=1.0, ge=0, le=1)
    """Share of a layer's blocks that need a message of their own; 0 = one run a layer."""
    message_seconds: Seconds | None = None
    """Time to post one message, None for the link's."""
    posting_threads: int = Field(default=1, ge=1, le=64)
    """Threads that post messages side by side."""
    posts_while_sending: bool = True
    """Posting overlaps the wire (the slower counts) or precedes it (they add)."""
    outstanding_messages: int | None = Field(default=None, ge=1, le=1_048_576)
    """Messages in flight on a lane before the engine waits for the oldest; None for as many as there are."""
    gathers: bool = False
    """Copies blocks into one run a layer before sending and apart afterwards, one pass through device memory a side."""
    host_bounce: bool = False
    """Goes through host memory: a copy from the device, the wire, a copy to the device, one after the other."""
    max_lanes_per_gpu: int | None = Field(default=None, ge=1, le=64)
    """Rails one rank may use."""
    staging_copies: int = Field(default=0, ge=0, le=4)
    """Extra passes of the bytes through device memory, both sides together."""
    mla_copies: Literal["per-rank", "single", "split"]
    """One latent copy for each decode rank, one for a single reader, or one split over the lanes."""
    first_token: Literal["prefill", "decode"]
    """Side that computes the first token the user sees."""
    released_by: Literal["prefill", "decode"]
    """Side that sends it to the user."""
    skips_held: bool
    """Leaves out blocks that decode already holds."""
    early_prefix: bool = False
    """Sends the prefix that prefill already holds before the first new token is computed."""
    keeps_all_chunked: bool = False
    """Keeps every token of chunked local attention (vLLM's default for Llama 4)."""
    handoff_seconds: Seconds
    """Fixed time of the engine's own dispatch and notification."""
    admission_seconds: Seconds
    """Fixed time until decode admits the request."""
    handshake_seconds: Seconds
    """Once for each pair of instances, on first contact; not part of a warm handoff."""
    unequal_tp: Literal["blocks", "tokens", "refused"] = "blocks"
    """Heads between sides of different TP: a slice of every block, a slice of every token, or not at all."""
    gathers_copied_heads: bool = True
    """Lets fewer decode ranks read from prefill ranks that hold copies of KV heads."""
    nvfp4_equal_tp: bool = False
    """Refuses an NVFP4 cache where TP differs."""
    same_node_only: bool = False
    """Needs both sides inside one node or NVLink domain."""
    serial_below_tokens: int = Field(default=0, ge=0, le=1_048_576)
    """Sends shorter prompts whole after prefill, whatever its overlap."""
    handoff_seconds_on: dict[str, Seconds] = Field(default_factory=dict)
    """Fixed time of dispatch where it was measured on a prefill accelerator other than that of `handoff_seconds`, by id."""
    notes: str = ""
    """What a reader should know."""
