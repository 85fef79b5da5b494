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
from kvmodel.turn import decoded_beside, designs
from kvmodel.verdict import Sentence, first_short, plain, supposed

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
NAMED = {"pull-back": "pull back", "pool": "a shared pool"}
"""What the designs that keep the history and stall nobody are called in a sentence."""
KEPT = "Prefill keeps the history"
ONCE = 1.001
"""Times that an edge carries a token's KV, up to which it counts as once."""
SAME = 0.10
"""First tokens within this share of each other count as equal."""
NOTHING = (bytes_text(0), "wire", "sticky.wire_bytes")
"""What sticky moves, as a part of a sentence."""

Key = tuple[str, bool]


@dataclass(frozen=True, slots=True)
class TurnRow:
    """All designs at one position of a slider."""

    history: int
    delta: int
    born: int
    """Tokens of the history generated on decode."""
    turns: int
    """Turns served at once."""
    beside: int
    """Requests decoded beside them."""
    feasible: bool
    """Whether both sides hold the turn's whole prompt."""
    by_key: dict[Key, Design]
    local: int = 0
    """New tokens below which decode prefills by itself."""
    resends: str = ""
    """Name of an engine that sends decode what it holds already."""


def turn_rows(state: State, field: str, values: Sequence[int]) -> list[TurnRow]:
    """Every design at each value of a field of the turn."""
    plan, amounts = plan_of(state.scenario), amounts_of(state.scenario)
    column = np.asarray(values, dtype=np.int64)
    history = column if field == "history_tokens" else np.full(column.shape, state.turn.history_tokens)
    delta = column if field == "delta_tokens" else np.full(column.shape, state.turn.delta_tokens)
    found = designs(plan, amounts, state.turn, history=history, delta=delta)
    full = [broadcast(design, column.shape) for design in found]
    fits = np.broadcast_to(handoff(plan, replace(amounts, prompt_tokens=history + delta)).feasible, column.shape)
    beside, resends = decoded_beside(state.scenario), "" if plan.engine.skips_held else plan.engine.name

    def row(i: int, h: int, d: int) -> TurnRow:
        by_key = {(design.id, design.warm): pick(design, i) for design in full}
        born = min(state.turn.generated_tokens, h)
        return TurnRow(h, d, born, state.scenario.batch, beside, bool(fits[i]), by_key, state.turn.local_prefill_tokens, resends)

    return [row(i, h, d) for i, (h, d) in enumerate(zip(history.tolist(), delta.tolist(), strict=True))]


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
        return _weighed(row, best, sticky)
    first = _cut(all_ship, best)
    if best.unique_bytes >= 0.98 * all_ship.unique_bytes:
        return (
            (f"With {of} there is little to keep: ", ""),
            (bytes_text(best.unique_bytes), "wire", f"{best.id}.unique_bytes"),
            (f" move all the same, {first}.", ""),
        )
    cut = (f"{bytes_text(all_ship.unique_bytes)} to {bytes_text(best.unique_bytes)}", "wire", f"{best.id}.unique_bytes")
    heads, same = _cuts(row, best), ("; sticky, past its limit, does the same", "; sticky hands over too", "")
    if best.id != "pull-back":  # which is what sticky comes to where decode does not prefill
        same = same[-1:]
    ends = [f", {first}{too}." for too in same]
    return first_short([((f"{head} ", ""), cut, (end, "")) for end in ends for head in heads])


def _best(row: TurnRow) -> Design:
    """Of the designs that keep the history and stall nobody, the one whose first token comes first."""
    return min(row.by_key["pull-back", True], row.by_key["pool", True], key=lambda d: d.ttft_seconds)


def _cut(all_ship: Design, best: Design) -> str:
    unit = shared_time_unit(all_ship.ttft_seconds, best.ttft_seconds)
    return f"the first token from {time_text(all_ship.ttft_seconds, unit)} to {time_text(best.ttft_seconds, unit)}"


def _way(row: TurnRow, best: Design) -> str:
    """What stays on prefill and what moves in a design."""
    if row.born >= row.history:
        return "Prefill reads the whole history from the pool" if best.id == "pool" else "Prefill pulls back the whole history"
    if best.id == "pool":
        return f"{KEPT} and shares what is new"
    some = f"{count_text(row.born)} token{'' if row.born == 1 else 's'}"
    return f"{KEPT} and {f'pulls back {some}' if row.born else 'ships what is new'}"


def _cuts(row: TurnRow, best: Design) -> tuple[str, ...]:
    """The same as the beginning of what it cuts, the longest first."""
    if row.born >= row.history:
        return (f"{_way(row, best)} and cuts",)
    head = f"{KEPT}: {NAMED[best.id]}"
    return f"{head} moves {count_text(row.born + row.delta)} tokens and cuts", f"{head} cuts"


def _weighed(row: TurnRow, best: Design, sticky: Design) -> Sentence:
    """Sticky, which holds up those decoded beside the turn while it prefills, against the best that does not."""
    sooner, lost = best.ttft_seconds - sticky.ttft_seconds, sticky.prefill_seconds
    if sooner > 0 and not row.beside and row.turns * sooner < lost:
        return _tipped(best, sooner, lost)
    if sooner > 0 and row.turns * sooner >= row.beside * lost:
        return (("Stay with the holder: sticky moves ", ""), NOTHING, (_saved(row, best, sooner, lost), ""))
    head = f"{_way(row, best)}: {time_text(best.ttft_seconds)}; sticky "
    if not row.beside:
        return ((f"{head}takes ", ""), (time_text(-sooner), "prefill"), (" longer, even with nobody beside it.", ""))
    head += f"is {time_text(sooner)} sooner but" if sooner > 0 else f"takes {time_text(-sooner)} longer and"
    stall = (time_text(sticky.stall_seconds), "decode", "sticky.stall_seconds")
    ends = (f" stalls {_neighbours(row.beside)} ", stall, " each." if row.beside > 1 else "."), (" stalls each neighbour ", stall, ".")
    said: list[Sentence] = [((f"{head}{before}", ""), amount, (after, "")) for before, amount, after in ends]
    return first_short(said)


def _tipped(best: Design, sooner: float, lost: float) -> Sentence:
    """What keeps the history and stalls nobody, and sticky, which is sooner as long as there is nobody beside it to stall."""
    takes = (f"{TITLES[best.id, True]}: ", ""), (time_text(best.ttft_seconds), "", f"{best.id}.ttft_seconds")
    more, wait = f"; sticky is {time_text(sooner)} sooner but would stall any neighbour ", time_text(lost)
    ends = ((wait, "decode", "sticky.stall_seconds"), (".", ""))
    heads = (" to the first token and nobody stalls", " to the first token", "")
    said: list[Sentence] = [(*takes, (f"{head}{more}", ""), *ends) for head in heads]
    return first_short(said)


def _saved(row: TurnRow, best: Design, sooner: float, lost: float) -> str:
    """What sticky saves, and that it is more than what those beside it lose."""
    if not row.beside:
        return f" and its first token is {time_text(sooner)} sooner than {NAMED[best.id]}; nobody is decoded beside it."
    times = f"{count_text(row.turns)} × " if row.turns > 1 else ""
    cost = f"{_neighbours(row.beside)} lose {time_text(lost)} each" if row.beside > 1 else f"one neighbour loses {time_text(lost)}"
    return f" and saves {times}{time_text(sooner)} on {NAMED[best.id]}; {cost}."


def _neighbours(count: int) -> str:
    return f"{count_text(count)} neighbour{'' if count == 1 else 's'}"


def _some(part: int, whole: int) -> str:
    return "none" if not part else "all" if part == whole else count_text(part)


def _held_text(row: TurnRow) -> str:
    """What prefill is taken to hold of the history."""
    if row.born >= row.history:
        return ""
    return f", {'the rest' if row.born else 'all of it'} still on prefill (assumed)"


def first_token_text(row: TurnRow) -> str:
    """How soon the first token comes where the history is kept and nobody stalls."""
    best = _best(row)
    return f"{NAMED[best.id]} takes {time_text(best.ttft_seconds)}"


def copies_text(row: TurnRow) -> str:
    """Why the arrows carry more than what is new, or than the headings count; empty where they do not."""
    design = row.by_key[DRAWN[0]]
    whole = f"{row.resends} sends decode the whole prompt, also what it holds. " if row.resends else ""
    carried = sum(float(edge.bytes) for edge in design.edges if not edge.text)
    if not design.unique_bytes or carried <= ONCE * design.unique_bytes:
        return whole.rstrip()
    times = f"{carried / design.unique_bytes:.3g}"
    return f"{whole}Headings count each token’s KV once; the arrows carry it {times} times, once for each decode rank that gets a copy."


def turn_table(rows: Sequence[TurnRow]) -> Table:
    """The answer and what is said below the pictures, over a slider's positions."""
    sentences = [supposed(turn_sentence(row), feasible=row.feasible) for row in rows]
    return {
        "answer": [[list(part) for part in s] for s in sentences],
        "answer.text": [plain(s) for s in sentences],
        "setup": [f"{count_text(row.history)} tokens of history, {count_text(row.delta)} new" for row in rows],
        "born": [f"{_some(row.born, row.history)} of the history generated on decode" for row in rows],
        "held": [_held_text(row) for row in rows],
        "stall": [stall_text(row) for row in rows],
        "copies": [copies_text(row) for row in rows],
    }


def stall_text(row: TurnRow) -> str:
    """What sticky routing costs its neighbours, or why it does not prefill on decode; and what keeping the history saves."""
    seconds, all_ship, best = row.by_key["sticky", True].stall_seconds, row.by_key[DRAWN[0]], _best(row)
    if seconds:
        fewer = f"{bytes_text(all_ship.unique_bytes)} to {bytes_text(best.unique_bytes)} and "
        cuts = fewer if best.unique_bytes < 0.98 * all_ship.unique_bytes else ""
        kept = f"{NAMED[best.id]} cuts {cuts}{_cut(all_ship, best)}"
        return f"Sticky moves nothing: the decode GPUs run the prefill. {_waits_text(row, seconds)} Against recomputing all, {kept}."
    share = row.delta / (row.history + row.delta)
    if share >= LOCAL_PREFILL_SHARE:
        why = f"{share_text(share)} of the prompt are new, not under {share_text(LOCAL_PREFILL_SHARE)}"
    else:
        why = f"{count_text(row.delta)} tokens are new, not under {count_text(row.local)} (“Local prefill below” under More inputs)"
    return f"Sticky does not prefill on decode here, because {why}: the holder hands the turn to the prefill side, as pull back does."


def _waits_text(row: TurnRow, seconds: float) -> str:
    if row.beside:
        who = "The neighbour" if row.beside == 1 else f"Each of the {_neighbours(row.beside)}"
        return f"{who} decoded beside it waits {time_text(seconds)}."
    return f"Nobody is decoded beside it in this decode batch; in a larger one each neighbour would wait {time_text(seconds)}."
