"""Which published measurements a reader looks at."""

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
    """The filter of the measured view."""

    measured_link: Annotated[str, AfterValidator(_one_of_links)] = Field(YOURS, title="Measured near")
    """Links whose measurements are shown: yours, the scenario's own; all; or one by its id."""
    measured_engine: Annotated[str, AfterValidator(_one_of_engines)] = Field(ALL, title="Measured with")
    """Engines whose measurements are shown: all, or one by its id."""
