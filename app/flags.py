"""Command-line flags: one for each input, read as `--field value` or `--field=value`."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from kvmodel.errors import BadScenarioError
from kvmodel.records.base import Record
from kvmodel.scenario import allowed_values


def field_help(records: Sequence[type[Record]]) -> str:
    """A line for each input; of two with one name, the first record's counts."""
    lines = []
    seen: set[str] = set()
    for record in records:
        for name, field in record.model_fields.items():
            if name in seen:
                continue
            seen.add(name)
            default = "" if field.default is None else f" (default {field.default})"
            lines.append(f"  {flag(name)}: {field.description}{default}; {allowed_values(record, name)}")
    return "inputs:\n" + "\n".join(lines) if lines else ""


def flag(name: str) -> str:
    """The command-line flag of a field: `--prompt-tokens`."""
    return "--" + name.replace("_", "-")


def read_flags(rest: Sequence[str], known: Sequence[str]) -> dict[str, str]:
    """`--field value` and `--field=value` pairs as field names and texts; the last of a repeated one counts."""
    texts: dict[str, str] = {}
    words = list(rest)
    while words:
        word = words.pop(0)
        name, given, value = word.partition("=")
        field = name.removeprefix("--").replace("-", "_")
        if not word.startswith("--") or field not in known:
            raise BadScenarioError(unknown_flag(word, known))
        if not given:
            if not words:
                raise BadScenarioError(f"{field}: got no value after {name}")
            value = words.pop(0)
        texts[field] = value
    return texts


def unknown_flag(word: str, known: Sequence[str]) -> str:
    """What to say of a word that is no input: the nearest ones."""
    flags = [flag(name) for name in known]
    if not flags:
        return f"got {word[:60]!r}; this command takes no more words"
    near = get_close_matches(word.partition("=")[0], flags, n=3, cutoff=0.5)
    return f"no input is called {word[:60]!r}; " + (f"nearest: {', '.join(near)}" if near else "--help lists them")
