"""From the text of a file to one JSON object."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kvmodel.errors import BadConfigError

MAX_CONFIG_CHARACTERS = 2_000_000
"""Longest text that is read; published configurations stay under 200,000 characters."""


def read_object(config: str | Mapping[str, Any]) -> dict[str, Any]:
    """The JSON object of a text, or a copy of a mapping; NaN and Infinity are allowed in it.

    Raises BadConfigError: empty, too long, HTML, not JSON (line and column), not an object.
    """
    if isinstance(config, Mapping):
        return {str(key): value for key, value in config.items()}
    if not isinstance(config, str):
        raise BadConfigError(f"config: got {type(config).__name__}; allowed: the text of a config.json, or a mapping")
    text = config.lstrip("\ufeff").strip()
    if not text:
        raise BadConfigError("config: the file is empty; expected the JSON object of a config.json")
    if len(text) > MAX_CONFIG_CHARACTERS:
        raise BadConfigError(f"config: {len(text):,} characters; allowed: up to {MAX_CONFIG_CHARACTERS:,}")
    if text.startswith("<"):
        raise BadConfigError("config: this is HTML, not JSON; download the raw config.json")
    fields = _parse(text)
    if not isinstance(fields, dict):
        raise BadConfigError(f"config: expected a JSON object, got a {type(fields).__name__}")
    return fields


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise BadConfigError(f"config: not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise BadConfigError("config: JSON nested too deeply") from None
    except ValueError:
        raise BadConfigError("config: JSON holds a number of too many digits") from None


def shown(value: object) -> str:
    """A value as a sentence can carry it: short, on one line, printable."""
    kinds = {dict: "an object", list: "a list", tuple: "a list"}
    for kind, word in kinds.items():
        if isinstance(value, kind):
            return f"{word} of {len(value)}"
    if isinstance(value, int) and abs(value) >= 10**40:
        return "a number of over 40 digits"
    text = ascii(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def printable(text: str) -> str:
    """A text without line breaks, control characters or halves of characters.

    >>> printable("a\\nb\\ud800")
    'a?b?'
    """
    return "".join(letter if letter.isprintable() else "?" for letter in text)
