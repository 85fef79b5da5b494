"""Explain a figure: its formula, the terms that add up to it, the values put in with their sources, and what would halve it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kvmodel.explain import of_bytes, of_lengths, of_phases, of_tokens, of_turns, of_wire_time
from kvmodel.explain.figures import FIGURES, Case, Figure, find_figure
from kvmodel.explain.record import Explanation, Formula
from kvmodel.explain.remedies import is_met, remedies_of
from kvmodel.scenario import Scenario, need_scenario
from kvmodel.turn import Turn

LEFT_OUT = {
    "bytes": "Left out: rounding to whole blocks, an engine's own padding.",
    "times": "Left out: queueing, routing, the network outside the link. A calculation, not a measurement.",
}


def explain(scenario: Scenario, figure: str, turn: Turn | None = None) -> Explanation:
    """Explain one figure of a scenario, by its path in the command line's JSON or the beginning of it.

    Figures of an agent's turn need the `turn`; its own inputs are used where it is None.

    >>> told = explain(Scenario(), "transfer.seconds")
    >>> round(told.value, 6), told.filled
    (0.053687, '2.684 GB ÷ (1 × 50 GB/s)')

    Raises UnknownNameError and BadScenarioError.
    """
    need_scenario(scenario)
    asked = find_figure(figure, tuple(FIGURES.values()))
    return explained(asked, Case(scenario, turn or Turn()))


def explained(figure: Figure, case: Case) -> Explanation:
    """Explain a figure of a case."""
    value, formula = figure.value(case), formula_of(figure, case)
    remedies, nearest = remedies_of(figure, case)
    low, high = formula.band or (None, None)
    return Explanation(
        figure=figure.id,
        name=figure.name,
        value=value,
        unit=figure.unit,
        low=low,
        high=high,
        words=formula.words,
        symbols=formula.symbols,
        filled=formula.filled,
        terms=formula.parts,
        inputs=formula.given,
        goal=figure.goal.words,
        met=is_met(figure, value),
        remedies=remedies,
        nearest=nearest,
        left_out=LEFT_OUT["bytes" if figure.unit == "B" else "times"],
    )


_REQUEST: dict[str, Callable[[Case], Formula]] = {
    "kv.bytes_per_token": of_bytes.of_token,
    "kv.prompt_bytes": of_bytes.of_prompt,
    "kv.wire_bytes": of_bytes.of_wire,
    "transfer.seconds": of_wire_time.of_transfer,
    "transfer.exposed_seconds": of_wire_time.of_exposed,
    "gap_seconds": of_wire_time.of_gap,
    "prefill.seconds": of_phases.of_prefill,
    "decode.step_seconds": of_phases.of_step,
    "ttft_seconds": of_tokens.of_first,
    "second_token_seconds": of_tokens.of_second,
    "tpot_seconds": of_phases.of_tpot,
    "request_seconds": of_tokens.of_last,
    "critical_bandwidth_bytes_per_s": of_lengths.of_bandwidth,
    "sticky.stall_seconds": of_turns.of_stall,
}
_TURN: dict[str, Callable[[Case, str], Formula]] = {
    "ttft_seconds": of_turns.of_first_token,
    "unique_bytes": of_turns.of_unique,
    "wire_bytes": of_turns.of_all_edges,
}
_LENGTHS: dict[str, Callable[[Case, Any], Formula]] = {
    "decode_step_tokens": of_lengths.of_step_length,
    "hidden": of_lengths.of_hidden,
    "gap_over_share": of_lengths.of_large_gap,
}


def formula_of(figure: Figure, case: Case) -> Formula:
    """How a figure comes about."""
    if figure.id in _REQUEST:
        return _REQUEST[figure.id](case)
    if figure.id in _LENGTHS:
        return _LENGTHS[figure.id](case, figure.value(case))
    design, _, name = figure.id.partition(".")
    return _TURN[name](case, design)
