"""Each layer of a model: what it attends with and keeps, and its feed-forward block."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kvmodel.config import ffn
from kvmodel.config.blocks import block_layers
from kvmodel.config.compressed import compressed_layers, is_compressed
from kvmodel.config.heads import Heads, checked, context_length, heads_of
from kvmodel.config.kinds import layer_count, layer_kinds
from kvmodel.config.mla import indexers, is_latent, latent_attention
from kvmodel.config.reader import Reader
from kvmodel.config.states import short_convolution, state_layer
from kvmodel.errors import BadConfigError
from kvmodel.records.model import Attention, Chunked, Dense, Ffn, Full, Indexer, Linear, Mla, NoAttention, Shared, Sliding


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer."""

    kind: str
    attention: Attention
    ffn: Ffn | None
    indexer: Indexer | None = None
    state: Linear | None = None


def layers_of(reader: Reader, dtype: str) -> list[Layer]:
    """All layers, first one first. Raises BadConfigError."""
    reader.layers = count = layer_count(reader)
    blocks = block_layers(reader, count)
    if blocks is not None:
        return [Layer(attention.kind, attention, block) for attention, block in blocks]
    if is_compressed(reader):
        pairs = compressed_layers(reader, count)
        return [
            Layer(f"ratio{attention.ratio}", attention, ffn.feed_forward(reader, index, count), indexer)
            for index, (attention, indexer) in enumerate(pairs)
        ]
    return _double(reader, _shared(reader, _plain(reader, count, dtype)))


def _plain(reader: Reader, count: int, dtype: str) -> list[Layer]:
    kinds = _crossed(reader, layer_kinds(reader, count))
    apart = any(kind in ("dense", "moe") for kind in kinds)
    maker = _Maker(reader, kinds, dtype)
    indexed = indexers(reader, count)
    made = []
    for index, kind in enumerate(kinds):
        indexer = indexed[index] if kind == "full" else None
        made.append(Layer(kind, maker.attention(index, kind), _ffn(reader, index, kind, count, apart=apart), indexer, maker.beside(kind)))
    return made


def _crossed(reader: Reader, kinds: list[str]) -> list[str]:
    """Llama 3.2 Vision: layers that attend to an image keep nothing of the prompt."""
    crossing = reader.items("cross_attention_layers") or []
    if any(isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(kinds) for index in crossing):
        raise BadConfigError(f"config: {reader.path('cross_attention_layers')}: allowed: layer numbers from 0 to {len(kinds) - 1}")
    if crossing:
        reader.warn(f"{len(crossing)} layers attend to images: the cache of an image is not counted")
    return ["cross" if index in crossing else kind for index, kind in enumerate(kinds)]


def _ffn(reader: Reader, index: int, kind: str, count: int, *, apart: bool) -> Ffn | None:
    """The block of a layer; none beside attention where blocks are layers of their own, or in pure Mamba."""
    if kind == "moe":
        return ffn.experts(reader, index)
    if kind == "dense":
        return ffn.dense(reader, index)
    if apart or (reader.family.bare_states and kind == "state"):
        return None
    return ffn.feed_forward(reader, index, count)


class _Maker:
    """Attention by kind; makes each state once."""

    def __init__(self, reader: Reader, kinds: list[str], dtype: str) -> None:
        self.reader, self.kinds = reader, kinds
        stateful = any(kind in ("state", "parallel") for kind in kinds)
        self.state = state_layer(reader, dtype) if stateful else None
        self.convolution = short_convolution(reader, dtype) if "conv" in kinds else None
        attends = any(kind in ("full", "sliding", "chunked", "parallel") for kind in kinds)
        self.latent = latent_attention(reader) if is_latent(reader) and attends else None
        self.window = _window(reader) if "sliding" in kinds else None

    def attention(self, index: int, kind: str) -> Attention:
        """What a layer attends with."""
        if kind == "state" and self.state:
            return self.state
        if kind == "conv" and self.convolution:
            return self.convolution
        if kind in ("dense", "moe", "cross"):
            return NoAttention()
        if self.latent:
            return self._latent(kind)
        return self._headed(index, kind)

    def beside(self, kind: str) -> Linear | None:
        """The state a layer keeps beside its attention."""
        return self.state if kind == "parallel" else None

    def _latent(self, kind: str) -> Mla:
        if kind != "full" or self.latent is None:
            raise BadConfigError(
                f"config: kv_lora_rank with {kind} layers is not understood: no formula for a latent that is cut to a window"
            )
        return self.latent

    def _headed(self, index: int, kind: str) -> Attention:
        heads = _heads(self.reader, index, kind)
        sizes = {"q_heads": heads.q_heads, "kv_heads": heads.kv_heads, "k_dim": heads.k_dim, "v_dim": heads.v_dim}
        gate = self.reader.has("attn_output_gate") and self.reader.flag("attn_output_gate")
        if kind == "sliding" and self.window:
            return Sliding(**sizes, output_gate=gate, window=self.window)
        if kind == "chunked":
            return Chunked(**sizes, output_gate=gate, chunk=self.reader.whole("attention_chunk_size"))
        return Full(**sizes, output_gate=gate)


def _window(reader: Reader) -> int | None:
    """Tokens a sliding layer keeps; None where the window is off or no prompt can fill it."""
    if reader.has("use_sliding_window") and not reader.flag("use_sliding_window"):
        reader.warn("some layers are named sliding, but use_sliding_window is false: they keep everything")
        return None
    window, context = reader.whole("sliding_window"), context_length(reader)
    if context is not None and window >= context:
        reader.warn(f"the sliding window of {window:,} tokens is no shorter than the context of {context:,}: it never binds")
        return None
    return window


def _heads(reader: Reader, index: int, kind: str) -> Heads:
    """Heads of a layer; sliding and full layers may differ (MiMo-V2, Step 3.5, Gemma 4)."""
    heads = heads_of(reader, index)
    if kind == "sliding":
        return _other_heads(reader, heads)
    if kind == "full" and reader.has("global_head_dim"):
        dim = reader.whole("global_head_dim")
        kept = reader.optional("num_global_key_value_heads") if reader.flag("attention_k_eq_v") else None
        return checked(reader, Heads(heads.q_heads, kept or heads.kv_heads, dim, dim))
    return heads


def _other_heads(reader: Reader, heads: Heads) -> Heads:
    names = {
        "q_heads": ("swa_num_attention_heads", "attention_other_setting.num_attention_heads"),
        "kv_heads": ("swa_num_key_value_heads", "attention_other_setting.num_attention_groups"),
        "k_dim": ("swa_head_dim", "attention_other_setting.head_dim"),
        "v_dim": ("swa_v_head_dim", "swa_head_dim", "attention_other_setting.head_dim"),
    }
    found = {part: next((value for key in keys if (value := reader.optional(key)) is not None), None) for part, keys in names.items()}
    return checked(reader, replace(heads, **{part: value for part, value in found.items() if value is not None}))


def _shared(reader: Reader, made: list[Layer]) -> list[Layer]:
    """Layers that read the cache of an earlier one and keep none."""
    readers = _sharing(reader, len(made))
    return [_sharer(reader, layer) if index in readers else layer for index, layer in enumerate(made)]


def _sharing(reader: Reader, count: int) -> set[int]:
    last = reader.optional("num_kv_shared_layers", low=0, high=max(count, 1)) or 0
    if last == count:
        raise BadConfigError(f"config: {reader.path('num_kv_shared_layers')}: got {last} of {count} layers; no layer would keep a cache")
    sharing = set(range(count - last, count))
    if reader.stated("use_cla")[0] is not None and reader.flag("use_cla"):
        factor = reader.optional("cla_share_factor") or 2
        sharing |= {index for index in range(count) if index % factor}
    return sharing


def _sharer(reader: Reader, layer: Layer) -> Layer:
    a = layer.attention
    if not isinstance(a, Full | Sliding):
        raise BadConfigError(f"config: layers that share a cache must have heads; got {a.kind}")
    window = a.window if isinstance(a, Sliding) else None
    shared = Shared(q_heads=a.q_heads, kv_heads=a.kv_heads, k_dim=a.k_dim, v_dim=a.v_dim, window=window)
    block = layer.ffn
    if isinstance(block, Dense) and reader.stated("use_double_wide_mlp")[0] is not None and reader.flag("use_double_wide_mlp"):
        block = Dense(inter=min(2 * block.inter, 10_000_000), gated=block.gated)
    return replace(layer, kind=f"shared-{layer.kind}", attention=shared, ffn=block)


def _double(reader: Reader, made: list[Layer]) -> list[Layer]:
    """LongCat-Flash: a layer attends twice, with two dense blocks and one mixture of experts."""
    if reader.family.id != "longcat_flash":
        return made
    doubled = []
    for index, layer in enumerate(made):
        wide = ffn.dense(reader, index)
        both = Dense(inter=min(2 * wide.inter, 10_000_000), gated=wide.gated)
        doubled += [replace(layer, kind="first", ffn=both), replace(layer, kind="second")]
    reader.warn("each of its layers attends twice: twice as many layers keep a cache")
    return doubled
