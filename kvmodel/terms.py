r"""The physical terms of prefill and decode, per layer, before any derate.

Each term is a time at the accelerator's datasheet peak, as a small polynomial in the work done. The
time model (`kvmodel.compute`) multiplies each term with a fitted constant and adds them up: launch
per layer, matrix multiplication, attention, all-reduce bytes and latency, activation traffic, weight
sweep. Keeping the terms apart from the constants lets the constants be refitted, and lets a reader
see which term a time comes from.
"""

from __future__ import annotations

from dataclasses import dataclass

from kvmodel.cache import LayerCache, layer_cache
from kvmodel.dtypes import BYTES_PER_ELEMENT, MATMUL_DTYPE
from kvmodel.numeric import Num, ceil_div
from kvmodel.pairs import shape_of
from kvmodel.parameters import LayerParameters, layer_parameters
from kvmodel.records.hardware import Accelerator
from kvmodel.records.model import Chunked, Compressed, Dense, Full, LayerGroup, Linear, Mla, ModelSpec, Moe, Shared, Sliding

_EXPERT_TERMS = ("expert launch", "expert matmul", "expert sweep")
PREFILL_TERMS = ("launch", "matmul", "attention", "all-reduce bytes", "all-reduce latency", "activations", "weights", *_EXPERT_TERMS)
DECODE_TERMS = ("launch", "weights", "KV read", "all-reduce bytes", "all-reduce latency", "matmul", "attention", *_EXPERT_TERMS)


@dataclass(frozen=True, slots=True)
class Placement:
    """One side of the handoff: a model's weights and cache laid out on accelerators."""

    model: ModelSpec
    accelerator: Accelerator
    tp: int
    attention_dp: int
    ep: int
    kv_dtype: str
    weight_dtype: str
    keeps_all_chunked: bool = False

    @property
    def attention_tp(self) -> int:
        """Ranks that share one request's attention."""
        return max(1, self.tp // self.attention_dp)

    @property
    def expert_shards(self) -> int:
        """Ranks over which routed experts are spread."""
        return max(self.tp, self.ep)

    @property
    def dense_bytes(self) -> float:
        """Bytes of one parameter of the linear layers."""
        return BYTES_PER_ELEMENT[self.model.weight_dtype if self.weight_dtype == "auto" else self.weight_dtype]

    @property
    def expert_bytes(self) -> float:
        """Bytes of one parameter of a routed expert."""
        published = self.model.expert_dtype or self.model.weight_dtype
        return BYTES_PER_ELEMENT[published if self.weight_dtype == "auto" else self.weight_dtype]

    @property
    def matmul_dtype(self) -> str:
        """Format in which most of the matrix multiplication runs."""
        return MATMUL_DTYPE[self.model.weight_dtype if self.weight_dtype == "auto" else self.weight_dtype]

    @property
    def peak(self) -> float:
        """FLOP/s of one accelerator at that format; the next wider one where it has none."""
        a = self.accelerator
        fp8 = a.peak_fp8 or a.peak_bf16
        return {"bf16": a.peak_bf16, "fp8": fp8, "nvfp4": a.peak_nvfp4 or fp8}[self.matmul_dtype]


@dataclass(frozen=True, slots=True)
class Work:
    """Amounts by which one layer's work grows; each field counts per unit of it.

    `fixed` per pass, `token` per new token, `pair` per (query, key) pair, `capped` per pair inside
    a window, `touched` per share of routed experts that the tokens of a pass touch.
    """

    fixed: float = 0.0
    token: float = 0.0
    pair: float = 0.0
    capped: float = 0.0
    touched: float = 0.0

    def scaled(self, factor: float) -> Work:
        """Every amount times a factor."""
        return Work(*(factor * getattr(self, name) for name in self.__slots__))

    def plus(self, other: Work) -> Work:
        """Amounts added."""
        return Work(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


def layer_flop(group: LayerGroup, hidden: int) -> Work:
    """FLOP of one layer in prefill, over all ranks (multiply and add are two)."""
    active = layer_parameters(group, hidden).active
    pair = _pair_flop(group, absorbed=False)
    index = _index_flop(group)
    capped = shape_of(group).cap_tokens > 0
    token = 2.0 * active + _state_flop(group) + _window_flop(group)
    return Work(token=token, pair=index + (0.0 if capped else pair), capped=pair if capped else 0.0)


def _state_flop(group: LayerGroup) -> float:
    states = [a for a in (group.attention, group.state) if isinstance(a, Linear)]
    return sum(6.0 * a.heads * a.head_dim * a.state_dim for a in states)


def _index_flop(group: LayerGroup) -> float:
    """FLOP an indexer spends on one (query, token) pair; merged rows are scored once for `ratio` tokens."""
    ratio = group.attention.ratio if isinstance(group.attention, Compressed) else 1
    return 2.0 * group.indexer.heads * group.indexer.dim / ratio if group.indexer else 0.0


def _window_flop(group: LayerGroup) -> float:
    """FLOP a token spends on the window that a compressed cache keeps beside its merged rows."""
    a = group.attention
    return 4.0 * a.q_heads * a.row * a.window if isinstance(a, Compressed) else 0.0


def _pair_flop(group: LayerGroup, *, absorbed: bool) -> float:
    a = group.attention
    if isinstance(a, Mla):
        return 2.0 * a.q_heads * (2 * a.latent + a.rope if absorbed else a.nope + a.rope + a.v_dim)
    if isinstance(a, Full | Sliding | Chunked | Shared):
        return 2.0 * a.q_heads * (a.k_dim + a.v_dim)
    if isinstance(a, Compressed):
        return 4.0 * a.q_heads * a.row / a.ratio if a.ratio else 0.0
    return 0.0


def _all_reduces(group: LayerGroup) -> int:
    return (group.attention.kind != "none") + (group.ffn is not None)


def _activation_elements(group: LayerGroup, hidden: int, tp: int) -> float:
    a, ffn = group.attention, group.ffn
    inside = 0.0
    if isinstance(a, Mla):
        inside += a.q_heads * (a.nope + a.rope + a.v_dim) * 2
    elif isinstance(a, Compressed):
        inside += 2 * a.q_heads * a.row
    elif isinstance(a, Linear):
        inside += a.heads * a.head_dim * 4
    elif isinstance(a, Full | Sliding | Chunked | Shared):
        inside += a.q_heads * (a.k_dim + a.v_dim) + 2 * a.kv_heads * (a.k_dim + a.v_dim)
    if isinstance(ffn, Dense):
        inside += 3 * ffn.inter
    elif isinstance(ffn, Moe):
        inside += 3 * (ffn.top_k * ffn.inter + ffn.shared_inter)
    return 8.0 * hidden + inside / tp


def _reduce_bandwidth(place: Placement) -> float:
    """Bytes per second of an all-reduce: the node's fabric, or the NICs once ranks span nodes."""
    a = place.accelerator
    within = place.tp <= a.gpus_per_node
    return a.scale_up_bandwidth if within else min(a.scale_up_bandwidth, a.nic_bandwidth * a.nics_per_gpu)


def _weight_sweep(place: Placement, parameters: LayerParameters) -> Work:
    """Weights that every pass reads."""
    dense = (parameters.attention / place.attention_tp + parameters.ffn / place.tp) * place.dense_bytes
    return Work(fixed=dense / place.accelerator.hbm_bandwidth)


def _expert_terms(place: Placement, group: LayerGroup) -> tuple[Work, Work, Work]:
    """Launch, matmul and weight sweep of routed experts: grouped kernels with a cost of their own."""
    parameters = layer_parameters(group, place.model.hidden)
    if not parameters.experts:
        return Work(), Work(), Work()
    flop = 2.0 * parameters.top_k * parameters.expert
    swept = parameters.experts * parameters.expert * place.expert_bytes / place.expert_shards
    return Work(fixed=1.0), Work(token=flop / (place.peak * place.expert_shards)), Work(touched=swept / place.accelerator.hbm_bandwidth)


def _dense_token_flop(place: Placement, group: LayerGroup) -> float:
    """FLOP a token costs outside routed experts and attention pairs."""
    parameters = layer_parameters(group, place.model.hidden)
    return layer_flop(group, place.model.hidden).token - 2.0 * parameters.top_k * parameters.expert


def prefill_terms(place: Placement, group: LayerGroup) -> tuple[Work, ...]:
    """Seconds at peak of one layer in prefill, one `Work` for each of `PREFILL_TERMS`.

    `launch` and `all-reduce latency` count occurrences: their constants are seconds each.
    """
    accelerator, hidden, tp = place.accelerator, place.model.hidden, place.tp
    flop = layer_flop(group, hidden)
    reduces = _all_reduces(group) if tp > 1 else 0
    rank_rate = place.peak * tp
    attention_rate = accelerator.peak_bf16 * place.attention_tp * place.attention_dp
    reduce_bytes = reduces * hidden * 2.0 * 2 * (tp - 1) / tp
    return (
        Work(fixed=1.0),
        Work(token=_dense_token_flop(place, group) / rank_rate),
        Work(pair=flop.pair / attention_rate, capped=flop.capped / attention_rate),
        Work(token=reduce_bytes / _reduce_bandwidth(place)),
        Work(fixed=float(reduces)),
        Work(token=2.0 * _activation_elements(group, hidden, tp) / accelerator.hbm_bandwidth),
        _weight_sweep(place, layer_parameters(group, hidden)),
        *_expert_terms(place, group),
    )


def decode_terms(place: Placement, group: LayerGroup) -> tuple[Work, ...]:
    """Seconds at peak of one layer in one decode step, one `Work` for each of `DECODE_TERMS`.

    `token` counts requests of the step; `pair` and `capped` count (request, cached token) pairs.
    """
    accelerator, hidden, tp = place.accelerator, place.model.hidden, place.tp
    hbm, rank_rate = accelerator.hbm_bandwidth, place.peak * tp
    reduces = _all_reduces(group) if tp > 1 else 0
    absorbed = _pair_flop(group, absorbed=True) / (accelerator.peak_bf16 * place.attention_tp * place.attention_dp)
    capped = shape_of(group).cap_tokens > 0
    reduce_bytes = reduces * hidden * 2.0 * 2 * (tp - 1) / tp
    return (
        Work(fixed=1.0),
        _weight_sweep(place, layer_parameters(group, hidden)),
        _kv_read(place, group).scaled(1 / hbm / place.attention_dp),
        Work(token=reduce_bytes / _reduce_bandwidth(place)),
        Work(fixed=float(reduces)),
        Work(token=_dense_token_flop(place, group) / rank_rate),
        Work(pair=0.0 if capped else absorbed, capped=absorbed if capped else 0.0),
        *_expert_terms(place, group),
    )


def _kv_read(place: Placement, group: LayerGroup) -> Work:
    cache: LayerCache = layer_cache(group, kv_dtype=place.kv_dtype, tp=place.attention_tp, keeps_all_chunked=place.keeps_all_chunked)
    if isinstance(group.attention, Compressed):
        merged, window = cache.growing, cache.window_bytes
        if group.indexer:
            return Work(pair=cache.indexer, capped=merged, token=window)
        return Work(pair=merged, token=window)
    if group.indexer:
        return Work(pair=cache.indexer, capped=cache.growing, token=2 * cache.state)
    if isinstance(group.attention, Chunked):
        return Work(capped=cache.capped or cache.growing)
    return Work(pair=cache.growing, capped=cache.capped, token=2 * cache.state)


def passes(new: Num, chunk: Num) -> Num:
    """Prefill passes over `new` tokens of a request in chunks of `chunk`."""
    return ceil_div(new, chunk)
