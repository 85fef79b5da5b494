"""Which handoffs engines refuse, and why: between unequal sides, and over links they cannot use."""

from __future__ import annotations

from kvmodel.records.engine import Engine
from kvmodel.records.hardware import Link
from kvmodel.records.model import ModelSpec


def handoff_refusal(engine: Engine, link: Link, model: ModelSpec, *, tp: tuple[int, int], ranks: tuple[int, int], kv_dtype: str) -> str:
    """Why an engine refuses a handoff; empty where it does not.

    `tp` and `ranks` are (prefill, decode); ranks share one request's attention.

    Sources: vLLM 0.33.0 nixl/base_worker.py (validation of the remote agent); LMCache issue 1142; DistServe worker.py.
    """
    return _equal_tp(engine, *tp) or _copied_heads(engine, model, *ranks) or _packed(engine, kv_dtype, *ranks) or _same_node(engine, link)


def _equal_tp(engine: Engine, prefill_tp: int, decode_tp: int) -> str:
    if engine.unequal_tp == "refused" and prefill_tp != decode_tp:
        return f"{engine.name} refuses prefill TP {prefill_tp} with decode TP {decode_tp}: use the same on both sides"
    return ""


def _copied_heads(engine: Engine, model: ModelSpec, prefill_ranks: int, decode_ranks: int) -> str:
    heads = min((heads for group in model.groups if (heads := getattr(group.attention, "kv_heads", 0))), default=0)
    if engine.gathers_copied_heads or not heads or not prefill_ranks > max(decode_ranks, heads):
        return ""
    use = f"use prefill TP {max(heads, decode_ranks)} or less"
    return f"prefill TP {prefill_ranks} over decode TP {decode_ranks} with {heads} KV heads copied is refused by {engine.name}: {use}"


def _packed(engine: Engine, kv_dtype: str, prefill_ranks: int, decode_ranks: int) -> str:
    if engine.nvfp4_equal_tp and kv_dtype == "nvfp4" and prefill_ranks != decode_ranks:
        between = f"prefill TP {prefill_ranks} and decode TP {decode_ranks}"
        return f"an NVFP4 cache between {between} is refused by {engine.name}: use the same on both sides"
    return ""


def _same_node(engine: Engine, link: Link) -> str:
    if engine.same_node_only and link.scope != "same-node":
        return f"{link.name} joins nodes, but {engine.name} needs both sides inside one: use an NVLink or PCIe link"
    return ""
