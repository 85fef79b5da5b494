"""Nemotron-NAS: `block_configs`, one attention and one feed-forward choice for each layer.

Source: configuration and block_config.py of nvidia/Llama-3_3-Nemotron-Super-49B-v1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvmodel.config.heads import Heads, checked, hidden_size
from kvmodel.config.reader import Reader
from kvmodel.config.text import shown
from kvmodel.errors import BadConfigError
from kvmodel.records.model import Attention, Dense, Ffn, Full, NoAttention, Sliding

ROUNDED_TO = 256
"""Feed-forward widths are rounded up to a multiple of this."""


def block_layers(reader: Reader, layers: int) -> list[tuple[Attention, Ffn | None]] | None:
    """Attention and feed-forward of each layer, None where the file has no blocks."""
    blocks = reader.items("block_configs", count=layers)
    if blocks is None:
        return None
    return [(_attention(reader, index, _part(block, index, "attention")), _ffn(reader, index, block)) for index, block in enumerate(blocks)]


def _part(block: Any, index: int, name: str) -> Mapping[str, Any]:
    part = block.get(name) if isinstance(block, Mapping) else None
    if not isinstance(part, Mapping):
        raise BadConfigError(f"config: block_configs[{index}].{name}: got {shown(part)}; allowed: an object")
    return part


def _attention(reader: Reader, index: int, part: Mapping[str, Any]) -> Attention:
    if part.get("no_op") is True or part.get("replace_with_linear") is True:
        return NoAttention()
    path = f"block_configs[{index}].attention"
    q_heads = reader.whole("num_attention_heads")
    hidden = reader.optional("head_dim") or hidden_size(reader) // q_heads or 1
    stated = part.get("num_key_value_heads")
    per_group = _size(part.get("n_heads_in_group"), f"{path}.n_heads_in_group") if stated is None else 0
    kv_heads = q_heads // per_group or 1 if per_group else _size(stated, f"{path}.num_key_value_heads")
    heads = checked(reader, Heads(q_heads, kv_heads, hidden, hidden))
    sizes = {"q_heads": heads.q_heads, "kv_heads": heads.kv_heads, "k_dim": heads.k_dim, "v_dim": heads.v_dim}
    window = part.get("window_length")
    return Full(**sizes) if window is None else Sliding(**sizes, window=_size(window, f"{path}.window_length"))


def _ffn(reader: Reader, index: int, block: Any) -> Ffn | None:
    part = _part(block, index, "ffn")
    if part.get("no_op") is True:
        return None
    hidden = hidden_size(reader)
    if part.get("replace_with_linear") is True:
        return Dense(inter=max(1, hidden // 2), gated=False)
    if part.get("intermediate_size") is not None:
        return Dense(inter=_size(part["intermediate_size"], f"block_configs[{index}].ffn.intermediate_size"))
    factor = part.get("ffn_mult")
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor < 1000:
        raise BadConfigError(f"config: block_configs[{index}].ffn.ffn_mult: got {shown(factor)}; allowed: a number above 0, below 1,000")
    return Dense(inter=-(-int(2 * factor * hidden / 3) // ROUNDED_TO) * ROUNDED_TO or ROUNDED_TO)


def _size(value: Any, path: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 10_000_000:
        raise BadConfigError(f"config: {path}: got {shown(value)}; allowed: a whole number from 1 to 10,000,000")
    return value
