"""Narrow formats of a KV cache, and what they cost in accuracy."""

from __future__ import annotations

from pydantic import Field

from kvmodel.records.base import Sourced


class Format(Sourced):
    """One format narrower than the 16 bits models are published in."""

    id: str = Field(pattern=r"^[a-z0-9]+$")
    """As people type it, without the packing that an engine adds."""
    name: str
    """As the page writes it."""
    accuracy: str
    """What was measured of its loss, or that nothing was found."""
