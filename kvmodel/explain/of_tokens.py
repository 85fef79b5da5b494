"""Times until tokens explained: the first, the second and the last."""

from __future__ import annotations

from kvmodel.explain.bands import band_of
from kvmodel.explain.figures import Case
from kvmodel.explain.given import asked, of_engine, of_figure, once
from kvmodel.explain.of_wire_time import fixed_inputs
from kvmodel.explain.record import Formula, Given, parts_of

Row = tuple[str, str, float, str]


def of_first(case: Case) -> Formula:
    """From arrival to the first token."""
    rows, given = _first_rows(case), _phase_inputs(case)
    early = case.plan.engine.released_by == "prefill"
    words = (
        "Prefill releases the first token as soon as it is done; the handoff delays the second."
        if early
        else "Prefill, then what is exposed of the transfer, the engine's fixed times, and one decode step where decode makes the token."
    )
    symbols = "TTFT = " + " + ".join(symbol for _, symbol, value, _ in rows if value or symbol == "t_prefill")
    return Formula(words, symbols, parts_of(rows), once(given), band=band_of(case, lambda course: course.ttft))


def of_second(case: Case) -> Formula:
    """From arrival to the second token."""
    rows = _second_rows(case)
    words = "The first token and one mean decode step; where prefill releases the first token, the gap falls between the two."
    symbols = "t₂ = " + " + ".join(symbol for _, symbol, value, _ in rows if value)
    given = [*_phase_inputs(case), _tpot(case)]
    return Formula(words, symbols, parts_of(rows), once(given), band=band_of(case, lambda course: course.second))


def of_last(case: Case) -> Formula:
    """From arrival to the last token."""
    r, output = case.result, case.amounts.output_tokens
    given = [asked(case.scenario, "output_tokens", "g", "tokens"), *_phase_inputs(case), _tpot(case)]
    if output <= 1:
        rows, symbols = _first_rows(case), "t_last = TTFT"
    else:
        rest = ("Tokens 3 to the last", "(g − 2)·TPOT", (output - 2) * r.tpot_seconds, f"{output - 2:,} × {r.tpot_seconds * 1e3:.4g} ms")
        rows, symbols = [*_second_rows(case), rest], "t_last = t₂ + (g − 2)·TPOT"
    words = "The second token, then one mean decode step for each further token."
    return Formula(words, symbols, parts_of(rows), once(given))


def _first_rows(case: Case) -> list[Row]:
    r, engine = case.result, case.plan.engine
    rows = [("Prefill", "t_prefill", r.prefill.seconds, "")]
    if engine.released_by == "prefill":
        return rows
    step = r.decode.step_seconds if engine.first_token == "decode" else 0.0
    return [*rows, *_gap_rows(case), ("First decode step", "t_step", step, "")]


def _second_rows(case: Case) -> list[Row]:
    late = _gap_rows(case) if case.plan.engine.released_by == "prefill" else []
    return [*_first_rows(case), *late, ("One mean decode step", "TPOT", case.result.tpot_seconds, "")]


def _gap_rows(case: Case) -> list[Row]:
    r, plan = case.result, case.plan
    return [
        ("Exposed transfer", "t_exposed", r.transfer.exposed_seconds, ""),
        ("Fixed handoff", "t_handoff", plan.engine.handoff_seconds, ""),
        ("Admission to decode", "t_admission", plan.engine.admission_seconds, ""),
        ("Handshake", "t_handshake", plan.handshake_seconds, ""),
    ]


def _phase_inputs(case: Case) -> list[Given]:
    plan, s = case.plan, case.scenario
    return [
        of_figure(case, "prefill.seconds", "t_prefill"),
        of_figure(case, "transfer.exposed_seconds", "t_exposed"),
        *fixed_inputs(case),
        of_figure(case, "decode.step_seconds", "t_step"),
        of_engine(plan, s, "first_token", "", plan.engine.first_token),
        of_engine(plan, s, "released_by", "", plan.engine.released_by),
    ]


def _tpot(case: Case) -> Given:
    return of_figure(case, "tpot_seconds", "TPOT")
