"""Tables and text blocks of one request: the answer, the sum, what is behind the numbers."""

from __future__ import annotations

from typing import Any

from app.answers import fitting_text, memory_text
from app.charts.spec import Table, at
from app.charts.strips import Moment, moment
from app.over import Over
from app.words import explained_words
from kvmodel.display import bytes_both_text, bytes_text, count_text, digits, flop_text, rate_text, share_text, time_text
from kvmodel.flips import flip_of
from kvmodel.handoff import fixed_seconds
from kvmodel.parts import timeline_parts
from kvmodel.results import Evaluation, SideMemory
from kvmodel.verdict import doubted, plain


def moments(over: Over) -> list[Moment]:
    """What the timeline draws at each position."""
    tokens = over.scenario.output_tokens
    return [moment(over.plan, row, timeline_parts(over.plan, over.amounts(i)), tokens) for i, row in enumerate(over.rows)]


def answer_table(over: Over) -> Table:
    """The answer sentence over the positions: coloured parts, and plain text."""
    flips = over.table("flips", flips_table)["flip"]
    sentences = [doubted(over.plan, over.amounts(i), over.scenario, row, flips[i]) for i, row in enumerate(over.rows)]
    return {"answer": [[list(part) for part in s] for s in sentences], "answer.text": [plain(s) for s in sentences]}


def flips_table(over: Over) -> Table:
    """What the bands of prefill and decode step would change at each position."""
    return {"flip": [flip_of(over.plan, over.amounts(i), row) for i, row in enumerate(over.rows)]}


def sum_unit(ttft: float) -> tuple[str, float]:
    """One unit for a sum of times."""
    return ("s", 1.0) if ttft >= 10 else ("ms", 1e-3) if ttft >= 1e-4 else ("µs", 1e-6)


def sum_text(seconds: float, unit: tuple[str, float]) -> str:
    """A term of a sum or the sum itself, so that a reader can add them up: whole milliseconds from 1,000 on, at most three decimals."""
    name, size = unit
    if name == "ms" and seconds >= 0.9995:
        return f"{seconds / size:,.0f}"
    return f"{seconds:.3f}" if name == "s" and 5e-4 <= seconds < 0.9995 else digits(seconds / size)


def sum_table(over: Over) -> Table:
    """The numbers of the sum TTFT = prefill + exposed transfer + fixed handoff + first decode step."""
    table: Table = {name: [] for name in ("s.unit", "s.ttft", "s.prefill", "s.exposed", "s.fixed", "s.step", "s.bytes", "s.wire")}
    for row in over.rows:
        unit = sum_unit(row.ttft_seconds)
        fixed = row.gap_seconds - row.transfer.exposed_seconds
        table["s.unit"].append(unit[0])
        for key, value in (
            ("ttft", row.ttft_seconds),
            ("prefill", row.prefill.seconds),
            ("exposed", row.transfer.exposed_seconds),
            ("fixed", fixed),
            ("step", row.decode.step_seconds),
        ):
            table[f"s.{key}"].append(sum_text(value, unit))
        table["s.bytes"].append(bytes_text(row.kv.wire_bytes))
        table["s.wire"].append(f"in {time_text(row.transfer.seconds)}")
    table["s.hidden"] = [_hidden(row) for row in over.rows]
    return table


def _hidden(row: Evaluation) -> str:
    if row.transfer.seconds <= 0:
        return "on the wire"
    hidden = max(0.0, 1 - row.transfer.exposed_seconds / row.transfer.seconds)
    return f"on the wire, {share_text(hidden)} of it hidden" if hidden > 1e-9 else "on the wire, none of it hidden"


def sum_block(over: Over, *, pinned: bool = False) -> dict[str, Any]:
    """The sum as a text block: the figures carry the swatches and so are the key of the charts; a pin's stand below them."""
    engine = over.plan.engine
    terms = [_term("prefill", at("s.prefill"), "prefill", "prefill.seconds", pinned=pinned)]
    released_early = engine.released_by == "prefill"
    if not released_early:
        terms += [_sign("+"), _term("exposed transfer", at("s.exposed"), "exposed", "transfer.exposed_seconds", pinned=pinned)]
        if fixed_seconds(over.plan) > 0:
            terms += [_sign("+"), _term("fixed handoff", at("s.fixed"), "other", "gap_seconds", pinned=pinned)]
        if engine.first_token == "decode":
            terms += [_sign("+"), _term("first decode step", at("s.step"), "decode", "decode.step_seconds", pinned=pinned)]
    time = {"tag": "span", "class": "kv-unit", "children": [" ", _opens("transfer.seconds", at("s.wire"))]}
    wire = {
        "tag": "div",
        "class": "kv-term kv-wire-term",
        "children": [
            {"tag": "div", "class": "kv-label", "children": [_swatch("wire"), at("s.hidden")]},
            {"tag": "div", "class": "kv-number", "children": [_opens("kv.wire_bytes", at("s.bytes")), time]},
            *_below("s.bytes", pinned=pinned),
        ],
    }  # fmt: skip
    total = _term("Time to first token", at("s.ttft"), None, "ttft_seconds", extra=" kv-total", pinned=pinned)
    return {"tag": "div", "class": "kv-sum", "children": [total, _sign("="), *terms, wire]}


def _term(label: str, number: Any, meaning: str | None, figure: str, extra: str = "", *, pinned: bool) -> dict[str, Any]:
    unit = {"tag": "span", "class": "kv-unit", "children": ["\u202f", at("s.unit")]}
    head = [*([_swatch(meaning)] if meaning else []), *explained_words(label)]
    return {
        "tag": "div",
        "class": f"kv-term{extra}",
        "children": [
            {"tag": "div", "class": "kv-label", "children": head},
            {"tag": "div", "class": "kv-number", "children": [_opens(figure, number), unit]},
            *_below(number["$at"], pinned=pinned),
        ],
    }


def _below(name: str, *, pinned: bool) -> list[dict[str, Any]]:
    """A number's pinned value, where there is a pin."""
    return [{"tag": "div", "class": "kv-pin-below", "children": [at(f"pin.{name}")]}] if pinned else []


def _opens(figure: str, *children: Any) -> dict[str, Any]:
    """A number that opens its explanation."""
    return {
        "tag": "button",
        "type": "button",
        "class": "kv-open",
        "data-explain": figure,
        "title": "Explain this number",
        "aria-expanded": "false",
        "children": list(children),
    }


def _swatch(meaning: str) -> dict[str, Any]:
    return {"tag": "span", "class": f"kv-swatch kv-swatch-{meaning}", "aria-hidden": "true", "children": []}


def _sign(sign: str) -> dict[str, Any]:
    return {"tag": "div", "class": "kv-sign", "children": [sign]}


def behind_table(over: Over) -> Table:
    """Short forms of the formulas behind the headline figures."""
    plan, rows = over.plan, over.rows
    lane = rate_text(rows[0].transfer.bandwidth_bytes_per_s)
    lanes = f"{plan.lanes} lane{'s' if plan.lanes > 1 else ''}"
    batch = count_text(over.scenario.decode_batch)
    notes = [f" {flip.note}" if flip else "" for flip in over.table("flips", flips_table)["flip"]]
    return {
        "b.kv": [f"{bytes_both_text(row.kv.prompt_bytes)} a request" for row in rows],
        "b.prefill": [_prefill_text(over, row) for row in rows],
        "b.band": [
            f"{_band(row.prefill.low, row.prefill.high, plan.prefill.time.rough)}.{note}" for row, note in zip(rows, notes, strict=True)
        ],
        "b.wire": [_wire_text(row, f"{lane} × {lanes}", over.amounts(i).batch) for i, row in enumerate(rows)],
        "b.step": [f"{time_text(row.decode.step_seconds)} at {batch} in the batch" for row in rows],
        "b.step_band": [
            f"{_band(row.decode.low, row.decode.high, plan.decode.time.rough)}.{note}" for row, note in zip(rows, notes, strict=True)
        ],
        "b.prefill_memory": [_memory(row.memory.prefill, "cache") for row in rows],
        "b.prefill_parts": [memory_text(row.memory.prefill) for row in rows],
        "b.decode_memory": [_memory(row.memory.decode, "cache with output") for row in rows],
        "b.decode_parts": [memory_text(row.memory.decode) for row in rows],
    }


def _memory(side: SideMemory, cache: str) -> str:
    """Weights, what is called the `cache`, and workspace in one unit, and the batch that fits."""
    held = (("weights", side.weights_bytes), (cache, side.cache_bytes), ("work", side.activation_bytes))
    parts = " + ".join(f"{name} {digits(count / 1e9)}" for name, count in held)
    return f"{parts} of {bytes_text(side.usable_bytes)}; {fitting_text(side)}"


def _wire_text(row: Evaluation, rate: str, batch: float) -> str:
    """Bytes over bandwidth, and what messages, copies and latency add to it."""
    bare = row.kv.wire_bytes / row.transfer.lanes / row.transfer.bandwidth_bytes_per_s
    many = row.kv.wire_bytes / (row.kv.prompt_bytes * batch) if row.kv.prompt_bytes else 1.0
    copies = f" ({bytes_text(row.kv.wire_bytes / many)} × {digits(many)} copies)" if many > 1.005 else ""
    more = row.transfer.seconds - bare
    added = f" + {time_text(more)} for messages, copies and latency" if more > 0.002 * row.transfer.seconds else ""
    return f"{bytes_text(row.kv.wire_bytes)}{copies} ÷ ({rate}){added} = {time_text(row.transfer.seconds)}"


def _prefill_text(over: Over, row: Evaluation) -> str:
    if over.scenario.prefill_seconds is not None:
        return "you measured it"
    peak = over.plan.prefill.accelerator.peak_bf16 * over.plan.prefill.tp
    return f"{flop_text(row.prefill.flop)} at {share_text(row.prefill.flop / row.prefill.seconds / peak)} of BF16 peak"


def _band(low: float, high: float, rough: str) -> str:
    return f"{time_text(low)} to {time_text(high)}{'; ' + rough if rough else ''}"
