"""Critical lengths explained: what is compared, and what both sides are where it turns."""

from __future__ import annotations

from kvmodel.explain.figures import Case
from kvmodel.explain.given import asked, computed, of_engine, of_figure, once
from kvmodel.explain.of_wire_time import wire_inputs
from kvmodel.explain.record import Formula, Given
from kvmodel.flips import GAP_MARK
from kvmodel.scenario import MAX_PROMPT_TOKENS

MOST_ENDS = 4
"""Ends of ranges at which both sides are given."""


def of_step_length(case: Case, found: int | None) -> Formula:
    """The shortest prompt whose transfer takes one decode step."""
    words = f"The shortest prompt whose transfer takes one decode step, of all up to {MAX_PROMPT_TOKENS:,} tokens."
    given: list[Given] = []
    for n in dict.fromkeys((max(1, found - 1), found) if found else (MAX_PROMPT_TOKENS,)):
        at = case.at(n)
        given.append(computed(f"Transfer at {n:,} tokens", "t_wire", at.transfer.seconds, "s"))
        given.append(computed(f"Decode step at {n:,} tokens", "t_step", at.decode.step_seconds, "s"))
        less = at.transfer.seconds - at.decode.step_seconds
        given.append(computed(f"The one less the other at {n:,} tokens", "t_wire − t_step", less, "s"))
    rest = [row for row in wire_inputs(case) if row.symbol != "B"]
    per_token = of_figure(case, "kv.bytes_per_token", "B_token")
    given += [per_token, *rest, asked(case.scenario, "decode_batch", "")]
    return Formula(words, "least n with t_wire(n) ≥ t_step(n)", (), once(given))


def of_bandwidth(case: Case) -> Formula:
    """Bandwidth of all lanes at which the wire takes as long as prefill."""
    r = case.result
    words = "The bandwidth of all lanes together at which the bytes take as long as prefill: with less, no overlap hides them."
    given = (
        of_figure(case, "kv.wire_bytes", "B"),
        of_figure(case, "prefill.seconds", "t_prefill"),
        asked(case.scenario, "prompt_tokens", "n", "tokens"),
        asked(case.scenario, "batch", ""),
    )
    return Formula(words, "W = B ÷ t_prefill", (), given, f"{r.kv.wire_bytes / 1e9:.4g} GB ÷ {r.prefill.seconds:.4g} s")


def of_hidden(case: Case, spans: tuple[tuple[int, int], ...]) -> Formula:
    """Prompts whose transfer layer-by-layer sending would hide."""
    words = "Prompts of which, sent layer by layer, only the last layer shows: each layer has crossed before the next one is computed."
    layered = case.changed({"overlap": "layer"})
    given = [
        computed(f"{name} at {n:,} tokens", symbol, value, "s")
        for n in _ends(spans)
        for name, symbol, value in (
            ("Transfer", "t_wire", layered.at(n).transfer.seconds),
            ("Prefill", "t_prefill", layered.at(n).prefill.seconds),
            ("Exposed", "t_exposed", layered.at(n).transfer.exposed_seconds),
        )
    ]
    given += [row for row in wire_inputs(case) if row.symbol != "B"]
    return Formula(words, "all n with busy(L) = ready(L) + x(L)", (), once(given))


def of_large_gap(case: Case, spans: tuple[tuple[int, int], ...]) -> Formula:
    """Prompts whose gap is a large share of TTFT."""
    words = f"Prompts after whose prefill decode waits longer than {GAP_MARK:.0%} of TTFT, with the scenario's own overlap."
    given = [
        computed(f"{name} at {n:,} tokens", symbol, value, unit)
        for n in _ends(spans)
        for name, symbol, value, unit in (
            ("Gap", "gap", case.at(n).gap_seconds, "s"),
            ("Time to first token", "TTFT", case.at(n).ttft_seconds, "s"),
            ("Share", "", case.at(n).gap_share, "share"),
        )
    ]
    given += [of_engine(case.plan, case.scenario, "overlap", "", case.plan.overlap), *(r for r in wire_inputs(case) if r.symbol != "B")]
    return Formula(words, f"all n with gap(n) ÷ TTFT(n) > {GAP_MARK:g}", (), once(given))


def _ends(spans: tuple[tuple[int, int], ...]) -> list[int]:
    """Ends of ranges that are no ends of the search; the longest prompt where there are none."""
    inner = [n for span in spans for n in span if n not in (1, MAX_PROMPT_TOKENS)]
    return inner[:MOST_ENDS] or [MAX_PROMPT_TOKENS]
