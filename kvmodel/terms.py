r"""The physical terms of prefill and decode, per layer, before any derate.

Each term is a time at the accelerator's datasheet peak, as a small polynomial in the work done. The
time model (`kvmodel.compute`) multiplies each term with a fitted constant and adds them up; only the
weight sweep and the matrix multiplication it feeds overlap, as in a roofline. Keeping the terms apart
from the constants lets the constants be refitted, and lets a reader see which term a time comes from.
"""

from __future__ import annotations

from dataclasses import replace

from kvmodel.allreduce import Across, all_reduces
from kvmodel.cache import LayerCache, layer_cache
from kvmodel.flop import index_flop, layer_flop, pair_flop
from kvmodel.kernels import layer_kernels
from kvmodel.numeric import Num, ceil_div
from kvmodel.pairs import shape_of
from kvmodel.parameters import LayerParameters, layer_parameters
from kvmodel.placement import Placement
from kvmodel.records.model import Chunked, Compressed, Dense, Full, LayerGroup, Linear, Mla, Moe, NoAttention, Shared, Sliding
from kvmodel.work import Work

PREFILL_TERMS = (
    "launch",
    "matmul",
    "attention",
    "all-reduce bytes",
    "all-reduce latency",
    "activations",
    "weights",
    "expert matmul",
    "expert weights",
    "across nodes",
)
DECODE_TERMS = (
    "launch",
    "weights",
    "KV read",
    "all-reduce bytes",
    "all-reduce latency",
    "matmul",
    "attention",
    "expert matmul",
    "expert weights",
    "across nodes",
)
"""Names of the constants. All but the last belong to a term each; the last multiplies both terms of all-reduces that leave the
node as the operator tables have it (`kvmodel.allreduce.Across`)."""

FIRST_BYTES, FIRST_SHARE = 64e6, 0.3
"""The first bytes of cache that a layer reads in a step take this share longer: few blocks leave part of the memory idle.
Both chosen on the grid, where reads of some 50 to 150 MB reach less of the bandwidth than larger ones."""

WEIGHTS, MATMUL, EXPERT_MATMUL = "weights", "matmul", "expert matmul"
ALL_REDUCE = ("all-reduce bytes", "all-reduce latency")
ACROSS = "across nodes"


def _activation_elements(place: Placement, group: LayerGroup) -> float:
    """Elements a token writes and reads between kernels on one rank."""
    a, ffn, hidden = group.attention, group.ffn, place.model.hidden
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
    own = place.attention_dp if place.routes_tokens and isinstance(ffn, Moe) else 1
    return 8.0 * hidden / own + _routed_elements(place, group) + inside / place.tp


def _routed_elements(place: Placement, group: LayerGroup) -> float:
    """Sorting by expert: a row of its own for each expert a token visits, on every rank that holds a slice of them."""
    ffn = group.ffn
    return float(ffn.top_k) * (ffn.latent or place.model.hidden) / place.ep if isinstance(ffn, Moe) else 0.0


def _weight_sweep(place: Placement, parameters: LayerParameters) -> Work:
    """Weights that every pass reads."""
    dense = (parameters.attention / place.attention_tp + parameters.ffn / place.tp) * place.dense_bytes
    return Work(fixed=dense / place.accelerator.hbm_bandwidth)


def _expert_terms(place: Placement, group: LayerGroup) -> tuple[Work, Work]:
    """Matmul and weight sweep of routed experts: grouped kernels with costs of their own."""
    parameters = layer_parameters(group, place.model.hidden)
    if not parameters.experts:
        return Work(), Work()
    flop = 2.0 * parameters.top_k * parameters.expert
    swept = parameters.experts * parameters.expert * place.expert_bytes / place.expert_shards
    return Work(token=flop / (place.peak * place.expert_shards)), Work(touched=swept / place.accelerator.hbm_bandwidth)


def _dense_token_flop(place: Placement, group: LayerGroup) -> float:
    """FLOP a token costs outside routed experts and attention pairs."""
    parameters = layer_parameters(group, place.model.hidden)
    return layer_flop(group, place.model.hidden).token - 2.0 * parameters.top_k * parameters.expert


def prefill_terms(place: Placement, group: LayerGroup, across: Across | None = None) -> tuple[Work, ...]:
    """Seconds at peak of one layer in prefill, one `Work` for each of `PREFILL_TERMS` but the last.

    `launch` counts kernels and `all-reduce latency` waits: their constants are seconds each. `across` is as in
    `all_reduces`; what these wait for the network is beside the terms.
    """
    accelerator, hidden, tp = place.accelerator, place.model.hidden, place.tp
    flop, reduces = layer_flop(group, hidden), all_reduces(place, group, across)
    attention_rate, index = _attention_rate(place), _index_seconds(place, group)
    return (
        Work(fixed=float(layer_kernels(group))),
        Work(token=_dense_token_flop(place, group) / (place.peak * tp)),
        Work(pair=index if group.indexer else flop.pair / attention_rate, capped=flop.capped / attention_rate),
        Work(token=reduces.ring),
        reduces.startup,
        Work(token=2.0 * _activation_elements(place, group) / accelerator.hbm_bandwidth),
        _weight_sweep(place, layer_parameters(group, hidden)),
        *_expert_terms(place, group),
    )


def decode_terms(place: Placement, group: LayerGroup, across: Across | None = None) -> tuple[Work, ...]:
    """Seconds at peak of one layer in one decode step, one `Work` for each of `DECODE_TERMS` but the last.

    `token` counts requests of the step; `pair` and `capped` count (request, cached token) pairs. `across` is as in
    `all_reduces`.
    """
    accelerator, hidden, reduces = place.accelerator, place.model.hidden, all_reduces(place, group, across)
    absorbed = pair_flop(group, absorbed=True) / _attention_rate(place)
    index, capped = _index_seconds(place, group), shape_of(group).cap_tokens > 0
    read = _kv_read(place, group).scaled(1 / accelerator.hbm_bandwidth)
    return (
        Work(fixed=float(layer_kernels(group))),
        _weight_sweep(place, layer_parameters(group, hidden)),
        replace(read, first=FIRST_SHARE * read.pair),
        Work(token=reduces.ring, short=reduces.one_shot - reduces.ring),
        Work(fixed=reduces.short_waits),
        Work(token=_dense_token_flop(place, group) / (place.peak * place.tp)),
        Work(pair=index if capped else absorbed, capped=absorbed if capped else 0.0),
        *_expert_terms(place, group),
    )


def _attention_rate(place: Placement) -> float:
    """FLOP/s of the ranks that attend."""
    return place.accelerator.peak_bf16 * place.attention_tp * place.attention_dp


def _index_seconds(place: Placement, group: LayerGroup) -> float:
    """Seconds an indexer takes for a pair: in its own format where the accelerator has it, and whole on every rank of a replica.

    Engines share out neither its heads nor its rows (https://github.com/vllm-project/vllm/issues/53691).
    """
    gpu = place.accelerator
    return index_flop(group) / (place.attention_dp * (gpu.peak_fp8 or gpu.peak_bf16))


def first_pairs(place: Placement, group: LayerGroup) -> float:
    """(request, cached token) pairs of a step whose cache, on one rank and layer, is `FIRST_BYTES`."""
    return FIRST_BYTES / (_kv_read(place, group).pair or 1.0)


def _kv_read(place: Placement, group: LayerGroup) -> Work:
    """Bytes of cache that one rank reads: a request is on one of the attention DP ranks, so each reads its share."""
    return _cache_read(place, group).scaled(1 / place.attention_dp)


def _cache_read(place: Placement, group: LayerGroup) -> Work:
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


def without_attention(group: LayerGroup) -> LayerGroup:
    """The layer's feed-forward block alone: what replicas of the attention share."""
    return group.model_copy(update={"attention": NoAttention(), "state": None, "indexer": None})


def passes(new: Num, chunk: Num) -> Num:
    """Prefill passes over `new` tokens of a request in chunks of `chunk`."""
    return ceil_div(new, chunk)
