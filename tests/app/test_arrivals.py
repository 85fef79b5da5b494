"""An address come to in place: the session's scenario becomes the address's, once."""

from app.state import State, from_link
from app.views.arrivals import TRIP, arrived
from kvmodel import Scenario, find_model

OWN = State(Scenario(model=find_model("qwen3-32b").model_copy(update={"id": "own"})))


def test_a_trip_brings_the_address_into_the_session_once():
    session = {"state": State(), "asked_batch": 7, "view": "wire"}
    address = {"link": "ethernet-25", "batch": "x", TRIP: "1"}
    assert arrived(session, address)
    assert session["state"] == from_link(address)
    assert session["state"].scenario.link == "ethernet-25"
    assert len(session["link_notes"]) == 1
    assert "asked_batch" not in session
    session["state"] = State()
    assert not arrived(session, address)
    assert session["state"] == State()
    assert arrived(session, {**address, TRIP: "2"})


def test_an_address_without_a_trip_changes_nothing():
    session = {"state": State()}
    assert not arrived(session, {"link": "ethernet-25"})
    assert not arrived({}, {"link": "ethernet-25", TRIP: "1"})
    assert session == {"state": State()}


def test_a_model_of_the_readers_own_stays_where_the_address_names_none():
    session = {"state": OWN}
    assert arrived(session, {"link": "ethernet-25", TRIP: "1"})
    assert session["state"].scenario == OWN.scenario.with_changes(link="ethernet-25")
    assert arrived(session, {"model": "llama-3.1-8b", TRIP: "2"})
    assert session["state"].scenario.model == "llama-3.1-8b"
    session = {"state": OWN.pinned()}
    assert arrived(session, {"model": "llama-3.1-8b", TRIP: "1"})
    assert session["state"].pin == OWN
    assert arrived(session, {"pin": "link=ethernet-25", TRIP: "2"})
    assert session["state"].pin.scenario == Scenario(link="ethernet-25")
