"""What a handoff weighs: bytes against prompt length, layer by layer, and who holds which heads."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from app.charts.curves import Curves
from app.charts.marks import axis_title, disc, line, note
from app.charts.rank_map import ranks_block as ranks_block
from app.charts.scale import log_axis, token_axis
from app.charts.spec import Figure, Spec, Table, at, col, colour, four_digits
from app.charts.still import with_still_axes
from app.charts.tables import table_block
from app.over import Over
from kvmodel.display import NARROW_SPACE, bytes_both_text, bytes_text, count_text, exact_bytes_text
from kvmodel.plan import Plan
from kvmodel.records.model import LayerGroup
from kvmodel.verdict import Sentence, plain


def weighs_table(over: Over) -> Table:
    """Columns over the prompt slider: bytes of the prompt, a token's share on average, and the next token's."""
    tokens, cache = np.asarray(over.values), over.plan.cache
    prompt = np.asarray(cache.prompt_bytes(tokens), dtype=float)
    average, marginal = prompt / tokens, np.asarray(cache.marginal_bytes(tokens), dtype=float)
    per_layer = np.array([np.broadcast_to(layer.held(tokens), tokens.shape) for _, layer in cache.layers], dtype=float)
    layers = per_layer[np.asarray(over.plan.model.sequence)].T
    sentences = [_sentence(n, b, a, m) for n, b, a, m in zip(over.values, prompt, average, marginal, strict=True)]
    return {
        "answer": [[list(part) for part in s] for s in sentences],
        "answer.text": [plain(s) for s in sentences],
        "w.tokens": list(over.values),
        "w.x": [round(math.log10(v), 5) for v in over.values],
        "w.average": four_digits(average),
        "w.marginal": four_digits(np.maximum(marginal, 1.0)),
        "w.y": [round(math.log10(max(v, 1.0)), 4) for v in average],
        "w.you_anchor": ["left" if n < 300 else "right" if n > 500_000 else "center" for n in over.values],
        "w.you": [f"<b>{bytes_text(v)} a token</b>" for v in average],
        "w.hover": [
            f"{count_text(n)} tokens<br>{exact_bytes_text(a)} a token on average<br>{exact_bytes_text(m)} for the next"
            for n, a, m in zip(over.values, average, marginal, strict=True)
        ],
        "w.layers": four_digits(layers),
        "w.layers_range": [[0, max(float(row.max()), 1.0) * 1.08] for row in layers],
        "w.layers_top": [f"{bytes_text(float(row.max()))} in the fullest layer" for row in layers],
        "w.prompt": [bytes_both_text(v) for v in prompt],
        "w.rank": [
            f"Of a prompt each prefill rank holds {bytes_both_text(p)}, each decode rank {bytes_both_text(d)}."
            for p, d in zip(*(np.broadcast_to(np.asarray(side, float), tokens.shape) for side in _ranks(over)), strict=True)
        ],
        "w.layers_hover": [[bytes_text(v) for v in row] for row in layers.tolist()],
    }


def _ranks(over: Over) -> tuple[Any, Any]:
    """Bytes of one request on one rank of either side, copies included."""
    kv = over.swept.kv
    return kv.prefill_rank_bytes, kv.decode_rank_bytes


def _sentence(tokens: int, prompt: float, average: float, marginal: float) -> Sentence:
    head = ((f"A prompt of {count_text(tokens)} tokens weighs ", ""), (bytes_text(prompt), "wire", "kv.prompt_bytes"))
    if abs(average - marginal) <= 1e-6 * max(average, 1.0):
        return (*head, (": ", ""), (exact_bytes_text(average), "", "kv.bytes_per_token"), (" for each token.", ""))
    return (*head, (f": {bytes_text(average)} a token on average, {bytes_text(marginal)} for the next.", ""))


def growth_figure(table: Table, pinned: Curves | None = None) -> Figure:
    """Bytes a token takes, on average and for the next one, against prompt length; a pin's average dashed."""
    return Figure("growth", _growth(table, pinned, 13), _growth(table, pinned, 12), at("answer.text"))


def _growth(table: Table, pinned: Curves | None, size: int) -> Spec:
    tokens = table["w.tokens"]
    values = [*table["w.average"], *table["w.marginal"], *(v for v in (pinned.average if pinned else []) if v > 0)]
    low, high = 10.0 ** math.floor(math.log10(min(values))), 10.0 ** math.ceil(math.log10(max(values) * 1.6))
    steps = (1, 2, 5) if high / low <= 100 else (1,)
    ticks = [m * 10.0**d for d in range(round(math.log10(low)), round(math.log10(high)) + 1) for m in steps if m * 10.0**d <= high]
    hover = {"customdata": col("w.hover"), "hovertemplate": "%{customdata}<extra></extra>"}
    data = [
        line(col("w.tokens"), col("w.marginal"), "other", 1.5, dash="dash"),
        line(col("w.tokens"), col("w.average"), "wire", 3.5, **hover),
        *([pinned.average_line()] if pinned else []),
    ]
    covered = {"bgcolor": colour("bg"), "borderpad": 3}
    layout = {
        "height": 300,
        "margin": {"l": 60, "r": 16, "t": 28, "b": 44},
        "xaxis": {**token_axis(tokens[0], tokens[-1]), "title": {"text": "prompt tokens"}, "fixedrange": True},
        "yaxis": {**log_axis(low, high, ticks, [_tick(t) for t in ticks]), "showgrid": True, "fixedrange": True},
        "annotations": [
            axis_title("KV bytes a token", size, 60),
            *([pinned.label(pinned.average, "pin, on average", size)] if pinned else []),
            note("<b>on average</b>", table["w.x"][0], math.log10(table["w.average"][0]), "wire_text", size, xshift=6, yshift=12),
            note("the next token", table["w.x"][-1], math.log10(table["w.marginal"][-1]), "muted", size, xanchor="right", yshift=-12),
            note(at("w.you"), at("w.x"), at("w.y"), "ink", size, xanchor=at("w.you_anchor"), yshift=20, **covered),
            disc(at("w.x"), at("w.y")),
        ],
    }
    return {"data": data, "layout": layout}


def _tick(count: float) -> str:
    """A round number of bytes: `20 kB`."""
    number, unit = bytes_text(count).split(NARROW_SPACE)
    return f"{float(number.replace(',', '')):g}{NARROW_SPACE}{unit}"


def layers_figure(plan: Plan) -> Figure:
    """What each layer keeps of the prompt, first layer first."""
    return Figure("layers", _layers(plan, 13), _layers(plan, 12), "Bytes each layer keeps of the prompt")


def _layers(plan: Plan, size: int) -> Spec:
    count = plan.model.layers
    names = [kind_text(plan.model.groups[index]) for index in plan.model.sequence]
    bar = {
        "type": "bar",
        "x": list(range(1, count + 1)),
        "y": at("w.layers"),
        "width": 0.8,
        "marker": {"color": colour("wire")},
        "text": names,
        "customdata": at("w.layers_hover"),
        "textposition": "none",
        "hovertemplate": "layer %{x}<br>%{text}<br>%{customdata}<extra></extra>",
    }
    step = max(1, round(count / 8))
    ticks = [1, *range(step, count + 1, step)] if step > 1 else list(range(1, count + 1))
    layout = {
        "height": 180,
        "margin": {"l": 0, "r": 0, "t": 26, "b": 40},
        "xaxis": {"range": [0.3, count + 0.7], "tickvals": ticks, "title": {"text": "layer"}, "fixedrange": True},
        "yaxis": {"range": at("w.layers_range"), "visible": False, "showgrid": False, "fixedrange": True},
        "annotations": [note(at("w.layers_top"), 0.0, 1.0, "body", size, xref="paper", yref="paper", yanchor="bottom", yshift=4)],
    }
    return with_still_axes({"data": [bar], "layout": layout}, floor=0.0, upward=False)


def kind_text(group: LayerGroup) -> str:
    """What a layer keeps, in a few words."""
    a = group.attention
    indexer = " with an indexer" if group.indexer else ""
    words = {
        "full": lambda: f"K and V of all tokens, {a.kv_heads} heads of {a.k_dim}",
        "sliding": lambda: f"K and V of the last {count_text(a.window)} tokens, {a.kv_heads} heads of {a.k_dim}",
        "chunked": lambda: f"K and V of a chunk of {count_text(a.chunk)} tokens, {a.kv_heads} heads of {a.k_dim}",
        "mla": lambda: f"a latent of {a.latent} + {a.rope}",
        "compressed": lambda: f"rows of the last {count_text(a.window)} tokens" + (f", one row for every {a.ratio}" if a.ratio else ""),
        "shared": lambda: "nothing: another layer's cache",
        "none": lambda: "nothing: no attention",
        "linear": lambda: f"a state of fixed size ({a.variant})",
    }
    return words[a.kind]() + indexer


def groups_block(plan: Plan) -> dict[str, Any]:
    """The kinds of layers in a table."""
    rows = []
    for group, (count, layer) in zip(plan.model.groups, plan.cache.layers, strict=True):
        cells = [f"{count} ×", kind_text(group), exact_bytes_text(layer.growing + layer.indexer), exact_bytes_text(layer.capped)]
        rows.append([*cells, exact_bytes_text(layer.state + layer.tail * layer.tail_tokens)])
    return table_block("Layers by kind", ("Layers", "Each keeps", "a token", "a token in window", "state"), rows)
