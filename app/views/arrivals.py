"""Arrivals at an address in place: by a link of the page, or back and forward, without a new page load."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import replace
from typing import Any

from app.reading import forget_positions
from app.state import PIN, State, from_link

TRIP = "go"
"""Parameter that the page adds while it tells of an address that it came to: the scenario is then the address's."""
_LAST_TRIP = "last_trip"


def arrived(session: MutableMapping[str, Any], parameters: Mapping[str, str]) -> bool:
    """Whether this run is the first at an address just come to; the session's state is then what the address says.

    A model of the reader's own, which no address can carry, stays where the address names none; so does a pin of one.
    """
    trip = parameters.get(TRIP)
    if trip is None or trip == session.get(_LAST_TRIP) or "state" not in session:
        return False
    session[_LAST_TRIP] = trip
    session["state"] = _with_own(from_link(parameters), session["state"], parameters)
    session["link_notes"] = session["state"].notes
    forget_positions(session)
    return True


def _with_own(found: State, last: State, parameters: Mapping[str, str]) -> State:
    if last.pin is not None and last.pin.is_own() and PIN not in parameters:
        found = replace(found, pin=last.pin)
    if not last.is_own() or "model" in parameters:
        return found
    return replace(found, scenario=found.scenario.with_changes(model=last.scenario.model))
