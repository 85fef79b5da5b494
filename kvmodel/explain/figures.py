"""The figures that can be explained, each under its path in the command line's JSON, and how its value is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from typing import Any, Literal

import numpy as np

from kvmodel.critical import critical_bandwidth, intervals, length_tests
from kvmodel.designs import Design
from kvmodel.errors import UnknownNameError
from kvmodel.evaluate import amounts_of
from kvmodel.handoff import handoff
from kvmodel.plan import Plan, plan_of
from kvmodel.progress import Amounts
from kvmodel.results import Evaluation
from kvmodel.scenario import MAX_PROMPT_TOKENS, Scenario
from kvmodel.turn import Turn, designs

Family = Literal["request", "critical", "turn"]
LOOKED_AT = 64
"""Prompt lengths looked at to tell whether a change may reach the goal of a critical length."""
ALWAYS = ((1, MAX_PROMPT_TOKENS),)
"""Ranges that hold every prompt length."""


@dataclass(frozen=True)
class Case:
    """What a figure is asked of: a scenario and, for those of an agent's turn, the turn."""

    scenario: Scenario
    turn: Turn = field(default_factory=Turn)

    @property
    def plan(self) -> Plan:
        """The scenario's plan."""
        return plan_of(self.scenario)

    @property
    def amounts(self) -> Amounts:
        """The scenario's numbers."""
        return amounts_of(self.scenario)

    @property
    def result(self) -> Evaluation:
        """The scenario evaluated, without reason and sentence."""
        return result_of(self.scenario)

    @property
    def design(self) -> dict[str, Design]:
        """The turn served by each design, by name."""
        return designs_of(self.scenario, self.turn)

    def at(self, tokens: int) -> Evaluation:
        """The scenario at another prompt length."""
        return result_of(self.scenario.with_changes(prompt_tokens=tokens))

    def changed(self, values: dict[str, Any]) -> Case:
        """The case with some inputs replaced; those of `TURN_INPUTS` are the turn's. Raises BadScenarioError."""
        beside = {name: value for name, value in values.items() if name in TURN_INPUTS}
        own = {name: value for name, value in values.items() if name not in TURN_INPUTS}
        turn = Turn(**{**dict(self.turn), **beside}) if beside else self.turn
        return Case(self.scenario.with_changes(**own) if own else self.scenario, turn)


TURN_INPUTS = ("history_tokens", "delta_tokens", "generated_tokens", "local_prefill_tokens")


@lru_cache(maxsize=2048)
def result_of(scenario: Scenario) -> Evaluation:
    """A scenario evaluated, without reason and sentence."""
    return handoff(plan_of(scenario), amounts_of(scenario))


@lru_cache(maxsize=1024)
def designs_of(scenario: Scenario, turn: Turn) -> dict[str, Design]:
    """An agent's turn by each design, by the name that figures call it."""
    found = designs(plan_of(scenario), amounts_of(scenario), turn)
    return {design.id + ("" if design.warm else "-cold"): design for design in found}


@dataclass(frozen=True, slots=True)
class Goal:
    """What would be better of a figure."""

    words: str
    reached: Callable[[Any, Any], bool]
    """Whether, from the value now, another is good enough."""


HALF = Goal("Halve it", lambda now, new: new is not None and new <= now / 2 * (1 + 1e-9))
TWICE = Goal("Double it", lambda now, new: new is None or (now is not None and new >= 2 * now))
ALL = Goal("Hide every prompt", lambda _, new: new == ALWAYS)
NONE = Goal("Keep it below that at every length", lambda _, new: new == ())


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure that can be explained."""

    id: str
    """Its path in the command line's JSON; of a turn, the design's name and its number."""
    name: str
    unit: str
    family: Family
    goal: Goal = HALF

    def value(self, case: Case) -> Any:
        """The number that the command prints."""
        if self.family == "request":
            return attrgetter(self.id)(case.result)
        if self.family == "turn":
            design, _, name = self.id.partition(".")
            return getattr(case.design[design], name)
        return _critical(self.id, case.scenario)

    def may_reach(self, case: Case, now: Any) -> bool:
        """Whether a critical length may reach the goal: a few lengths are looked at, far cheaper than to find where it turns."""
        if self.unit == "B/s":
            return self.goal.reached(now, self.value(case))
        to = 2 * now - 1 if self.goal is TWICE else MAX_PROMPT_TOKENS
        looked_at = np.unique(np.geomspace(1, to, LOOKED_AT).astype(np.int64))
        holds = length_tests(case.scenario)[self.id](looked_at)
        return bool(np.all(holds)) if self.goal is ALL else not np.any(holds)


@lru_cache(maxsize=256)
def _critical(name: str, scenario: Scenario) -> Any:
    """A critical length, bandwidth, or ranges of lengths as pairs."""
    if name == "critical_bandwidth_bytes_per_s":
        return critical_bandwidth(plan_of(scenario), amounts_of(scenario))
    found = intervals(length_tests(scenario)[name])
    if name == "decode_step_tokens":
        return found[0].from_tokens if found else None
    return tuple((span.from_tokens, span.to_tokens) for span in found)


DESIGNS = {
    "recompute": "recompute and ship",
    "pool": "shared pool",
    "pool-cold": "shared pool, cold",
    "sticky": "sticky",
    "pull-back": "pull back",
}
"""Names of the designs of a turn, as figures call them and as people read them."""

_REQUEST = (
    Figure("kv.bytes_per_token", "KV bytes a token", "B", "request"),
    Figure("kv.prompt_bytes", "KV bytes of the prompt", "B", "request"),
    Figure("kv.wire_bytes", "Bytes on the wire", "B", "request"),
    Figure("transfer.seconds", "Transfer time", "s", "request"),
    Figure("transfer.exposed_seconds", "Exposed transfer", "s", "request"),
    Figure("gap_seconds", "Gap after prefill", "s", "request"),
    Figure("prefill.seconds", "Prefill time", "s", "request"),
    Figure("decode.step_seconds", "Decode step", "s", "request"),
    Figure("ttft_seconds", "Time to first token", "s", "request"),
    Figure("second_token_seconds", "Time to second token", "s", "request"),
    Figure("tpot_seconds", "Time per output token", "s", "request"),
    Figure("request_seconds", "Time to last token", "s", "request"),
)
_CRITICAL = (
    Figure("decode_step_tokens", "Critical length", "tokens", "critical", TWICE),
    Figure("hidden", "Prompts that layer by layer hides", "ranges", "critical", ALL),
    Figure("gap_over_share", "Prompts whose gap is over 20\u202f% of TTFT", "ranges", "critical", NONE),
    Figure("critical_bandwidth_bytes_per_s", "Critical bandwidth", "B/s", "critical"),
)
_TURN = tuple(
    Figure(f"{design}.{name}", f"{words}, {title}", unit, "turn")
    for name, words, unit in (
        ("ttft_seconds", "First token", "s"),
        ("unique_bytes", "KV moved, each byte once", "B"),
        ("wire_bytes", "KV on all edges", "B"),
    )
    for design, title in DESIGNS.items()
)
FIGURES: dict[str, Figure] = {
    figure.id: figure for figure in (*_REQUEST, *_CRITICAL, *_TURN, Figure("sticky.stall_seconds", "Neighbours' wait, sticky", "s", "turn"))
}
"""Figures by id."""


def figures_of(*families: Family) -> tuple[Figure, ...]:
    """All figures of some families, in order."""
    return tuple(figure for figure in FIGURES.values() if figure.family in families)


def find_figure(asked: str, among: tuple[Figure, ...]) -> Figure:
    """A figure by id, by the beginning of it, or by the beginning of its last part; the first that fits.

    >>> [find_figure(text, figures_of("request")).id for text in ("ttft", "transfer", "wire_bytes")]
    ['ttft_seconds', 'transfer.seconds', 'kv.wire_bytes']

    Raises UnknownNameError.
    """
    text = asked.strip().lower()
    tests: tuple[Callable[[str], bool], ...] = (
        lambda name: name == text,
        lambda name: name.startswith(text),
        lambda name: name.rpartition(".")[2].startswith(text),
    )
    found = next((figure for test in tests for figure in among if text and test(figure.id)), None)
    if found is None:
        raise UnknownNameError("figure", asked, [figure.id for figure in among])
    return found
