"""`kv-handoff wire`: where a handoff's time goes, what overlap saves, what sharing and failures cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from app.charts.congestion import RECOVERIES
from app.charts.pipelining import NAMES as OVERLAPS
from app.charts.where import ideal_of, terms_of
from app.reading import overlaps
from kvmodel.breakdown import NAMES, message_bytes
from kvmodel.congestion import congestion
from kvmodel.display import bytes_text, count_text, digits, share_text, time_text
from kvmodel.evaluate import amounts_of, evaluate
from kvmodel.failure import failure
from kvmodel.layer_groups import sent_in_groups
from kvmodel.plan import plan_of
from kvmodel.progress import progress
from kvmodel.registry import lossy_format
from kvmodel.scenario import Scenario
from kvmodel.traffic import Traffic

Json = dict[str, Any]


def wire_json(scenario: Scenario, traffic: Traffic) -> Json:
    """Everything the command says, in base units; None stands for no limit."""
    plan, amounts, evaluated = plan_of(scenario), amounts_of(scenario), evaluate(scenario)
    mine, ideal = terms_of(scenario, amounts), ideal_of(scenario)
    least = terms_of(ideal, amounts_of(ideal))
    terms = [{"id": key, "name": NAMES[key], "seconds": mine[key], "ideal_seconds": least[key]} for key in NAMES]
    gaps = {o: evaluate(scenario.with_changes(overlap=o)).gap_seconds for o in overlaps(scenario)}
    groups = {name: _best_group(scenario, joined) for name, joined in (("layers_apart", "no"), ("blocks_of_all_layers", "yes"))}
    fails = {name: failure(plan, amounts, Traffic(**{**dict(traffic), "recovery": name})).as_dict() for name in RECOVERIES}
    shared = {name: _finite(value) for name, value in congestion(plan, amounts, traffic).as_dict().items()}
    whole = {"gap_seconds": evaluated.gap_seconds, "terms": terms, "gap_seconds_by_overlap": gaps, "best_layer_group": groups}
    whole["messages"] = {"a_rank": evaluated.transfer.messages, "bytes": message_bytes(plan, amounts)}
    narrow = lossy_format(scenario.kv_dtype, scenario.wire_dtype)
    whole["accuracy"] = "" if narrow is None else f"{narrow.name}: {narrow.accuracy}"
    fits = {"feasible": evaluated.feasible, "reason": evaluated.reason, "notes": evaluated.notes}
    return {**whole, "congestion": shared, "failure": fails, "traffic": dict(traffic), **fits}


def _best_group(scenario: Scenario, cross_layer: str) -> Json:
    plan, amounts = plan_of(scenario, overlap="layer-group", group_layers=None, cross_layer=cross_layer), amounts_of(scenario)
    found = sent_in_groups(plan, amounts, progress(plan, amounts))
    return {"layers": found.layers, "exposed_seconds": found.exposed_seconds, "messages": found.messages}


def _finite(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None


def wire_text(found: Mapping[str, Any]) -> str:
    """The same for a reader."""
    rows = [(t["name"], t["seconds"]) for t in found["terms"] if t["seconds"]]
    lines = [f"Decode waits {time_text(found['gap_seconds'])} after prefill:"]
    lines += [f"  {name:<32}  {'−' if s < 0 else ' '}{time_text(abs(s))}" for name, s in rows]
    sent = found["messages"]
    if sent["a_rank"]:
        lines += [f"A rank sends {count_text(sent['a_rank'])} messages of {bytes_text(sent['bytes'])} in the mean."]
    waits = ", ".join(f"{OVERLAPS[o]} {time_text(s)}" for o, s in found["gap_seconds_by_overlap"].items())
    lines += [f"By overlap: {waits}."]
    c = found["congestion"]
    if c["knee"] is not None:
        number = found["traffic"]["in_flight"]
        lines += [
            f"{count_text(number)} in flight take {time_text(c['seconds'])} each; the knee is at {digits(c['knee'])}.",
            f"{digits(c['senders_at_knee'])} prefill instances fill the decode side; "
            f"with yours, what fills first is busy {share_text(c['utilisation'])} of the time.",
        ]
    lines += [f"Decode has room for {count_text(c['pool_handoffs'])} arriving caches, prompts without output."]
    f = found["failure"][found["traffic"]["recovery"]]
    lines += [
        f"With failures ({found['traffic']['recovery']}) the mean time to the first token is {time_text(f['expected_ttft_seconds'])}, "
        f"of a failed request {time_text(f['failed_ttft_seconds'])}; prefill keeps {bytes_text(f['prefill_held_bytes'])} for "
        f"{time_text(f['prefill_held_seconds'])}, at worst {time_text(f['prefill_worst_seconds'])}."
    ]
    return "\n".join([*lines, *([found["accuracy"]] if found["accuracy"] else [])])
