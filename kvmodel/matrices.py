r"""What one layer's matrix operations cost in a pass, and which of their results cross from prefill to decode.

A pass takes the same operations through the same weights; only its rows differ: all tokens of the prompt in
prefill, one for each request in decode.

.. math:: intensity = FLOP / (weights + activations + cache), \qquad ridge = peak / bandwidth

in FLOP a byte. Every weight is read once a pass, every operand read and every result written once; below the
ridge memory sets the time, above it arithmetic does. Counts are of all ranks together, one copy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from kvmodel.cache import LayerCache, head_bytes, layer_cache
from kvmodel.dtypes import BYTES_PER_ELEMENT, INDEX_DTYPE
from kvmodel.flop import absorbs
from kvmodel.numeric import Num, minimum
from kvmodel.operations import Matrix, layer_matrices
from kvmodel.pairs import LayerShape, full_pairs, shape_of
from kvmodel.placement import Placement
from kvmodel.records.hardware import Accelerator
from kvmodel.records.model import Compressed, LayerGroup, Linear, Mla, ModelSpec, NoAttention, Shared

Phase = Literal["prefill", "decode"]
WIDENING = ("nvfp4", "fp8", "bf16")
"""Formats of the tensor cores, each falling back to the next."""


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass: `new` tokens of each of `requests` requests, after `held` cached ones."""

    phase: Phase
    new: Num
    held: Num
    requests: Num

    @property
    def rows(self) -> Num:
        """Rows of every projection."""
        return self.new * self.requests

    def pairs(self, matrix: Matrix, shape: LayerShape, window: float) -> Num:
        """(row, key) products of one request; rows alone where there are no keys."""
        if matrix.over == "window":
            return self.new * window
        if matrix.over not in ("keys", "seen", "index keys"):
            return self.new
        capped = matrix.over == "seen" and shape.cap_tokens > 0
        if self.phase == "decode":
            return minimum(self.held, shape.cap_tokens) if capped else self.held
        return shape.capped_pairs(self.new, self.held) if capped else full_pairs(self.new, self.held)

    def keys(self, matrix: Matrix, shape: LayerShape, window: float) -> Num:
        """Different keys of one request that an operation reads, each once."""
        before, own = self.held, self.new if self.phase == "prefill" else 0 * self.new
        if matrix.over == "window":
            return own + minimum(before, window)
        if matrix.over == "seen" and shape.cap_tokens > 0:
            return own + minimum(before, shape.cap_tokens)
        return own + before


@dataclass(frozen=True, slots=True)
class Amount:
    """FLOP of a pass, and bytes between memory and chip."""

    flop: Num = 0.0
    weights: Num = 0.0
    """Bytes of weights read; of routed experts, those the rows are expected to touch."""
    activations: Num = 0.0
    """Bytes of activations read and written."""
    cache: Num = 0.0
    """Bytes of KV cache or state read and written."""
    peak_seconds: Num = 0.0
    """Seconds the FLOP would take one accelerator at datasheet peak, each operation in its own format."""

    @property
    def peak(self) -> Num:
        """FLOP/s of one accelerator at datasheet peak, formats mixed as the FLOP are."""
        return self.flop / self.peak_seconds

    @property
    def bytes(self) -> Num:
        """All of them."""
        return self.weights + self.activations + self.cache

    @property
    def intensity(self) -> Num:
        """FLOP a byte."""
        return self.flop / self.bytes

    def plus(self, other: Amount, times: int = 1) -> Amount:
        """Amounts added, the other one several times."""
        return Amount(*(getattr(self, name) + times * getattr(other, name) for name in self.__slots__))


def layer_amounts(place: Placement, group: LayerGroup, a: Pass) -> tuple[tuple[Matrix, Amount], ...]:
    """Each operation of one layer and what it costs in a pass."""
    cache = _read_cache(place, group)
    found = layer_matrices(group, place.model.hidden, cache, absorbed=absorbs(group, a.phase))
    return tuple((matrix, _amount(place, group, cache, matrix, a)) for matrix in found)


def cache_of(place: Placement, group: LayerGroup) -> LayerCache:
    """One copy of one layer's cache, in bytes."""
    return layer_cache(group, kv_dtype=place.kv_dtype, keeps_all_chunked=place.keeps_all_chunked)


def _read_cache(place: Placement, group: LayerGroup) -> LayerCache:
    """What a layer reads: its own cache, or the rows of the layer whose cache it shares."""
    a = group.attention
    if not isinstance(a, Shared):
        return cache_of(place, group)
    return LayerCache(growing=a.kv_heads * head_bytes(a.k_dim, a.v_dim, place.kv_dtype))


def _amount(place: Placement, group: LayerGroup, cache: LayerCache, m: Matrix, a: Pass) -> Amount:
    shape = shape_of(group)
    window = cache.cap_tokens
    stored = m.parameters * (place.expert_bytes if m.experts else place.dense_bytes)
    flop = m.row_flop * a.pairs(m, shape, window) * a.requests
    return Amount(
        flop=flop,
        weights=stored * (shape.touched(a.rows) if m.experts else 1.0),
        activations=(m.reads + m.writes) * BYTES_PER_ELEMENT[place.model.dtype] * a.rows,
        cache=m.stores * a.rows + (m.key_bytes * a.keys(m, shape, window) + m.fixed_bytes) * a.requests,
        peak_seconds=flop / peak_of(place.accelerator, multiplied_in(place, m)),
    )


def multiplied_in(place: Placement, matrix: Matrix) -> str:
    """Format an operation is multiplied in, as the time model has it: over keys in BF16, over an indexer's in FP8, all else as weights are.

    Where the accelerator has no such format, the next wider one.

    >>> from kvmodel.registry import accelerators, find_model
    >>> place = Placement(find_model("deepseek-v3"), accelerators()["h100-sxm"], 8, 1, 1, "bf16", "auto")
    >>> group = place.model.groups[0]
    >>> found = layer_matrices(group, place.model.hidden, cache_of(place, group), absorbed=False)
    >>> {m.name: multiplied_in(place, m) for m in found if "Q up" in m.name or "scores" in m.name}
    {'Q up': 'fp8', 'attention scores': 'bf16'}
    """
    wanted = {"keys": "bf16", "seen": "bf16", "index keys": INDEX_DTYPE}.get(matrix.over, place.matmul_dtype)
    return native_format(place.accelerator, wanted)


def native_format(gpu: Accelerator, wanted: str) -> str:
    """The format wanted, or the next wider one that an accelerator multiplies."""
    return next(name for name in WIDENING[WIDENING.index(wanted) :] if getattr(gpu, f"peak_{name}"))


def peak_of(gpu: Accelerator, name: str) -> float:
    """FLOP/s of one accelerator in a format it multiplies."""
    return float(getattr(gpu, f"peak_{name}"))


def total(amounts: Iterable[Amount]) -> Amount:
    """Amounts added up."""
    found = Amount()
    for amount in amounts:
        found = found.plus(amount)
    return found


def layer_total(place: Placement, group: LayerGroup, a: Pass) -> Amount:
    """One layer's pass."""
    return total(amount for _, amount in layer_amounts(place, group, a))


def model_total(place: Placement, a: Pass) -> Amount:
    """All layers and the LM head for one token of each request; of the embedding a pass reads only its rows."""
    found = _head(place, a)
    for group in place.model.groups:
        found = found.plus(layer_total(place, group, a), group.count)
    return found


def _head(place: Placement, a: Pass) -> Amount:
    """The LM head, kept and multiplied in BF16 like the embedding."""
    size = place.model.vocab * place.model.hidden
    moved = (place.model.vocab + place.model.hidden) * BYTES_PER_ELEMENT[place.model.dtype]
    flop = 2.0 * size * a.requests
    return Amount(flop, 2.0 * size, moved * a.requests, peak_seconds=flop / place.accelerator.peak_bf16)


@dataclass(frozen=True, slots=True)
class Crossing:
    """One tensor of a layer that decode needs from prefill."""

    name: str
    bytes: Num
    """For one request, one copy."""


def crossing(group: LayerGroup, cache: LayerCache, tokens: Num, known: Num) -> tuple[Crossing, ...]:
    """Tensors of one layer that cross for a prompt whose first `known` tokens decode holds; together `cache.moved`."""
    missing, a = tokens - known, group.attention
    some = 1.0 * (missing > 0)
    rows: list[tuple[str, Num]] = []
    if isinstance(a, Mla):
        rows.append(("latent and rope", missing * cache.growing))
    elif isinstance(a, Compressed):
        merged = (("merged rows", missing * cache.growing), ("compressor sums", minimum(missing, cache.tail_tokens) * cache.tail))
        rows += [*(merged if a.ratio else ()), ("window rows", minimum(missing, cache.cap_tokens) * cache.capped)]
    elif not isinstance(a, Linear | NoAttention | Shared):
        key = a.k_dim / (a.k_dim + a.v_dim)
        kept = missing * cache.growing + minimum(missing, cache.cap_tokens) * cache.capped
        rows += [("K", kept * key), ("V", kept * (1 - key))]
    if cache.indexer:
        rows.append(("index keys", missing * cache.indexer))
    if cache.state:
        rows.append(("state", some * cache.state))
    return tuple(Crossing(name, size) for name, size in rows)


def main_group(model: ModelSpec) -> int:
    """Index of the layer group that stands for a model: most layers with a cache that grows, else most layers.

    >>> from kvmodel.registry import find_model
    >>> [main_group(find_model(name)) for name in ("llama-3-70b", "deepseek-v3", "gpt-oss-120b", "nemotron-3-super")]
    [0, 1, 1, 2]
    """

    def rank(index: int) -> tuple[bool, int]:
        return model.groups[index].attention.kind in ("full", "mla", "compressed"), model.groups[index].count

    return max(range(len(model.groups)), key=rank)
