"""What a reader looks at: which published measurements, which layer."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from app.charts.measured import ALL, YOURS, engines_measured, links_measured
from kvmodel.scenario import Inputs


def _one_of_links(value: str) -> str:
    if value not in (YOURS, ALL, *links_measured()):
        raise ValueError("no such link")
    return value


def _one_of_engines(value: str) -> str:
    if value not in (ALL, *engines_measured()):
        raise ValueError("no such engine")
    return value


class Seen(Inputs):
    """Choices at the head of a picture: the filter of the measured view, the layer of the matrices."""

    measured_link: Annotated[str, AfterValidator(_one_of_links)] = Field(YOURS, title="Measured near")
    """Links whose measurements are shown: yours, the scenario's own; all; or one by its id."""
    measured_engine: Annotated[str, AfterValidator(_one_of_engines)] = Field(ALL, title="Measured with")
    """Engines whose measurements are shown: all, or one by its id."""
    layer: int = Field(0, ge=0, le=2000, title="Layer")
    """Number of the layer whose matrices are shown; 0 for the kind that stands for the model."""
