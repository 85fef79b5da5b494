"""The matrix operations of one layer by its kind: each with its shape and what it reads, writes and keeps.

Multiply and add are two FLOP. Attention is fused: scores stay on the chip. Norms, rotations, activations
and residuals are left out. Projections that engines fuse (Q with K and V, gate with up) read their input once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kvmodel.cache import LayerCache
from kvmodel.records.model import Chunked, Compressed, Dense, Full, LayerGroup, Linear, Mla, Moe, Shared, Sliding

Over = Literal["weights", "keys", "index keys", "seen", "window", "state"]
"""What multiplies a row: weights, all keys, an indexer's keys, the keys a window or top-k leaves, a window's rows, a state."""
Part = Literal["project", "attend", "feed forward"]


@dataclass(frozen=True, slots=True)
class Matrix:
    """One operation: rows of `inner` elements times `inner` x `columns`, `times` side by side."""

    name: str
    part: Part
    inner: int
    """Elements a row brings to each product."""
    columns: int
    """Elements of the result; 1 where the other side is keys, a column for each."""
    times: float = 1.0
    """Products side by side: heads, groups, experts a token visits."""
    over: Over = "weights"
    reads: float = 0.0
    """Elements of activations a row reads."""
    writes: float = 0.0
    """Elements of activations a row writes."""
    stores: float = 0.0
    """Bytes a row adds to the cache."""
    key_bytes: float = 0.0
    """Bytes of cache read for each key."""
    fixed_bytes: float = 0.0
    """Bytes of state read and written for each request."""
    experts: int = 0
    """Experts that hold weights like these; 0 for weights that every token passes."""

    @property
    def row_flop(self) -> float:
        """FLOP of one row, or of one row and one key."""
        return 2.0 * self.inner * self.columns * self.times

    @property
    def learned(self) -> bool:
        """Whether a row is multiplied with weights."""
        return self.over == "weights"

    @property
    def parameters(self) -> int:
        """Parameters, all experts counted; 0 where nothing is learned."""
        if not self.learned:
            return 0
        return round(self.inner * self.columns * (self.experts or self.times))


def layer_matrices(group: LayerGroup, hidden: int, cache: LayerCache, *, absorbed: bool) -> tuple[Matrix, ...]:
    """Operations of one layer in order. `cache` is one copy of it; `absorbed` is how a latent attends in decode."""
    beside = _state(group.state, hidden, cache, "state, ") if group.state else ()
    return (*_attention(group, hidden, cache, absorbed), *beside, *_feed_forward(group, hidden))


def _attention(group: LayerGroup, hidden: int, cache: LayerCache, absorbed: bool) -> tuple[Matrix, ...]:
    a = group.attention
    if isinstance(a, Mla):
        return (*_latent(a, group, hidden, cache, absorbed), *_indexer(group, hidden, a.q_rank, 1), _out(a.q_heads * a.v_dim, hidden))
    if isinstance(a, Compressed):
        return _compressed(a, group, hidden, cache)
    if isinstance(a, Linear):
        return _state(a, hidden, cache, "")
    if isinstance(a, Full | Sliding | Chunked | Shared):
        heads = _heads(a, bool(group.indexer), hidden, cache)
        return (*heads, *_indexer(group, hidden, 0, 1), _out(a.q_heads * a.v_dim, hidden))
    return ()


def _out(inner: int, hidden: int) -> Matrix:
    return Matrix("output projection", "project", inner, hidden, reads=inner, writes=hidden)


def _heads(a: Full | Sliding | Chunked | Shared, sparse: bool, hidden: int, cache: LayerCache) -> tuple[Matrix, ...]:
    """Grouped-query attention; a shared layer has no K and V of its own."""
    gate = 2 if a.output_gate else 1
    query = a.q_heads * a.k_dim * gate
    row, key = cache.growing + cache.capped, a.k_dim / (a.k_dim + a.v_dim)
    seen: Over = "seen" if sparse or not isinstance(a, Full) else "keys"
    projections = [Matrix("Q projection" if gate == 1 else "Q and gate projection", "project", hidden, query, reads=hidden, writes=query)]
    if not isinstance(a, Shared):
        projections += [
            Matrix("K projection", "project", hidden, a.kv_heads * a.k_dim, stores=row * key),
            Matrix("V projection", "project", hidden, a.kv_heads * a.v_dim, stores=row * (1 - key)),
        ]
    return (
        *projections,
        Matrix("attention scores", "attend", a.k_dim, 1, a.q_heads, seen, reads=a.q_heads * a.k_dim, key_bytes=row * key),
        Matrix("attention values", "attend", a.v_dim, 1, a.q_heads, seen, writes=a.q_heads * a.v_dim, key_bytes=row * (1 - key)),
    )


def _latent(a: Mla, group: LayerGroup, hidden: int, cache: LayerCache, absorbed: bool) -> tuple[Matrix, ...]:
    """Latent attention: the latent is expanded into K and V, or queries are taken into the latent instead (`absorbed`)."""
    head, heads = a.nope + a.rope, a.q_heads
    seen: Over = "seen" if group.indexer else "keys"
    down = Matrix("Q down", "project", hidden, a.q_rank, reads=hidden, writes=a.q_rank)
    up = Matrix("Q up", "project", a.q_rank or hidden, heads * head, reads=a.q_rank or hidden, writes=heads * head)
    row = Matrix("latent and rope", "project", hidden, a.latent + a.rope, stores=cache.growing)
    query = ((down, up) if a.q_rank else (up,)) + (row,)
    if absorbed:
        return (
            *query,
            Matrix("Q into the latent", "project", a.nope, a.latent, heads, reads=heads * a.nope, writes=heads * a.latent),
            Matrix("attention scores", "attend", a.latent + a.rope, 1, heads, seen, heads * (a.latent + a.rope), key_bytes=cache.growing),
            Matrix("attention values", "attend", a.latent, 1, heads, seen, writes=heads * a.latent),
            Matrix("V out of the latent", "project", a.latent, a.v_dim, heads, reads=heads * a.latent, writes=heads * a.v_dim),
        )
    return (
        *query,
        Matrix("K from the latent", "project", a.latent, heads * a.nope, writes=heads * a.nope, key_bytes=cache.growing),
        Matrix("V from the latent", "project", a.latent, heads * a.v_dim, writes=heads * a.v_dim),
        Matrix("attention scores", "attend", head, 1, heads, seen, reads=heads * (head + a.nope)),
        Matrix("attention values", "attend", a.v_dim, 1, heads, seen, reads=heads * a.v_dim, writes=heads * a.v_dim),
    )


def _indexer(group: LayerGroup, hidden: int, q_rank: int, ratio: int) -> tuple[Matrix, ...]:
    """Sparse attention's indexer: scores every key with small heads, the attention then reads the best."""
    i = group.indexer
    if i is None:
        return ()
    width, query = q_rank or hidden, i.heads * i.dim
    return (
        Matrix("index Q", "project", width, query, reads=width, writes=query),
        Matrix("index K", "project", hidden, i.dim, stores=i.bytes_per_token),
        Matrix("index weights", "project", hidden, i.heads, writes=i.heads),
        Matrix("index scores", "attend", i.dim, 1, i.heads / ratio, "index keys", reads=query + i.heads, key_bytes=i.bytes_per_token),
    )


def _compressed(a: Compressed, group: LayerGroup, hidden: int, cache: LayerCache) -> tuple[Matrix, ...]:
    """A window of whole rows and one row for every `ratio` tokens; keys and values are the same row."""
    query, widths = a.q_heads * a.row, 2 * (2 if a.overlap else 1)
    seen: Over = "seen" if group.indexer else "keys"
    down = Matrix("Q down", "project", hidden, a.q_rank, reads=hidden, writes=a.q_rank)
    up = Matrix("Q up", "project", a.q_rank or hidden, query, reads=a.q_rank or hidden, writes=query)
    parts = [*((down, up) if a.q_rank else (up,)), Matrix("row", "project", hidden, a.row, stores=cache.capped)]
    if a.ratio:
        parts.append(
            Matrix("merged rows", "project", hidden, widths * a.row, stores=cache.growing, fixed_bytes=cache.tail * cache.tail_tokens)
        )
    parts += [*_indexer(group, hidden, a.q_rank, a.ratio or 1)]
    parts.append(Matrix("window attention", "attend", a.row, 2, a.q_heads, "window", query, query, key_bytes=cache.capped))
    if a.ratio:
        parts.append(Matrix("merged attention", "attend", a.row, 2, a.q_heads / a.ratio, seen, key_bytes=cache.growing))
    if not a.out_rank:
        return (*parts, _out(query, hidden))
    inner = a.out_groups * a.out_rank
    return (
        *parts,
        Matrix("output down", "project", query // a.out_groups, a.out_rank, a.out_groups, reads=query, writes=inner),
        _out(inner, hidden),
    )


def _state(a: Linear, hidden: int, cache: LayerCache, prefix: str) -> tuple[Matrix, ...]:
    """A recurrent state: decayed, updated and read by every row."""
    inner, (mixed, first) = a.heads * a.head_dim, _mixed(a)
    parts = [Matrix(f"{prefix}input projection", "project", hidden, first, reads=hidden, writes=first)]
    if a.conv_kernel and mixed:
        parts.append(Matrix(f"{prefix}convolution", "project", a.conv_kernel, 1, mixed, reads=mixed, writes=mixed))
    update = Matrix(
        f"{prefix}state update", "attend", a.head_dim, a.state_dim, 3 * a.heads, "state", first, inner, fixed_bytes=2 * cache.state
    )
    out = Matrix(f"{prefix}output projection", "project", inner, hidden, reads=inner, writes=hidden)
    return (*parts, *_gates(a, hidden, prefix), update, out)


def _mixed(a: Linear) -> tuple[int, int]:
    """(channels of the convolution, columns of the input projection)."""
    inner, keys = a.heads * a.head_dim, 2 * a.groups * a.state_dim
    return {
        "mamba2": (inner + keys, 2 * inner + keys + a.heads),
        "mamba1": (inner, 2 * inner),
        "gdn": (keys + inner, keys + 2 * inner + 2 * a.heads),
        "kda": (3 * inner, 3 * inner + a.heads),
        "conv": (inner, 3 * inner),
        "lightning": (0, 4 * inner),
    }[a.variant]


def _gates(a: Linear, hidden: int, prefix: str) -> tuple[Matrix, ...]:
    """Projections beside the input's: step sizes of Mamba-1, decay and output gates of Kimi Delta Attention."""
    inner = a.heads * a.head_dim
    if a.variant == "mamba1":
        columns = 2 * a.state_dim + 2 * -(-hidden // 16)
        return (Matrix(f"{prefix}step sizes, B and C", "project", inner, columns, reads=inner, writes=columns),)
    if a.variant == "kda":
        down = Matrix(f"{prefix}gates down", "project", hidden, a.head_dim, 2, reads=hidden, writes=2 * a.head_dim)
        return (down, Matrix(f"{prefix}gates up", "project", a.head_dim, inner, 2, reads=2 * a.head_dim, writes=2 * inner))
    return ()


def _feed_forward(group: LayerGroup, hidden: int) -> tuple[Matrix, ...]:
    """A dense block, or router, shared expert and routed experts."""
    ffn = group.ffn
    if isinstance(ffn, Dense):
        return _block("FFN ", hidden, ffn.inter, ffn.gated, 1, 0)
    if not isinstance(ffn, Moe):
        return ()
    width, parts = ffn.latent or hidden, [Matrix("router", "feed forward", hidden, ffn.experts, reads=hidden, writes=ffn.experts)]
    if ffn.shared_inter:
        parts += _block("shared expert ", hidden, ffn.shared_inter, ffn.gated, 1, 0)
    if ffn.latent:
        parts.append(Matrix("into the experts' width", "feed forward", hidden, ffn.latent, reads=hidden, writes=ffn.latent))
    parts += _block("experts' ", width, ffn.inter, ffn.gated, ffn.top_k, ffn.experts)
    if ffn.latent:
        parts.append(Matrix("out of the experts' width", "feed forward", ffn.latent, hidden, reads=ffn.latent, writes=hidden))
    return tuple(parts)


def _block(name: str, width: int, inter: int, gated: bool, times: int, experts: int) -> tuple[Matrix, ...]:
    """Gate, up and down; each token visits `times` such blocks of `experts`."""
    part: Part = "feed forward"
    read, wide = times * width, times * inter
    gate = (Matrix(f"{name}gate", part, width, inter, times, reads=read, writes=wide, experts=experts),) if gated else ()
    up = Matrix(f"{name}up", part, width, inter, times, reads=0 if gated else read, writes=wide, experts=experts)
    return (*gate, up, Matrix(f"{name}down", part, inter, width, times, reads=wide, writes=read, experts=experts))
