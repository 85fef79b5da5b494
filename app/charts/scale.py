"""Axes and labels: round ticks, and how much room a text takes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kvmodel.display import NARROW_SPACE, tick_text

WIDE, NARROW = 1120, 358
"""Pixels a figure is laid out for; the view takes the narrow layout below 640."""
TOKEN_TICKS = (128, 1024, 8192, 131_072, 1_048_576)
"""Ticks of a prompt axis and of the slider."""


def round_ticks(high: float, most: int) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten, above 0 and below `high`, at most `most` of them."""
    if high <= 0:
        return []
    raw = high / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= raw * (1 - 1e-9))
    return [step * i for i in range(1, int(high / step) + 1)]


def ticks_between(low: float, high: float, most: int) -> list[float]:
    """Round ticks strictly inside an interval."""
    if high <= low:
        return []
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= raw * (1 - 1e-9))
    first = math.ceil(low / step + 1e-9)
    return [step * i for i in range(first, int(high / step) + 1)]


def plain_time(seconds: float, step: float) -> str:
    """A tick on a time axis whose ticks are `step` apart: as many digits as tell them apart."""
    unit, size = ("s", 1.0) if step >= 0.5 else ("ms", 1e-3) if step >= 1e-4 else ("µs", 1e-6)
    places = max(0, -math.floor(math.log10(step / size) + 1e-9))
    return f"{seconds / size:,.{places}f}{NARROW_SPACE}{unit}"


def text_width(text: str, size: int = 13) -> float:
    """Estimated pixels of a text in the charts' font, markup left out."""
    bare = text.replace("<b>", "").replace("</b>", "")
    return len(bare) * size * 0.49


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Places, highest first, moved as little as keeps neighbours `gap` apart: those that meet share their middle."""
    clusters: list[tuple[float, int]] = []
    for place in places:
        clusters.append((place, 1))
        while len(clusters) > 1 and clusters[-2][0] - clusters[-1][0] < gap * (clusters[-2][1] + clusters[-1][1]) / 2:
            (a, n), (b, m) = clusters[-2:]
            clusters[-2:] = [((n * a + m * b) / (n + m), n + m)]
    return [middle + gap * ((count - 1) / 2 - i) for middle, count in clusters for i in range(count)]


def log_axis(low: float, high: float, ticks: Sequence[float], texts: Sequence[str]) -> dict[str, object]:
    """A logarithmic axis with ticks of its own."""
    return {"type": "log", "range": [math.log10(low), math.log10(high)], "tickvals": list(ticks), "ticktext": list(texts)}


def token_axis(low: int, high: int, beyond: float = 0.0) -> dict[str, object]:
    """A logarithmic axis of prompt tokens, and decades `beyond`; its ends are rounded to five decimals, as marks there are."""
    ticks = [t for t in TOKEN_TICKS if low <= t <= high]
    reach = {"range": [math.floor(math.log10(low) * 1e5) / 1e5, math.ceil(math.log10(high) * 1e5) / 1e5 + beyond]}
    return {**log_axis(low, high, ticks, [tick_text(t) for t in ticks]), **reach, "ticks": "outside", "ticklen": 4}


def time_axis(low: float, high: float) -> dict[str, object]:
    """A logarithmic axis of seconds, a tick a decade."""
    names = {-9: "1 ns", -8: "10 ns", -7: "0.1 µs", -6: "1 µs", -5: "10 µs", -4: "0.1 ms", -3: "1 ms", -2: "10 ms", -1: "100 ms"}
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    text = {d: names.get(d, f"{10**d:,} s" if d >= 0 else f"1e{d} s").replace(" ", NARROW_SPACE) for d in decades}
    return log_axis(low, high, [10.0**d for d in decades], [text[d] for d in decades])
