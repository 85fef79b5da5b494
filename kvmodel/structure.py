"""What a plan depends on: the scenario fields that are names, formats, degrees and choices, not amounts."""

from __future__ import annotations

from typing import NamedTuple

from kvmodel.records.model import ModelSpec


class Structure(NamedTuple):
    """Scenario fields a plan depends on, under their names; the other fields may be arrays."""

    model: str | ModelSpec
    kv_dtype: str
    weight_dtype: str
    wire_dtype: str
    prefill_accelerator: str
    decode_accelerator: str
    prefill_tp: int
    decode_tp: int
    prefill_pp: int
    decode_pp: int
    ep: int
    prefill_attention_dp: int
    decode_attention_dp: int
    link: str
    lanes: int | str
    engine: str
    overlap: str | None
    group_layers: int | None
    block_tokens: int | None
    chunk_tokens: int | None
    achieved: float | None
    latency_seconds: float | None
    message_seconds: float | None
    posting_threads: int | None
    outstanding_messages: int | None
    kv_split: int | None
    fragmentation: float | None
    cross_layer: str | None
    gather: str | None
    staging_copies: int | None
    host_bounce: str | None
    max_lanes_per_gpu: int | None
    nics_per_gpu: float | None
    mla_copies: str | None
    handoff_seconds: float | None
    admission_seconds: float | None
    handshake_seconds: float | None
    contact: str
    posts_while_sending: str | None
    skips_held: str | None
    early_prefix: str | None
    unequal_tp: str | None
    first_token: str | None
    released_by: str | None
    direction: str | None
    serial_below_tokens: int | None
    nominal_link: str | None
    keeps_all_chunked: str | None
    gathers_copied_heads: str | None
    nvfp4_equal_tp: str | None
    same_node_only: str | None


STRUCTURE = Structure._fields
