"""A model as the cost model sees it: layers, what each keeps in cache, and its matrix sizes.

A layer group is a number of layers alike; `order` says how the groups interleave, because the
timeline of a handoff depends on which layer is ready when.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field, model_validator

from kvmodel.dtypes import StoredDtype
from kvmodel.records.base import Parameters, Record, Sourced

MAX_CONTEXT = 1_000_000_000
"""Longest context a model may state."""

Count = Annotated[int, Field(ge=1, le=10_000_000)]
CountOrZero = Annotated[int, Field(ge=0, le=10_000_000)]


class _Heads(Record):
    q_heads: Count
    """Query heads."""
    kv_heads: Count
    """Key/value heads stored; fewer than query heads under GQA, one under MQA."""
    k_dim: Count
    """Elements of one key head."""
    v_dim: Count
    """Elements of one value head."""
    output_gate: bool = False
    """The query projection also makes an output gate of the same size (Qwen3-Next)."""


class Full(_Heads):
    """Every query sees every earlier token: K and V of all tokens are kept."""

    kind: Literal["full"] = "full"


class Sliding(_Heads):
    """Each query sees the last `window` tokens: no more than those are kept."""

    kind: Literal["sliding"] = "sliding"
    window: Count
    """Tokens kept."""


class Chunked(_Heads):
    """Each query sees its own chunk of the prompt (Llama 4)."""

    kind: Literal["chunked"] = "chunked"
    chunk: Count
    """Tokens a chunk holds."""


class Shared(_Heads):
    """Attends to another layer's cache and owns none (Gemma 3n)."""

    kind: Literal["shared"] = "shared"
    window: Count | None = None
    """Tokens seen, None for all."""


class Mla(Record):
    """Multi-head latent attention: one compressed vector a token serves all heads."""

    kind: Literal["mla"] = "mla"
    q_heads: Count
    """Query heads."""
    latent: Count
    """Elements of the compressed vector (`kv_lora_rank`)."""
    rope: CountOrZero
    """Rotary elements stored beside it (`qk_rope_head_dim`)."""
    nope: Count
    """Elements of a query or key head without rotation (`qk_nope_head_dim`)."""
    v_dim: Count
    """Elements of a value head (`v_head_dim`)."""
    q_rank: CountOrZero = 0
    """Rank of the query compression (`q_lora_rank`), 0 for none."""


class Compressed(Record):
    """A window of whole rows, and of all earlier tokens one row for every `ratio` (DeepSeek V4).

    Keys and values are one row that serves all heads, whole on every rank.
    """

    kind: Literal["compressed"] = "compressed"
    q_heads: Count
    """Query heads."""
    row: Count
    """Elements of one cached row (`head_dim`), rotary part included."""
    window: Count
    """Tokens whose rows are kept whole."""
    ratio: CountOrZero = 0
    """Tokens merged into one row, 0 where only the window is kept."""
    overlap: bool = False
    """Merged groups overlap by half, so the compressor keeps twice `ratio` tokens (ratio 4)."""
    q_rank: CountOrZero = 0
    """Rank of the query compression (`q_lora_rank`), 0 for none."""
    out_groups: Count = 1
    """Groups of heads projected together on the way out (`o_groups`)."""
    out_rank: CountOrZero = 0
    """Rank of the output compression (`o_lora_rank`), 0 for none."""


class Linear(Record):
    """A layer with a state of fixed size in place of a growing cache."""

    kind: Literal["linear"] = "linear"
    variant: Literal["mamba2", "mamba1", "gdn", "kda", "lightning", "conv"]
    """State equations: Mamba-2, Mamba-1, Gated DeltaNet, Kimi Delta Attention, lightning attention, or
    a short convolution alone (LFM2)."""
    heads: Count
    """State (value) heads; channels for Mamba-1 and the short convolution."""
    head_dim: Count
    """Elements of a value head; 1 for Mamba-1 and the short convolution."""
    state_dim: Count
    """State size: SSM state for Mamba, key dimension for the others."""
    groups: Count = 1
    """Groups of B and C for Mamba-2, key heads for Gated DeltaNet."""
    conv_kernel: CountOrZero = 0
    """Taps of the causal convolution, 0 for none; one less is kept."""
    state_dtype: StoredDtype = "fp32"
    """Format of the recurrent state."""
    conv_dtype: StoredDtype = "bf16"
    """Format of the convolution's state."""


class NoAttention(Record):
    """A layer that keeps nothing of the prompt (the expert layers of Nemotron-H)."""

    kind: Literal["none"] = "none"


Attention = Annotated[Full | Sliding | Chunked | Shared | Mla | Compressed | Linear | NoAttention, Field(discriminator="kind")]


class Indexer(Record):
    """Key cache of a sparse-attention indexer: replicated on each rank, its own format."""

    bytes_per_token: float = Field(gt=0, le=1_000_000)
    """Bytes a token takes in one layer, whatever the KV dtype; a share of a row where rows are merged."""
    heads: Count
    """Index query heads."""
    dim: Count
    """Elements of an index head."""
    top_k: Count
    """Tokens the attention then reads."""


class Dense(Record):
    """A feed-forward block."""

    kind: Literal["dense"] = "dense"
    inter: Count
    """Intermediate size."""
    gated: bool = True
    """Three matrices (gate, up, down) or two (up, down)."""


class Moe(Record):
    """A mixture of experts, with an optional expert that every token visits."""

    kind: Literal["moe"] = "moe"
    experts: Count
    """Routed experts."""
    top_k: Count
    """Experts a token visits."""
    inter: Count
    """Intermediate size of one expert."""
    shared_inter: CountOrZero = 0
    """Intermediate size of the shared expert, 0 for none."""
    gated: bool = True
    """Three matrices an expert or two."""
    latent: CountOrZero = 0
    """Experts work on a projection of this width (Nemotron 3), 0 for the hidden size."""


Ffn = Annotated[Dense | Moe, Field(discriminator="kind")]


class LayerGroup(Record):
    """`count` layers alike."""

    name: str = Field(default="layers", pattern=r"^[a-z][a-z0-9_-]*$")
    """What `order` calls them."""
    count: Count
    """Layers of this kind."""
    attention: Attention
    """What they attend with and keep."""
    ffn: Ffn | None = None
    """Their feed-forward block."""
    indexer: Indexer | None = None
    """Their sparse-attention indexer."""
    state: Linear | None = None
    """A state they keep beside their attention (Falcon-H1, Zamba2)."""


class ModelSpec(Sourced):
    """A decoder-only language model by its dimensions."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    """As people type it, lower case."""
    name: str
    """As its makers write it."""
    family: str
    """Makers' family, for search."""
    aliases: tuple[str, ...] = ()
    """Other names, Hugging Face repositories among them."""
    hidden: Count
    """Width of the residual stream."""
    vocab: CountOrZero
    """Rows of the embedding."""
    tied_embeddings: bool = False
    """The LM head is the embedding."""
    dtype: StoredDtype = "bf16"
    """Format of activations."""
    kv_dtype: StoredDtype | None = None
    """Format of the cache when the configuration states one; else that of activations."""
    weight_dtype: StoredDtype = "bf16"
    """Format in which the linear layers are published."""
    expert_dtype: StoredDtype | None = None
    """Format of routed experts where it differs."""
    groups: tuple[LayerGroup, ...] = Field(min_length=1, max_length=2000)
    """Layers by kind."""
    order: tuple[str, ...] = ()
    """Group names in sequence, repeated until all layers are placed; `"full*3"` is three in a row.
    Empty: one group after the other."""
    max_context: Annotated[int, Field(ge=1, le=MAX_CONTEXT)] | None = None
    """Longest context the makers state."""
    published_parameters: Parameters | None = None
    """Total parameters on the model's page."""
    published_active_parameters: Parameters | None = None
    """Active parameters on the model's page."""
    notes: str = ""
    """What a reader should know."""

    @model_validator(mode="after")
    def _order_places_every_layer(self) -> ModelSpec:
        names = [group.name for group in self.groups]
        if len(set(names)) != len(names):
            raise ValueError(f"layer groups need names of their own, got {names}")
        placed = self.sequence
        for index, group in enumerate(self.groups):
            if placed.count(index) != group.count:
                raise ValueError(f"order places {placed.count(index)} of {group.count} {group.name!r} layers")
        return self

    def __hash__(self) -> int:
        return self.fingerprint

    @cached_property
    def fingerprint(self) -> int:
        """Hash of all fields, computed once: specifications are keys of caches."""
        return hash(tuple(getattr(self, name) for name in type(self).model_fields))

    @cached_property
    def layers(self) -> int:
        """Number of layers."""
        return sum(group.count for group in self.groups)

    @cached_property
    def sequence(self) -> tuple[int, ...]:
        """Group index of each layer, first layer first."""
        names = {group.name: index for index, group in enumerate(self.groups)}
        if not self.order:
            return tuple(i for i, group in enumerate(self.groups) for _ in range(group.count))
        pattern: list[int] = []
        for token in self.order:
            match = re.fullmatch(r"([a-z][a-z0-9_-]*)(?:\*(\d{1,4}))?", token)
            if match is None or match[1] not in names:
                raise ValueError(f"order names {token!r}; the groups are {', '.join(names)}")
            pattern += [names[match[1]]] * int(match[2] or 1)
        return tuple(pattern[i % len(pattern)] for i in range(self.layers))
