"""What the ranks of one side hold: tensor-parallel shares, attention replicas, pipeline stages."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from kvmodel.cache import ModelCache, model_cache, total_cache
from kvmodel.ownership import stage_edges
from kvmodel.parallel import check_tp
from kvmodel.records.model import ModelSpec


def stage_caches(model: ModelSpec, *, kv_dtype: str, tp: int, pp: int, keeps_all_chunked: bool = False) -> tuple[ModelCache, ...]:
    """Cache of one of `tp` attention ranks, one entry for each of `pp` stages of consecutive layers."""
    whole = model_cache(model, kv_dtype=kv_dtype, tp=tp, keeps_all_chunked=keeps_all_chunked)
    if pp == 1:
        return (whole,)
    sequence = model.sequence
    stages = pairwise(stage_edges(len(sequence), pp))
    counts = (tuple(sequence[low:high].count(group) for group in range(len(whole.layers))) for low, high in stages)
    return tuple(total_cache(tuple((n, layer) for n, (_, layer) in zip(count, whole.layers, strict=True))) for count in counts)


@dataclass(frozen=True, slots=True)
class RankShare:
    """One rank's part of a request's cache, and what all ranks hold together."""

    cache: ModelCache
    """The rank of the fullest pipeline stage."""
    sum_over_ranks: float
    """Bytes of the prompt on all ranks that hold some of it, copies included."""
    replication: float
    """Those bytes over one copy of the prompt; 1 where nothing is stored twice."""
    reason: str
    """Why engines refuse the layout; empty where they accept it."""

    @property
    def valid(self) -> bool:
        """Whether engines accept the layout."""
        return not self.reason


def rank_share(model: ModelSpec, *, kv_dtype: str, tokens: int, tp: int, attention_dp: int = 1, pp: int = 1) -> RankShare:
    """The share of one rank of `tp` x `pp`, of which `attention_dp` replicas each hold whole requests.

    >>> from kvmodel.registry import find_model
    >>> share = rank_share(find_model("llama-3-70b"), kv_dtype="bf16", tokens=8192, tp=16)
    >>> share.cache.bytes_per_token, share.replication
    (40960.0, 2.0)
    """
    ranks = max(1, tp // attention_dp)
    stages = stage_caches(model, kv_dtype=kv_dtype, tp=ranks, pp=min(pp, model.layers))
    total = ranks * sum(stage.prompt_bytes(tokens) for stage in stages)
    whole = model_cache(model, kv_dtype=kv_dtype).prompt_bytes(tokens)
    fullest = max(stages, key=lambda stage: float(stage.prompt_bytes(tokens)))
    return RankShare(fullest, total, total / whole if whole else 1.0, layout_refusal(model, tp=tp, attention_dp=attention_dp, pp=pp))


def layout_refusal(model: ModelSpec, *, tp: int, attention_dp: int = 1, pp: int = 1, side: str = "") -> str:
    """Why engines refuse a layout, with the nearest TP they accept; empty where they do not.

    `side` names whose it is: prefill, decode or both.
    """
    named = "prefill and decode " if side == "both" else f"{side} " if side else ""
    if tp % attention_dp:
        return f"{named}TP {tp} does not divide into {attention_dp} attention replicas"
    if pp > model.layers:
        return f"{pp} {named}pipeline stages for {model.layers} layers"
    check = check_tp(model, tp // attention_dp)
    where = "both sides" if side == "both" else f"the {side} side"
    advice = f" on {where}: use TP" if side else "; nearest: TP"
    return "" if check.valid else f"{check.reason}{advice} {check.nearest * attention_dp}"
