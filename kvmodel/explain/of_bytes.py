"""Bytes explained: what a token and a prompt take in the cache, and what of it crosses."""

from __future__ import annotations

from dataclasses import replace

from kvmodel.cache import LayerCache
from kvmodel.dtypes import BYTES_PER_ELEMENT
from kvmodel.explain.figures import Case
from kvmodel.explain.given import asked, computed, of_engine, of_figure, of_model, once
from kvmodel.explain.record import Formula, Given, parts_of
from kvmodel.progress import cut
from kvmodel.records.model import Compressed, LayerGroup, Linear, Mla, NoAttention

KINDS = {
    "full": "full attention",
    "sliding": "a sliding window",
    "chunked": "local chunks",
    "shared": "another layer's cache",
    "mla": "latent attention",
    "compressed": "compressed rows",
    "linear": "a fixed state",
    "none": "no attention",
}
"""What layers attend with, in words."""
MOST_KINDS = 6
"""Kinds of layers listed one by one."""

HEADS, LATENT, ROW, MERGED = "L·H·(K + V)·b", "L·(R + P)·b", "L·r", "L·r ÷ m"


def of_token(case: Case) -> Formula:
    """Growing bytes of one token over all layers."""
    found = _grouped(case)
    rows, symbols = [], []
    for group, cache, count in found:
        symbol, how = _row(case, group, cache, count)
        if cache.growing:
            symbols.append(symbol)
            rows.append((f"{count:,} layers of {KINDS[group.attention.kind]}", symbol, count * cache.growing, how))
        if cache.indexer:
            symbols.append("L·i")
            rows.append((f"Index keys of {count:,} layers", "L·i", count * cache.indexer, f"{count:,} × {cache.indexer:g} B"))
    words = (
        "For each layer whose cache grows, the bytes of one token's row: its KV heads times the elements of a key and a value, "
        "or one latent row."
    )
    no = [("No layer's cache grows", "0", 0.0, "")]
    symbol = " + ".join(dict.fromkeys(symbols)) or "0"
    filled = " + ".join(row[3] for row in rows)
    return Formula(words, f"B_token = {symbol}", parts_of(rows or no), _dimensions(case, growing=True), filled)


def of_prompt(case: Case) -> Formula:
    """Cache of the prompt, one copy, one request."""
    n = case.amounts.prompt_tokens
    words = (
        "Growing bytes for each token, windows and local chunks up to their length, states once; exact in tokens, one copy, one request."
    )
    rows = _by_kind(case, n, n)
    symbols = " + ".join(symbol for _, symbol, value, _ in rows if value) or "0"
    given = (asked(case.scenario, "prompt_tokens", "n", "tokens"), *_coefficients(case), *_dimensions(case))
    return Formula(words, f"B_prompt = {symbols}", parts_of(rows), once(list(given)))


def of_wire(case: Case) -> Formula:
    """Everything that crosses."""
    plan, a, s = case.plan, case.amounts, case.scenario
    known = cut(plan, a)[2]
    one = plan.cache.prompt_bytes(a.prompt_tokens) * a.batch
    whole = case.result.kv.wire_bytes
    plain = sum(w.count * replace(w, copies=1.0, ratio=1.0).bytes(a.prompt_tokens, known) for w in plan.wires) * a.batch
    narrow = sum(w.count * replace(w, copies=1.0).bytes(a.prompt_tokens, known) for w in plan.wires) * a.batch
    held = f"{known:,} tokens held"
    rows = [
        ("Cache of the prompts", "q·B_prompt", one, f"{a.batch:,} × {case.result.kv.prompt_bytes:,.0f} B"),
        ("Held by decode already", "− B_held", plain - one, held),
        ("Narrower on the wire", "− (1 − c)·B_kv", narrow - plain, f"{plan.wires[0].ratio:g} bytes for one"),
        ("Copies for more ranks", "+ copies", whole - narrow, f"up to {max(w.copies for w in plan.wires):g} of each byte"),
    ]
    words = "The cache of all prompts of the batch that decode does not hold, in the wire's format, once for every rank that needs a copy."
    given = [
        asked(s, "batch", "q"),
        of_figure(case, "kv.prompt_bytes", "B_prompt"),
        asked(s, "decode_held_tokens", "h", "tokens", known),
        of_engine(plan, s, "skips_held", "", "yes" if plan.engine.skips_held else "no"),
        asked(s, "wire_dtype", "c"),
        asked(s, "prefill_tp", ""),
        asked(s, "decode_tp", ""),
    ]
    latent = any(isinstance(group.attention, Mla | Compressed) for group in plan.model.groups)
    given += [of_engine(plan, s, "mla_copies", "", plan.engine.mla_copies)] if latent else []
    return Formula(words, "B_wire = q·B_prompt − B_held − (1 − c)·B_kv + copies", parts_of(rows), once(given))


def _grouped(case: Case) -> list[tuple[LayerGroup, LayerCache, int]]:
    """Kinds of layers whose caches differ, with how many there are of each."""
    found: dict[tuple[str, LayerCache], tuple[LayerGroup, int]] = {}
    for group, (count, cache) in zip(case.plan.model.groups, case.plan.cache.layers, strict=True):
        key = (group.attention.kind, cache)
        first, before = found.get(key, (group, 0))
        found[key] = (first, before + count)
    return [(group, cache, count) for (_, cache), (group, count) in found.items()]


def _row(case: Case, group: LayerGroup, cache: LayerCache, count: int) -> tuple[str, str]:
    """(symbols, values) of the growing bytes of `count` layers alike."""
    a, dtype = group.attention, case.plan.kv_dtype
    if isinstance(a, Mla) and dtype in BYTES_PER_ELEMENT:
        return LATENT, f"{count:,} × ({a.latent} + {a.rope}) × {BYTES_PER_ELEMENT[dtype]:g} B"
    if isinstance(a, Compressed):
        return MERGED, f"{count:,} × {cache.capped:g} B ÷ {a.ratio}"
    if isinstance(a, Mla | Linear | NoAttention) or dtype not in BYTES_PER_ELEMENT:
        return ROW, f"{count:,} × {cache.growing:,g} B"
    return HEADS, f"{count:,} × {a.kv_heads} × ({a.k_dim} + {a.v_dim}) × {BYTES_PER_ELEMENT[dtype]:g} B"


def _by_kind(case: Case, tokens: float, missing: float) -> list[tuple[str, str, float, str]]:
    """(name, symbol, bytes, values) of a prompt's cache by what it keeps."""
    layers = case.plan.cache.layers
    per_token = sum(n * c.growing for n, c in layers)
    index = sum(n * c.indexer for n, c in layers)
    windows = sum(n * min(missing, c.cap_tokens) * c.capped for n, c in layers)
    tails = sum(n * min(missing, c.tail_tokens) * c.tail for n, c in layers)
    states = sum(n * c.state for n, c in layers)
    return [
        ("Rows of every token", "n·B_row", tokens * per_token, f"{tokens:,} × {per_token:,g} B"),
        ("Index keys of every token", "n·B_index", tokens * index, f"{tokens:,} × {index:,g} B"),
        ("Windows and local chunks", "Σ L·min(n, w)·B_capped", windows, ""),
        ("Compressors' latest tokens", "Σ L·min(n, v)·B_tail", tails, ""),
        ("States", "S", states, ""),
    ]


def _coefficients(case: Case) -> list[Given]:
    """Bytes a token and states of all layers together."""
    layers, given = case.plan.cache.layers, []
    why = "layers and dimensions below"
    for name, symbol, value in (
        ("Rows of a token, all layers", "B_row", sum(n * c.growing for n, c in layers)),
        ("Index keys of a token, all layers", "B_index", sum(n * c.indexer for n, c in layers)),
        ("States, all layers", "S", sum(n * c.state for n, c in layers)),
    ):
        given += [computed(name, symbol, value, "B", why)] if value else []
    return given


def _dimensions(case: Case, *, growing: bool = False) -> tuple[Given, ...]:
    """The model's dimensions that the bytes come from, by kind of layer; only of those that grow with each token, if so asked."""
    plan, s = case.plan, case.scenario
    found = [row for row in _grouped(case) if not growing or row[1].growing or row[1].indexer]
    rows: list[Given] = []
    for group, cache, count in found[:MOST_KINDS]:
        kind = "" if len(found) == 1 else f", {KINDS[group.attention.kind]}"
        values = [("Layers", "L", count, ""), *_of_kind(group, cache)]
        rows += [of_model(plan, s, name + kind, symbol, value, unit) for name, symbol, value, unit in values]
    if len(found) > MOST_KINDS:
        rows.append(of_model(plan, s, "Further kinds of layers", "", len(found) - MOST_KINDS))
    dtype = plan.kv_dtype
    rows.append(asked(s, "kv_dtype", "", "", dtype, "auto, as the model's configuration" if s.kv_dtype == "auto" else ""))
    if dtype in BYTES_PER_ELEMENT:
        rows.append(computed("Bytes an element", "b", BYTES_PER_ELEMENT[dtype], "B", f"of {dtype}, block scales included"))
    return once(rows)


def _of_kind(group: LayerGroup, cache: LayerCache) -> list[tuple[str, str, float, str]]:
    """(name, symbol, value, unit) of a layer's dimensions."""
    a = group.attention
    rows: list[tuple[str, str, float, str]] = []
    if isinstance(a, Mla):
        rows = [("Latent elements", "R", a.latent, ""), ("Rotary elements", "P", a.rope, "")]
    elif isinstance(a, Compressed):
        rows = [("Bytes of a row", "r", cache.capped, "B"), ("Tokens merged into a row", "m", a.ratio, "tokens")]
    elif isinstance(a, Linear):
        rows = [("State of a layer", "S", cache.state, "B")]
    elif cache.growing or cache.capped:
        heads = [getattr(a, name) for name in ("kv_heads", "k_dim", "v_dim")]
        rows = [(name, symbol, value, "") for (name, symbol), value in zip(_HEAD_NAMES, heads, strict=True)]
    if cache.capped:
        rows.append(("Tokens kept", "w", cache.cap_tokens, "tokens"))
    if group.indexer:
        rows.append(("Index keys of a token", "i", cache.indexer, "B"))
    if group.state:
        rows.append(("State beside attention", "S", cache.state, "B"))
    return rows


_HEAD_NAMES = (("KV heads", "H"), ("Key elements of a head", "K"), ("Value elements of a head", "V"))
