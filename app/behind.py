"""The numbers behind each chart as rows, in base units: what its file and its table say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from app.charts import congestion, interconnects, layer_runs, levers, links, matrices, measured, turn, weighs, where
from app.charts.request import moments
from app.over import Over, evaluate_over, positions_of
from app.reading import overlaps
from app.state import State
from kvmodel.breakdown import NAMES
from kvmodel.congestion import congestion as congested
from kvmodel.evaluate import amounts_of, evaluate, sweep
from kvmodel.matrices import Amount, layer_amounts
from kvmodel.plan import placement_of, plan_of
from kvmodel.sensitivity import sensitivity

Row = dict[str, Any]


def behind(name: str, state: State) -> list[Row]:
    """The rows behind a chart of `app.catalog`: seconds, bytes, tokens. Raises KeyError for another name."""
    return _ROWS[name](state)


def _timeline(state: State) -> list[Row]:
    scenario = state.scenario
    here = moments(evaluate_over(scenario, "prompt_tokens", (scenario.prompt_tokens,)))[0]
    ends, parts = here.parts.compute_end.tolist(), here.parts
    starts = [0.0, *ends[:-1]]
    names = [f"{parts.kind} {i + 1}" if len(ends) == parts.total else f"{parts.kind} group {i + 1}" for i in range(len(ends))]
    prefill = [_span("prefill", n, a, b) for n, a, b in zip(names, starts, ends, strict=True)]
    wire = [_span("wire", n, a, b) for n, a, b in zip(names, parts.wire_start.tolist(), parts.wire_end.tolist(), strict=True)]
    step = here.result.decode.step_seconds
    return [*prefill, *wire, _span("decode", "first step", here.decode_start, here.decode_start + step)]


def _span(lane: str, part: str, start: float, end: float) -> Row:
    return {"lane": lane, "part": part, "start_seconds": start, "end_seconds": end}


def _levers(state: State) -> list[Row]:
    scenario = state.scenario
    over = evaluate_over(scenario, "prompt_tokens", (scenario.prompt_tokens,))
    base = over.rows[0].ttft_seconds
    arrays = {"prompt_tokens": np.asarray(over.values)}
    found = [(one.name, float(np.asarray(one.run(arrays).ttft_seconds)[0])) for one in levers.levers(scenario)[: levers.COUNT]]
    rows = [{"change": name, "ttft_seconds": ttft, "difference_seconds": ttft - base} for name, ttft in found]
    return sorted(rows, key=lambda row: -abs(row["difference_seconds"]))


def _lengths(state: State) -> tuple[int, ...]:
    return positions_of("prompt_tokens", state.scenario.prompt_tokens)


def _critical(state: State) -> list[Row]:
    tokens, scenario = _lengths(state), state.scenario
    rows = links.link_rows(links.without_prompt(scenario))
    swept = evaluate_over(scenario, "prompt_tokens", tokens).swept
    columns = {"prefill_seconds": swept.prefill.seconds, "decode_step_seconds": swept.decode.step_seconds}
    for row in rows:
        other = sweep(links.on_link(scenario, row.id), prompt_tokens=np.asarray(tokens))
        columns[f"{row.id}_seconds"] = other.transfer.seconds
    return _columns(tokens, columns)


def _ratio(state: State) -> list[Row]:
    swept = evaluate_over(state.scenario, "prompt_tokens", _lengths(state)).swept
    wire, prefill = np.asarray(swept.transfer.seconds), np.asarray(swept.prefill.seconds)
    return _columns(_lengths(state), {"transfer_seconds": wire, "prefill_seconds": prefill, "ratio": wire / prefill})


def _columns(tokens: tuple[int, ...], columns: dict[str, Any]) -> list[Row]:
    spread = {name: np.broadcast_to(np.asarray(column, dtype=float), len(tokens)).tolist() for name, column in columns.items()}
    return [{"prompt_tokens": n, **{name: column[i] for name, column in spread.items()}} for i, n in enumerate(tokens)]


def _edges(state: State) -> list[Row]:
    found = turn.turn_rows(state, "delta_tokens", (state.turn.delta_tokens,))[0].by_key
    return [
        {"design": d.id, "warm": d.warm, "from": e.source, "to": e.target, "bytes": e.bytes, "seconds": e.seconds}
        for d in found.values()
        for e in d.edges
    ]


def _turns(state: State) -> list[Row]:
    found = turn.turn_rows(state, "delta_tokens", (state.turn.delta_tokens,))[0].by_key
    names = (
        "unique_bytes",
        "wire_bytes",
        "prefill_tokens",
        "prefill_seconds",
        "wait_seconds",
        "step_seconds",
        "ttft_seconds",
        "stall_seconds",
    )
    return [{"design": d.id, "warm": d.warm, **{name: getattr(d, name) for name in names}} for d in found.values()]


def _where(state: State) -> list[Row]:
    scenario = state.scenario
    ideal = where.ideal_of(scenario)
    mine, least = (where.terms_of(s, amounts_of(s)) for s in (scenario, ideal))
    return [{"term": key, "name": NAMES[key], "seconds": float(mine[key]), "ideal_seconds": float(least[key])} for key in NAMES]


def _pipelining(state: State) -> list[Row]:
    tokens, scenario = _lengths(state), state.scenario
    swept = {o: sweep(scenario.with_changes(overlap=o), prompt_tokens=np.asarray(tokens)) for o in overlaps(scenario)}
    return _columns(tokens, {f"{o.replace('-', '_')}_gap_seconds": e.gap_seconds for o, e in swept.items()})


def _congestion(state: State) -> list[Row]:
    plan, amounts = plan_of(state.scenario), amounts_of(state.scenario)
    found = [(n, congested(plan, amounts, state.traffic, n)) for n in congestion.NUMBERS]
    return [{"in_flight": n, "seconds": c.seconds, "handoffs_per_second": _finite(c.handoffs_per_second)} for n, c in found]


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _growth(state: State) -> list[Row]:
    tokens = np.asarray(_lengths(state))
    cache = plan_of(state.scenario).cache
    prompt = np.asarray(cache.prompt_bytes(tokens), dtype=float)
    columns = {"prompt_bytes": prompt, "average_bytes_per_token": prompt / tokens, "next_token_bytes": cache.marginal_bytes(tokens)}
    return _columns(_lengths(state), columns)


def _layers(state: State) -> list[Row]:
    plan, tokens = plan_of(state.scenario), state.scenario.prompt_tokens
    held = [float(layer.held(tokens)) for _, layer in plan.cache.layers]
    groups = plan.model.groups
    return [{"layer": i + 1, "keeps": weighs.kind_text(groups[g]), "bytes": held[g]} for i, g in enumerate(plan.model.sequence)]


def _matrices(state: State) -> list[Row]:
    index = matrices.group_of(plan_of(state.scenario).model, state.seen.layer)
    rows = []
    for name, one in layer_runs.passes_of(_here(state))[:2]:
        place = placement_of(state.scenario, one.phase)
        for matrix, amount in layer_amounts(place, place.model.groups[index], one):
            rows.append({"phase": name.lower(), "operation": matrix.name, "rows": int(one.rows[0]), **_amount(amount)})
    return rows


def _amount(amount: Amount) -> Row:
    names = {"flop": "flop", "weights": "weight_bytes", "cache": "cache_bytes", "activations": "activation_bytes"}
    found = {key: float(np.ravel(getattr(amount, name))[0]) for name, key in names.items()}
    moved = sum(found[key] for key in names.values()) - found["flop"]
    return {**found, "flop_per_byte": found["flop"] / moved if moved else None}


def _roofline(state: State) -> list[Row]:
    over = _here(state)
    runs = layer_runs.runs_of(over, matrices.group_of(over.plan.model, state.seen.layer))
    return [
        {
            "phase": run.name.lower(),
            "rows": int(run.at.rows[0]),
            **_amount(run.layer),
            "flop_per_s_at_most": float(run.reached()[0]),
            "peak_flop_per_s": float(run.layer.peak[0]),
            "ridge_flop_per_byte": float(run.ridge[0]),
            "bound": run.bound(0),
        }
        for run in runs
    ]


def _here(state: State) -> Over:
    return evaluate_over(state.scenario, "prompt_tokens", (state.scenario.prompt_tokens,))


def _measured(state: State) -> list[Row]:
    link = state.scenario.link if state.seen.measured_link == measured.YOURS else state.seen.measured_link
    shown = measured.kept(link, state.seen.measured_engine) or measured.kept(measured.ALL, state.seen.measured_engine)
    return [
        {
            "row": p.row.id,
            "transport": p.transport.id,
            "bytes": p.bytes,
            "measured_seconds": p.seconds,
            "modelled_seconds": p.modelled,
            "ideal_seconds": p.row.ideal_seconds,
            "source": p.row.source,
        }
        for p in shown
    ]


def _interconnects(state: State) -> list[Row]:
    rows: list[Row] = []
    for link in interconnects.drawn_links(state.scenario):
        for batch in interconnects.COLUMNS["w"]:
            r = evaluate(links.on_link(state.scenario, link.id).with_changes(batch=batch))
            taken = {"wire_bytes": r.kv.wire_bytes, "transfer_seconds": r.transfer.seconds, "decode_step_seconds": r.decode.step_seconds}
            rows.append({"link": link.id, "batch": batch, **taken, "decode_steps": r.transfer.seconds / r.decode.step_seconds})
    return rows


def _tornado(state: State) -> list[Row]:
    rows = []
    for turned in sorted(sensitivity(state.scenario), key=lambda turned: -float(turned.spread[0])):
        numbers = {name: float(getattr(turned, name)[0]) for name in ("now", "half", "twice", "half_seconds", "twice_seconds")}
        flips = {"flips_at": None if np.isnan(turned.flips_at[0]) else float(turned.flips_at[0]), "would": turned.would[0]}
        rows.append({"input": turned.field, **numbers, **flips})
    return rows


_ROWS: dict[str, Callable[[State], list[Row]]] = {
    "timeline": _timeline,
    "levers": _levers,
    "critical": _critical,
    "ratio": _ratio,
    "flow": _edges,
    "turn-bars": _turns,
    "where": _where,
    "pipelining": _pipelining,
    "congestion": _congestion,
    "growth": _growth,
    "layers": _layers,
    "interconnects": _interconnects,
    "tornado": _tornado,
    "matrices": _matrices,
    "roofline": _roofline,
    "measured": _measured,
    "residuals": _measured,
}
