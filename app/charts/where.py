"""Where the time goes: decode's wait split into named terms, as bars that add up, beside the ideal engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.charts.marks import hatched, hollow_bars, words
from app.charts.scale import NARROW, WIDE
from app.charts.spec import Figure, Spec, Table, at, colour, four_digits
from app.over import Over
from kvmodel.breakdown import NAMES, gap_terms
from kvmodel.display import MINUS, shared_time_unit, time_text
from kvmodel.evaluate import amounts_of
from kvmodel.plan import plan_of
from kvmodel.progress import Amounts
from kvmodel.scenario import Scenario
from kvmodel.verdict import Sentence, plain, supposed

MEANING = {"bytes": "wire", "hidden": "prefill", "handoff": "other", "admission": "other", "handshake": "other"}
"""Colours of terms; all others are what engine, link and layout add to the bytes on the wire."""
TOTAL, IDEAL = "Decode waits", "Ideal engine"
LONGEST, SHORTEST = 1_048_576, 128


def ideal_of(scenario: Scenario) -> Scenario:
    """The same handoff, overlap, chunks and lanes by the ideal engine: the bytes alone, no knob of the reader's turned."""
    kept = {"model", "prompt_tokens", "output_tokens", "batch", "prefill_held_tokens", "decode_held_tokens", "kv_dtype", "weight_dtype"}
    kept |= {"prefill_accelerator", "decode_accelerator", "prefill_tp", "decode_tp", "prefill_pp", "decode_pp", "ep", "link", "lanes"}
    kept |= {"prefill_attention_dp", "decode_attention_dp", "prefill_seconds", "decode_step_seconds", "link_gbytes_per_s", "decode_batch"}
    kept |= {"wire_dtype", "shared_by", "group_layers"}
    plan = plan_of(scenario)
    chosen = {name: value for name, value in scenario if name in kept}
    return Scenario(**{**chosen, "overlap": plan.overlap, "chunk_tokens": plan.chunk, "lanes": plan.lanes})


def terms_of(scenario: Scenario, amounts: Amounts) -> dict[str, Any]:
    """Seconds of each term of decode's wait, by id."""
    return {term.id: term.seconds for term in gap_terms(plan_of(scenario), amounts)}


def rows_of(scenario: Scenario, pinned: Scenario | None = None) -> list[str]:
    """Terms that are there at some prompt length, of either scenario, in order."""
    there = {"bytes"}
    for one in (scenario, *([pinned] if pinned else [])):
        found = terms_of(one, amounts_of(one, prompt_tokens=np.array([SHORTEST, one.prompt_tokens, LONGEST])))
        there |= {key for key in NAMES if np.any(np.abs(np.asarray(found[key])) > 1e-12)}
    return [key for key in NAMES if key in there]


def where_table(over: Over, rows: Sequence[str], pinned: Scenario | None = None) -> Table:
    """Columns of the bars over a slider's positions; rows are the same at each, and axes reach to the pinned scenario's bars."""
    arrays = {over.field: np.asarray(over.values)}
    farthest = max(_ends(pinned, rows)) if pinned else 0.0
    size = len(over.values)
    mine = _spread(terms_of(over.scenario, amounts_of(over.scenario, **arrays)), rows, size)
    ideal = ideal_of(over.scenario)
    least = _spread(terms_of(ideal, amounts_of(ideal, **arrays)), rows, size)
    frames = [_frame(rows, mine[:, i], least[:, i], farthest, feasible=over.rows[i].feasible) for i in range(size)]
    return {name: [frame[name] for frame in frames] for name in frames[0]}


def _spread(terms: dict[str, Any], rows: Sequence[str], size: int) -> np.ndarray[Any, Any]:
    return np.array([np.broadcast_to(np.asarray(terms[key], dtype=float), size) for key in rows])


def _frame(
    rows: Sequence[str], mine: np.ndarray[Any, Any], least: np.ndarray[Any, Any], farthest: float, *, feasible: bool
) -> dict[str, Any]:
    ends, total = np.cumsum(mine), float(mine.sum())
    starts = ends - mine
    low, high = np.minimum(starts, ends), np.maximum(starts, ends)
    reach = max(float(high.max()), float(least.sum()), farthest, 1e-9)
    unit = shared_time_unit(*[float(v) for v in [*np.abs(mine), total] if v])
    texts = [_term_text(float(v), i, unit) for i, v in enumerate(mine)]
    ideal_total = float(least.sum())
    sentence = supposed(answer(rows, mine, total), feasible=feasible)
    return {
        "k.base": four_digits([*low, 0.0]),
        "k.length": four_digits([*(high - low), total]),
        "k.end": four_digits([*high, total]),
        "k.text": [*texts, f"\u2002<b>{time_text(total, unit)}</b>"],
        "k.ideal": four_digits([ideal_total]),
        "k.ideal_text": [f"\u2002{time_text(ideal_total, unit if ideal_total else None)}"],
        "k.wide": [0, float(f"{reach * 1.16:.4g}")],
        "k.narrow": [0, float(f"{reach * 1.75:.4g}")],
        "answer": [list(part) for part in sentence],
        "answer.text": plain(sentence),
    }


def _term_text(seconds: float, index: int, unit: tuple[str, float]) -> str:
    if seconds == 0:
        return "\u20020"
    sign = MINUS if seconds < 0 else "" if index == 0 else "+"
    return f"\u2002{sign}{time_text(abs(seconds), unit)}"


def answer(rows: Sequence[str], mine: np.ndarray[Any, Any], total: float) -> Sentence:
    """How much of the wait is bytes, and what adds most."""
    seconds = {key: float(v) for key, v in zip(rows, mine, strict=True)}
    extra = {key: v for key, v in seconds.items() if key not in ("bytes", "hidden") and v > 0}
    if seconds["bytes"] <= 0:
        if total <= 0:
            return (("Nothing moves: decode waits ", ""), (time_text(0.0), "exposed", "gap_seconds"), (".", ""))
        return (("Nothing moves, yet decode waits ", ""), (time_text(total), "exposed", "gap_seconds"), (" for the engine.", ""))
    hidden = -seconds.get("hidden", 0.0)
    head = f"Of {time_text(total)} that decode waits, " if not hidden else f"{time_text(hidden)} hide behind prefill; decode waits "
    if hidden and total <= 0:
        return ((head, ""), (time_text(0.0), "exposed"), (": the last of the cache crosses while decode computes on the first.", ""))
    if hidden:
        return ((head, ""), (time_text(max(total, 0.0)), "exposed", "gap_seconds"), (f", {_most(extra)}.", ""))
    if not extra:
        return (
            ("Decode waits ", ""),
            (time_text(total), "exposed", "gap_seconds"),
            (" for the bytes at nominal bandwidth and for nothing else.", ""),
        )
    return (
        (head, ""),
        (time_text(seconds["bytes"]), "wire", "transfer.seconds"),
        (f" are bytes at nominal bandwidth; {_most(extra)}.", ""),
    )


def _most(extra: dict[str, float]) -> str:
    if not extra:
        return "which is bytes alone"
    key = max(extra, key=lambda k: extra[k])
    return f"{NAMES[key][0].lower()}{NAMES[key][1:]} {'adds' if not key.endswith('copies') else 'add'} {time_text(extra[key])}"


def where_figure(scenario: Scenario, pinned: Scenario | None = None) -> Figure:
    """A row a term, each bar beginning where the last one ended, the total below, the ideal engine under it; a pin's bars hollow."""
    rows = rows_of(scenario, pinned)
    return Figure("where", _layout(rows, pinned, WIDE), _layout(rows, pinned, NARROW), at("answer.text"))


def _ends(scenario: Scenario, rows: Sequence[str]) -> list[float]:
    """Where the bars of a scenario end."""
    found = terms_of(scenario, amounts_of(scenario))
    return [float(end) for end in np.cumsum([float(np.asarray(found[key])) for key in rows])]


def _below(scenario: Scenario, rows: Sequence[str], tones: Sequence[str]) -> Spec:
    """A scenario's bars and its total, hollow."""
    ends = _ends(scenario, rows)
    starts = [0.0, *ends[:-1]]
    low = [*(min(pair) for pair in zip(starts, ends, strict=True)), 0.0]
    length = [*(abs(a - b) for a, b in zip(starts, ends, strict=True)), ends[-1]]
    return hollow_bars(four_digits(length), range(len(length)), tones, base=four_digits(low))


def _layout(rows: Sequence[str], pinned: Scenario | None, width: int) -> Spec:
    size, count = (13, len(rows) + 2) if width == WIDE else (12, len(rows) + 2)
    own, ideal = list(range(count - 1)), count - 1
    tones = [*(MEANING.get(key, "wire") for key in rows), "exposed"]
    added = [i for i, key in enumerate(rows) if key not in MEANING]
    plain = [i for i, key in enumerate(rows) if key in MEANING]
    said = [*(NAMES[key] for key in rows), TOTAL]
    bars = [
        _bar(plain, said, {"color": [colour(tones[i]) for i in plain]}),
        *([_bar(added, said, hatched("wire"))] if added else []),
        _bar([len(rows)], said, hatched("exposed")),
    ]
    least = {
        **bars[0],
        "customdata": at("k.ideal_text"),
        "hovertext": [f"{IDEAL}: the same handoff"],
        "base": [0],
        "x": at("k.ideal"),
        "y": [ideal],
        "marker": {"color": colour("other")},
    }
    names = [*(NAMES[key] for key in rows), f"<b>{TOTAL}</b>", IDEAL]
    axis = {"showticklabels": False, "zeroline": True, "zerolinecolor": colour("muted"), "fixedrange": True, "showgrid": False}
    labels = {
        "tickvals": list(range(count)),
        "ticktext": names,
        "ticklabelstandoff": 6,
        "tickfont": {"color": colour("body"), "size": size},
    }
    layout = {
        "height": 34 * count + 8,
        "margin": {"l": 220 if width == WIDE else 168, "r": 0, "t": 4, "b": 4},
        "barmode": "overlay",
        "xaxis": {**axis, "range": at("k.wide" if width == WIDE else "k.narrow")},
        "yaxis": {**labels, "range": [count - 0.5, -0.5], "showgrid": False, "fixedrange": True},
    }
    texts = words(at("k.end"), own, at("k.text"), "body", size)
    below = [_below(pinned, rows, tones)] if pinned else []
    labels = [texts, words(at("k.ideal"), [ideal], at("k.ideal_text"), "muted", size)]
    return {"data": [*bars, least, *below, *labels], "layout": layout}


def _bar(rows: Sequence[int], names: Sequence[str], marker: Spec) -> Spec:
    return {
        "type": "bar",
        "orientation": "h",
        "base": [at("k.base", i) for i in rows],
        "x": [at("k.length", i) for i in rows],
        "y": list(rows),
        "width": 0.5,
        "marker": marker,
        "customdata": [at("k.text", i) for i in rows],
        "hovertext": [names[i] for i in rows],
        "hovertemplate": "%{hovertext}<br>%{customdata}<extra></extra>",
    }
