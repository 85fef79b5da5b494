"""State a value in a configuration, at the path a `Field` names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def with_value(config: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy of a configuration that states `value` at `path`; objects on the way are made where missing.

    >>> with_value({"text_config": {"n_layer": 2}}, "text_config.head_dim", 64)
    {'text_config': {'n_layer': 2, 'head_dim': 64}}
    >>> with_value({"llama.block_count": 2}, "llama.block_count", 4)
    {'llama.block_count': 4}
    """
    if path in config or "." not in path:
        return {**config, path: value}
    first, rest = path.split(".", 1)
    inside = config.get(first)
    return {**config, first: with_value(inside if isinstance(inside, Mapping) else {}, rest, value)}
