"""A model as the command line names it: an id or alias, a configuration file, or a repository of a model hub."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from app.hub import fetch_config, is_repository
from kvmodel import registry
from kvmodel.config import MAX_CONFIG_CHARACTERS, ParsedConfig, parse_model_config
from kvmodel.errors import BadConfigError, UnknownNameError
from kvmodel.scenario import Scenario, from_text


def find(name: str, *, speculation: bool = False) -> ParsedConfig:
    """The model of that name. Raises UnknownNameError, BadConfigError."""
    path = Path(name)
    if name.endswith(".json") or path.is_file():
        return read_config(name, speculation=speculation)
    try:
        return ParsedConfig(registry.find_model(name), (), ())
    except UnknownNameError:
        if path.is_dir():
            raise BadConfigError(f"model: {name[:100]!r} is a folder; name its config.json") from None
        if not is_repository(name):
            raise
    return fetch_config(name, speculation=speculation)


def named(name: str) -> bool:
    """Whether a name is to be looked up in the registry, and not read from a file or a hub."""
    if name.endswith(".json"):
        return False
    try:
        registry.find_model(name)
    except UnknownNameError:
        return not is_repository(name)
    return True


def scenario_of(texts: Mapping[str, str]) -> Scenario:
    """A scenario from texts; a model that is a file or a repository is read as a configuration. Raises KvModelError."""
    name = texts.get("model", "")
    if not name or named(name):
        return from_text(texts)
    others = {field: text for field, text in texts.items() if field != "model"}
    return from_text(others).with_changes(model=find(name).model)


def read_config(path: str, *, speculation: bool = False) -> ParsedConfig:
    """Read a configuration file. Raises BadConfigError for one that cannot be used."""
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise BadConfigError(f"model: cannot read {path[:100]!r}: {error.strerror}") from None
    if len(raw) > MAX_CONFIG_CHARACTERS:
        raise BadConfigError(f"model: {len(raw):,} bytes in {path[:100]!r}; allowed: up to {MAX_CONFIG_CHARACTERS:,}")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadConfigError(f"model: {path[:100]!r} is not UTF-8 text; expected a config.json") from None
    return parse_model_config(text, name=Path(path).stem, speculation=speculation)
