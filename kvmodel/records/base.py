"""What every record shares: frozen, no unknown keys, quantities given as text with a unit."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from kvmodel.quantity import parse_quantity


class Record(BaseModel):
    """An immutable value whose fields are all known."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


class Sourced(Record):
    """A row of `data/`: where its facts come from and when somebody looked."""

    source: str = Field(min_length=1)
    """Page, or file of an engine's source with its version, that states the facts."""
    checked: date
    """Day on which the source was last compared with the row."""


def _quantity(unit: str) -> BeforeValidator:
    def read(value: object) -> object:
        return parse_quantity(value, unit) if isinstance(value, str) else _refuse_bare(value, unit)

    return BeforeValidator(read)


def _refuse_bare(value: object, unit: str) -> object:
    if isinstance(value, bool) or (isinstance(value, int | float) and value != 0):
        return parse_quantity(repr(value), unit)
    return value


Bytes = Annotated[float, _quantity("B"), Field(ge=0)]
BytesPerSecond = Annotated[float, _quantity("B/s"), Field(gt=0)]
Seconds = Annotated[float, _quantity("s"), Field(ge=0)]
FlopPerSecond = Annotated[float, _quantity("FLOP/s"), Field(gt=0)]
Parameters = Annotated[float, _quantity("parameters"), Field(gt=0)]
Share = Annotated[float, Field(gt=0, le=1)]
