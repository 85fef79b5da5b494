"""Everything about a scenario that its numbers do not change: looked up and laid out once.

A plan depends on names, formats and degrees of parallelism; `kvmodel.handoff` then evaluates it for
numbers or arrays of tokens, batches and measured values.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any, NamedTuple

from kvmodel import registry
from kvmodel.cache import ModelCache, kv_dtype_of, layer_cache, model_cache
from kvmodel.compute import PhaseTime, phase_time, weight_bytes
from kvmodel.errors import BadScenarioError
from kvmodel.memory import USABLE_MEMORY
from kvmodel.parameters import layer_parameters, model_parameters
from kvmodel.placement import Placement
from kvmodel.ranks import layout_refusal, stage_caches
from kvmodel.records.engine import Engine
from kvmodel.records.hardware import Accelerator, Link
from kvmodel.records.model import Compressed, Mla, ModelSpec
from kvmodel.scenario import Scenario
from kvmodel.wire import Lane, LayerWire, copies_of, derived_lanes, extra_seconds_per_byte, lane_of, wire_ratio

DEFAULT_CHUNK_TOKENS = 2048
"""Chunk where overlap is `chunk` and neither engine nor scenario states one: vLLM's smallest default
`max_num_batched_tokens` (docs.vllm.ai, optimization; checked 2026-11-29)."""


class Structure(NamedTuple):
    """Scenario fields a plan depends on, under their names; the other fields may be arrays."""

    model: str | ModelSpec
    kv_dtype: str
    weight_dtype: str
    wire_dtype: str
    prefill_accelerator: str
    decode_accelerator: str
    prefill_tp: int
    decode_tp: int
    prefill_pp: int
    decode_pp: int
    ep: int
    prefill_attention_dp: int
    decode_attention_dp: int
    link: str
    lanes: int | str
    engine: str
    overlap: str | None
    block_tokens: int | None
    chunk_tokens: int | None


STRUCTURE = Structure._fields


@dataclass(frozen=True, slots=True)
class Side:
    """One side of the handoff."""

    accelerator: Accelerator
    tp: int
    attention_dp: int
    time: PhaseTime
    stages: tuple[ModelCache, ...]
    """Cache on one rank of each pipeline stage."""
    rank_weights: float
    """Bytes of weights on one accelerator."""
    usable_bytes: float
    """Bytes of one accelerator for weights and cache."""
    refusal: str
    """Why engines refuse this layout; empty where they do not."""
    rank_count: int
    """Accelerators of one instance."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A scenario's structure, ready to evaluate."""

    model: ModelSpec
    engine: Engine
    link: Link
    prefill: Side
    decode: Side
    local: PhaseTime
    """Prefill time model on the decode side's accelerators, for turns that decode prefills itself."""
    cache: ModelCache
    """Whole model, one copy."""
    wires: tuple[LayerWire, ...]
    """By layer group."""
    runs: tuple[tuple[int, int], ...]
    """(group, layers in a row), first layer first."""
    lanes: int
    lane: Lane
    extra_per_byte: float
    overlap: str
    block: int
    chunk: int | None
    kv_dtype: str
    refusal: str
    """Why engines refuse the scenario's layout; empty where they do not."""


def plan_of(scenario: Scenario, **changes: Any) -> Plan:
    """The plan of a scenario, with some of its structure changed. Raises UnknownNameError and BadScenarioError."""
    return build_plan(Structure(*[changes.get(name, getattr(scenario, name)) for name in STRUCTURE]))


@lru_cache(maxsize=1024)
def build_plan(s: Structure) -> Plan:
    """The plan for one structure: names looked up, sides laid out, the wire prepared."""
    model = registry.find_model(s.model) if isinstance(s.model, str) else s.model
    engine = registry.find("engine", s.engine, registry.engines())
    link = registry.find("link", s.link, registry.links())
    kv_dtype, overlap = kv_dtype_of(model, s.kv_dtype), _overlap(s, engine)
    ratio = wire_ratio(kv_dtype, s.wire_dtype)
    prefill, decode = (_side(s, phase, model, engine, kv_dtype) for phase in ("prefill", "decode"))
    extra = extra_seconds_per_byte(engine, ratio, prefill.accelerator, decode.accelerator)
    return Plan(
        model=model,
        engine=engine,
        link=link,
        prefill=prefill,
        decode=decode,
        local=phase_time(_placement(s, "decode", model, engine, kv_dtype), "prefill"),
        cache=model_cache(model, kv_dtype=kv_dtype, keeps_all_chunked=engine.keeps_all_chunked),
        wires=_wires(model, engine, kv_dtype, ratio, max(1, s.decode_tp // s.decode_attention_dp)),
        runs=tuple((index, len(list(same))) for index, same in groupby(model.sequence)),
        lanes=_lanes(s, model, engine, link, prefill, decode),
        lane=lane_of(link, engine, None, extra),
        extra_per_byte=extra,
        overlap=overlap,
        block=s.block_tokens or engine.block_tokens,
        chunk=s.chunk_tokens or engine.chunk_tokens or (DEFAULT_CHUNK_TOKENS if overlap == "chunk" else None),
        kv_dtype=kv_dtype,
        refusal=prefill.refusal or decode.refusal or _tp_mismatch(engine, s.prefill_tp, s.decode_tp),
    )


def _overlap(s: Structure, engine: Engine) -> str:
    """The overlap asked for, or the engine's own."""
    overlap = s.overlap or engine.overlap
    if overlap == "layer-both" and engine.first_token == "prefill":
        allowed = "serial, chunk, layer"
        raise BadScenarioError(f"overlap: got 'layer-both', but with {engine.id} prefill makes the first token; allowed: {allowed}")
    return overlap


def _placement(s: Structure, phase: str, model: ModelSpec, engine: Engine, kv_dtype: str) -> Placement:
    gpu = registry.find("accelerator", getattr(s, f"{phase}_accelerator"), registry.accelerators())
    tp, dp = getattr(s, f"{phase}_tp"), getattr(s, f"{phase}_attention_dp")
    return Placement(model, gpu, tp, dp, s.ep, kv_dtype, s.weight_dtype, engine.keeps_all_chunked)


def _side(s: Structure, phase: str, model: ModelSpec, engine: Engine, kv_dtype: str) -> Side:
    place, pp = _placement(s, phase, model, engine, kv_dtype), getattr(s, f"{phase}_pp")
    return Side(
        accelerator=place.accelerator,
        tp=place.tp,
        attention_dp=place.attention_dp,
        time=phase_time(place, phase),
        stages=_stages(place, pp),
        rank_weights=_rank_weights(place, pp),
        usable_bytes=place.accelerator.hbm_bytes * USABLE_MEMORY,
        refusal=layout_refusal(model, tp=place.tp, attention_dp=place.attention_dp, pp=pp, side=phase),
        rank_count=place.tp * pp,
    )


def _wires(model: ModelSpec, engine: Engine, kv_dtype: str, ratio: float, decode_ranks: int) -> tuple[LayerWire, ...]:
    return tuple(
        LayerWire(
            group.count,
            layer_cache(group, kv_dtype=kv_dtype, keeps_all_chunked=engine.keeps_all_chunked),
            copies_of(group, engine, decode_ranks),
            ratio,
            engine.kv_split * engine.fragmentation,
        )
        for group in model.groups
    )


def _lanes(s: Structure, model: ModelSpec, engine: Engine, link: Link, prefill: Side, decode: Side) -> int:
    if s.lanes != "auto":
        return int(s.lanes)
    latent = any(isinstance(group.attention, Mla | Compressed) for group in model.groups)
    one_reader = engine.mla_copies == "single" and latent
    sides = prefill.accelerator, decode.accelerator, s.prefill_tp, s.decode_tp
    return derived_lanes(link, engine, *sides, one_reader=one_reader)


def _stages(place: Placement, pp: int) -> tuple[ModelCache, ...]:
    """Caches of the pipeline stages that differ."""
    tp, keeps = place.attention_tp, place.keeps_all_chunked
    return tuple(dict.fromkeys(stage_caches(place.model, kv_dtype=place.kv_dtype, tp=tp, pp=pp, keeps_all_chunked=keeps)))


def _rank_weights(place: Placement, pp: int) -> float:
    counts = model_parameters(place.model)
    total = 2.0 * (counts.embedding + counts.head) / place.tp
    for group in place.model.groups:
        p = layer_parameters(group, place.model.hidden)
        dense = (p.attention / place.attention_tp + p.ffn / place.tp) * place.dense_bytes
        total += group.count / pp * (dense + p.experts * p.expert * place.expert_bytes / place.expert_shards)
    return total


def _tp_mismatch(engine: Engine, prefill_tp: int, decode_tp: int) -> str:
    if engine.equal_tp_only and prefill_tp != decode_tp:
        return f"{engine.name} refuses prefill TP {prefill_tp} with decode TP {decode_tp}: use the same on both sides"
    return ""


def total_weight_bytes(plan: Plan, weight_dtype: str) -> float:
    """Bytes of the model's weights, one copy."""
    return weight_bytes(plan.model, weight_dtype)
