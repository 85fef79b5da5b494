"""The pinned scenario beside the present one: a sentence, what differs, and the figures of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.charts.pin_bars import Terms, pin_bars, pin_bars_table, turn_terms
from app.charts.request import sum_unit
from app.charts.spec import Table, at
from app.charts.tables import table_block
from app.charts.turn import TITLES, turn_rows, turn_sentence
from app.over import Over, evaluate_over
from app.state import TURN_FIELDS, State
from kvmodel import Evaluation
from kvmodel.changes import InputChange, changes_over
from kvmodel.compare import HEADLINES, FigurePair, accuracy_text, first_token_terms, fits_text, pairs_of, sentence_of
from kvmodel.compare_turns import design_pairs, kept, turn_changes_over, turn_difference
from kvmodel.display import MINUS, bytes_text, digits
from kvmodel.evaluate import evaluate
from kvmodel.plan import Plan, plan_of
from kvmodel.verdict import plain

SUM = ("ttft", "prefill", "exposed", "fixed", "step")
"""Figures of the sum that say their pinned value below."""
OWN = "A configuration of your own stays in this session: the address, links and files do not carry this comparison."
HOLLOW = "Hollow bars are the pinned scenario's."


def applies_text(state: State) -> str:
    """What a link of `State.applied` does."""
    if state.keeps_pin():
        return "Applies it; the pinned scenario stays pinned to compare"
    return "Applies it" if state.is_own() else "Applies it; what was is pinned to compare"


def pin_table(state: State, slider: str, values: tuple[int, ...]) -> Table:
    """Everything that is said of the pin, over a slider's positions; empty without a pin, or where the slider moves none of it."""
    if state.pin is None:
        return {}
    if slider in TURN_FIELDS:
        return _turn_table(state.pin, state, slider, values)
    return _request_table(state.pin, evaluate_over(state.scenario, slider, values)) if slider in ("prompt_tokens", "batch") else {}


def _request_table(pin: State, over: Over) -> Table:
    before = evaluate(pin.scenario)
    changes, plan = changes_over(pin.scenario, over.scenario, over.field, over.values), plan_of(pin.scenario)
    said = [sentence_of(found, (plan, before), (over.plan, row)) for found, row in zip(changes, over.rows, strict=True)]
    pairs = [pairs_of(before, row) for row in over.rows]
    told = {path: [row[i] for row in pairs] for i, (path, *_) in enumerate(HEADLINES)}
    bars = pin_bars_table(_terms(plan, before), [_terms(over.plan, row) for row in over.rows], changes)
    fits = {"pin.fits": [fits_text(before, row) for row in over.rows]}
    return _said_table(said, changes) | fits | _pair_columns(told) | _sum_columns(before, over.rows) | bars


def _terms(plan: Plan, row: Evaluation) -> Terms:
    return {name: seconds for name, (seconds, _) in first_token_terms(plan, row).items()}


def _turn_table(pin: State, state: State, slider: str, values: tuple[int, ...]) -> Table:
    before = list(turn_rows(pin, "delta_tokens", (pin.turn.delta_tokens,))[0].by_key.values())
    rows = [list(row.by_key.values()) for row in turn_rows(state, slider, values)]
    changes = turn_changes_over((pin.scenario, pin.turn), (state.scenario, state.turn), slider, values)
    said = [turn_difference(found, before, row) for found, row in zip(changes, rows, strict=True)]
    pairs = [design_pairs(before, row) for row in rows]
    told = {
        f"{name} {pair.id} {pair.warm}": [getattr(row[i], name) for row in pairs]
        for i, pair in enumerate(pairs[0])
        for name in ("unique", "ttft")
    }
    bars = pin_bars_table(turn_terms(kept(before)), [turn_terms(kept(row)) for row in rows], changes)
    return _said_table(said, changes) | _pair_columns(told) | bars


def _said_table(said: Sequence[Any], changes: Sequence[Sequence[InputChange]]) -> Table:
    return {
        "pin.sentence": [[list(part) for part in sentence] for sentence in said],
        "pin.differs": [differs_text(found) for found in changes],
    }


def differs_text(changes: Sequence[InputChange]) -> str:
    """The inputs that differ, from what to what."""
    told = [f"{change.title} ({change.pinned} → {change.this})" for change in changes]
    return f"Differs in: {', '.join(told)}." if told else "Change an input, and this says what it does."


def _pair_columns(told: dict[str, list[FigurePair]]) -> Table:
    table: Table = {}
    for name, pairs in told.items():
        texts = [pair.texts() for pair in pairs]
        table |= {f"pin.{part} {name}": [row[i] for row in texts] for i, part in enumerate(("was", "now", "change"))}
    return table


def _sum_columns(before: Evaluation, rows: Sequence[Evaluation]) -> Table:
    """What stands below each number of the sum, in its unit."""
    table: Table = {f"pin.s.{key}": [] for key in SUM}
    pinned = _sum_terms(before)
    for row in rows:
        size = sum_unit(row.ttft_seconds)[1]
        for key, value, was in zip(SUM, _sum_terms(row), pinned, strict=True):
            table[f"pin.s.{key}"].append(f"pin {digits(was / size)}, {_signed((value - was) / size)}")
    table["pin.s.bytes"] = [f"pin {bytes_text(before.kv.wire_bytes)}"] * len(rows)
    return table


def _sum_terms(row: Evaluation) -> tuple[float, ...]:
    exposed = row.transfer.exposed_seconds
    return row.ttft_seconds, row.prefill.seconds, exposed, row.gap_seconds - exposed, row.decode.step_seconds


def _signed(value: float) -> str:
    return "same" if abs(value) < 5e-10 else f"{'+' if value > 0 else MINUS}{digits(abs(value))}"


def pin_blocks(state: State, *, turn: bool) -> list[dict[str, Any]]:
    """The sentence, what differs, what the pinned one says of itself, what a format costs, and the figures of both, folded."""
    if state.pin is None:
        return []
    notes = [accuracy_text(state.pin.scenario, state.scenario), OWN if state.pin.is_own() or state.is_own() else ""]
    # Where it changes at the scenario itself its line stands, whatever it says further on: no page jumps under a thumb.
    changes = not turn and fits_text(evaluate(state.pin.scenario), evaluate(state.scenario))
    fits = [_block("p", at("pin.fits"), look="kv-note kv-pin-fits")] if changes else []
    lines = [
        _block("p", {"tag": "span", "parts": at("pin.sentence"), "children": []}, look="kv-pin-said"),
        pin_bars(),
        *fits,
        _block("p", at("pin.differs"), look="kv-note kv-one-line"),
        _block("p", f"The pinned one: {_verdict(state.pin, turn=turn)}", look="kv-note"),
        *(_block("p", note, look="kv-note") for note in notes if note),
    ]
    head = ("", "Pinned", "Now", "Change")
    rows = [[title, *(at(f"pin.{part} {name}") for part in ("was", "now", "change"))] for name, title in _rows(turn=turn)]
    table = table_block("Figures of the pinned scenario and of this one", head, rows, look="")
    summary = _block("summary", _block("span", "Both in figures"), _block("span", "pinned, now, change"))
    return [*lines, _block("details", summary, table, _block("p", at("pin.differs"), look="kv-note"), look="kv-row")]


def _rows(*, turn: bool) -> list[tuple[str, str]]:
    if not turn:
        return [(path, title) for path, title, _ in HEADLINES]
    named = (("ttft", "first token"), ("unique", "unique KV"))
    return [(f"{name} {key} {warm}", f"{title}, {what}") for (key, warm), title in TITLES.items() for name, what in named]


def _verdict(pin: State, *, turn: bool) -> str:
    if turn:
        return plain(turn_sentence(turn_rows(pin, "delta_tokens", (pin.turn.delta_tokens,))[0]))
    return evaluate(pin.scenario).verdict


def _block(tag: str, *children: Any, look: str = "") -> dict[str, Any]:
    return {"tag": tag, **({"class": look} if look else {}), "children": list(children)}
