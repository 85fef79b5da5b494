"""Handoffs that share a decode instance's links, and handoffs that fail, as tables, a curve and text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.charts.marks import disc, line, note, words
from app.charts.scale import log_axis, time_axis
from app.charts.spec import Figure, Spec, Table, at, colour, four_digits
from app.charts.tables import table_block
from app.state import State
from kvmodel.congestion import Congestion, congestion, curve
from kvmodel.display import bytes_text, count_text, digits, share_text, time_text
from kvmodel.evaluate import amounts_of
from kvmodel.failure import Failure, failure
from kvmodel.layer_groups import settled
from kvmodel.plan import Plan, plan_of
from kvmodel.traffic import Traffic

NUMBERS = tuple(sorted({round(2 ** (i / 2)) for i in range(17)}))
"""Handoffs in flight at which the curve is drawn: 1 to 256, two a doubling."""
OTHERS = 8
"""Of these, how many are spoken of where a handoff is alone."""
RECOVERIES = ("retry", "resume", "recompute")
FAILURE_ROWS: tuple[tuple[str, Sequence[Any]], ...] = (
    ("wait", ["First token if all goes well"]),
    ("failed", ["after a failed attempt"]),
    ("mean", ["mean of all requests"]),
    ("resent", ["Sent in vain a request"]),
    ("held", ["Prefill keeps ", at("g.prefill_bytes"), " for"]),
    ("worst", ["at worst, its lease"]),
    ("reserved", ["Decode reserves ", at("g.decode_bytes"), " for"]),
)


@dataclass(frozen=True, slots=True)
class Shared:
    """One position of a slider."""

    found: Congestion
    number: int
    points: Sequence[float]
    failures: Sequence[Failure]
    senders: int


def shared_rows(state: State, name: str, values: Sequence[int]) -> list[Shared]:
    """The state with one input at each of the values."""
    scenario, positions = state.scenario, {} if name == "in_flight" else {name: np.asarray(values)}
    plans = settled(plan_of(scenario), amounts_of(scenario, **positions))
    return [_row(plan, state, name, value) for plan, value in zip(plans if positions else plans * len(values), values, strict=True)]


def _row(plan: Plan, state: State, name: str, value: int) -> Shared:
    beside = state.with_values({name: value}) if name == "in_flight" else state
    amounts, traffic = amounts_of(state.scenario, **({} if name == "in_flight" else {name: value})), beside.traffic
    points = np.broadcast_to(curve(plan, amounts, traffic, np.array(NUMBERS)).seconds, len(NUMBERS)).tolist()
    failures = [failure(plan, amounts, _recovering(traffic, recovery)) for recovery in RECOVERIES]
    return Shared(congestion(plan, amounts, traffic), traffic.in_flight, points, failures, traffic.senders)


def _recovering(traffic: Traffic, recovery: str) -> Traffic:
    return Traffic(**{**dict(traffic), "recovery": recovery})


def shared_table(rows: Sequence[Shared], pinned: Sequence[float] = ()) -> Table:
    """Columns of the curve, the sentences under it and the table of failures; axes reach to a pinned scenario's curve."""
    frames = [_frame(row, pinned) for row in rows]
    return {name: [frame[name] for frame in frames] for name in frames[0]}


def _frame(row: Shared, pinned: Sequence[float]) -> dict[str, Any]:
    found, knee = row.found, row.found.knee
    shown, walled = 1 <= knee <= NUMBERS[-1], 1 <= found.pool_handoffs <= NUMBERS[-1]
    seconds = [v for v in (*row.points, *pinned) if v > 0] or [1e-6]
    low, high = min(seconds), max(seconds)
    floor = 10.0 ** math.floor(math.log10(low) - 0.15)
    ceiling = 10.0 ** math.ceil(math.log10(high) + 0.15)
    return {
        "g.curve": four_digits(row.points),
        "g.says": [f"{count_text(n)} in flight<br>{time_text(v)} each" for n, v in zip(NUMBERS, row.points, strict=True)],
        "g.alone": four_digits([found.alone_seconds, found.alone_seconds]),
        "g.range": [math.log10(floor), math.log10(ceiling)],
        "g.x": round(math.log10(row.number), 4),
        "g.y": round(math.log10(max(found.seconds, floor)), 4),
        "g.text": f"<b>you: {count_text(row.number)} in flight, {time_text(found.seconds)} each</b>",
        "g.anchor": "left" if row.number < 32 else "right",
        "g.shift": -20 if row.number < 32 else 22,
        "g.knee_x": math.log10(knee) if shown else -9.0,
        "g.knee_y": round(math.log10(max(found.alone_seconds, floor)), 4),
        "g.knee": f"<b>knee: {_some(knee)} in flight</b>" if shown else "",
        "g.room_at": found.pool_handoffs if walled else 1e-9,
        "g.room_x": math.log10(found.pool_handoffs) if walled else -9.0,
        "g.room": f"decode has room for {count_text(found.pool_handoffs)}",
        "g.prefill_bytes": bytes_text(row.failures[0].prefill_held_bytes),
        "g.decode_bytes": bytes_text(row.failures[0].decode_reserved_bytes),
        "g.second": second_sentence(row),
        "g.sentence": knee_sentence(row),
        "g.room_sentence": room_sentence(found, row.senders),
        **{
            f"g.{key}.{name}": text for name, one in zip(RECOVERIES, row.failures, strict=True) for key, text in _failure_texts(one).items()
        },
    }


def _some(number: float) -> str:
    return digits(number) if number < 100 else count_text(round(number))


def second_sentence(row: Shared) -> str:
    """What the headline, which is of a handoff alone, becomes with others in flight."""
    if row.number > 1:
        return f"That is alone: with {count_text(row.number)} in flight each is on the links for {time_text(row.found.seconds)}."
    return f"That is alone: with {OTHERS} in flight each would be on the links for {time_text(row.points[NUMBERS.index(OTHERS)])}."


def knee_sentence(row: Shared) -> str:
    """How many handoffs the links carry, and how many prefill instances fill them."""
    found = row.found
    if math.isinf(found.knee):
        return "Nothing moves: any number of handoffs can be in flight."
    name, each = slowest(found, row.senders)
    rate = f"they carry {digits(1 / each)} handoffs a second"
    full = f"{_some(found.senders_at_knee)} prefill instances, each handing off as fast as it prefills, fill the decode side"
    yours = f"with yours, what fills first is busy {share_text(found.utilisation)} of the time"
    late = ", and they fall behind" if found.utilisation > 1 else ""
    return f"What fills first are {name}, {time_text(each)} for each handoff: {rate}. {full[0].upper()}{full[1:]}; {yours}{late}."


def slowest(found: Congestion, senders: int) -> tuple[str, float]:
    """What serves the fewest handoffs, and its time for one."""
    shares = {
        "the links": found.link_seconds,
        "posting and copies of the sending side": found.sender_seconds / senders,
        "posting and copies of the decode side": found.receiver_seconds,
    }
    name = max(shares, key=lambda key: shares[key])
    return name, shares[name]


def room_sentence(found: Congestion, senders: int) -> str:
    """How many arriving caches decode has room for, and whether that or something else fills first."""
    if found.pool_handoffs < 1:
        return "Decode has no room for another cache beside its weights and batch: use more decode GPUs, or a smaller batch."
    if found.pool_handoffs >= found.knee:
        least = f"{slowest(found, senders)[0]} are full with {_some(found.knee)} in flight, so they do not wait for memory first"
        return f"Decode has room for {count_text(found.pool_handoffs)} arriving caches, prompts without output; {least}."
    held = f"each held for at least {time_text(found.reserved_seconds)} before its first token"
    if math.isinf(found.pool_handoffs_per_second):
        return f"Decode has room for {count_text(found.pool_handoffs)} arriving caches, prompts without output."
    rate = f"beyond {digits(found.pool_handoffs_per_second)} a second they wait for memory"
    return f"Decode has room for {count_text(found.pool_handoffs)} arriving caches, prompts without output, {held}: {rate}."


def _failure_texts(f: Failure) -> dict[str, str]:
    return {
        "wait": time_text(f.ttft_seconds),
        "failed": time_text(f.failed_ttft_seconds),
        "mean": time_text(f.expected_ttft_seconds),
        "resent": bytes_text(f.resent_bytes),
        "held": time_text(f.prefill_held_seconds),
        "worst": time_text(f.prefill_worst_seconds),
        "reserved": time_text(f.decode_reserved_seconds),
    }


def congestion_figure(pinned: Sequence[float] = ()) -> Figure:
    """Time of one handoff against the number in flight; a pinned scenario's dashed."""
    return Figure("congestion", _layout(13, pinned), _layout(12, pinned), at("g.text"))


def _pinned_curve(points: Sequence[float], size: int) -> list[Spec]:
    """The curve, and its word behind its end."""
    texts = [f"pin, {count_text(n)} in flight<br>{time_text(v)} each" for n, v in zip(NUMBERS, points, strict=True)]
    hover = {"customdata": texts, "hovertemplate": "%{customdata}<extra></extra>"}
    end = words([NUMBERS[-1]], [points[-1] or None], ["\u2002pin"], "muted", size)
    return [line(list(NUMBERS), [v or None for v in four_digits(points)], "muted", 1.5, dash="dash", **hover), end]


def _layout(size: int, pinned: Sequence[float]) -> Spec:
    ticks = [1, 4, 16, 64, 256]
    data = [
        line([1, NUMBERS[-1]], at("g.alone"), "other", 1.25, dash="dash"),
        line(list(NUMBERS), at("g.curve"), "wire", 3.5, customdata=at("g.says"), hovertemplate="%{customdata}<extra></extra>"),
        *(_pinned_curve(pinned, size) if pinned else []),
    ]
    over = {"bgcolor": colour("bg"), "borderpad": 3}
    names = [
        note(at("g.text"), at("g.x"), at("g.y"), "ink", size, xanchor=at("g.anchor"), yshift=at("g.shift"), **over),
        note("◯", at("g.knee_x"), at("g.knee_y"), "wire", 16, xanchor="center", borderpad=0),
        note(at("g.knee"), at("g.knee_x"), at("g.knee_y"), "wire_text", size, yshift=-20, **over),
        note(at("g.room"), at("g.room_x"), 1.0, "pool_text", size, yref="paper", yanchor="top", xanchor="right", xshift=-4, **over),
        disc(at("g.x"), at("g.y")),
    ]
    stroke = {"color": colour("pool"), "width": 1.5, "dash": "dash"}
    wall = {"type": "line", "xref": "x", "yref": "paper", "x0": at("g.room_at"), "x1": at("g.room_at"), "y0": 0, "y1": 1, "line": stroke}
    seconds = {**time_axis(1e-6, 1e6), "range": at("g.range")}
    layout = {
        "height": 300,
        "margin": {"l": 60, "r": 34 if pinned else 16, "t": 8, "b": 44},
        "xaxis": {**log_axis(0.9, 300, ticks, [str(t) for t in ticks]), "title": {"text": "handoffs in flight"}, "fixedrange": True},
        "yaxis": {**seconds, "fixedrange": True, "showgrid": True},
        "annotations": names,
        "shapes": [wall],
    }
    return {"data": data, "layout": layout}


def failure_block() -> dict[str, Any]:
    """What each way of recovering costs, in a table."""
    rows = [[{"tag": "span", "children": list(title)}, *(at(f"g.{key}.{name}") for name in RECOVERIES)] for key, title in FAILURE_ROWS]
    return table_block("Failed transfers", ("After a failure", *RECOVERIES), rows, look="")
