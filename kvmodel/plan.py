"""Everything about a scenario that its numbers do not change: looked up and laid out once.

A plan depends on names, formats and degrees of parallelism; `kvmodel.handoff` then evaluates it for
numbers or arrays of tokens, batches and measured values.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import Any

from kvmodel import registry
from kvmodel.asked import engine_as_asked, link_as_asked
from kvmodel.cache import ModelCache, kv_dtype_of, layer_cache, model_cache
from kvmodel.compute import PhaseTime, phase_time, weight_bytes
from kvmodel.errors import BadScenarioError
from kvmodel.lane import Extra, Lane, extra_seconds, host_ceiling, lane_of
from kvmodel.memory import USABLE_MEMORY, Workspace, workspace
from kvmodel.parameters import layer_parameters, model_parameters
from kvmodel.placement import Placement
from kvmodel.rails import derived_lanes, offered_lanes
from kvmodel.ranks import layout_refusal, stage_caches
from kvmodel.records.engine import Engine
from kvmodel.records.hardware import Accelerator, Link
from kvmodel.records.model import Compressed, Mla, ModelSpec
from kvmodel.records.transport import Constants
from kvmodel.refusals import handoff_refusal
from kvmodel.scenario import Scenario
from kvmodel.structure import STRUCTURE, Structure
from kvmodel.wire import LayerWire, copies_of, joins, layer_messages, posted_share, senders_of, spread_seconds, wire_ratio

DEFAULT_CHUNK_TOKENS = 2048
"""Chunk where overlap is `chunk` and neither engine nor scenario states one: vLLM's smallest default
`max_num_batched_tokens` (docs.vllm.ai, optimization; checked 2026-11-29)."""
_NAMES, _FIELDS = frozenset(STRUCTURE), attrgetter(*STRUCTURE)


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
    """Bytes of one accelerator for weights, cache and workspace."""
    workspace: Workspace
    """What a pass needs on one accelerator beside weights and cache."""
    refusal: str
    """Why engines refuse this layout; empty where they do not."""
    rank_count: int
    """Accelerators of one instance."""

    @property
    def attention_ranks(self) -> int:
        """Ranks that share one request's attention."""
        return max(1, self.tp // self.attention_dp)


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
    offered_lanes: int
    """Lanes that NICs and ranks of both sides offer."""
    ways: int
    """Handoffs that attention replicas of the decode side take at once, each over lanes of its own."""
    lane: Lane
    extra: Extra
    overlap: str
    group_layers: int | None
    """Layers that leave together under `layer-group`; None for the best size."""
    serial_below: int
    """Prompts shorter than this are sent whole after prefill."""
    handshake_seconds: float
    """Of a first contact; 0 where the instances have met."""
    block: int
    chunk: int | None
    kv_dtype: str
    refusal: str
    """Why engines refuse the scenario's layout; empty where they do not."""


def plan_of(scenario: Scenario, **changes: Any) -> Plan:
    """The plan of a scenario, with some of its structure changed. Raises UnknownNameError and BadScenarioError."""
    changed = {name: value for name, value in changes.items() if name in _NAMES}
    structure = structure_of(scenario)
    return build_plan(structure._replace(**changed) if changed else structure)


def structure_of(scenario: Scenario) -> Structure:
    """The fields of a scenario that shape its plan."""
    return Structure(*_FIELDS(scenario))


@lru_cache(maxsize=1024)
def build_plan(s: Structure) -> Plan:
    """The plan for one structure: names looked up, sides laid out, the wire prepared."""
    model = registry.find_model(s.model) if isinstance(s.model, str) else s.model
    engine, link = engine_as_asked(s), link_as_asked(s)
    kv_dtype, overlap = kv_dtype_of(model, s.kv_dtype), _overlap(s, engine)
    ratio = wire_ratio(kv_dtype, s.wire_dtype)
    prefill, decode = (_side(s, phase, model, engine, kv_dtype) for phase in ("prefill", "decode"))
    tp, ranks = (s.prefill_tp, s.decode_tp), (prefill.attention_ranks, decode.attention_ranks)
    lanes = _lanes(s, model, engine, link, prefill, decode)
    converts = s.wire_dtype not in ("same", kv_dtype)
    sides = prefill.accelerator, decode.accelerator
    extra = extra_seconds(engine, ratio, *sides, pcie_achieved=_pcie().achieved, converts=converts)
    return Plan(
        model=model,
        engine=engine,
        link=link,
        prefill=prefill,
        decode=decode,
        local=phase_time(_placement(s, "decode", model, engine, kv_dtype), "prefill"),
        cache=model_cache(model, kv_dtype=kv_dtype, keeps_all_chunked=engine.keeps_all_chunked),
        wires=_wires(model, engine, kv_dtype, ratio, prefill, decode, apart=overlap.startswith("layer")),
        runs=tuple((index, len(list(same))) for index, same in groupby(model.sequence)),
        lanes=lanes,
        offered_lanes=_offered(s, engine, link, prefill, decode),
        ways=_ways(s, engine, link, decode, lanes),
        lane=lane_of(link, engine, None, extra.per_byte, _ceiling(engine, prefill, decode, lanes)),
        extra=extra,
        overlap=overlap,
        group_layers=None if s.group_layers is None else min(s.group_layers, model.layers),
        serial_below=engine.serial_below_tokens if s.overlap is None or s.serial_below_tokens is not None else 0,
        handshake_seconds=engine.handshake_seconds if s.contact == "first" else 0.0,
        block=s.block_tokens or engine.block_tokens,
        chunk=s.chunk_tokens or engine.chunk_tokens or (DEFAULT_CHUNK_TOKENS if overlap == "chunk" else None),
        kv_dtype=kv_dtype,
        refusal=_layouts_refusal(s, model, prefill, decode) or handoff_refusal(engine, link, model, tp=tp, ranks=ranks, kv_dtype=kv_dtype),
    )


def _layouts_refusal(s: Structure, model: ModelSpec, prefill: Side, decode: Side) -> str:
    """Why engines refuse the layout of a side, or of both."""
    if not (prefill.refusal and decode.refusal):
        return prefill.refusal or decode.refusal
    if (s.prefill_tp, s.prefill_attention_dp, s.prefill_pp) == (s.decode_tp, s.decode_attention_dp, s.decode_pp):
        return layout_refusal(model, tp=s.prefill_tp, attention_dp=s.prefill_attention_dp, pp=s.prefill_pp, side="both")
    return f"{prefill.refusal}; decode's layout is refused too"


def _pcie() -> Constants:
    """What copies to and from a host reach."""
    return registry.transports()["pcie"].constants


def _ceiling(engine: Engine, prefill: Side, decode: Side, lanes: int) -> float | None:
    """What host memory lets through on one lane, on the side with fewer nodes."""
    nodes = min(-(-side.tp // side.accelerator.gpus_per_node) for side in (prefill, decode))
    node_bandwidth = registry.transports()["transfer-engine"].constants.host_bandwidth
    return host_ceiling(engine, node_bandwidth=node_bandwidth, nodes=nodes, lanes=lanes)


def _overlap(s: Structure, engine: Engine) -> str:
    """The overlap asked for, or the engine's own."""
    overlap = s.overlap or engine.overlap
    if overlap == "layer-both" and engine.first_token == "prefill":
        allowed = "serial, chunk, layer, layer-group"
        raise BadScenarioError(f"overlap: got 'layer-both', but with {engine.id} prefill makes the first token; allowed: {allowed}")
    return overlap


def placement_of(scenario: Scenario, phase: str) -> Placement:
    """A scenario's model laid out on one side's accelerators. Raises UnknownNameError and BadScenarioError."""
    s = structure_of(scenario)
    model = registry.find_model(s.model) if isinstance(s.model, str) else s.model
    return _placement(s, phase, model, engine_as_asked(s), kv_dtype_of(model, s.kv_dtype))


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
        usable_bytes=place.accelerator.hbm_visible * USABLE_MEMORY,
        workspace=workspace(place, absorbed=phase == "decode"),
        refusal=layout_refusal(model, tp=place.tp, attention_dp=place.attention_dp, pp=pp, side=phase),
        rank_count=place.tp * pp,
    )


def _wires(
    model: ModelSpec, engine: Engine, kv_dtype: str, ratio: float, prefill: Side, decode: Side, *, apart: bool
) -> tuple[LayerWire, ...]:
    ranks = prefill.attention_ranks, decode.attention_ranks
    return tuple(
        LayerWire(
            group.count,
            layer_cache(group, kv_dtype=kv_dtype, keeps_all_chunked=engine.keeps_all_chunked),
            copies_of(group, engine, ranks[1]),
            ratio,
            *layer_messages(group, engine, *ranks, apart=apart),
            spread_seconds(group, engine, ranks[1], decode.accelerator),
            joins(group, engine, *ranks),
            1 / group.count if apart and joins(group, engine, *ranks) else 1.0,
            posted_share(group, engine, *ranks),
            senders_of(group, engine, *ranks),
        )
        for group in model.groups
    )


def _lanes(s: Structure, model: ModelSpec, engine: Engine, link: Link, prefill: Side, decode: Side) -> int:
    if s.lanes != "auto":
        return int(s.lanes)
    latent = any(isinstance(group.attention, Mla | Compressed) for group in model.groups)
    one_reader = engine.mla_copies == "single" and latent
    sides = prefill.accelerator, decode.accelerator, prefill.attention_ranks, decode.attention_ranks
    return derived_lanes(link, engine, *sides, one_reader=one_reader, nics_per_gpu=s.nics_per_gpu)


def _offered(s: Structure, engine: Engine, link: Link, prefill: Side, decode: Side) -> int:
    return min(
        offered_lanes(link, engine, side.accelerator, gpus=side.rank_count, ranks=side.attention_ranks, nics_per_gpu=s.nics_per_gpu)
        for side in (prefill, decode)
    )


def _ways(s: Structure, engine: Engine, link: Link, decode: Side, lanes: int) -> int:
    all_lanes = offered_lanes(link, engine, decode.accelerator, gpus=decode.rank_count, ranks=decode.tp, nics_per_gpu=s.nics_per_gpu)
    return max(1, min(decode.attention_dp, all_lanes // lanes))


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


def total_weight_bytes(plan: Plan, weight_dtype: str) -> float:
    """Bytes of the model's weights, one copy."""
    return weight_bytes(plan.model, weight_dtype)
