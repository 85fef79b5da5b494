"""Why a scenario is infeasible, and the nearest one that is not: more TP, else narrower formats, else another accelerator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kvmodel.capacity import decode_memory, prefill_memory
from kvmodel.display import bytes_text, count_text
from kvmodel.errors import BadScenarioError
from kvmodel.parallel import accepted_tps
from kvmodel.plan import Plan, plan_of
from kvmodel.progress import Amounts
from kvmodel.records.hardware import Accelerator
from kvmodel.registry import accelerators
from kvmodel.results import SideMemory
from kvmodel.scenario import Scenario

LONGEST = 124
"""Characters of a reason; with its full stop it is an answer sentence."""

MAX_TP = 64

Changes = dict[str, Any]

FORMATS: tuple[tuple[str, Changes], ...] = (
    ("an FP8 cache", {"kv_dtype": "fp8"}),
    ("FP8 weights", {"weight_dtype": "fp8"}),
    ("an INT4 cache", {"kv_dtype": "int4"}),
    ("INT4 weights", {"weight_dtype": "int4"}),
    ("FP8 weights and cache", {"weight_dtype": "fp8", "kv_dtype": "fp8"}),
    ("INT4 weights and cache", {"weight_dtype": "int4", "kv_dtype": "int4"}),
)
"""Narrower formats, the one that changes least first."""


def reason_of(plan: Plan, amounts: Amounts, scenario: Scenario) -> str:
    """Why the scenario is infeasible and what would do; empty where it is feasible."""
    if plan.refusal:
        return plan.refusal
    for phase in ("prefill", "decode"):
        memory = side_memory(plan, amounts, phase)
        if not memory.fits:
            return _sentence(plan, phase, memory, remedy(scenario, amounts, phase))
    return ""


def side_memory(plan: Plan, amounts: Amounts, phase: str) -> SideMemory:
    """Memory of one accelerator of the side."""
    return (prefill_memory if phase == "prefill" else decode_memory)(plan, amounts)


def _sentence(plan: Plan, phase: str, memory: SideMemory, use: str) -> str:
    """What does not fit on what, and the remedy, in as many words as an answer takes."""
    side = getattr(plan, phase)
    where = f"{count_text(side.rank_count)} × {side.accelerator.name} ({phase})"
    weights, cache, workspace = (
        bytes_text(part * side.rank_count) for part in (memory.weights_bytes, memory.cache_bytes, memory.activation_bytes)
    )
    whole = bytes_text((memory.weights_bytes + memory.cache_bytes + memory.activation_bytes) * side.rank_count)
    if memory.weights_bytes > memory.usable_bytes:
        heads = [f"{weights} of weights do not fit on"]
    elif memory.weights_bytes + memory.cache_bytes > memory.usable_bytes:
        heads = [f"{weights} of weights and {cache} of cache exceed"]
    else:
        heads = [f"{weights} of weights, {cache} of cache and {workspace} of workspace exceed"]
    sentences = [f"{head} {where}: {use}" for head in [*heads, f"{whole} exceed"]]
    return next((s for s in sentences if len(s) <= LONGEST), sentences[-1])


def remedy(scenario: Scenario, amounts: Amounts, phase: str) -> str:
    """The least change to a side that makes it fit: attention DP 1, TP, formats, accelerator, or fewer requests."""
    tried = (_attention_dp, _more_tp, _formats, _accelerators, _fewer)
    return next((use for find in tried if (use := find(scenario, amounts, phase))), "no TP, format or accelerator alone would do")


def fits(scenario: Scenario, amounts: Amounts, phase: str, **changes: Any) -> bool:
    """Whether a side fits and engines accept the layout, with some of the scenario changed."""
    try:
        trial = plan_of(scenario, **changes)
    except BadScenarioError:
        return False
    return not trial.refusal and bool(side_memory(trial, amounts, phase).fits)


def layouts(phase: str, tp: int) -> tuple[Changes, Changes]:
    """Changes that give a side a TP without attention DP: of its own, and with the other side alike."""
    own, other = ({f"{side}_tp": tp, f"{side}_attention_dp": 1} for side in (phase, "decode" if phase == "prefill" else "prefill"))
    return own, own | other


def fitting_tp(scenario: Scenario, amounts: Amounts, phase: str, **changes: Any) -> tuple[int, bool] | None:
    """(smallest TP at which a side fits and engines accept the layout, whether the other side needs it too).

    No rank holds more at a higher TP, and no engine refuses equal TP: what does not fit at the highest fits at none.
    """
    tps = accepted_tps(plan_of(scenario).model, MAX_TP)
    if not fits(scenario, amounts, phase, **layouts(phase, tps[-1])[1], **changes):
        return None
    found = ((tp, both) for tp in tps for both in (False, True) if fits(scenario, amounts, phase, **layouts(phase, tp)[both], **changes))
    return next(found)


def _attention_dp(scenario: Scenario, amounts: Amounts, phase: str) -> str:
    name = f"{phase}_attention_dp"
    if getattr(scenario, name) > 1 and fits(scenario, amounts, phase, **{name: 1}):
        return "use attention DP 1"
    return ""


def _more_tp(scenario: Scenario, amounts: Amounts, phase: str) -> str:
    found = fitting_tp(scenario, amounts, phase)
    if found is None:
        return ""
    tp, both = found
    if both:
        return f"use TP {tp} on both sides"
    return f"use TP {tp} or more" + (" and attention DP 1" if getattr(scenario, f"{phase}_attention_dp") > 1 else "")


def _formats(scenario: Scenario, amounts: Amounts, phase: str) -> str:
    for name, changes in FORMATS:
        if fits(scenario, amounts, phase, **changes):
            return f"use {name}"
    for name, changes in FORMATS:
        found = fitting_tp(scenario, amounts, phase, **changes)
        if found:
            return f"use {name} and TP {found[0]}" + (" on both sides" if found[1] else "")
    return ""


def _accelerators(scenario: Scenario, amounts: Amounts, phase: str) -> str:
    name, by_size = f"{phase}_accelerator", sorted(accelerators().values(), key=_size)
    for gpu in by_size:
        if fits(scenario, amounts, phase, **{name: gpu.id}):
            return f"use {gpu.name}"
    if not fitting_tp(scenario, amounts, phase, **{name: by_size[-1].id}):
        return ""
    for gpu in by_size:
        found = fitting_tp(scenario, amounts, phase, **{name: gpu.id})
        if found:
            return f"use {gpu.name} and TP {found[0]}" + (" on both sides" if found[1] else "")
    return ""


def _size(gpu: Accelerator) -> float:
    return gpu.hbm_visible


def _fewer(scenario: Scenario, amounts: Amounts, phase: str) -> str:
    most = side_memory(plan_of(scenario), amounts, phase).batch_fits
    if most:
        return "only 1 request fits" if most == 1 else f"only {count_text(most)} requests fit"
    one = replace(amounts, batch=1, decode_batch=1)
    uses = (find(scenario, one, phase) for find in (_more_tp, _formats, _accelerators))
    return next((f"{use} for one request" for use in uses if use), "")
