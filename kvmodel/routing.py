r"""Tokens on their way to experts and back, where every rank is an attention replica with tokens of its own.

A token is sent once to each other node that holds an expert of it, over the NICs of its own rank, and there from
rank to rank over the node's fabric while more arrive; its results come back the same way. With k experts drawn from
n nodes (or p ranks), the copies are

.. math:: far = (n - 1)\,(1 - (1 - 1/n)^k), \qquad near = (p - 1)\,(1 - (1 - 1/p)^k)

each in FP8 there (BF16 where weights are) and BF16 back, as DeepEP does, which reaches the NICs' rate
(https://github.com/deepseek-ai/DeepEP). Routing limited to some nodes, as DeepSeek's to four, sends fewer beyond them.
"""

from __future__ import annotations

from kvmodel.placement import Placement
from kvmodel.records.model import Moe


def copies(holders: int, visited: int) -> float:
    """Expected holders, one's own apart, that `visited` experts drawn at random fall on.

    >>> round(copies(4, 8), 2), copies(1, 8)
    (2.7, 0.0)
    """
    return (holders - 1) * (1 - (1 - 1 / holders) ** visited)


def routed_seconds(place: Placement, ffn: Moe) -> float:
    """Seconds of one layer for each token of the batch, evenly over the ranks, there and back."""
    gpu, ranks = place.accelerator, place.expert_shards
    there = 2.0 if place.matmul_dtype == "bf16" else 1.0
    bytes_ = (ffn.latent or place.model.hidden) * (there + 2.0)
    far = copies(-(-ranks // gpu.gpus_per_node), ffn.top_k) * bytes_ / (gpu.nic_bandwidth * gpu.nics_per_gpu)
    near = copies(ranks, ffn.top_k) * bytes_ / gpu.scale_up_bandwidth
    return max(far, near) / place.attention_dp
