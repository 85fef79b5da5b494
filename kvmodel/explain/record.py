"""What an explanation of a figure says: its formula, the terms that add up, the values put in, and what would halve it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, Literal

Origin = Literal["you", "default", "engine", "data", "fit", "computed"]
"""Where a value comes from: the reader, the scenario's default, the engine's row, another row of `data/`, a fit, the model itself."""


@dataclass(frozen=True, slots=True)
class Part:
    """One term of a sum."""

    name: str
    symbol: str
    """As the formula in symbols writes it."""
    value: float
    """In the unit of the figure; what is taken off is negative."""
    share: float
    """Of all that is added, negative where it is taken off; 0 where nothing is added."""
    how: str = ""
    """With values put in, where that says more than the symbol."""


@dataclass(frozen=True, slots=True)
class Given:
    """One value put in."""

    name: str
    symbol: str
    value: Any
    """A number in base units, or a name."""
    unit: str
    """`B`, `s`, `tokens`, `share`, `B/s`, `s/B`, `FLOP`, `FLOP/s`; empty for names, counts and ratios."""
    origin: Origin
    row: str = ""
    """File and id of the row it stands in, as `links.toml ib-ndr-400`; what it follows from where it was computed."""
    source: str = ""
    """Page that states it."""
    checked: date | None = None
    """Day on which that page was last compared with the row."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """One input's least change that reaches the goal."""

    input: str
    """Field of the scenario, or of the turn."""
    change: str
    """In words."""
    values: dict[str, Any]
    """Fields with the values they would have."""
    value: Any
    """What the figure would be."""
    share: float | None
    """Of what it is now; None where it is no number."""


@dataclass(frozen=True, slots=True)
class Formula:
    """How a figure comes about, before anything is tried."""

    words: str
    symbols: str
    parts: tuple[Part, ...]
    """Add up to the figure; empty where it is no sum."""
    given: tuple[Given, ...]
    filled: str = ""
    """The formula with values, where it says more than the sum of the parts."""
    band: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """One figure of a scenario, explained."""

    figure: str
    """Its path in the command line's JSON."""
    name: str
    value: Any
    """The very number that the command prints; ranges of tokens as (from, to) pairs, None for never."""
    unit: str
    low: float | None
    """Ends of its band, where it has one."""
    high: float | None
    words: str
    symbols: str
    filled: str
    terms: tuple[Part, ...]
    """Add up to the value; empty where it is no sum."""
    inputs: tuple[Given, ...]
    """Values put in."""
    goal: str
    """What the remedies reach: `Halve it` or, where more is better, another."""
    met: bool
    """Whether nothing is left to better: the goal holds already, or the figure is none at all."""
    remedies: tuple[Remedy, ...]
    nearest: Remedy | None
    """Where nothing reaches the goal: the single change that comes nearest, if one comes nearer."""
    left_out: str

    def as_dict(self) -> dict[str, Any]:
        """Nested dictionaries of plain values, ready for JSON."""
        tree = asdict(self)
        for given in tree["inputs"]:
            given["checked"] = given["checked"].isoformat() if given["checked"] else None
        return tree


def parts_of(rows: list[tuple[str, str, float, str]]) -> tuple[Part, ...]:
    """Parts from (name, symbol, value, how) rows; those that are nothing are left out unless all are."""
    some = [row for row in rows if row[2]] or rows[:1]
    added = sum(max(float(value), 0.0) for _, _, value, _ in some)
    return tuple(Part(name, symbol, float(value), float(value) / added if added else 0.0, how) for name, symbol, value, how in some)
