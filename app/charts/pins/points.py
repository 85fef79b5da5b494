"""The pinned scenario among published measurements: a ring beside where you are."""

from __future__ import annotations

from app.charts.marks import note, rings
from app.charts.pins.marks import added, with_pin
from app.charts.spec import Figure, Spec
from kvmodel import registry
from kvmodel.display import bytes_text, time_text
from kvmodel.results import Evaluation
from kvmodel.scenario import Scenario

RESIDUALS = "Published rows only: the pinned scenario is no measurement and has no place in this picture."


def with_points_pin(figure: Figure, pinned: Evaluation) -> Figure:
    """The measurements with the pinned scenario's bytes and time as a ring; nothing more where none of it moves.

    Its words stand in the corner of many bytes in no time, where nothing can be measured.
    """
    moved, seconds = pinned.kv.wire_bytes, pinned.transfer.seconds
    if not moved:
        return figure
    text, corner = f"○ pin: {bytes_text(moved)}, {time_text(seconds)}", {"xref": "paper", "yref": "paper", "xanchor": "right"}

    def more(spec: Spec, prefix: str) -> Spec:
        word = note(text, 1.0, 0.04, "muted", 12 if prefix == "n" else 13, **corner)
        return added(spec, data=[rings([moved], [seconds], 11, 2, "muted")], annotations=[*spec["layout"]["annotations"], word])

    return with_pin(figure, more)


def differs_note(now: Scenario, pinned: Scenario, *, near: bool) -> str:
    """What the ring is, and where the pinned link is another, whether the rows shown are `near` this scenario's."""
    said = "Ring: the pinned scenario"
    if pinned.link == now.link:
        return f"{said}."
    link, own = (registry.links()[name].name for name in (pinned.link, now.link))
    return f"{said}, over {link}{f'; the rows shown are those near {own}' if near else ''}."
