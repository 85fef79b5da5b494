"""Which tensor-parallel degrees engines accept for a model, and why not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from kvmodel.records.model import Attention, Linear, ModelSpec, NoAttention


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
    reasons = (_mixer_refusal(mixer, tp) for group in model.groups for mixer in (group.attention, group.state) if mixer)
    return next(filter(None, reasons), "")


def _mixer_refusal(mixer: Attention, tp: int) -> str:
    if isinstance(mixer, NoAttention):
        return ""
    heads = mixer.heads if isinstance(mixer, Linear) else mixer.q_heads
    if heads % tp:
        return f"{heads} {'state' if isinstance(mixer, Linear) else 'attention'} heads do not divide by TP {tp}"
    if isinstance(mixer, Linear) and mixer.variant == "gdn" and mixer.groups % tp:
        return f"{mixer.groups} key heads of the state do not divide by TP {tp}"
    stored = mixer.groups if isinstance(mixer, Linear) else getattr(mixer, "kv_heads", 0)
    if stored and stored % tp and tp % stored:
        return f"{stored} {'state groups' if isinstance(mixer, Linear) else 'KV heads'} neither divide by TP {tp} nor divide it"
    return ""


@lru_cache(maxsize=256)
def accepted_tps(model: ModelSpec, most: int) -> tuple[int, ...]:
    """Degrees up to `most` that engines accept for a model, smallest first."""
    return tuple(tp for tp in range(1, most + 1) if not _refusal(model, tp))


def _nearest(model: ModelSpec, tp: int) -> int:
    valid = [degree for degree in range(1, 2 * tp + 1) if not _refusal(model, degree)]
    return min(valid, key=lambda degree: (abs(degree - tp), degree))
