"""An agent's next turn over a slider: every design at each position, and the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from app.charts.spec import Table
from app.state import State
from kvmodel.designs import LOCAL_PREFILL_SHARE, Design
from kvmodel.display import bytes_text, count_text, share_text, shared_time_unit, time_text
from kvmodel.evaluate import amounts_of
from kvmodel.handoff import handoff
from kvmodel.plan import plan_of
from kvmodel.results import pick
from kvmodel.turn import designs
from kvmodel.verdict import Sentence, plain, supposed

TITLES = {
    ("recompute", True): "Recompute and ship",
    ("pull-back", True): "Pull back",
    ("pool", True): "Shared pool",
    ("pool", False): "Shared pool, cold",
    ("sticky", True): "Sticky to the holder",
}
DRAWN = (("recompute", True), ("pull-back", True), ("pool", True), ("sticky", True))
"""Designs drawn as pictures, most bytes first."""
BARS = (*DRAWN[:3], ("pool", False), DRAWN[3])
NAMED = {"pull-back": "pulling back what is new", "pool": "sharing what is new"}
"""What the sentence calls the designs it recommends."""
SHORTLY = {"pull-back": "pull back", "pool": "share a pool"}
"""The same beside sticky."""
SAME = 0.10
"""First tokens within this share of each other count as equal."""

Key = tuple[str, bool]


@dataclass(frozen=True, slots=True)
class TurnRow:
    """All designs at one position of a slider."""

    history: int
    delta: int
    feasible: bool
    """Whether both sides hold the turn's whole prompt."""
    by_key: dict[Key, Design]


def turn_rows(state: State, field: str, values: Sequence[int]) -> list[TurnRow]:
    """Every design at each value of a field of the turn."""
    plan, amounts = plan_of(state.scenario), amounts_of(state.scenario)
    column = np.asarray(values, dtype=np.int64)
    history = column if field == "history_tokens" else np.full(column.shape, state.turn.history_tokens)
    delta = column if field == "delta_tokens" else np.full(column.shape, state.turn.delta_tokens)
    found = designs(plan, amounts, state.turn, history=history, delta=delta)
    full = [broadcast(design, column.shape) for design in found]
    fits = np.broadcast_to(handoff(plan, replace(amounts, prompt_tokens=history + delta)).feasible, column.shape)
    return [TurnRow(int(history[i]), int(delta[i]), bool(fits[i]), {(d.id, d.warm): pick(d, i) for d in full}) for i in range(len(values))]


def broadcast(node: Any, shape: tuple[int, ...]) -> Any:
    """A design whose numbers all have the swept shape."""
    if isinstance(node, tuple):
        return tuple(broadcast(item, shape) for item in node)
    if hasattr(node, "__dataclass_fields__"):
        return type(node)(**{name: broadcast(getattr(node, name), shape) for name in node.__dataclass_fields__})
    return node if isinstance(node, str | bool) else np.broadcast_to(np.asarray(node), shape)


def turn_sentence(row: TurnRow) -> Sentence:
    """The answer: which design, by what each moves, how soon its first token comes, and what its neighbours pay."""
    all_ship, sticky, best = row.by_key[DRAWN[0]], row.by_key["sticky", True], _best(row)
    times = [row.by_key[key].ttft_seconds for key in DRAWN]
    of = f"{count_text(row.delta)} new of {count_text(row.history + row.delta)} tokens"
    if max(times) - min(times) < SAME * max(times):
        spread = time_text(max(times) - min(times))
        least = "sticky moves the least" if sticky.unique_bytes < best.unique_bytes else "and move alike"
        return ((f"With {of}, all four designs finish within {spread} of each other; {least}.", ""),)
    if sticky.stall_seconds > 0:
        return _weighed(best, sticky)
    first = _cut(all_ship, best)
    if best.unique_bytes >= 0.98 * all_ship.unique_bytes:
        return (
            (f"With {of} there is little to keep: ", ""),
            (bytes_text(best.unique_bytes), "wire", f"{best.id}.unique_bytes"),
            (f" move all the same, {first}.", ""),
        )
    return (
        (f"Keep the history where it is: {NAMED[best.id]} cuts ", ""),
        (f"{bytes_text(all_ship.unique_bytes)} to {bytes_text(best.unique_bytes)}", "wire", f"{best.id}.unique_bytes"),
        (f" and {first}.", ""),
    )


def _best(row: TurnRow) -> Design:
    """Of the designs that keep the history and stall nobody, the one whose first token comes first."""
    return min(row.by_key["pull-back", True], row.by_key["pool", True], key=lambda d: d.ttft_seconds)


def _cut(all_ship: Design, best: Design) -> str:
    unit = shared_time_unit(all_ship.ttft_seconds, best.ttft_seconds)
    return f"the first token from {time_text(all_ship.ttft_seconds, unit)} to {time_text(best.ttft_seconds, unit)}"


def _weighed(best: Design, sticky: Design) -> Sentence:
    """Sticky, which stalls those decoded beside the turn, against the best that does not."""
    sooner = best.ttft_seconds - sticky.ttft_seconds
    stall = time_text(sticky.stall_seconds)
    if sooner >= sticky.stall_seconds:
        beside = int(sooner / sticky.stall_seconds)
        lost = f"the {stall} one neighbour loses" if beside == 1 else f"{count_text(beside)} neighbours lose at {stall} each"
        saved = f" and saves {time_text(sooner)} on {SHORTLY[best.id]}, more than {lost}."
        return (("Stay with the holder: sticky moves ", ""), (bytes_text(0), "wire"), (saved, ""))
    compared = f"is {time_text(sooner)} sooner but" if sooner > 0 else f"takes {time_text(-sooner)} longer and"
    head = f"Keep the history where it is: {SHORTLY[best.id]} in {time_text(best.ttft_seconds)}; sticky {compared} stalls each neighbour "
    return ((head, ""), (stall, "decode"), (".", ""))


def turn_table(rows: Sequence[TurnRow]) -> Table:
    """The answer and what is said below the pictures, over a slider's positions."""
    sentences = [supposed(turn_sentence(row), feasible=row.feasible) for row in rows]
    return {
        "answer": [[list(part) for part in s] for s in sentences],
        "answer.text": [plain(s) for s in sentences],
        "setup": [f"{count_text(row.history)} tokens of history, {count_text(row.delta)} new" for row in rows],
        "stall": [stall_text(row) for row in rows],
    }


def stall_text(row: TurnRow) -> str:
    """What sticky routing costs its neighbours, or why it does not prefill on decode; and what keeping the history saves."""
    seconds, all_ship, best = row.by_key["sticky", True].stall_seconds, row.by_key[DRAWN[0]], _best(row)
    if seconds:
        kept = f"{NAMED[best.id]} cuts {bytes_text(all_ship.unique_bytes)} to {bytes_text(best.unique_bytes)} and {_cut(all_ship, best)}"
        return (
            f"Sticky moves nothing, but the decode GPUs run the prefill, and every request batched with it waits {time_text(seconds)}: "
            f"alone on its GPUs it costs nobody. Against recomputing all, {kept}."
        )
    share = row.delta / (row.history + row.delta)
    why = f"{share_text(share)} of the prompt are new" if share >= LOCAL_PREFILL_SHARE else f"{count_text(row.delta)} tokens are new"
    return f"Sticky does not prefill on decode here, because {why}: the turn goes through the prefill side like pull back."
