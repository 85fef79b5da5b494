"""Which tensor-parallel degrees engines accept for a model, and why not."""

from __future__ import annotations

from dataclasses import dataclass

from kvmodel.records.model import Linear, ModelSpec, NoAttention


@dataclass(frozen=True, slots=True)
class TpCheck:
    """Whether an engine would start a model at a TP degree."""

    valid: bool
    reason: str
    """Why not; empty where valid."""
    nearest: int
    """The valid degree nearest to the one asked, the smaller of two."""


def check_tp(model: ModelSpec, tp: int) -> TpCheck:
    """Check the divisions engines assert when they shard attention.

    Query and state heads must divide by TP; KV heads must divide by TP or TP by them.
    Source: vLLM 0.33.0 model_executor/models/llama.py and config/model.py; SGLang 0.5.23 configs/model_config.py.
    """
    reason = _refusal(model, tp)
    return TpCheck(valid=not reason, reason=reason, nearest=_nearest(model, tp))


def _refusal(model: ModelSpec, tp: int) -> str:
    for group in model.groups:
        attention = group.attention
        if isinstance(attention, NoAttention):
            continue
        heads = attention.heads if isinstance(attention, Linear) else attention.q_heads
        if heads % tp:
            return f"{heads} {'state' if isinstance(attention, Linear) else 'attention'} heads do not divide by TP {tp}"
        stored = getattr(attention, "kv_heads", None) or (attention.groups if isinstance(attention, Linear) else None)
        if stored and stored % tp and tp % stored:
            return f"{stored} KV heads neither divide by TP {tp} nor divide it"
    return ""


def _nearest(model: ModelSpec, tp: int) -> int:
    valid = [degree for degree in range(1, 2 * tp + 1) if not _refusal(model, degree)]
    return min(valid, key=lambda degree: (abs(degree - tp), degree))
