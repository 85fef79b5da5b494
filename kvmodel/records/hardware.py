"""Accelerators and links: datasheet peaks, kept apart from what is achieved of them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from kvmodel.records.base import Bytes, BytesPerSecond, FlopPerSecond, Seconds, Share, Sourced


class Accelerator(Sourced):
    """One accelerator in its usual node."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")
    """As people type it."""
    name: str
    """As its makers write it."""
    vendor: str
    """Maker."""
    peak_bf16: FlopPerSecond
    """Dense BF16 peak of the tensor cores."""
    peak_fp8: FlopPerSecond | None = None
    """Dense FP8 peak, None where FP8 is not multiplied natively."""
    peak_nvfp4: FlopPerSecond | None = None
    """Dense FP4 peak, None where there is none."""
    hbm_bandwidth: BytesPerSecond
    """Device memory, read."""
    hbm_bytes: Bytes
    """Device memory, as sold."""
    hbm_visible: Bytes
    """What the driver leaves to programs. Vendors' GB are 2^30 bytes for most accelerators and 10^9 for some."""
    hbm_visible_source: str = Field(min_length=1)
    """Where that figure was read."""
    scale_up_bandwidth: BytesPerSecond
    """To the other accelerators of the node (NVLink, Infinity Fabric, PCIe), one direction."""
    scale_up_quoted: str
    """The figure vendors quote for it, which counts both directions."""
    nic_bandwidth: BytesPerSecond
    """One NIC of its usual node, one direction."""
    nics_per_gpu: float = Field(gt=0, le=8)
    """NICs an accelerator has in its usual node."""
    host_bandwidth: BytesPerSecond
    """To host memory, nominal, one direction."""
    host_quoted: str
    """What carries it."""
    gpus_per_node: int = Field(ge=1, le=1024)
    """Accelerators in its usual node."""
    derates: str
    """Id of the achieved-fraction rows in `data/derates.toml` that apply."""


class Link(Sourced):
    """What the KV cache crosses between the two sides."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    """As people type it."""
    name: str
    """As the page writes it."""
    short: str
    """As a chart label writes it."""
    bandwidth: BytesPerSecond
    """Nominal, one direction, of one lane."""
    quoted: str
    """The vendor's figure, with what it counts."""
    latency: Seconds
    """From the last byte sent to the last byte usable."""
    message_seconds: Seconds
    """Time to post one message where the engine states no cost of its own."""
    achieved: Share
    """Fraction of nominal that large transfers reach, as published."""
    achieved_source: str = Field(min_length=1)
    """Measurement that fraction comes from, or that it is assumed."""
    scope: Literal["gpu", "node", "site", "same-node"]
    """Lanes: one NIC a GPU (lanes multiply), one pipe a node, one pipe a site, or the node's own fabric."""
