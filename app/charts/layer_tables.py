"""One layer operation by operation, and its tensors: what stays where it is made and what crosses, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.charts.layer_runs import passes_of
from app.charts.spec import Table, at
from app.charts.tables import table_block
from app.over import Over
from kvmodel.display import bytes_text, count_text, digits, exact_bytes_text, flop_text
from kvmodel.evaluate import amounts_of
from kvmodel.matrices import Amount, Pass, cache_of, crossing, layer_amounts, model_total, multiplied_in, total
from kvmodel.operations import Matrix
from kvmodel.pairs import shape_of
from kvmodel.plan import placement_of
from kvmodel.progress import cut
from kvmodel.records.model import ModelSpec, Moe

HEADS = ("Operation", "Rows and columns", "FLOP", "Format", "Weights read", "Cache", "Activations", "FLOP per byte")
PARTS = ("flop", "format", "weights", "cache", "activations", "each")
WHOLE = ("layer", "model")
STAYS = "stays, dropped after the pass"
EXCEPTIONS = (
    "Only K and V cross where every layer keeps K and V. Latent attention sends one latent row a token in their place, shared by all "
    "heads; an indexer sends its own keys beside it; a recurrent state crosses once, whatever the prompt; a sliding window sends its "
    "last tokens; a layer that reads another layer's cache sends nothing."
)
COUNTED = (
    "Each operand is read once, booked to the first operation that reads it, and each result written once; scores stay on the chip; norms, "
    "rotations and activation functions are left out. "
    "Attention over keys is multiplied in BF16, over an indexer's in FP8, all else in the weights' format, as the time model has it. "
    "Prefill counts the causal half of attention. Tensor parallelism divides FLOP and bytes alike, copies left out. Points lie on the "
    "roof: what a GPU could reach, not what it does."
)


def operations_table(over: Over, index: int) -> Table:
    """Columns of the tables of operations, prefill and one decode row, and of the table of tensors."""
    group, table, one = over.plan.model.groups[index], _tensors(over, index), passes_of(over)[0][1]
    table |= {"o.rows": [count_text(v) for v in one.rows], "o.new": [count_text(v) for v in one.new]}
    for name, one in passes_of(over)[:2]:
        place = placement_of(over.scenario, one.phase)
        found = layer_amounts(place, group, one)
        for k, (matrix, amount) in enumerate(found):
            table |= _cells(f"{name}.{k}", amount, one, multiplied_in(place, matrix))
            keys = one.keys(matrix, shape_of(group), cache_of(place, group).cap_tokens)
            table[f"{name}.{k}.keys"] = [count_text(v) for v in np.broadcast_to(keys, len(over.values)).tolist()]
        table |= _cells(f"{name}.layer", total(amount for _, amount in found), one) | _cells(f"{name}.model", model_total(place, one), one)
    return table


def _cells(key: str, amount: Amount, one: Pass, format_: str = "") -> Table:
    size = len(one.rows)
    flop, weights, cache, activations, moved = (
        np.broadcast_to(np.asarray(v, dtype=float), size).tolist()
        for v in (amount.flop, amount.weights, amount.cache, amount.activations, amount.bytes)
    )
    return {
        f"{key}.flop": [flop_text(v) for v in flop],
        f"{key}.format": [format_] * size,
        f"{key}.weights": [_some(v) for v in weights],
        f"{key}.cache": [_some(v) for v in cache],
        f"{key}.activations": [_some(v) for v in activations],
        f"{key}.each": [digits(f / b) if b else "no bytes" for f, b in zip(flop, moved, strict=True)],
    }


def _some(count: float) -> str:
    """Bytes; a dash where an operation has none."""
    return bytes_text(count) if count else "–"


def _shape(key: str, m: Matrix, one: Pass) -> Any:
    """Rows times inner, inner times columns, and how many side by side; kept on one line."""
    side = f", {m.times:,.4g} side by side" if m.times != 1 else ""
    where, inner = f" of {m.experts} experts" if m.experts else "", count_text(m.inner)
    keys = m.over in ("keys", "index keys", "seen", "window")
    rows: Any = "1" if one.phase == "decode" else at("o.rows" if m.learned else "o.new")
    columns: Any = at(f"{key}.keys") if keys else count_text(m.columns)
    parts = ["[", rows, f" × {inner}] [{inner} × ", columns, f"]{side}{where}"]
    if keys and m.name == "attention values":
        parts = ["[", rows, " × ", columns, "] [", columns, f" × {inner}]{side}{where}"]
    return {"tag": "span", "style": "white-space:nowrap", "children": parts}


def operations_block(over: Over, index: int, phase: str) -> dict[str, Any]:
    """Operations of one layer in prefill or in decode, with totals of the layer and of the model."""
    name, one = next(named for named in passes_of(over) if named[0] == phase)
    matrices = [m for m, _ in layer_amounts(placement_of(over.scenario, one.phase), over.plan.model.groups[index], one)]
    rows: list[Sequence[Any]] = [
        [m.name, _shape(f"{name}.{k}", m, one), *(at(f"{name}.{k}.{part}") for part in PARTS)] for k, m in enumerate(matrices)
    ]
    titles = ("one layer", f"all {count_text(over.plan.model.layers)} layers and the LM head")
    rows += [
        [{"tag": "b", "children": [title]}, "", *(at(f"{name}.{key}.{part}") for part in PARTS)]
        for key, title in zip(WHOLE, titles, strict=True)
    ]
    return table_block(f"Operations of {phase.lower()}", HEADS, rows, stacked=True)


def _tensors(over: Over, index: int) -> Table:
    """Bytes of what crosses and of what stays, one request."""
    group, place = over.plan.model.groups[index], placement_of(over.scenario, "prefill")
    prompts = np.asarray([over.amounts(i).prompt_tokens for i in range(len(over.values))])
    known = np.broadcast_to(cut(over.plan, amounts_of(over.scenario, prompt_tokens=prompts))[2], prompts.shape)
    sent = crossing(group, cache_of(place, group), prompts, known)
    table = {f"x.{c.name}": [exact_bytes_text(v) for v in np.broadcast_to(c.bytes, prompts.shape).tolist()] for c in sent}
    new = passes_of(over)[0][1].new
    return table | {f"y.{k}": [bytes_text(float(n) * size) for n in new] for k, (_, size) in enumerate(_kept(over, index))}


def _kept(over: Over, index: int) -> list[tuple[str, float]]:
    """Results that stay, and bytes of one row of each: what the layer's operations write."""
    place, group = placement_of(over.scenario, "prefill"), over.plan.model.groups[index]
    one = Pass("prefill", 1, 0, 1)
    found = [(m.name, a.activations / (m.reads + m.writes) * m.writes) for m, a in layer_amounts(place, group, one) if m.writes]
    return [(f"result of {name}", size) for name, size in found]


def tensors_block(over: Over, index: int) -> dict[str, Any]:
    """What one layer makes in prefill, and where it goes."""
    group, place = over.plan.model.groups[index], placement_of(over.scenario, "prefill")
    rows: list[Sequence[Any]] = [
        [c.name, "crosses: every decode step reads it", at(f"x.{c.name}")] for c in crossing(group, cache_of(place, group), 1, 0)
    ]
    rows += [[name, STAYS, at(f"y.{k}")] for k, (name, _) in enumerate(_kept(over, index))]
    if group.attention.kind not in ("linear", "none"):
        rows.append(["scores", "stay on the chip", "–"])
    rows.append(["weights", "a copy on each side, never sent", _weights(over, index)])
    return table_block("What stays and what crosses", ("Tensor", "Where it goes", "Bytes of one request"), rows)


def _weights(over: Over, index: int) -> str:
    """Bytes of one layer's weights, every expert's."""
    place, group = placement_of(over.scenario, "prefill"), over.plan.model.groups[index]
    matrices = [m for m, _ in layer_amounts(place, group, Pass("prefill", 1, 0, 1))]
    return bytes_text(sum(m.parameters * (place.expert_bytes if m.experts else place.dense_bytes) for m in matrices))


def kind_name(model: ModelSpec, index: int) -> str:
    """A kind of layer in the choice: how many, what they attend with, their feed-forward block."""
    group, first = model.groups[index], model.sequence.index(index) + 1
    ffn = group.ffn
    block = f", {ffn.experts} experts" if isinstance(ffn, Moe) else "" if ffn is None else ", dense"
    names = {
        "full": "full attention",
        "mla": "latent attention",
        "linear": "a state",
        "sliding": "a sliding window",
        "none": "no attention",
    }
    kind = names.get(group.attention.kind, f"{group.attention.kind} attention")
    if group.count == model.layers:
        return f"all {model.layers} layers: {kind}{block}"
    return f"{group.count} of {model.layers} layers: {kind}{block}, from layer {first}"
