"""Numbers as people read them: three significant digits, halves up, SI units, U+202F before the unit.

Only text leaves this module; nothing here is computed with.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

NARROW_SPACE = "\u202f"
MINUS = "\u2212"

TIME_UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6))
_BYTE_UNITS = (("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0))
_BINARY_UNITS = (("TiB", 2.0**40), ("GiB", 2.0**30), ("MiB", 2.0**20), ("KiB", 2.0**10), ("B", 1.0))
_FLOP_UNITS = (("EFLOP", 1e18), ("PFLOP", 1e15), ("TFLOP", 1e12), ("GFLOP", 1e9), ("MFLOP", 1e6), ("FLOP", 1.0))


def digits(value: float) -> str:
    """A number with three significant digits, trailing zeros kept, thousands separated.

    >>> digits(3.125), digits(20), digits(12345), digits(-0.5)
    ('3.13', '20.0', '12,300', '−0.500')
    """
    if value == 0:
        return "0"
    if not math.isfinite(value):
        return "∞"
    rounded = float(f"{abs(value) * (1 + 1e-12):.3g}")
    places = max(0, 2 - math.floor(math.log10(rounded)))
    return (MINUS if value < 0 else "") + f"{rounded:,.{places}f}"


def _unit_for(value: float, units: Sequence[tuple[str, float]], floor: float = 1.0) -> tuple[str, float]:
    """The largest unit in which the value, rounded to three digits, is at least `floor`."""
    return next((unit for unit in units if float(f"{abs(value) / unit[1] * (1 + 1e-12):.3g}") >= floor), units[-1])


def time_unit(seconds: float) -> tuple[str, float]:
    """(unit, seconds in it): s from 1 s, ms from 0.1 ms, µs below."""
    size = float(f"{abs(seconds) * (1 + 1e-12):.3g}")
    return TIME_UNITS[0] if size >= 1 or size == 0 else TIME_UNITS[1] if size >= 1e-4 else TIME_UNITS[2]


def shared_time_unit(*seconds: float) -> tuple[str, float]:
    """One unit for numbers read together: the largest's, unless they are more than 1,000 apart."""
    sizes = [abs(s) for s in seconds if s]
    if not sizes:
        return TIME_UNITS[0]
    unit = time_unit(max(sizes))
    return TIME_UNITS[1] if unit[0] == "s" and 1e-3 <= min(sizes) < 1e-1 and max(sizes) < 100 else unit


def time_text(seconds: float, unit: tuple[str, float] | None = None) -> str:
    """A duration.

    >>> time_text(0.0536870912), time_text(0.000671), time_text(0)
    ('53.7\u202fms', '0.671\u202fms', '0\u202fs')
    """
    name, size = unit or time_unit(seconds)
    return f"{digits(seconds / size)}{NARROW_SPACE}{name}"


def bytes_text(count: float) -> str:
    """Bytes in SI units.

    >>> bytes_text(2684354560), bytes_text(0)
    ('2.68\u202fGB', '0\u202fB')
    """
    name, size = _unit_for(count, _BYTE_UNITS)
    return f"{digits(count / size)}{NARROW_SPACE}{name}" if count >= 1000 else f"{round(count):,}{NARROW_SPACE}B"


def bytes_both_text(count: float) -> str:
    """Bytes in SI units with the binary figure beside it: `2.68 GB (2.50 GiB)`."""
    if count < 1000:
        return bytes_text(count)
    name, size = _unit_for(count, _BINARY_UNITS)
    return f"{bytes_text(count)} ({digits(count / size)}{NARROW_SPACE}{name})"


def exact_bytes_text(count: float) -> str:
    """Bytes to the last one: `327,680 B`."""
    return f"{round(count):,}{NARROW_SPACE}B"


def rate_text(bytes_per_second: float) -> str:
    """Bytes per second in SI units."""
    return bytes_text(bytes_per_second) + "/s"


def flop_text(count: float) -> str:
    """FLOP in SI units."""
    name, size = _unit_for(count, _FLOP_UNITS)
    return f"{digits(count / size)}{NARROW_SPACE}{name}"


def share_text(share: float) -> str:
    """A share in per cent.

    >>> share_text(0.00512), share_text(0.00004), share_text(1)
    ('0.512\u202f%', '<0.01\u202f%', '100\u202f%')
    """
    if 0 < share < 1e-4:
        return f"<0.01{NARROW_SPACE}%"
    return f"{digits(share * 100) if share else '0'}{NARROW_SPACE}%"


def tokens_text(tokens: float) -> str:
    """A computed number of tokens: three digits, written out; whole below 1,000."""
    return f"{round(tokens):,}" if tokens < 1000 else digits(tokens)


def count_text(count: float) -> str:
    """An exact whole number with thousands separated."""
    return f"{round(count):,}"


def tick_text(tokens: int) -> str:
    """A power of two on an axis: `512`, `8k`, `1M`."""
    if tokens >= 2**20:
        return f"{tokens // 2**20}M"
    return f"{tokens // 1024}k" if tokens >= 1024 else str(tokens)
