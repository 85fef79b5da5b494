"""Everything about a scenario that its numbers do not change: looked up and laid out once.

A plan depends on names, formats and degrees of parallelism; `kvmodel.handoff` then evaluates it for
numbers or arrays of tokens, batches and measured values.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

from kvmodel import registry
from kvmodel.cache import ModelCache, kv_dtype_of, layer_cache, model_cache
from kvmodel.compute import PhaseTime, phase_time, weight_bytes
from kvmodel.errors import BadScenarioError
from kvmodel.memory import USABLE_MEMORY
from kvmodel.parallel import check_tp
from kvmodel.parameters import layer_parameters, model_parameters
from kvmodel.ranks import stage_caches
from kvmodel.records.engine import Engine
from kvmodel.records.hardware import Accelerator, Link
from kvmodel.records.model import Compressed, Mla, ModelSpec
from kvmodel.scenario import Scenario
from kvmodel.terms import Placement
from kvmodel.wire import Lane, LayerWire, copies_of, derived_lanes, extra_seconds_per_byte, lane_of, wire_ratio

DEFAULT_CHUNK_TOKENS = 2048
"""Chunk where overlap is `chunk` and neither engine nor scenario states one: vLLM's smallest default
`max_num_batched_tokens` (docs.vllm.ai, optimization; checked 2026-11-29)."""

STRUCTURE = (
    "model",
    "kv_dtype",
    "weight_dtype",
    "wire_dtype",
    "prefill_accelerator",
    "decode_accelerator",
    "prefill_tp",
    "decode_tp",
    "prefill_pp",
    "decode_pp",
    "ep",
    "prefill_attention_dp",
    "decode_attention_dp",
    "link",
    "lanes",
    "engine",
    "overlap",
    "block_tokens",
    "chunk_tokens",
)
"""Scenario fields a plan depends on; the others may be arrays."""


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


def plan_of(scenario: Scenario) -> Plan:
    """The plan of a scenario. Raises UnknownNameError and BadScenarioError."""
    return build_plan(*[getattr(scenario, name) for name in STRUCTURE])


@lru_cache(maxsize=1024)
def build_plan(
    model: str | ModelSpec,
    kv_dtype: str,
    weight_dtype: str,
    wire_dtype: str,
    prefill_accelerator: str,
    decode_accelerator: str,
    prefill_tp: int,
    decode_tp: int,
    prefill_pp: int,
    decode_pp: int,
    ep: int,
    prefill_attention_dp: int,
    decode_attention_dp: int,
    link: str,
    lanes: int | str,
    engine: str,
    overlap: str | None,
    block_tokens: int | None,
    chunk_tokens: int | None,
) -> Plan:
    """The plan for one value of each field of `STRUCTURE`."""
    spec = registry.find_model(model) if isinstance(model, str) else model
    how = registry.find("engine", engine, registry.engines())
    wire = registry.find("link", link, registry.links())
    sender = registry.find("accelerator", prefill_accelerator, registry.accelerators())
    receiver = registry.find("accelerator", decode_accelerator, registry.accelerators())
    dtype = kv_dtype_of(spec, kv_dtype)
    chosen_overlap = overlap or how.overlap
    if chosen_overlap == "layer-both" and how.first_token == "prefill":
        raise BadScenarioError(f"overlap: got 'layer-both', but with {how.id} prefill makes the first token; allowed: serial, chunk, layer")
    ratio = wire_ratio(dtype, wire_dtype)

    def side(phase: str, gpu: Accelerator, tp: int, pp: int, dp: int) -> Side:
        place = Placement(spec, gpu, tp, dp, ep, dtype, weight_dtype, how.keeps_all_chunked)
        return Side(
            gpu,
            tp,
            dp,
            phase_time(place, phase),
            _stages(place, pp),
            _rank_weights(place, pp),
            gpu.hbm_bytes * USABLE_MEMORY,
            _refusal(spec, phase, tp, pp, dp),
            tp * pp,
        )

    prefill = side("prefill", sender, prefill_tp, prefill_pp, prefill_attention_dp)
    decode = side("decode", receiver, decode_tp, decode_pp, decode_attention_dp)
    local = Placement(spec, receiver, decode_tp, decode_attention_dp, ep, dtype, weight_dtype, how.keeps_all_chunked)
    decode_ranks = max(1, decode_tp // decode_attention_dp)
    wires = tuple(
        LayerWire(
            group.count,
            layer_cache(group, kv_dtype=dtype, keeps_all_chunked=how.keeps_all_chunked),
            copies_of(group, how, decode_ranks),
            ratio,
            how.kv_split * how.fragmentation,
        )
        for group in spec.groups
    )
    one_reader = how.mla_copies == "single" and any(isinstance(group.attention, Mla | Compressed) for group in spec.groups)
    extra = extra_seconds_per_byte(how, ratio, sender, receiver)
    chunk = chunk_tokens or how.chunk_tokens or (DEFAULT_CHUNK_TOKENS if chosen_overlap == "chunk" else None)
    return Plan(
        model=spec,
        engine=how,
        link=wire,
        prefill=prefill,
        decode=decode,
        local=phase_time(local, "prefill"),
        cache=model_cache(spec, kv_dtype=dtype, keeps_all_chunked=how.keeps_all_chunked),
        wires=wires,
        runs=tuple((index, len(list(same))) for index, same in groupby(spec.sequence)),
        lanes=int(lanes) if lanes != "auto" else derived_lanes(wire, how, sender, receiver, prefill_tp, decode_tp, one_reader=one_reader),
        lane=lane_of(wire, how, None, extra),
        extra_per_byte=extra,
        overlap=chosen_overlap,
        block=block_tokens or how.block_tokens,
        chunk=chunk,
        kv_dtype=dtype,
        refusal=prefill.refusal or decode.refusal or _tp_mismatch(how, prefill_tp, decode_tp),
    )


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


def _refusal(model: ModelSpec, phase: str, tp: int, pp: int, dp: int) -> str:
    if tp % dp:
        return f"{phase} TP {tp} does not divide into {dp} attention replicas"
    if pp > model.layers:
        return f"{pp} {phase} pipeline stages for {model.layers} layers"
    check = check_tp(model, tp // dp)
    return "" if check.valid else f"{check.reason} on the {phase} side: use TP {check.nearest * dp}"


def _tp_mismatch(engine: Engine, prefill_tp: int, decode_tp: int) -> str:
    if engine.equal_tp_only and prefill_tp != decode_tp:
        return f"{engine.name} refuses prefill TP {prefill_tp} with decode TP {decode_tp}: use the same on both sides"
    return ""


def total_weight_bytes(plan: Plan, weight_dtype: str) -> float:
    """Bytes of the model's weights, one copy."""
    return weight_bytes(plan.model, weight_dtype)
