r"""Bytes of the KV cache: what a layer keeps for a prompt, whole and on one tensor-parallel rank.

One layer's cache for a prompt of :math:`n` tokens is

.. math:: n\,(a + i) + \min(n, w)\,c + \min(n, v)\,t + s

with :math:`a` the growing bytes a token (full attention, or an MLA row), :math:`i` an indexer's,
:math:`c` the bytes a token of a cache capped at :math:`w` tokens (sliding window, local chunk),
:math:`t` those of a compressor that waits for :math:`v` tokens, and :math:`s` a fixed state. Each
attention kind sets some of them and leaves the rest 0.
"""

from __future__ import annotations

from dataclasses import dataclass

from kvmodel.dtypes import (
    BYTES_PER_ELEMENT,
    PACKED_COMPRESSED_ROW_BYTES,
    PACKED_MLA_ROW_BYTES,
    PER_TOKEN_HEAD_BYTES,
    PER_TOKEN_HEAD_SCALE_BYTES,
)
from kvmodel.errors import BadScenarioError
from kvmodel.numeric import Num, minimum
from kvmodel.records.model import Chunked, Compressed, Full, LayerGroup, Linear, Mla, ModelSpec, Sliding


@dataclass(frozen=True, slots=True)
class LayerCache:
    """Coefficients of one layer's cache, in bytes (see the module's equation)."""

    growing: float = 0.0
    """Bytes each token adds, in the KV dtype."""
    indexer: float = 0.0
    """Bytes each token adds to an indexer's cache, whatever the KV dtype."""
    capped: float = 0.0
    """Bytes each of the last `cap_tokens` tokens takes, in the KV dtype."""
    cap_tokens: float = 0.0
    """Tokens the capped cache keeps."""
    state: float = 0.0
    """Fixed bytes, whatever the prompt."""
    tail: float = 0.0
    """Bytes each of the last `tail_tokens` tokens takes in a compressor, whatever the KV dtype."""
    tail_tokens: float = 0.0
    """Tokens the compressor keeps."""

    @property
    def window_bytes(self) -> float:
        """Bytes of the parts that stop growing, once full."""
        return self.capped * self.cap_tokens + self.tail * self.tail_tokens

    def held(self, tokens: Num) -> Num:
        """Bytes kept for a prompt of `tokens` tokens."""
        return self.moved(tokens, 0)

    def moved(self, tokens: Num, known: Num) -> Num:
        """Bytes that complete the cache of `tokens` tokens for a receiver that holds the first `known`.

        A window is sent where the receiver lacks it; a state is sent whole unless nothing is missing.
        """
        missing = tokens - known
        bytes_ = missing * (self.growing + self.indexer)
        if self.capped:
            bytes_ = bytes_ + minimum(missing, self.cap_tokens) * self.capped
        if self.tail:
            bytes_ = bytes_ + minimum(missing, self.tail_tokens) * self.tail
        if self.state:
            bytes_ = bytes_ + self.state * (missing > 0)
        return bytes_

    def own_format(self, missing: Num) -> Num:
        """The part of `moved` that keeps its format under any KV dtype: indexer, compressor and state."""
        plain = missing * self.indexer + self.state * (missing > 0)
        return plain + minimum(missing, self.tail_tokens) * self.tail if self.tail else plain


def kv_heads_per_rank(kv_heads: int, tp: int) -> int:
    """KV heads one rank stores: sharded up to their number, replicated beyond it.

    >>> [kv_heads_per_rank(8, tp) for tp in (1, 4, 8, 16)]
    [8, 2, 1, 1]
    """
    return max(1, -(-kv_heads // tp))


def kv_dtype_of(model: ModelSpec, kv_dtype: str) -> str:
    """The cache's format: as asked, or under `auto` what the configuration states, else the activations'."""
    return (model.kv_dtype or model.dtype) if kv_dtype == "auto" else kv_dtype


def layer_cache(group: LayerGroup, *, kv_dtype: str, tp: int = 1, keeps_all_chunked: bool = False) -> LayerCache:
    """One layer's cache on one of `tp` attention ranks; `tp=1` is the whole layer, one copy.

    Heads are sharded and, beyond their number, replicated; an MLA row and an indexer's keys are
    whole on every rank. Raises BadScenarioError for a packed MLA row on another attention or shape.
    Sources: vLLM 0.33.0 v1/kv_cache_interface.py; SGLang 0.5.23 pool_configurator.py.
    """
    attention = group.attention
    indexer = float(group.indexer.bytes_per_token) if group.indexer else 0.0
    state = state_bytes(group.state, tp) if group.state else 0.0
    if isinstance(attention, Mla):
        return LayerCache(growing=mla_row_bytes(attention, kv_dtype), indexer=indexer, state=state)
    if isinstance(attention, Compressed):
        return _compressed_cache(group, attention, kv_dtype)
    if isinstance(attention, Linear):
        return LayerCache(state=state_bytes(attention, tp), indexer=indexer)
    if isinstance(attention, Full | Sliding | Chunked):
        row = kv_heads_per_rank(attention.kv_heads, tp) * head_bytes(attention.k_dim, attention.v_dim, kv_dtype)
        if isinstance(attention, Sliding):
            return LayerCache(capped=row, cap_tokens=float(attention.window), indexer=indexer, state=state)
        if isinstance(attention, Chunked) and not keeps_all_chunked:
            return LayerCache(capped=row, cap_tokens=float(attention.chunk), indexer=indexer, state=state)
        return LayerCache(growing=row, indexer=indexer, state=state)
    return LayerCache(indexer=indexer, state=state)


def element_bytes(kv_dtype: str) -> float:
    """Bytes of one element of K or V. Raises BadScenarioError for a packed MLA row."""
    if kv_dtype not in BYTES_PER_ELEMENT:
        raise BadScenarioError(f"kv_dtype: got {kv_dtype!r}, a packed MLA row; this model's cache has heads: use fp8 or nvfp4")
    return BYTES_PER_ELEMENT[kv_dtype]


def head_bytes(k_dim: int, v_dim: int, kv_dtype: str) -> float:
    """Bytes of one KV head of one token, with the scales a per-token-head format keeps.

    >>> [head_bytes(128, 128, dtype) for dtype in ("bf16", "int8", "int8_per_token_head", "int4_per_token_head", "nvfp4")]
    [512.0, 256.0, 264.0, 136.0, 144.0]
    """
    if kv_dtype in PER_TOKEN_HEAD_BYTES:
        return (k_dim + v_dim) * PER_TOKEN_HEAD_BYTES[kv_dtype] + PER_TOKEN_HEAD_SCALE_BYTES
    return (k_dim + v_dim) * element_bytes(kv_dtype)


def mla_row_bytes(attention: Mla, kv_dtype: str) -> float:
    """Bytes of one token of one MLA layer: the latent and the rotary part, in one copy.

    Raises BadScenarioError for a packed row on dimensions other than 512 + 64, and for scales by head.
    """
    if kv_dtype in PACKED_MLA_ROW_BYTES:
        if (attention.latent, attention.rope) != (512, 64):
            raise BadScenarioError(
                f"kv_dtype: got {kv_dtype!r}, a row of 512 + 64 elements; this model's is {attention.latent} + {attention.rope}"
            )
        return float(PACKED_MLA_ROW_BYTES[kv_dtype])
    _refuse_head_scales(kv_dtype)
    return (attention.latent + attention.rope) * element_bytes(kv_dtype)


def compressed_row_bytes(attention: Compressed, kv_dtype: str) -> float:
    """Bytes of one row of a compressed cache. Raises BadScenarioError for a packed row on other dimensions."""
    if kv_dtype in PACKED_COMPRESSED_ROW_BYTES and attention.row == 512:
        return float(PACKED_COMPRESSED_ROW_BYTES[kv_dtype])
    if kv_dtype in PACKED_MLA_ROW_BYTES:
        raise BadScenarioError(
            f"kv_dtype: got {kv_dtype!r}; allowed for a compressed row of {attention.row}: bf16, fp8, fp8_ds_mla for 512"
        )
    _refuse_head_scales(kv_dtype)
    return attention.row * element_bytes(kv_dtype)


def _refuse_head_scales(kv_dtype: str) -> None:
    if kv_dtype in PER_TOKEN_HEAD_BYTES:
        raise BadScenarioError(f"kv_dtype: got {kv_dtype!r}, a format with scales by head; this model's cache has none: use fp8")


def _compressed_cache(group: LayerGroup, attention: Compressed, kv_dtype: str) -> LayerCache:
    """Rows merged by `ratio`, a window of whole ones, and the FP32 sums of the tokens not merged yet.

    The compressor keeps a key and a weight in FP32 for each token and element, twice where groups
    overlap, and the same for the indexer's keys. Source: vLLM 0.33.0 models/deepseek_v4/compressor.py.
    """
    row, ratio = compressed_row_bytes(attention, kv_dtype), attention.ratio
    widths = 2 if attention.overlap else 1
    index = group.indexer.dim if group.indexer else 0
    return LayerCache(
        growing=row / ratio if ratio else 0.0,
        indexer=float(group.indexer.bytes_per_token) if group.indexer else 0.0,
        capped=row,
        cap_tokens=float(attention.window),
        tail=8.0 * widths * (attention.row + index) if ratio else 0.0,
        tail_tokens=float(widths * ratio),
    )


def state_bytes(attention: Linear, tp: int = 1) -> float:
    """Bytes of one layer's recurrent and convolution state on one rank.

    Mamba-2's groups of B and C are replicated up to the rank count where it does not divide them.
    Source: vLLM 0.33.0 model_executor/layers/mamba/mamba_utils.py.
    """
    heads, head, state = attention.heads, attention.head_dim, attention.state_dim
    taps = max(0, attention.conv_kernel - 1)
    groups = attention.groups if attention.groups % tp == 0 else max(tp, attention.groups)
    channels = {
        "mamba2": heads * head + 2 * groups * state,
        "mamba1": heads,
        "gdn": 2 * state * attention.groups + head * heads,
        "kda": 3 * heads * head,
        "lightning": 0,
        "conv": heads,
    }[attention.variant]
    conv = channels / tp * taps * BYTES_PER_ELEMENT[attention.conv_dtype]
    if attention.variant == "conv":
        return conv
    return conv + heads / tp * head * state * BYTES_PER_ELEMENT[attention.state_dtype]


@dataclass(frozen=True, slots=True)
class ModelCache:
    """A model's cache over all layers, in bytes, for one request."""

    bytes_per_token: float
    """Growing bytes."""
    window_bytes_max: float
    """Capped bytes once every window is full."""
    state_bytes: float
    """Fixed bytes."""
    layers: tuple[tuple[int, LayerCache], ...]
    """Number of layers and coefficients, by group."""

    def prompt_bytes(self, tokens: Num) -> Num:
        """Bytes kept for a prompt of `tokens` tokens, exact in tokens."""
        return sum(count * layer.held(tokens) for count, layer in self.layers)

    def marginal_bytes(self, tokens: Num) -> Num:
        """Bytes the token after a prompt of `tokens` tokens adds."""
        return self.prompt_bytes(tokens + 1) - self.prompt_bytes(tokens)


def total_cache(layers: tuple[tuple[int, LayerCache], ...]) -> ModelCache:
    """The cache of (number of layers, one layer's cache) pairs."""
    return ModelCache(
        bytes_per_token=sum(n * (layer.growing + layer.indexer) for n, layer in layers),
        window_bytes_max=sum(n * layer.window_bytes for n, layer in layers),
        state_bytes=sum(n * layer.state for n, layer in layers),
        layers=layers,
    )


def model_cache(model: ModelSpec, *, kv_dtype: str = "auto", tp: int = 1, keeps_all_chunked: bool = False) -> ModelCache:
    """The cache of all layers on one of `tp` attention ranks; `tp=1` is the whole model, one copy.

    >>> from kvmodel.registry import find_model
    >>> model_cache(find_model("llama-3-70b")).prompt_bytes(8192)
    2684354560.0
    """
    dtype = kv_dtype_of(model, kv_dtype)
    layers = tuple((group.count, layer_cache(group, kv_dtype=dtype, tp=tp, keeps_all_chunked=keeps_all_chunked)) for group in model.groups)
    return total_cache(layers)
