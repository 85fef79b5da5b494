"""Parameters of a model, counted from its dimensions."""

from __future__ import annotations

from dataclasses import dataclass

from kvmodel.records.model import Compressed, Dense, Indexer, LayerGroup, Linear, Mla, ModelSpec, Moe, NoAttention, Shared


@dataclass(frozen=True, slots=True)
class LayerParameters:
    """Parameters of one layer by how a token uses them."""

    attention: int
    """Projections of the attention or the state, with its indexer."""
    ffn: int
    """What every token passes through: a dense block, or router, shared expert and projections."""
    expert: int = 0
    """One routed expert."""
    experts: int = 0
    """Routed experts."""
    top_k: int = 0
    """Routed experts a token visits."""

    @property
    def total(self) -> int:
        """All parameters."""
        return self.attention + self.ffn + self.experts * self.expert

    @property
    def active(self) -> int:
        """Parameters one token is multiplied with."""
        return self.attention + self.ffn + self.top_k * self.expert


def layer_parameters(group: LayerGroup, hidden: int) -> LayerParameters:
    """Parameters of one layer of a group; norms and biases are left out (under 0.1 %)."""
    attention = attention_parameters(group, hidden)
    ffn = group.ffn
    if isinstance(ffn, Dense):
        return LayerParameters(attention, (3 if ffn.gated else 2) * hidden * ffn.inter)
    if isinstance(ffn, Moe):
        width = ffn.latent or hidden
        matrices = 3 if ffn.gated else 2
        every = hidden * ffn.experts + matrices * hidden * ffn.shared_inter + (2 * hidden * ffn.latent)
        return LayerParameters(attention, every, matrices * width * ffn.inter, ffn.experts, ffn.top_k)
    return LayerParameters(attention, 0)


def attention_parameters(group: LayerGroup, hidden: int) -> int:
    """Parameters of one layer's attention or state block."""
    beside = _linear(group.state, hidden) if group.state else 0
    return beside + _attention(group, hidden)


def _attention(group: LayerGroup, hidden: int) -> int:
    a = group.attention
    if isinstance(a, NoAttention):
        return 0
    if isinstance(a, Compressed):
        return _compressed(a, group.indexer, hidden)
    if isinstance(a, Mla):
        head = a.nope + a.rope
        query = hidden * a.q_rank + a.q_rank * a.q_heads * head if a.q_rank else hidden * a.q_heads * head
        latent = hidden * (a.latent + a.rope) + a.latent * a.q_heads * (a.nope + a.v_dim)
        return query + latent + a.q_heads * a.v_dim * hidden + _indexer(group.indexer, hidden, a.q_rank)
    if isinstance(a, Linear):
        return _linear(a, hidden)
    query = a.q_heads * a.k_dim * (2 if a.output_gate else 1)
    stored = 0 if isinstance(a, Shared) else a.kv_heads * (a.k_dim + a.v_dim)
    return hidden * (query + stored + a.q_heads * a.v_dim) + _indexer(group.indexer, hidden, 0)


def _indexer(indexer: Indexer | None, hidden: int, q_rank: int) -> int:
    if indexer is None:
        return 0
    return (q_rank or hidden) * indexer.heads * indexer.dim + hidden * (indexer.dim + indexer.heads)


def _compressed(a: Compressed, indexer: Indexer | None, hidden: int) -> int:
    heads = a.q_heads * a.row
    query = hidden * a.q_rank + a.q_rank * heads if a.q_rank else hidden * heads
    out = heads * a.out_rank + a.out_groups * a.out_rank * hidden if a.out_rank else heads * hidden
    merged = 2 * (2 if a.overlap else 1) * hidden * a.row if a.ratio else 0
    return query + hidden * a.row + out + merged + _indexer(indexer, hidden, a.q_rank)


def _linear(a: Linear, hidden: int) -> int:
    inner = a.heads * a.head_dim
    if a.variant == "mamba2":
        mixed = inner + 2 * a.groups * a.state_dim
        return hidden * (inner + mixed + a.heads) + mixed * a.conv_kernel + inner * hidden
    if a.variant == "mamba1":
        rank = -(-hidden // 16)
        return hidden * 2 * a.heads + a.heads * (a.conv_kernel + 2 * a.state_dim + 2 * rank) + a.heads * hidden
    if a.variant == "gdn":
        keys = 2 * a.groups * a.state_dim
        return hidden * (keys + 2 * inner + 2 * a.heads) + (keys + inner) * a.conv_kernel + inner * hidden
    if a.variant == "kda":
        gates = 2 * (hidden * a.head_dim + a.head_dim * inner)
        return hidden * (3 * inner + a.heads) + 3 * inner * a.conv_kernel + gates + inner * hidden
    if a.variant == "conv":
        return 4 * hidden * inner + inner * a.conv_kernel
    return hidden * inner * 5


@dataclass(frozen=True, slots=True)
class ModelParameters:
    """Parameters of a whole model."""

    total: int
    """All, with embedding and LM head."""
    active: int
    """Those one token is multiplied with or looked up in: embedding and LM head counted whole."""
    embedding: int
    """The embedding table."""
    head: int
    """The LM head, 0 where it is the embedding."""


def model_parameters(model: ModelSpec) -> ModelParameters:
    """Parameters of a model from its dimensions.

    >>> from kvmodel.registry import find_model
    >>> round(model_parameters(find_model("llama-3-70b")).total / 1e9, 1)
    70.6
    """
    embedding = model.vocab * model.hidden
    head = 0 if model.tied_embeddings else embedding
    layers = [(group.count, layer_parameters(group, model.hidden)) for group in model.groups]
    return ModelParameters(
        total=embedding + head + sum(count * layer.total for count, layer in layers),
        active=embedding + head + sum(count * layer.active for count, layer in layers),
        embedding=embedding,
        head=head,
    )
