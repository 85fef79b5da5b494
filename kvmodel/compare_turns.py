"""An agent's next turn under two scenarios: each design's bytes and first token beside the other's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from kvmodel.changes import InputChange, changes_between, lead_of
from kvmodel.compare import FigurePair, accuracy_text, bytes_clause, moved_text, same, sooner_or_later
from kvmodel.designs import Design
from kvmodel.display import count_text
from kvmodel.scenario import Scenario
from kvmodel.turn import Turn, agent_turn
from kvmodel.verdict import Sentence, plain

NOT_USED = ("prompt_tokens", "output_tokens", "prefill_held_tokens", "decode_held_tokens")
"""Inputs of a scenario that play no part in a turn."""

Asked = tuple[Scenario, Turn]


@dataclass(frozen=True, slots=True)
class DesignPair:
    """One design under both."""

    id: str
    warm: bool
    unique: FigurePair
    """Each token's KV counted once."""
    ttft: FigurePair


@dataclass(frozen=True, slots=True)
class TurnComparison:
    """A turn under two scenarios."""

    inputs: tuple[InputChange, ...]
    designs: tuple[DesignPair, ...]
    sentence: Sentence
    accuracy: str
    """What the format that one of the two alone goes through costs in accuracy; empty where none."""

    def as_dict(self) -> dict[str, Any]:
        """Nested dictionaries of plain values, ready for JSON."""
        return {
            "sentence": plain(self.sentence),
            "accuracy": self.accuracy,
            "inputs": [change.as_dict() for change in self.inputs],
            "designs": [
                {"id": d.id, "warm": d.warm, **{figure.name: figure.as_dict() for figure in (d.unique, d.ttft)}} for d in self.designs
            ],
        }


def compare_turns(pinned: Asked, this: Asked) -> TurnComparison:
    """What differs between two turns, and what that does to each design.

    Raises UnknownNameError and BadScenarioError.
    """
    changes, before, after = turn_changes(pinned, this), agent_turn(*pinned).designs, agent_turn(*this).designs
    said, accuracy = turn_difference(changes, before, after), accuracy_text(pinned[0], this[0])
    return TurnComparison(changes, design_pairs(before, after), said, accuracy)


def turn_changes(pinned: Asked, this: Asked, leave_out: Sequence[str] = ()) -> tuple[InputChange, ...]:
    """The inputs of scenario and turn that differ and count."""
    return (*changes_between(pinned[0], this[0], NOT_USED), *changes_between(pinned[1], this[1], leave_out))


def turn_changes_over(pinned: Asked, this: Asked, field: str, values: Sequence[int]) -> list[tuple[InputChange, ...]]:
    """The inputs that differ with one field of the second turn at each of several values."""
    others, old = turn_changes(pinned, this, (field,)), getattr(pinned[1], field)
    own = InputChange(field, str(Turn.model_fields[field].title), count_text(old), "")
    return [others if value == old else (*others, replace(own, this=count_text(value))) for value in values]


def design_pairs(pinned: Sequence[Design], this: Sequence[Design]) -> tuple[DesignPair, ...]:
    """Bytes and first token of each design under both."""
    return tuple(
        DesignPair(
            b.id,
            b.warm,
            FigurePair("unique_bytes", "Unique KV", "bytes", float(a.unique_bytes), float(b.unique_bytes)),
            FigurePair("ttft_seconds", "Time to first token", "seconds", float(a.ttft_seconds), float(b.ttft_seconds)),
        )
        for a, b in zip(pinned, this, strict=True)
    )


def turn_difference(changes: Sequence[InputChange], pinned: Sequence[Design], this: Sequence[Design]) -> Sentence:
    """What the changes do to the faster design that moves only what is new, and to computing everything anew."""
    if not changes:
        return (("Both are the same turn.", ""),)
    before, after = kept(pinned), kept(this)
    a, b = float(before.ttft_seconds), float(after.ttft_seconds)
    moved = bytes_clause(float(before.unique_bytes), float(after.unique_bytes))
    head = f"{lead_of(changes)}{moved + ', and ' if moved else ''}with the history kept in place the first token comes "
    anew = [next(float(d.ttft_seconds) for d in found if d.id == "recompute") for found in (pinned, this)]
    end = f"; with all of it computed anew, {_when(*anew)}."
    if same(a, b):
        return ((f"{head}{_when(a, b)}{end}", ""),)
    return ((f"{head}{_when(a, b)}, ", ""), (moved_text(a, b), "exposed"), (end, ""))


def kept(designs: Sequence[Design]) -> Design:
    """The faster of the designs that leave the history where it is and move what is new."""
    return min((d for d in designs if d.warm and d.id in ("pool", "pull-back")), key=lambda d: float(d.ttft_seconds))


def _when(pinned: float, this: float) -> str:
    return "at the same time" if same(pinned, this) else sooner_or_later(this - pinned)
