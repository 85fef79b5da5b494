"""The scenario of a session: read from the link once, changed by the controls, written back to the link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode
from zlib import crc32

from app.compare_command import DEFAULTS, MAX_QUERY
from app.over import moved
from app.seen import Seen
from kvmodel.errors import KvModelError, UnknownNameError
from kvmodel.plan import plan_of
from kvmodel.records.model import ModelSpec
from kvmodel.scenario import Inputs, Scenario, allowed_values, read_field
from kvmodel.traffic import Traffic
from kvmodel.turn import Turn

TURN_FIELDS = ("history_tokens", "delta_tokens", "generated_tokens", "local_prefill_tokens")
"""Inputs of the next turn that a link carries beside the scenario's."""
BESIDE: dict[str, tuple[str, type[Inputs]]] = {
    **dict.fromkeys(TURN_FIELDS, ("turn", Turn)),
    **dict.fromkeys(Traffic.model_fields, ("traffic", Traffic)),
    **dict.fromkeys(Seen.model_fields, ("seen", Seen)),
}
"""Inputs beside the scenario's: the part of the state that holds them, and their record."""
PIN = "pin"
"""Key of the pinned scenario; its value is that scenario's own query."""
URL_KEYS = (*Scenario.model_fields, *BESIDE, PIN)
MAX_LINK_VALUE = 200


def record_of(name: str) -> type[Inputs]:
    """The record that declares an input."""
    return BESIDE[name][1] if name in BESIDE else Scenario


@dataclass(frozen=True)
class State:
    """What a session has chosen: a scenario, a turn, the traffic, what is looked at, what is pinned; and notes of what was not used."""

    scenario: Scenario = field(default_factory=Scenario)
    turn: Turn = field(default_factory=Turn)
    notes: tuple[str, ...] = ()
    traffic: Traffic = field(default_factory=Traffic)
    seen: Seen = field(default_factory=Seen)
    pin: State | None = None
    """Another scenario to compare with; it has no pin of its own."""

    def query(self) -> str:
        """The link's query: only what differs from the defaults. A configuration of the reader's own stays out of it."""
        changed = {name: value for name, value in self.scenario.changed().items() if not isinstance(value, ModelSpec)}
        beside = {name: self.value(name) for name in BESIDE if self.value(name) != record_of(name).model_fields[name].default}
        pinned = {PIN: pin_text(self.pin)} if self.pin is not None and self.keeps_pin() else {}
        return urlencode({**changed, **beside, **pinned})

    def value(self, name: str) -> Any:
        """The value of an input, whichever record has it."""
        return getattr(self.part(name), name)

    def part(self, name: str) -> Inputs:
        """The record that holds an input."""
        found: Inputs = getattr(self, BESIDE[name][0] if name in BESIDE else "scenario")
        return found

    def with_values(self, values: Mapping[str, Any]) -> State:
        """The state with inputs beside the scenario's replaced. Raises BadScenarioError."""
        parts: dict[str, Any] = {}
        for name, value in values.items():
            parts.setdefault(BESIDE[name][0], {})[name] = value
        return replace(self, **{part: type(getattr(self, part))(**{**dict(getattr(self, part)), **new}) for part, new in parts.items()})

    def whole(self) -> Scenario:
        """The scenario with the turn's history and new tokens as its prompt."""
        return self.scenario.with_changes(prompt_tokens=self.turn.history_tokens + self.turn.delta_tokens)

    def bare(self) -> State:
        """The state without its notes."""
        return replace(self, notes=())

    def pinned(self) -> State:
        """The state with itself as the pin."""
        return replace(self, pin=replace(self.bare(), pin=None, seen=Seen()))

    def applied(self, **changes: Any) -> State:
        """The state with inputs of the scenario changed, for a link that applies the change: what was is pinned, if no link's pin is.

        Raises UnknownNameError and BadScenarioError.
        """
        before = self.bare() if self.keeps_pin() else self.bare().pinned()
        return replace(before, scenario=self.scenario.with_changes(**changes))

    def keeps_pin(self) -> bool:
        """Whether a link to the state carries its pin."""
        return self.pin is not None and not self.pin.is_own()

    def moved(self, slider: str, value: int) -> State:
        """The state without its notes, one slider at another of its values if that goes with the rest."""
        if slider in BESIDE:
            return self.bare().with_values({slider: value})
        return replace(self.bare(), scenario=moved(self.scenario, slider, value))

    def unpinned(self) -> State:
        """The state without a pin."""
        return replace(self, pin=None)

    def swapped(self) -> State:
        """The pinned scenario with this one as its pin; what is looked at stays. Without a pin, the state itself."""
        return self if self.pin is None else replace(self.pin, seen=self.seen, notes=self.notes, pin=self.pinned().pin)

    def table_id(self, slider: str) -> str:
        """Names the table over a slider's positions: everything that is chosen but the slider itself."""
        chosen = {**dict(self.scenario), **{name: self.value(name) for name in BESIDE}, slider: None, PIN: self.pin}
        return f"{crc32(repr(sorted(chosen.items())).encode()):08x}"

    def is_own(self) -> bool:
        """Whether the model is a configuration of the reader's own, which no link can carry."""
        return isinstance(self.scenario.model, ModelSpec)


def pin_text(pin: State) -> str:
    """A pinned scenario as the address says it."""
    return pin.query() or DEFAULTS


def from_link(parameters: Mapping[str, str]) -> State:
    """The state a link asks for; a value that cannot be used falls back, with a note that names it.

    Unknown parameters are ignored; of a repeated one the last counts.
    """
    texts = {name: text for name, text in parameters.items() if name in URL_KEYS and name != PIN}
    try:
        state = _accept(State(), texts)
    except KvModelError:
        state = State()
        for name, text in texts.items():
            try:
                state = _accept(state, {name: text})
            except KvModelError as error:
                state = replace(state, notes=(*state.notes, _note(state, name, text, error)))
    return _with_pin(state, parameters[PIN]) if PIN in parameters else state


def pin_of(text: str) -> State:
    """A pinned scenario from its query, or from an address that ends in one; values that cannot be used are noted.

    Raises KvModelError: too long, or no input of a scenario in it.
    """
    query = text.rpartition("?")[2].strip()
    if len(query) > MAX_QUERY:
        raise KvModelError(f"{len(query):,} characters; allowed: up to {MAX_QUERY:,}")
    said = {name: value for name, value in parse_qsl(query, keep_blank_values=True) if name in URL_KEYS and name != PIN}
    if not said and query != DEFAULTS:
        raise KvModelError("allowed: inputs of a scenario as in an address, such as link=ethernet-25&batch=4")
    return replace(from_link(said), seen=Seen())


def _with_pin(state: State, text: str) -> State:
    """The state with what its link pins; a pin of which nothing can be used is left out, with a note."""
    try:
        pin = pin_of(text)
    except KvModelError as error:
        return replace(state, notes=(*state.notes, f"The address asked for pin={_cut(text)}. {_sentence(error)}. Nothing is pinned."))
    notes = [note.replace("The address asked", "In the pin, the address asked", 1) for note in pin.notes]
    return replace(state, notes=(*state.notes, *notes), pin=pin.bare())


def _accept(state: State, texts: Mapping[str, str]) -> State:
    """The state with inputs read from texts, all at once: some go only together. Raises KvModelError."""
    if any(len(text) > MAX_LINK_VALUE for text in texts.values()):
        raise KvModelError("too long")
    if texts.get("model", "").endswith(".json"):
        raise KvModelError("a link cannot name a file")
    values = {name: read_field(record_of(name), name, text) for name, text in texts.items()}
    scenario = state.scenario.with_changes(**{name: value for name, value in values.items() if name not in BESIDE})
    plan_of(scenario)
    return replace(state.with_values({name: value for name, value in values.items() if name in BESIDE}), scenario=scenario)


def _note(state: State, name: str, text: str, error: KvModelError) -> str:
    record = record_of(name)
    used: Any = state.value(name)
    used = getattr(used, "id", used)
    alone = isinstance(error, UnknownNameError) or _alone(record, name, text)
    why = str(error) if alone else f"Allowed: {allowed_values(record, name)}"
    return bad_value(name, text, why, _plain(used))


def bad_value(name: str, text: str, why: str, used: str) -> str:
    """The note that names a value of a link that cannot be used."""
    return f"The address asked for {name}={_cut(text)}. {_sentence(why)}. Showing {used}."


def _cut(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "…"


def _sentence(words: object) -> str:
    text = str(words)
    return text[0].upper() + text[1:]


def _alone(record: type[Inputs], name: str, text: str) -> bool:
    """Whether the value would do by itself, so that it is another input that it does not go with."""
    try:
        record(**{name: read_field(record, name, text)})
    except KvModelError:
        return False
    return name not in ("model", "link", "engine", "prefill_accelerator", "decode_accelerator")


def _plain(value: Any) -> str:
    if value is None:
        return "the engine's or the modelled value"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
