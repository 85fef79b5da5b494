"""One layer's matrices in prefill and in decode, to one scale: what stays, and what crosses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from app.charts.layer_picture import GEOMETRY, Picture, Sent, Shapes, picture_of
from app.charts.layer_words import appended_bytes, sent_words, words_of
from app.charts.marks import labels
from app.charts.spec import Figure, Spec, Table, at, colour
from app.over import Over
from kvmodel.display import bytes_text, count_text, digits
from kvmodel.evaluate import amounts_of
from kvmodel.matrices import main_group
from kvmodel.pairs import shape_of
from kvmodel.parameters import layer_parameters
from kvmodel.placement import Placement
from kvmodel.plan import Plan, placement_of
from kvmodel.progress import Amounts, cut
from kvmodel.records.model import Chunked, Compressed, LayerGroup, Linear, Mla, ModelSpec, Moe, NoAttention, Shared
from kvmodel.verdict import Sentence, plain

TRACES = ("prefill", "wire", "breaks", "decode")


def group_of(model: ModelSpec, number: int) -> int:
    """Index of the group that layer `number` belongs to, first layer 1; the main group for 0 or past the last layer."""
    return model.sequence[number - 1] if 0 < number <= model.layers else main_group(model)


def matrices_table(over: Over, index: int) -> Table:
    """Columns of the answer and of the picture of one layer of a group, over a slider's positions."""
    place = placement_of(over.scenario, "prefill")
    frames = [_frame(over.plan, place, index, over.amounts(i)) for i in range(len(over.values))]
    return {name: [frame[name] for frame in frames] for name in frames[0]}


def _frame(plan: Plan, place: Placement, index: int, a: Amounts) -> dict[str, Any]:
    group, prompt, (new, _, known) = plan.model.groups[index], a.prompt_tokens, cut(plan, a)
    sentence = answer(plan, index, prompt, known)
    shapes = shapes_of(group, place, a, new, known)
    return {
        "answer": [list(part) for part in sentence],
        "answer.text": plain(sentence),
        "m.setup": setup(plan, place, index, prompt, a.batch),
        **{name: value for key, g in GEOMETRY.items() for name, value in _drawn(key, picture_of(shapes, g)).items()},
    }


def _drawn(key: str, p: Picture) -> dict[str, Any]:
    """Columns of one layout's traces."""
    traces = {f"m.{key}.{name}.{axis}": getattr(p, name)[i] for name in TRACES for i, axis in enumerate("xy")}
    return traces | {f"m.{key}.{k}.{part}": getattr(item, part) for k, item in enumerate(p.labels) for part in ("x", "y", "text")}


def answer(plan: Plan, index: int, prompt: int, known: int) -> Sentence:
    """What crosses of one layer, and of all: one copy, one request, as it lies on the wire."""
    sizes = [float(replace(wire, copies=1.0).bytes(prompt, known)) for wire in plan.wires]
    layer, whole = sizes[index], sum(wire.count * size for wire, size in zip(plan.wires, sizes, strict=True))
    if known >= prompt:
        return (("Decode already holds this prompt: ", ""), (bytes_text(0), "wire", "kv.wire_bytes"), (" to move.", ""))
    what, states = sent_words(plan.model.groups[index]), any(isinstance(group.attention, Linear) for group in plan.model.groups)
    every = f" for all {count_text(plan.model.layers)}{', states included' * (states and 'state' not in what)}."
    if not what:
        return (
            ("Of everything this layer computes, nothing crosses: ", ""),
            (bytes_text(0), "wire"),
            (f" of {bytes_text(whole)}{every}", ""),
        )
    alike = len({round(size) for size in sizes}) == 1
    each = "a layer" if alike else "in such a layer"
    return (
        (f"Of everything one layer computes, only {what}: ", ""),
        (bytes_text(layer), "wire"),
        (f" {each}, ", ""),
        (bytes_text(whole), "", "kv.prompt_bytes"),
        (every, ""),
    )


def setup(plan: Plan, place: Placement, index: int, prompt: int, batch: int) -> str:
    """The layer in words, and its weights."""
    p = layer_parameters(plan.model.groups[index], plan.model.hidden)
    size = (p.attention + p.ffn) * place.dense_bytes + p.experts * p.expert * place.expert_bytes
    count = f"{digits(p.total / 1e9)} B" if p.total >= 1e9 else f"{digits(p.total / 1e6)} M"
    of = plan.model.layers if len(plan.model.groups) == 1 else f"{plan.model.groups[index].count} alike, {plan.model.layers} in all"
    each = "" if batch == 1 else f", one of {count_text(batch)} requests"
    return (
        f"{plan.model.name}, one layer of {of}, {count_text(prompt)}-token prompt{each}. "
        f"The weights ({count} parameters, {bytes_text(size)}) sit on both sides and never move"
    )


def shapes_of(group: LayerGroup, place: Placement, amounts: Amounts, new: int, known: int) -> Shapes:
    """Columns of one layer's matrices."""
    a, ffn, missing = group.attention, group.ffn, amounts.prompt_tokens - known
    heads = 0 if isinstance(a, Linear | NoAttention) else a.q_heads
    query = heads * (a.nope + a.rope if isinstance(a, Mla) else a.row if isinstance(a, Compressed) else getattr(a, "k_dim", 0))
    values = a.heads * a.head_dim if isinstance(a, Linear) else heads * (a.row if isinstance(a, Compressed) else getattr(a, "v_dim", 0))
    inter = 0 if ffn is None else ffn.inter * ffn.top_k + ffn.shared_inter if isinstance(ffn, Moe) else ffn.inter
    window = 0.0 if group.indexer else shape_of(group).cap_tokens
    texts = words_of(group, new, amounts.batch) | {"appended_bytes": appended_bytes(group, place)}
    chunked, sent = isinstance(a, Chunked), sent_of(group, missing)
    hidden, prompt = place.model.hidden, amounts.prompt_tokens
    return Shapes(hidden, query, values, inter, new, prompt, window, chunked, heads, sent, texts)


def sent_of(group: LayerGroup, missing: int) -> tuple[Sent, ...]:
    """Tensors of one layer that cross for `missing` tokens, with rows and columns."""
    a = group.attention
    if missing <= 0:
        return ()
    found: list[Sent] = []
    if isinstance(a, Mla):
        found.append(Sent("latent", a.latent + a.rope, missing))
    elif isinstance(a, Compressed):
        merged = [Sent("merged rows", a.row, missing / a.ratio)] if a.ratio else []
        found += [*merged, Sent("window rows", a.row, min(missing, a.window))]
    elif not isinstance(a, Linear | NoAttention | Shared):
        rows = min(missing, shape_of(group).cap_tokens or missing)
        found += [Sent("K", a.kv_heads * a.k_dim, rows), Sent("V", a.kv_heads * a.v_dim, rows)]
    if group.indexer:
        found.append(Sent("index keys", group.indexer.dim, missing / (a.ratio or 1) if isinstance(a, Compressed) else missing))
    found += [Sent("state", s.heads * s.head_dim, s.state_dim, low=0.5) for s in (a, group.state) if isinstance(s, Linear)]
    return tuple(found)


def matrices_figure(over: Over, index: int) -> Figure:
    """The picture of one layer of a group."""
    shapes = shapes_at(over, index)
    return Figure("matrices", _layout("w", shapes), _layout("n", shapes), at("answer.text"))


def shapes_at(over: Over, index: int) -> Shapes:
    """Columns of one layer's matrices in the scenario itself, with all of its prompt computed."""
    place, amounts = placement_of(over.scenario, "prefill"), amounts_of(over.scenario)
    return shapes_of(over.plan.model.groups[index], place, amounts, amounts.prompt_tokens, 0)


def _layout(key: str, shapes: Shapes) -> Spec:
    g = GEOMETRY[key]
    words = labels(picture_of(shapes, g).labels)
    words |= {part: [at(f"m.{key}.{k}.{part}") for k in range(len(words["text"]))] for part in ("x", "y", "text")}
    pixels = {"visible": False, "showgrid": False, "fixedrange": True, "constrain": "domain"}
    layout = {
        "height": g.height,
        "margin": {"l": 0, "r": 0, "t": 0, "b": 0},
        "xaxis": {**pixels, "range": [-1, g.width + 1], "constraintoward": "left"},
        "yaxis": {**pixels, "range": [g.height, 0], "scaleanchor": "x", "constraintoward": "top"},
    }
    return {"data": [*(_outline(key, name) for name in TRACES), words], "layout": layout}


def _outline(key: str, name: str) -> Spec:
    fill = {"prefill": "soft_prefill", "wire": "wire", "breaks": "bg"}.get(name)
    width = {"prefill": 1, "decode": 2}.get(name, 0)
    stroke = {"width": width, "color": colour({"breaks": "bg"}.get(name, name))}
    area = {"fill": "toself", "fillcolor": colour(fill)} if fill else {}
    where = {axis: at(f"m.{key}.{name}.{axis}") for axis in "xy"}
    return {"type": "scatter", "mode": "lines", **where, "line": stroke, "hoverinfo": "skip", **area}


def kinds_of(model: ModelSpec) -> Sequence[tuple[int, int]]:
    """(first layer's number, group) of each kind of layer; 0 stands for the main group."""
    main = main_group(model)
    return [(0 if g == main else model.sequence.index(g) + 1, g) for g in range(len(model.groups))]
