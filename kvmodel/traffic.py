"""Many handoffs on the same links, and handoffs that fail: what one is asked beside its scenario."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from kvmodel.scenario import Inputs


class Traffic(Inputs):
    """How many handoffs there are, what they share, and what happens to those that fail."""

    in_flight: int = Field(8, ge=1, le=4096, title="Handoffs in flight")
    """Handoffs into one decode instance at the same time, from however many prefill instances."""
    senders: int = Field(1, ge=1, le=1024, title="Prefill instances sending")
    """Prefill instances that hand off to one decode instance, each as fast as it prefills."""
    fabric: Literal["aligned", "hashed"] = Field("aligned", title="Fabric")
    """aligned: each lane has a path of its own, as on rail-optimised or packet-spraying fabrics; hashed: each lane
    takes one of as many uplinks by a hash of its addresses, and the busiest uplink decides."""
    decode_pool_gbytes: float | None = Field(None, gt=0, le=10_000, title="Decode pool, GB a GPU")
    """Memory of each decode accelerator for arriving caches, 1 GB = 1e9 bytes; none takes what weights and the decode batch leave."""
    failure_probability: float = Field(0.01, ge=0, le=0.99, title="Failure probability")
    """Share of transfer attempts that fail, each at a moment spread evenly over its bytes."""
    detection_seconds: float = Field(5.0, ge=0, le=100_000, title="Detection, s")
    """From the failure until decode knows of it. vLLM and SGLang send a heartbeat every 5 s
    (vllm docs/design/nixl_kv_cache_lease.md, sglang environ.py; checked 2026-11-29)."""
    recovery: Literal["retry", "resume", "recompute"] = Field("retry", title="After a failure")
    """retry: send everything again; resume: send what is missing; recompute: decode prefills the prompt itself."""
    lease_seconds: float = Field(30.0, ge=0, le=100_000, title="Lease, s")
    """How long prefill keeps a cache that nobody reads or renews: 30 s in vLLM, 480 s before it had leases
    (https://github.com/vllm-project/vllm/blob/main/docs/design/nixl_kv_cache_lease.md; checked 2026-11-29)."""
