"""Quantities as text: the only place where units enter the model.

Data files write `"400 Gb/s"` or `"80 GiB"`; everything behind this module is in base units
(bytes, bytes per second, seconds, FLOP per second, FLOP, tokens).
"""

from __future__ import annotations

import re

from kvmodel.errors import BadQuantityError

_DECIMAL = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}

_UNITS: dict[str, dict[str, float]] = {
    "B": {p + "B": f for p, f in {**_DECIMAL, **_BINARY}.items()} | {p + "b": f / 8 for p, f in _DECIMAL.items()},
    "s": _SECONDS,
    "FLOP": {p + "FLOP": f for p, f in _DECIMAL.items()},
    "FLOP/s": {p + "FLOP/s": f for p, f in _DECIMAL.items()},
    "parameters": {"k": 1e3, "M": 1e6, "B": 1e9, "T": 1e12},
    "1": {"": 1.0, "%": 1e-2},
}
_UNITS["B/s"] = {f"{unit}/s": factor for unit, factor in _UNITS["B"].items()} | {
    prefix + spelling: factor / 8 for prefix, factor in _DECIMAL.items() for spelling in ("bps", "bit/s")
}

_EXAMPLE = {"B": "3 GB", "s": "5 ms", "FLOP": "3 TFLOP", "FLOP/s": "989 TFLOP/s", "parameters": "70.6 B", "1": "73 %", "B/s": "3 GB/s"}
_QUANTITY = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(\S*)\s*", re.ASCII)


def parse_quantity(text: str, unit: str) -> float:
    """Read a number with its unit and return it in the base unit `unit`.

    `unit` is one of `B`, `B/s`, `s`, `FLOP`, `FLOP/s`, `parameters`, `1`. Prefixes are SI
    (k M G T P E) and, for bytes, binary (Ki Mi Gi Ti); `b` is a bit.

    >>> parse_quantity("400 Gb/s", "B/s")
    50000000000.0
    >>> parse_quantity("80 GiB", "B")
    85899345920.0

    Raises BadQuantityError where the text is no number with a unit of that dimension; a bare
    number is refused, except for the dimensionless unit `1`.
    """
    match = _QUANTITY.fullmatch(text) if isinstance(text, str) else None
    factor = _UNITS[unit].get(match[2]) if match else None
    if match is None or factor is None:
        raise BadQuantityError(f"expected a quantity in {unit}, such as '{_EXAMPLE[unit]}', got {text!r}")
    return float(match[1]) * factor
