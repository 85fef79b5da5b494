"""The rows of `data/`: loaded once, found by id or alias, never guessed."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import ValidationError

from kvmodel.errors import KvModelError, UnknownNameError
from kvmodel.records.base import Sourced
from kvmodel.records.derates import Derates
from kvmodel.records.engine import Engine
from kvmodel.records.format import Format
from kvmodel.records.hardware import Accelerator, Link
from kvmodel.records.margin import Margin
from kvmodel.records.measurement import Measurement
from kvmodel.records.model import ModelSpec
from kvmodel.records.preset import Preset
from kvmodel.records.transport import Transport

Row = TypeVar("Row", bound=Sourced)

_HERE = Path(__file__).parent


@cache
def data_folder() -> Path:
    """The folder of data files: inside an installed package, beside it in a checkout."""
    inside = _HERE / "data"
    return inside if inside.is_dir() else _HERE.parent / "data"


def read_rows(path: Path, table: str, record: type[Row]) -> tuple[Row, ...]:
    """Rows of `[[table]]` in a TOML file as validated records, sorted and unique by id.

    Raises KvModelError naming file, row and field where a row does not hold.
    """
    rows = validated(path.name, tomllib.loads(path.read_text(encoding="utf-8"))[table], record)
    ids = [row.id for row in rows]  # type: ignore[attr-defined]
    if ids != sorted(set(ids)):
        raise KvModelError(f"{path.name}: ids must be sorted and unique")
    return rows


def validated(file: str, raws: Iterable[dict[str, Any]], record: type[Row]) -> tuple[Row, ...]:
    """Rows as records. Raises KvModelError naming `file`, row and field where one does not hold."""
    rows = []
    for raw in raws:
        try:
            rows.append(record.model_validate(raw))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "row"
            raise KvModelError(f"{file}: {raw.get('id', '?')}: {where}: {first['msg']}") from None
    return tuple(rows)


def _load(table: str, record: type[Row]) -> Mapping[str, Row]:
    rows = read_rows(data_folder() / f"{table}s.toml", table, record)
    return MappingProxyType({row.id: row for row in rows})  # type: ignore[attr-defined]


@cache
def models() -> Mapping[str, ModelSpec]:
    """Every model of the registry by id."""
    return _load("model", ModelSpec)


@cache
def accelerators() -> Mapping[str, Accelerator]:
    """Every accelerator by id."""
    return _load("accelerator", Accelerator)


@cache
def links() -> Mapping[str, Link]:
    """Every link by id."""
    return _load("link", Link)


@cache
def engines() -> Mapping[str, Engine]:
    """Every engine by id."""
    return _load("engine", Engine)


@cache
def derates() -> Mapping[str, Derates]:
    """Every family of fitted constants by id."""
    return _load("derate", Derates)


@cache
def margins() -> Mapping[str, Margin]:
    """What measured times take beyond the tables that the constants are fitted to, by id."""
    return _load("margin", Margin)


@cache
def formats() -> Mapping[str, Format]:
    """Every narrow format of a cache by id, with what it costs in accuracy."""
    return _load("format", Format)


@cache
def presets() -> Mapping[str, Preset]:
    """Every scenario to start from, by id."""
    return _load("preset", Preset)


def lossy_format(kv_dtype: str, wire_dtype: str) -> Format | None:
    """The narrow format a cache goes through, on the wire or in memory, as asked; None where nothing is lost beyond the model's own."""
    asked = (dtype.partition("_")[0] for dtype in (wire_dtype, kv_dtype))
    return next((formats()[name] for name in asked if name in formats()), None)


@cache
def transports() -> Mapping[str, Transport]:
    """Every way in which bytes travel, by id."""
    return _load("transport", Transport)


@cache
def measurements() -> Mapping[str, Measurement]:
    """Every published measurement by id, series by series, rows as the source orders them."""
    path = data_folder() / "measurements.toml"
    rows = validated(path.name, measurement_rows(path), Measurement)
    found = MappingProxyType({row.id: row for row in rows})
    if len(found) < len(rows):
        raise KvModelError(f"{path.name}: ids must be unique")
    return found


def measurement_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of `[[series]]` in a TOML file, each with what its series shares, id `series/at`."""
    for series in tomllib.loads(path.read_text(encoding="utf-8"))["series"]:
        yield from _rows_of(series)


def _rows_of(series: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of one series, each with what all share."""
    shared = {key: value for key, value in series.items() if key not in ("id", "rows")}
    for row in series["rows"]:
        own = {key: value for key, value in row.items() if key != "at"}
        yield {**shared, **own, "id": f"{series['id']}/{row['at']}"}


@cache
def _aliases() -> Mapping[str, str]:
    names: dict[str, str] = {}
    for spec in models().values():
        for name in (spec.id, *spec.aliases):
            if names.setdefault(name.lower(), spec.id) != spec.id:
                raise KvModelError(f"models.toml: {name!r} names both {names[name.lower()]} and {spec.id}")
    return names


def find_model(name: str) -> ModelSpec:
    """The registry's model of that id or alias, whatever the case.

    >>> find_model("meta-llama/Llama-3.1-8B-Instruct").id
    'llama-3.1-8b'

    Raises UnknownNameError listing the nearest names.
    """
    found = _aliases().get(name.strip().lower())
    if found is None:
        raise UnknownNameError("model", name, _aliases())
    return models()[found]


def find(kind: str, name: str, rows: Mapping[str, Row]) -> Row:
    """The row of that id. Raises UnknownNameError listing the nearest ids."""
    row = rows.get(name) or rows.get(name.strip().lower())
    if row is None:
        raise UnknownNameError(kind, name, rows)
    return row
