"""Kernels an engine launches for one layer: what a pass costs however few tokens it has."""

from __future__ import annotations

from kvmodel.records.model import Compressed, Dense, LayerGroup, Linear, Mla, Moe, NoAttention


def layer_kernels(group: LayerGroup) -> int:
    """Kernels of one layer, all-reduces apart.

    Grouped-query attention with a dense block takes nine: norm, QKV projection, rotation with the cache
    write, attention, output projection; norm, gate and up, activation, down.

    >>> from kvmodel.registry import find_model
    >>> layer_kernels(find_model("llama-3-70b").groups[0]), layer_kernels(find_model("deepseek-v3").groups[1])
    (9, 20)
    """
    attention = _attention_kernels(group)
    beside = 5 if group.state else 0
    return attention + beside + (4 if group.indexer else 0) + _ffn_kernels(group)


def _attention_kernels(group: LayerGroup) -> int:
    """Latent attention adds the low-rank projections, their norms and the absorbed products."""
    a = group.attention
    if isinstance(a, NoAttention):
        return 0
    return 9 if isinstance(a, Mla | Compressed) else 6 if isinstance(a, Linear) else 5


def _ffn_kernels(group: LayerGroup) -> int:
    """Routed experts add the router, the sort by expert, and sending tokens to experts and back."""
    ffn = group.ffn
    if isinstance(ffn, Moe):
        return 8 + (3 if ffn.shared_inter else 0)
    return 4 if isinstance(ffn, Dense) else 0
