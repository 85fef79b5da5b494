"""Fields of a configuration, read under any of their spellings, with where each value came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from kvmodel.config.families import Family
from kvmodel.config.spellings import PARAMETERS_ONLY, SPELLINGS
from kvmodel.config.text import shown
from kvmodel.errors import BadConfigError

MAX_SIZE = 10_000_000
Origin = Literal["file", "class default", "derived"]
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Field:
    """One value that shaped the model, and where it came from."""

    name: str
    """The usual key of a `config.json`."""
    value: int | float | str | bool
    """The value used; a list is shown in words."""
    origin: Origin
    """Stated in the file, default of the configuration class, or worked out from other fields."""
    path: str
    """Key in the file, with dots into nested objects; where to state the value if it is not stated."""

    @property
    def sizes_cache(self) -> bool:
        """Whether the cache depends on it; other fields size the weights."""
        return self.name not in PARAMETERS_ONLY


class Reader:
    """The fields of one configuration; remembers which were used and what had to be assumed.

    `values` holds the fields, `prefix` the path at which they were found, `paths` the path of those
    that came from elsewhere; `layers` is their number once it is known.
    """

    def __init__(self, values: Mapping[str, Any], family: Family, *, prefix: str = "", paths: Mapping[str, str] | None = None) -> None:
        self.values, self.family, self.prefix = values, family, prefix
        self.paths = paths or {}
        self.used: dict[str, Field] = {}
        self.assumed: list[str] = []
        self.warnings: list[str] = []
        self.layers = 0

    def path(self, key: str) -> str:
        """Where a key stands in the file."""
        return self.paths.get(key, self.prefix + key)

    def stated(self, name: str) -> tuple[Any, str]:
        """(value, path) as the file states it under any spelling; (None, path) for null or nothing."""
        value, key = self._look(name)
        return (None if value is _MISSING else value), self.path(key)

    def find(self, name: str) -> tuple[Any, str, Origin]:
        """(value, path, origin): as stated, else the class default; None where a null or nothing decides."""
        value, key = self._look(name)
        if value is _MISSING and name in self.family.defaults:
            return self.family.defaults[name], self.path(name), "class default"
        return (None if value is _MISSING else value), self.path(key), "file"

    def mentions(self, name: str) -> bool:
        """Whether the file names the field under any spelling, be it null."""
        return self._look(name)[0] is not _MISSING

    def has(self, name: str) -> bool:
        """Whether the file or the class gives the field a value."""
        return self.find(name)[0] is not None

    def whole(self, name: str, *, low: int = 1, high: int = MAX_SIZE, layer: int | None = None) -> int:
        """A whole number. Raises BadConfigError where there is none, or it is out of bounds."""
        value = self.optional(name, low=low, high=high, layer=layer)
        if value is None:
            spellings = " or ".join((name, *SPELLINGS.get(name, ())[:2]))
            raise BadConfigError(f"config: {name} is not stated, and no class default applies; expected {spellings}")
        return value

    def optional(self, name: str, *, low: int = 1, high: int = MAX_SIZE, layer: int | None = None) -> int | None:
        """A whole number, or None where neither file nor class gives one; a list may hold one for each layer."""
        value, path, origin = self.find(name)
        if isinstance(value, list) and layer is not None and len(value) == self.layers:
            value, path = value[layer], f"{path}[{layer}]"
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise BadConfigError(f"config: {path}: got {shown(value)}; allowed: a whole number from {low:,} to {high:,}")
        self.note(name, value, origin, path)
        return value

    def flag(self, name: str, *, default: bool = False) -> bool:
        """True or false. Raises BadConfigError for anything else."""
        value, path, origin = self.find(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise BadConfigError(f"config: {path}: got {shown(value)}; allowed: true or false")
        self.note(name, value, origin, path)
        return value

    def text(self, name: str) -> str | None:
        """A text, or None. Raises BadConfigError for anything else."""
        value, path, origin = self.find(name)
        if value is None:
            return None
        if not isinstance(value, str):
            raise BadConfigError(f"config: {path}: got {shown(value)}; allowed: a text")
        self.note(name, shown(value).strip("'"), origin, path)
        return value

    def items(self, name: str, *, count: int | None = None) -> list[Any] | None:
        """A list, or None; `count` entries where given. Raises BadConfigError for anything else.

        Entries past the layers that belong to layers for multi-token prediction are left out (Step 3.5).
        """
        value, path = self.stated(name)
        if value is None:
            return None
        if isinstance(value, list) and count is not None and len(value) == count + self._prediction_layers():
            value = value[:count]
        if not isinstance(value, list) or (count is not None and len(value) != count):
            wanted = "a list" if count is None else f"a list of {count} entries, one for each layer"
            raise BadConfigError(f"config: {path}: got {shown(value)}; allowed: {wanted}")
        self.note(name, runs_text(value), "file", path)
        return value

    def nested(self, name: str) -> Mapping[str, Any]:
        """An object, empty where there is none."""
        value, path = self.stated(name)
        if value is not None and not isinstance(value, Mapping):
            raise BadConfigError(f"config: {path}: got {shown(value)}; allowed: an object")
        return value or {}

    def note(self, name: str, value: int | float | str | bool, origin: Origin, path: str = "", why: str = "") -> None:
        """Remember a value that was used; one that the file does not state is an assumption.

        `why` tells how a derived value came about.
        """
        path = path or self.path(name)
        if path in self.used:
            return
        self.used[path] = Field(name, value, origin, path)
        if origin == "class default":
            self.assumed.append(f"{name} is not stated: {value}, the class default of {self.family.id}")
        elif origin == "derived":
            self.assumed.append(f"{name} is not stated: {value}, {why}")

    def warn(self, sentence: str) -> None:
        """Tell the reader something to check, once."""
        if sentence not in self.warnings:
            self.warnings.append(sentence)

    def _prediction_layers(self) -> int:
        extra = self.stated("num_nextn_predict_layers")[0]
        return extra if isinstance(extra, int) and 0 < extra <= MAX_SIZE else 0

    def _look(self, name: str) -> tuple[Any, str]:
        null = (_MISSING, name)
        for key in (name, *SPELLINGS.get(name, ())):
            value = lookup(self.values, key)
            if value is None and null[0] is _MISSING:
                null = (None, key)
            if value is not None and value is not _MISSING:
                return value, key
        return null


def lookup(values: Mapping[str, Any], key: str) -> Any:
    """The value at a key, dots reaching into nested objects; a marker where there is none."""
    for part in key.split("."):
        if not isinstance(values, Mapping) or part not in values:
            return _MISSING
        values = values[part]
    return values


def runs_text(values: list[Any]) -> str:
    """A list in words, equal neighbours counted: `sliding_attention*5, full_attention`."""
    runs: list[tuple[str, int]] = []
    for value in values:
        text = shown(value).strip("'")
        if runs and runs[-1][0] == text:
            runs[-1] = (text, runs[-1][1] + 1)
        else:
            runs.append((text, 1))
    words = ", ".join(text if count == 1 else f"{text}*{count}" for text, count in runs)
    return words if len(words) <= 400 else words[:397] + "..."
