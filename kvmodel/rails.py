"""Links used side by side: those an engine takes by itself, and those that two sides have."""

from __future__ import annotations

from kvmodel.records.engine import Engine
from kvmodel.records.hardware import Accelerator, Link


def derived_lanes(
    link: Link,
    engine: Engine,
    sender: Accelerator,
    receiver: Accelerator,
    sender_tp: int,
    receiver_tp: int,
    *,
    one_reader: bool,
    nics_per_gpu: float | None = None,
) -> int:
    """Lanes an engine would use side by side: the NICs of the narrower side.

    One NIC a GPU multiplies with TP; a node's or a site's pipe does not; a cache that a single rank
    reads travels on that rank's lane. `nics_per_gpu` stands in place of the usual nodes'.
    """
    if link.scope == "site" or one_reader:
        return 1
    if link.scope == "node":
        return max(1, min(-(-sender_tp // sender.gpus_per_node), -(-receiver_tp // receiver.gpus_per_node)))
    nics = min(sender.nics_per_gpu, receiver.nics_per_gpu) if nics_per_gpu is None else nics_per_gpu
    rails = 1.0 if link.scope == "same-node" else nics
    rails = min(rails, engine.max_lanes_per_gpu or rails)
    return max(1, int(min(sender_tp, receiver_tp) * rails))


def offered_lanes(link: Link, engine: Engine, gpu: Accelerator, *, gpus: int, ranks: int, nics_per_gpu: float | None = None) -> int:
    """Lanes that one side has: all NICs of its nodes, as far as its ranks may use them; one a node or a site where the link is.

    >>> from kvmodel.registry import accelerators, engines, links
    >>> h100, ideal = accelerators()["h100-sxm"], engines()["ideal"]
    >>> [offered_lanes(links()[name], ideal, h100, gpus=8, ranks=8) for name in ("ib-ndr-400", "ethernet-100", "wan-100")]
    [8, 1, 1]
    """
    nodes = -(-gpus // gpu.gpus_per_node)
    if link.scope == "site":
        return 1
    if link.scope == "node":
        return nodes
    if link.scope == "same-node":
        return ranks
    nics = nodes * gpu.gpus_per_node * (gpu.nics_per_gpu if nics_per_gpu is None else nics_per_gpu)
    return max(1, int(min(nics, ranks * engine.max_lanes_per_gpu) if engine.max_lanes_per_gpu else nics))
