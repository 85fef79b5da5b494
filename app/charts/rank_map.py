"""Who holds and sends which heads and layers: ranks, attention replicas and pipeline stages of either side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.charts.tables import table_block
from kvmodel.ownership import Flow, StageFlow, flows, heads_of_rank, replicas, stage_flows
from kvmodel.plan import Plan, Side
from kvmodel.records.model import Linear

MAX_ROWS = 16
"""Ranks and stretches of layers listed; beyond, the rest is counted."""
_MAX_NAMED = 4
"""Replicas named by their ranks; beyond, the first two and the last."""


def ranks_block(plan: Plan) -> dict[str, Any]:
    """Which stage holds which layers, which replica whose requests, which rank which heads, and who sends to whom."""
    sides = (("Prefill", plan.prefill), ("Decode", plan.decode))
    said = [_said(replica_text(name, side)) for name, side in sides if side.attention_dp > 1]
    stages = [_stages_table(plan)] if any(_pp(side) > 1 for _, side in sides) else []
    counted = [_said("Ranks below are counted within one replica and one stage.")] if said or stages else []
    heads = _heads(plan)
    holders = [*counted, _heads_table(heads, plan)] if heads else [_said(_whole_text(plan))]
    return {"tag": "div", "children": [*said, *stages, *holders]}


def replica_text(name: str, side: Side) -> str:
    """Which ranks of a side share a request's attention."""
    spans = replicas(side.tp, side.attention_dp)
    if side.tp <= side.attention_dp:
        return f"{name}: {len(spans)} attention replicas of one rank, and each rank holds all heads of its own requests."
    named = [_span(span) for span in spans]
    if len(named) > _MAX_NAMED:
        named = [*named[:2], "…", named[-1]]
    each = spans[0][1] - spans[0][0] + 1
    return f"{name}: {len(spans)} attention replicas of {each} ranks ({', '.join(named)}); a request is on one of them, with all its heads."


def _pp(side: Side) -> int:
    return side.rank_count // side.tp


def _heads(plan: Plan) -> int:
    """KV heads that ranks share out, 0 where they share out none."""
    return max((g.attention.kv_heads for g in plan.model.groups if hasattr(g.attention, "kv_heads")), default=0)


def _whole_text(plan: Plan) -> str:
    linear = all(isinstance(g.attention, Linear) or g.attention.kind == "none" for g in plan.model.groups)
    words = "a share of the state" if linear else "the whole latent row of every token"
    whose = " of its own requests" if plan.prefill.attention_dp > 1 or plan.decode.attention_dp > 1 else ""
    readers = {"per-rank": "every decode rank reads a copy", "single": "one decode rank reads it", "split": "the lanes split it"}
    return f"Each rank holds {words}{whose}; with this engine {readers[plan.engine.mla_copies]}."


def _stages_table(plan: Plan) -> dict[str, Any]:
    crossing = stage_flows(plan.model.layers, _pp(plan.prefill), _pp(plan.decode))
    rows = [_stage_row(flow, plan) for flow in crossing[:MAX_ROWS]]
    if len(crossing) > MAX_ROWS:
        rows.append([f"and {len(crossing) - MAX_ROWS} more", "", ""])
    return table_block("Which stages hold and send which layers", ("Layers", "Prefill holds and sends", "Decode holds"), rows)


def _stage_row(flow: StageFlow, plan: Plan) -> list[str]:
    return [_span((flow.first, flow.last)), _stage_text(flow.prefill_stage, plan.prefill), _stage_text(flow.decode_stage, plan.decode)]


def _stage_text(stage: int, side: Side) -> str:
    ranks = stage * side.tp, (stage + 1) * side.tp - 1
    return f"stage {stage + 1}, rank{'s' if side.tp > 1 else ''} {_span(ranks)}"


def _heads_table(kv_heads: int, plan: Plan) -> dict[str, Any]:
    tps = max(1, plan.prefill.tp // plan.prefill.attention_dp), max(1, plan.decode.tp // plan.decode.attention_dp)
    crossing = flows(kv_heads, *tps)
    rows = [_rank_row(rank, kv_heads, tps, crossing) for rank in range(min(max(tps), MAX_ROWS))]
    if max(tps) > MAX_ROWS:
        rows.append([f"and {max(tps) - MAX_ROWS} more", "", "", ""])
    return table_block("Who holds and sends which heads", ("Rank", "Prefill holds", "Sends", "Decode holds"), rows)


def _rank_row(rank: int, kv_heads: int, tps: tuple[int, int], crossing: Sequence[Flow]) -> list[str]:
    held = [_heads_text(heads_of_rank(kv_heads, tp, rank)) if rank < tp else "" for tp in tps]
    sent = [f"{_heads_text((f.first, f.last))} to rank {f.decode_rank}" for f in crossing if f.prefill_rank == rank]
    return [str(rank), held[0], ", ".join(sent) or ("nothing" if rank < tps[0] else ""), held[1]]


def _heads_text(span: tuple[int, int]) -> str:
    return f"head{'s' if span[0] != span[1] else ''} {_span(span)}"


def _span(span: tuple[int, int]) -> str:
    return str(span[0]) if span[0] == span[1] else f"{span[0]}\u2013{span[1]}"


def _said(text: str) -> dict[str, Any]:
    return {"tag": "p", "class": "kv-note", "children": [text]}
