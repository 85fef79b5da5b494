"""Figure specs with placeholders, and the tables that fill them at a slider's position.

`{"$at": name}` is the table's value at the position (`"$i"` one item of it),
`{"$col": name}` a whole column, `{"$c": name}` a colour of the theme, `{"$sum": differences}` whole numbers. The
browser's view fills a spec with `fill` of `app/static/liveview.js`; `fill` here does the same for tests and files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Spec = Any
Table = dict[str, list[Any]]


def at(name: str, item: int | None = None) -> dict[str, Any]:
    """The table's value at the slider's position, or one item of it."""
    return {"$at": name} if item is None else {"$at": name, "$i": item}


def col(name: str) -> dict[str, str]:
    """The table's whole column."""
    return {"$col": name}


def colour(name: str) -> dict[str, str]:
    """A colour of the theme by meaning."""
    return {"$c": name}


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart: two layouts of the same data, words for those who cannot see it, and its table."""

    name: str
    wide: Spec
    narrow: Spec
    alt: Spec

    def item(self) -> dict[str, Any]:
        """What the view gets."""
        return {"class": f"kv-{self.name}", "wide": self.wide, "narrow": self.narrow, "alt": self.alt}


def fill(
    spec: Spec, table: Mapping[str, Sequence[Any]], index: int, colours: Mapping[str, str], columns: Mapping[str, Any] | None = None
) -> Any:
    """The spec with every placeholder replaced; whole columns come from `columns`, the table's own unless given."""
    if isinstance(spec, list | tuple):
        return [fill(item, table, index, colours, columns) for item in spec]
    if not isinstance(spec, dict):
        return spec
    if "$at" in spec:
        value = table[spec["$at"]][index]
        return fill(value[spec["$i"]] if "$i" in spec else value, table, index, colours, columns)
    if "$col" in spec:
        return (table if columns is None else columns)[spec["$col"]]
    if "$c" in spec:
        return colours[spec["$c"]]
    if "$sum" in spec:
        return unpacked(spec)
    return {key: fill(value, table, index, colours, columns) for key, value in spec.items()}


def used(spec: Spec) -> set[str]:
    """Names of the columns a spec takes values from."""
    return placed(spec, "$at") | placed(spec, "$col")


def placed(spec: Spec, mark: str) -> set[str]:
    """Names behind one kind of placeholder."""
    found: set[str] = set()
    waiting = [spec]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if mark in node:
                found.add(node[mark])
            waiting.extend(value for value in node.values() if isinstance(value, dict | list | tuple))
        elif isinstance(node, list | tuple):
            waiting.extend(value for value in node if isinstance(value, dict | list | tuple))
    return found


def four_digits(values: Any) -> list[Any]:
    """Numbers rounded to four significant digits: finer than a pixel, and a third of the bytes."""
    array = np.asarray(values, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = 10.0 ** (3 - np.floor(np.log10(np.abs(array))))
        rounded = np.where(array == 0, 0.0, np.round(array * scale) / scale)
    listed: list[Any] = rounded.tolist()
    return listed


def packed(values: Any) -> dict[str, list[int]]:
    """Whole numbers as the differences from one to the next: places in even steps compress to a tenth; the view adds them up."""
    array = np.round(np.asarray(values, dtype=float)).astype(int)
    return {"$sum": np.diff(array, prepend=0).tolist()}


def unpacked(array: Mapping[str, Sequence[int]]) -> list[int]:
    """The numbers of a packed array."""
    numbers: list[int] = np.cumsum(np.asarray(array["$sum"], dtype=int)).tolist()
    return numbers


def decimals(values: Any, places: int = 2) -> list[Any]:
    """Numbers rounded to decimal places, for coordinates in pixels."""
    listed: list[Any] = np.round(np.asarray(values, dtype=float), places).tolist()
    return listed
