"""An agent's next turn explained, design by design."""

from __future__ import annotations

from kvmodel.designs import LOCAL_PREFILL_SHARE
from kvmodel.explain.figures import Case
from kvmodel.explain.given import asked, chunk_inputs, computed, of_figure, once
from kvmodel.explain.of_wire_time import lane_inputs
from kvmodel.explain.record import Formula, Given, parts_of

FIRST = {
    "recompute": "Prefill computes the whole prompt and ships all of it.",
    "pool": "Prefill reads from the pool what it lacks, computes what is new and writes it; decode reads it.",
    "pool-cold": "Any worker: prefill reads the history from the pool, computes what is new and writes it; decode reads the whole prompt.",
    "sticky": "Decode holds the history and computes a short turn itself; a longer one goes through prefill, as pull back does.",
    "pull-back": "Prefill reads from decode what was generated there, computes what is new and ships it back.",
}
"""What happens until the first token."""


def of_first_token(case: Case, name: str) -> Formula:
    """Time to the first token of a design."""
    d = case.design[name]
    rows = [
        ("Prefill", "t_prefill", d.prefill_seconds, f"{d.prefill_tokens:,} tokens"),
        ("Transfers that nothing hides, and fixed times", "t_wait", d.wait_seconds, ""),
        ("First decode step", "t_step", d.step_seconds, ""),
    ]
    edges = [computed(f"{e.source} → {e.target}", "", e.seconds, "s", "bytes over the link") for e in d.edges if e.bytes]
    given = [*_turn_inputs(case), computed("Tokens computed", "", d.prefill_tokens, "tokens"), *edges, *lane_inputs(case)]
    return Formula(FIRST[name], "TTFT = t_prefill + t_wait + t_step", parts_of(rows), once(given))


def of_all_edges(case: Case, name: str) -> Formula:
    """KV bytes over all edges of a design."""
    given = [*_turn_inputs(case), *_bytes_inputs(case)]
    words = f"{FIRST[name]} Every edge counts with its copies; text carries none."
    return Formula(words, "B_wire = Σ edges", parts_of(_edge_rows(case, name)), once(given))


def of_unique(case: Case, name: str) -> Formula:
    """KV bytes of a design, each token's once."""
    d = case.design[name]
    again = ("The same tokens again, and copies", "− repeated", d.unique_bytes - d.wire_bytes, "")
    words = f"{FIRST[name]} Each token's KV counts once, however many edges it takes."
    given = [*_turn_inputs(case), *_bytes_inputs(case)]
    return Formula(words, "B = Σ edges − repeated", parts_of([*_edge_rows(case, name), again]), once(given))


def of_stall(case: Case) -> Formula:
    """What sticky routing costs requests decoded beside it."""
    d = case.design["sticky"]
    words = "Where decode computes the turn itself, a request beside it waits for one prefill chunk, or for all of it where none is stated."
    rows = [("Prefill on the decode side", "t_prefill", d.stall_seconds, f"{d.prefill_tokens:,} tokens")]
    return Formula(
        words,
        "t_stall = t_prefill(min(d, chunk) tokens after h)",
        parts_of(rows),
        once([*_turn_inputs(case), *chunk_inputs(case.plan, case.scenario)]),
    )


def _edge_rows(case: Case, name: str) -> list[tuple[str, str, float, str]]:
    edges = [(f"{e.source} → {e.target}", "B_edge", float(e.bytes), "") for e in case.design[name].edges if not e.text]
    return edges or [("No KV moves", "0", 0.0, "")]


def _turn_inputs(case: Case) -> list[Given]:
    t = case.turn
    rows = [
        asked(t, "history_tokens", "h", "tokens"),
        asked(t, "delta_tokens", "d", "tokens"),
        asked(t, "generated_tokens", "g", "tokens", min(t.generated_tokens, t.history_tokens)),
        asked(t, "local_prefill_tokens", "", "tokens"),
        computed("Local prefill below a share of new tokens", "", LOCAL_PREFILL_SHARE, "share", "Dynamo's conditional disaggregation"),
    ]
    held = ("prefill_held_tokens", "decode_held_tokens", "pool_held_tokens")
    return [*rows, *(asked(t, name, "", "tokens") for name in held if getattr(t, name) is not None)]


def _bytes_inputs(case: Case) -> list[Given]:
    return [
        of_figure(case, "kv.bytes_per_token", "B_token"),
        asked(case.scenario, "batch", "q"),
        asked(case.scenario, "decode_tp", ""),
    ]
