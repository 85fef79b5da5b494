"""Readable answers of the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kvmodel.config import ParsedConfig
from kvmodel.critical import CriticalLengths, Interval
from kvmodel.display import (
    bytes_both_text,
    bytes_text,
    count_text,
    exact_bytes_text,
    rate_text,
    share_text,
    time_text,
    tokens_text,
)
from kvmodel.records.base import Sourced
from kvmodel.registry import engines, find, links, lossy_format
from kvmodel.results import Evaluation, Remedy, SideMemory
from kvmodel.scenario import MAX_PROMPT_TOKENS, Scenario
from kvmodel.turn import Turn, TurnResult, decoded_beside

SUPPOSED = "The times are what it would take if this could run."
"""Said of an infeasible scenario, whose times are computed all the same."""


def _rows(rows: list[tuple[str, str]]) -> str:
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"  {name:<{width}}  {value}" for name, value in rows)


def evaluation_text(scenario: Scenario, e: Evaluation, ways: Sequence[Remedy] = ()) -> str:
    """The answer sentence, then the sum that leads to it."""
    rows = [
        *((f"{way.side} fits", f"{way.use}: {way.cost}") for way in ways),
        ("KV per token", exact_bytes_text(e.kv.bytes_per_token)),
        ("KV of the prompt", bytes_both_text(e.kv.prompt_bytes)),
        ("on the wire", f"{bytes_both_text(e.kv.wire_bytes)} over {e.transfer.lanes} × {rate_text(e.transfer.bandwidth_bytes_per_s)}"),
        ("transfer", f"{time_text(e.transfer.seconds)}, of which exposed {time_text(e.transfer.exposed_seconds)}"),
        ("prefill", f"{time_text(e.prefill.seconds)} (band {time_text(e.prefill.low)} to {time_text(e.prefill.high)})"),
        ("decode step", f"{time_text(e.decode.step_seconds)} (band {time_text(e.decode.low)} to {time_text(e.decode.high)})"),
        *([("within the band", e.band_note.removesuffix("."))] if e.band_note else []),
        ("prefill memory", memory_text(e.memory.prefill)),
        ("decode memory", memory_text(e.memory.decode)),
        ("gap", f"{time_text(e.gap_seconds)}, {share_text(e.gap_share)} of TTFT"),
        ("TTFT", time_text(e.ttft_seconds)),
        ("TPOT", time_text(e.tpot_seconds)),
        ("request", f"{time_text(e.request_seconds)} for {count_text(scenario.output_tokens)} tokens"),
        ("bound", str(e.bound)),
        ("engine", find("engine", scenario.engine, engines()).name),
    ]
    narrow = lossy_format(scenario.kv_dtype, scenario.wire_dtype)
    lost = f"\n{narrow.name}: {narrow.accuracy}" if narrow else ""
    supposed = "" if e.feasible else f" {SUPPOSED}"
    return f"{e.verdict}{supposed}\n{_rows(rows)}{lost}{notes_text(e.notes)}"


def memory_text(side: SideMemory) -> str:
    """What one accelerator of a side holds of what it can, and the batch that fits."""
    parts = ((side.weights_bytes, "weights"), (side.cache_bytes, "cache"), (side.activation_bytes, "workspace"))
    held = " + ".join(f"{bytes_text(count)} {name}" for count, name in parts)
    return f"{held} of {bytes_text(side.usable_bytes)} a GPU; {fitting_text(side)}"


def fitting_text(side: SideMemory) -> str:
    """The largest batch that a side holds."""
    return f"batch {count_text(side.batch_fits)} fits" if side.batch_fits else "not one request fits"


def critical_text(scenario: Scenario, c: CriticalLengths) -> str:
    """Critical lengths as a sentence and rows."""
    link = find("link", scenario.link, links()).name
    if c.decode_step_tokens is None:
        head = f"On {link}, no prompt up to {count_text(MAX_PROMPT_TOKENS)} outlasts a decode step."
    elif c.decode_step_tokens == 1:
        head = f"Every handoff on {link} outlasts a decode step."
    else:
        head = f"On {link}, a prompt past {count_text(c.decode_step_tokens)} tokens spends longer on the wire than one decode step."
    bandwidth = "never" if c.critical_bandwidth_bytes_per_s is None else rate_text(c.critical_bandwidth_bytes_per_s)
    return (
        head
        + "\n"
        + _rows(
            [
                ("layer by layer hides", spans_text(c.hidden)),
                ("gap over 20 % of TTFT", spans_text(c.gap_over_share)),
                ("bandwidth to match prefill", bandwidth),
            ]
        )
    )


def infeasible_text(reason: str) -> str:
    """A line that says why a scenario is infeasible; nothing where it is feasible."""
    return f"\nInfeasible: {reason}. {SUPPOSED}" if reason else ""


def notes_text(notes: Sequence[str]) -> str:
    """A line for each note."""
    return "".join(f"\n{note}" for note in notes)


def spans_text(spans: tuple[Interval, ...]) -> str:
    """Intervals of prompt lengths in words."""
    if not spans:
        return "never"
    if spans == (Interval(1, MAX_PROMPT_TOKENS),):
        return "always"
    words = []
    for span in spans:
        if span.from_tokens == 1:
            words.append(f"up to {tokens_text(span.to_tokens)} tokens")
        elif span.to_tokens == MAX_PROMPT_TOKENS:
            words.append(f"from {tokens_text(span.from_tokens)} tokens")
        else:
            words.append(f"{tokens_text(span.from_tokens)} to {tokens_text(span.to_tokens)} tokens")
    return ", ".join(words)


def turn_text(scenario: Scenario, turn: Turn, result: TurnResult) -> str:
    """A row a design."""
    born = min(turn.generated_tokens, turn.history_tokens)
    head = (
        f"{count_text(turn.history_tokens)} tokens of history, {count_text(born)} of them generated on decode; "
        f"{count_text(turn.delta_tokens)} new."
    )
    alone = not decoded_beside(scenario)
    rows = [("design", f"{'unique KV':>12}  {'on all edges':>12}  {'prefills':>9}  {'TTFT':>9}  neighbours wait")]
    for d in result.designs:
        name = d.id + ("" if d.warm else " (cold)")
        rows.append(
            (
                name,
                f"{bytes_text(d.unique_bytes):>12}  {bytes_text(d.wire_bytes):>12}  {count_text(d.prefill_tokens):>9}  "
                f"{time_text(d.ttft_seconds):>9}  {'nobody beside it' if alone and d.stall_seconds else time_text(d.stall_seconds)}",
            )
        )
    text = f"{head}\n{_rows(rows)}"
    if result.turns == 1:
        return text
    totals = [(t.id + ("" if t.warm else " (cold)"), bytes_text(t.unique_bytes)) for t in result.totals]
    return f"{text}\nOver {result.turns} turns, unique KV:\n{_rows(totals)}"


def model_text(parsed: ParsedConfig, row: dict[str, Any], tokens: int) -> str:
    """A model's bytes, whole and on one rank."""
    rank = row["rank"]
    rows = [
        ("KV per token", exact_bytes_text(row["kv_bytes_per_token"])),
        ("windows, at most", bytes_both_text(row["window_bytes_max"])),
        ("state", bytes_both_text(row["state_bytes"])),
        (f"{count_text(tokens)} tokens", bytes_both_text(row["prompt_bytes"])),
        (f"one rank of TP {rank['tp']}", bytes_both_text(rank["prompt_bytes"]) if rank["valid"] else f"refused: {rank['reason']}"),
        *_all_ranks(rank),
        ("parameters", f"{row['total_params'] / 1e9:.1f} B, {row['active_params'] / 1e9:.1f} B active"),
        ("source", f"{row['source']} (checked {row['checked']})"),
        *(("assumed", text) for text in parsed.assumed),
        *(("warning", text) for text in parsed.warnings),
        *(("note", text) for text in row["notes"]),
    ]
    return f"{row['name']} ({row['id']})\n{_rows(rows)}"


def _all_ranks(rank: dict[str, Any]) -> list[tuple[str, str]]:
    """What all ranks hold together; nothing to say of a layout that engines refuse."""
    if not rank["valid"]:
        return []
    factor = rank["replication_factor"]
    return [("all its ranks", f"{bytes_both_text(rank['sum_over_ranks'])}, {factor:.3g} cop{'y' if factor == 1 else 'ies'}")]


def row_of(row: Sourced) -> dict[str, Any]:
    """A data row for `list`: plain values, without a model's layers."""
    dumped = row.model_dump(mode="json", exclude={"groups", "order"})
    layers = {"layers": row.layers} if hasattr(row, "layers") else {}
    return {"id": dumped.pop("id"), "name": dumped.pop("name"), **layers, **dumped}


def table_text(rows: list[dict[str, Any]]) -> str:
    """Ids and names, a row each; empty where there are none."""
    if not rows:
        return ""
    return _rows([(row["id"], row["name"]) for row in rows]).replace("\n  ", "\n").removeprefix("  ")
