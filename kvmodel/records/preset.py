"""Scenarios to start from."""

from __future__ import annotations

from pydantic import Field

from kvmodel.records.base import Sourced


class Preset(Sourced):
    """One scenario worth a link."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    """As people type it."""
    name: str
    """As the page writes it."""
    view: str
    """The view that tells most about it, by the last part of its address."""
    query: str
    """What differs from the defaults, as a link's query."""
    what: str
    """What there is to see, in a sentence."""
