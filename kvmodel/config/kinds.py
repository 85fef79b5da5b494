"""What each layer is: the sequence of layer kinds, from whichever field the family places them with."""

from __future__ import annotations

from typing import Any

from kvmodel.config.heads import context_length
from kvmodel.config.reader import Reader
from kvmodel.config.text import shown
from kvmodel.errors import BadConfigError

MAX_LAYERS = 2_000

_NAMES = {
    "full": ("full_attention", "attention", "full", "global_attention", "global", "indexed_attention", "minimax_m3_sparse", "*"),
    "sliding": ("sliding_attention", "sliding", "local_attention", "local", "swa", "sliding_window_attention"),
    "chunked": ("chunked_attention",),
    "state": ("linear_attention", "mamba", "mamba2", "mamba1", "linear", "gated_delta_net", "kda", "M"),
    "conv": ("conv", "short_conv"),
    "parallel": ("hybrid",),
    "dense": ("mlp", "-"),
    "moe": ("moe", "E"),
}
_STATE_SIZES = ("mamba_d_state", "mamba_num_heads", "linear_num_value_heads", "linear_attn_config")
_KIND = {name: kind for kind, names in _NAMES.items() for name in names}


def layer_count(reader: Reader) -> int:
    """Number of layers: stated, or the length of the list that names each, or a nested model's class default."""
    if reader.mentions("num_hidden_layers"):
        count = reader.optional("num_hidden_layers", high=MAX_LAYERS)
        if count is not None:
            return count
    for name in ("layers_block_type", "layer_types", "hybrid_override_pattern", "block_configs"):
        listed = reader.stated(name)[0]
        if isinstance(listed, list | str) and listed:
            if len(listed) > MAX_LAYERS:
                raise BadConfigError(f"config: {name}: got {len(listed):,} layers; allowed: up to {MAX_LAYERS:,}")
            reader.note("num_hidden_layers", len(listed), "derived", why=f"entries of {name}")
            return len(listed)
    if reader.prefix and reader.has("num_hidden_layers"):
        return reader.whole("num_hidden_layers", high=MAX_LAYERS)
    raise BadConfigError("config: no decoder layers: expected num_hidden_layers, n_layer or num_layers of a language model")


def layer_kinds(reader: Reader, layers: int) -> list[str]:
    """Kind of each layer: full, sliding, chunked, state, conv, parallel, dense or moe (no attention)."""
    for source in (_listed, _lettered, _numbered, _one_based, _intervals, _repeated, _no_rope):
        kinds = source(reader, layers)
        if kinds is not None:
            return kinds
    if reader.family.layers != "attention":
        return [reader.family.layers] * layers
    if reader.family.state or any(reader.stated(name)[0] is not None for name in _STATE_SIZES):
        raise BadConfigError("config: nothing says which layers keep a state; expected layer_types for each layer")
    return _windowed(reader, layers)


def _named(reader: Reader, path: str, name: Any) -> str:
    kind = _KIND.get(name) if isinstance(name, str) else None
    if kind is None:
        raise BadConfigError(f"config: {reader.path(path)} names {shown(name)}; understood: {', '.join(sorted(_KIND))}")
    return kind


def _listed(reader: Reader, layers: int) -> list[str] | None:
    for name in ("layers_block_type", "layer_types"):
        listed = reader.items(name, count=layers)
        if listed is not None:
            return [_named(reader, name, item) for item in listed]
    return None


def _lettered(reader: Reader, layers: int) -> list[str] | None:
    """Nemotron-H: one letter a layer."""
    pattern = reader.text("hybrid_override_pattern")
    if pattern is None:
        return None
    if len(pattern) != layers:
        path = reader.path("hybrid_override_pattern")
        raise BadConfigError(f"config: {path}: got {len(pattern)} letters for {layers} layers; allowed: one of M * - E for each layer")
    return [_named(reader, "hybrid_override_pattern", letter) for letter in pattern]


def _numbered(reader: Reader, layers: int) -> list[str] | None:
    """A 0 or 1 for each layer: MiniMax-01 (1 is full attention), MiMo-V2 (1 slides)."""
    for name, (zero, one) in {"attn_type_list": ("state", "full"), "hybrid_layer_pattern": ("full", "sliding")}.items():
        listed = reader.items(name, count=layers)
        if listed is not None:
            if any(isinstance(item, bool) or item not in (0, 1) for item in listed):
                raise BadConfigError(f"config: {reader.path(name)}: allowed: 0 or 1 for each layer")
            return [one if item else zero for item in listed]
    return None


def _one_based(reader: Reader, layers: int) -> list[str] | None:
    """Kimi Linear: layers with full attention by number, the first being 1. Others by index from 0."""
    for name, first, rest in (
        ("linear_attn_config.full_attn_layers", 1, "state"),
        ("full_attn_idxs", 0, "conv"),
        ("attn_layer_indices", 0, "state"),
        ("hybrid_layer_ids", 0, "state"),
    ):
        numbers = reader.items(name)
        if numbers is None:
            continue
        if any(isinstance(n, bool) or not isinstance(n, int) or not first <= n < layers + first for n in numbers):
            raise BadConfigError(f"config: {reader.path(name)}: allowed: layer numbers from {first} to {layers + first - 1}")
        _refuse_gaps(reader, layers, set(numbers))
        attends = "parallel" if name == "hybrid_layer_ids" else "full"
        return [attends if index + first in numbers else rest for index in range(layers)]
    return None


def _refuse_gaps(reader: Reader, layers: int, full: set[int]) -> None:
    states = reader.items("linear_attn_config.kda_layers")
    if states is not None and sorted([*full, *(n for n in states if isinstance(n, int))]) != list(range(1, layers + 1)):
        raise BadConfigError(
            f"config: linear_attn_config: full_attn_layers and kda_layers together must number each of {layers} layers once"
        )


def _intervals(reader: Reader, layers: int) -> list[str] | None:
    """Attention in one layer of several, a state in the others."""
    if reader.has("attn_layer_period"):
        period, offset = reader.whole("attn_layer_period"), reader.optional("attn_layer_offset", low=0) or 0
        if offset >= period:
            raise BadConfigError(f"config: {reader.path('attn_layer_offset')}: got {offset}; allowed: below attn_layer_period, {period}")
        return ["full" if index % period == offset else "state" for index in range(layers)]
    if reader.has("full_attention_interval"):
        interval = reader.whole("full_attention_interval")
        return ["state" if (index + 1) % interval else "full" for index in range(layers)]
    return None


def _repeated(reader: Reader, layers: int) -> list[str] | None:
    """GPT-Neo: `[[["global", "local"], 12]]`."""
    groups = reader.items("attention_types")
    if groups is None:
        return None
    kinds: list[str] = []
    for group in groups:
        well = isinstance(group, list) and len(group) == 2 and isinstance(group[0], list) and isinstance(group[1], int)
        if not well or not 0 <= group[1] <= layers:
            raise BadConfigError(f"config: {reader.path('attention_types')}: allowed: lists of kinds and how often they repeat")
        kinds += [_named(reader, "attention_types", name) for name in group[0]] * group[1]
    if len(kinds) != layers:
        raise BadConfigError(f"config: {reader.path('attention_types')} places {len(kinds)} of {layers} layers")
    return kinds


def _no_rope(reader: Reader, layers: int) -> list[str] | None:
    """Llama 4: layers with rotary positions see their chunk, those without see everything."""
    if not reader.has("attention_chunk_size"):
        return None
    listed = reader.stated("no_rope_layers")[0]
    if isinstance(listed, list) and listed:
        flags = reader.items("no_rope_layers", count=layers) or []
        return ["chunked" if rotary else "full" for rotary in flags]
    interval = reader.optional("no_rope_layer_interval") or 4
    return ["chunked" if (index + 1) % interval else "full" for index in range(layers)]


def _windowed(reader: Reader, layers: int) -> list[str]:
    stated = reader.stated("sliding_window_pattern")[0] is not None
    rule = "pattern" if stated and reader.has("sliding_window") else reader.family.windows
    window = None if rule == "ignored" else reader.optional("sliding_window")
    if window is None or (reader.has("use_sliding_window") and not reader.flag("use_sliding_window")):
        return _unused_window(reader, layers)
    if rule == "all":
        return ["sliding"] * layers
    if rule == "upper":
        first = reader.optional("max_window_layers", low=0)
        return ["sliding" if index >= (layers if first is None else first) else "full" for index in range(layers)]
    if rule == "pattern":
        return _patterned(reader, layers)
    context = context_length(reader)
    if context is not None and window >= context:
        return ["full"] * layers
    raise BadConfigError(
        f"config: {reader.find('sliding_window')[1]} is {window}, but nothing says which layers slide; state layer_types or null"
    )


def _unused_window(reader: Reader, layers: int) -> list[str]:
    if reader.family.windows == "ignored" and reader.stated("sliding_window")[0] is not None:
        reader.warn(f"sliding_window is stated, but {reader.family.id} attends to everything: ignored")
    return ["full"] * layers


def _patterned(reader: Reader, layers: int) -> list[str]:
    """Each `sliding_window_pattern`-th layer is full; a text spells one round, L local and G global."""
    if isinstance(reader.stated("sliding_window_pattern")[0], str):
        letters = reader.text("sliding_window_pattern") or ""
        if not letters or set(letters) - {"L", "G"}:
            raise BadConfigError(f"config: {reader.find('sliding_window_pattern')[1]}: got {shown(letters)}; allowed: letters L and G")
        kinds = ["sliding" if letters[index % len(letters)] == "L" else "full" for index in range(layers)]
    else:
        every = reader.whole("sliding_window_pattern")
        kinds = ["sliding" if (index + 1) % every else "full" for index in range(layers)]
    return [*kinds[:-1], "full"] if reader.family.last_full else kinds
