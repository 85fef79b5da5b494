"""Two scenarios side by side: the inputs that differ, the headline figures of both, and one sentence.

One of the two is pinned, the other is what one looks at now.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kvmodel.changes import InputChange, changes_between, lead_of
from kvmodel.display import MINUS, bytes_text, count_text, digits, shared_time_unit, time_text
from kvmodel.evaluate import evaluate
from kvmodel.plan import Plan, plan_of
from kvmodel.registry import lossy_format
from kvmodel.results import Evaluation
from kvmodel.scenario import Scenario
from kvmodel.verdict import Sentence, plain

SAME = 5e-4
"""Share of the larger below which two numbers are the same to three digits."""
NEAR = 0.02
"""Share of the larger below which a first token hardly moves."""
FITS = 0.10
"""Share of the larger from which it counts how many requests fit."""
HEADLINES = (
    ("kv.prompt_bytes", "KV of a prompt", "bytes"),
    ("kv.wire_bytes", "On the wire", "bytes"),
    ("transfer.seconds", "Transfer", "seconds"),
    ("transfer.exposed_seconds", "Exposed transfer", "seconds"),
    ("gap_seconds", "Gap", "seconds"),
    ("prefill.seconds", "Prefill", "seconds"),
    ("decode.step_seconds", "Decode step", "seconds"),
    ("ttft_seconds", "Time to first token", "seconds"),
    ("second_token_seconds", "Second token", "seconds"),
    ("request_seconds", "Whole request", "seconds"),
    ("memory.decode.batch_fits", "Requests that fit on decode", "count"),
    ("memory.decode.cache_bytes", "Cache on a decode GPU", "bytes"),
)
"""Figures compared: their path in an evaluation, what they are called, their unit."""


@dataclass(frozen=True, slots=True)
class FigurePair:
    """A figure of both, in base units."""

    name: str
    """Its path in an evaluation."""
    title: str
    unit: str
    """`bytes`, `seconds` or `count`."""
    pinned: float
    this: float

    @property
    def difference(self) -> float:
        """How much more it is now, in base units."""
        return self.this - self.pinned

    @property
    def ratio(self) -> float | None:
        """Now over pinned; None where nothing is pinned."""
        return self.this / self.pinned if self.pinned else None

    def as_dict(self) -> dict[str, float | None]:
        """Both, their difference and their ratio, ready for JSON."""
        return {"pinned": self.pinned, "this": self.this, "difference": self.difference, "ratio": self.ratio}

    def texts(self) -> tuple[str, str, str]:
        """(pinned, now, change) in words, times in one unit."""
        if self.unit == "bytes":
            told = [bytes_text(self.pinned), bytes_text(self.this), bytes_text(abs(self.difference))]
        elif self.unit == "count":
            told = [count_text(self.pinned), count_text(self.this), count_text(abs(self.difference))]
        else:
            unit = pair_unit(self.pinned, self.this)
            told = [time_text(seconds, unit) for seconds in (self.pinned, self.this)]
            told.append(time_text(abs(self.difference), unit if unit and abs(self.difference) >= 0.1 * unit[1] else None))
        if self.pinned == self.this if self.unit == "count" else same(self.pinned, self.this):
            return told[0], told[1], "the same"
        times = "" if not self.ratio else f", {digits(self.ratio)}×"
        return told[0], told[1], f"{'+' if self.difference > 0 else MINUS}{told[2]}{times}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two scenarios compared."""

    inputs: tuple[InputChange, ...]
    figures: tuple[FigurePair, ...]
    sentence: Sentence
    """The difference, its cause in the colour of its meaning."""
    accuracy: str
    """What the format that one of the two alone goes through costs in accuracy; empty where none."""
    pinned: Evaluation
    this: Evaluation

    def as_dict(self) -> dict[str, Any]:
        """Nested dictionaries of plain values, ready for JSON."""
        return {
            "sentence": plain(self.sentence),
            "accuracy": self.accuracy,
            "inputs": [change.as_dict() for change in self.inputs],
            "figures": [{"name": figure.name, **figure.as_dict()} for figure in self.figures],
            "verdict": {"pinned": self.pinned.verdict, "this": self.this.verdict},
            "reason": {"pinned": self.pinned.reason, "this": self.this.reason},
        }


def compare(pinned: Scenario, this: Scenario) -> Comparison:
    """What differs between two scenarios, and what that does.

    >>> found = compare(Scenario(), Scenario(kv_dtype="fp8"))
    >>> [(change.title, change.pinned, change.this) for change in found.inputs]
    [('KV dtype', 'bf16', 'fp8')]
    >>> next(figure.ratio for figure in found.figures if figure.name == "kv.wire_bytes")
    0.5

    Raises UnknownNameError and BadScenarioError.
    """
    changes, before, after = changes_between(pinned, this), evaluate(pinned), evaluate(this)
    said = sentence_of(changes, (plan_of(pinned), before), (plan_of(this), after))
    return Comparison(changes, pairs_of(before, after), said, accuracy_text(pinned, this), before, after)


def accuracy_text(pinned: Scenario, this: Scenario) -> str:
    """What the narrow format costs in accuracy that one of the two goes through and the other does not; empty where none or both do."""
    before, after = (lossy_format(one.kv_dtype, one.wire_dtype) for one in (pinned, this))
    if (before is None) == (after is None):
        return ""
    who, narrow = ("this one", after) if after else ("the pinned one", before)
    return f"Only {who} is in {narrow.name}. {narrow.accuracy}" if narrow else ""


def pair_unit(a: float, b: float) -> tuple[str, float] | None:
    """One unit for two times within 1,000 of each other; None, each its own, where they are not."""
    low, high = sorted((abs(a), abs(b)))
    return shared_time_unit(a, b) if not low or high <= 1000 * low else None


def moved_text(pinned: float, this: float) -> str:
    """A time and what it has become."""
    unit = pair_unit(pinned, this)
    return f"{time_text(pinned, unit if pinned else None)} → {time_text(this, unit if this else None)}"


def same(a: float, b: float) -> bool:
    """Whether two numbers read the same to three digits."""
    return _moved(a, b) <= SAME


def pairs_of(pinned: Evaluation, this: Evaluation) -> tuple[FigurePair, ...]:
    """The headline figures of both."""
    return tuple(FigurePair(path, title, unit, at_path(pinned, path), at_path(this, path)) for path, title, unit in HEADLINES)


def at_path(result: Any, path: str) -> float:
    """A number of a result by its path."""
    for name in path.split("."):
        result = getattr(result, name)
    return float(result)


Side = tuple[Plan, Evaluation]


def sentence_of(changes: Sequence[InputChange], pinned: Side, this: Side) -> Sentence:
    """What the changes do to the bytes and to the first tokens, and which part of the time makes the difference."""
    if not changes:
        return (("Both are the same scenario.", ""),)
    before, after = pinned[1], this[1]
    moved, fits = bytes_clause(before.kv.wire_bytes, after.kv.wire_bytes), fits_clause(before, after)
    head = lead_of(changes) + (f"{moved}, {'' if fits else 'and '}" if moved else "")
    return ((head, ""), *(fits or _tokens(pinned, this)), (_doubts(before, after), ""))


def fits_clause(pinned: Evaluation, this: Evaluation) -> Sentence:
    """How many requests decode holds, where that changes and the first two tokens hardly do; empty where not."""
    was, now = (float(one.memory.decode.batch_fits) for one in (pinned, this))
    late = max(_moved(pinned.ttft_seconds, this.ttft_seconds), _moved(pinned.second_token_seconds, this.second_token_seconds))
    if not was or not now or _moved(was, now) < FITS or late > NEAR:
        return ()
    head = "the first token hardly moves" if late > SAME else _same_tokens(pinned, this)
    return ((f"{head}, and decode holds ", ""), (_requests(now), "decode"), (f", not {count_text(was)}", ""))


def fits_text(pinned: Evaluation, this: Evaluation) -> str:
    """How many requests decode holds, in a sentence of its own; empty where that hardly changes, or the sentence of both says it."""
    was, now = (float(one.memory.decode.batch_fits) for one in (pinned, this))
    if _moved(was, now) < FITS or fits_clause(pinned, this):
        return ""
    return f"Decode holds {_requests(now)} of this length in place of {count_text(was)}."


def _requests(count: float) -> str:
    return f"{count_text(count)} request{'' if count == 1 else 's'}"


def _moved(a: float, b: float) -> float:
    """The difference as a share of the larger."""
    return abs(a - b) / max(abs(a), abs(b), 1e-300)


def _same_tokens(pinned: Evaluation, this: Evaluation) -> str:
    """That the first two tokens come at the same time, and what becomes of the last."""
    last, head = this.request_seconds - pinned.request_seconds, "the first two tokens come at the same time"
    return head if same(pinned.request_seconds, this.request_seconds) else f"{head}, the last {sooner_or_later(last)}"


def bytes_clause(pinned: float, this: float) -> str:
    """How many times fewer or more bytes cross; empty where as many do."""
    if same(pinned, this):
        return ""
    if not this:
        return "nothing crosses any more"
    if not pinned:
        return f"{bytes_text(this)} cross where nothing did"
    return f"{digits(pinned / this)}× fewer bytes cross" if this < pinned else f"{digits(this / pinned)}× the bytes cross"


def _tokens(pinned: Side, this: Side) -> Sentence:
    before, after = pinned[1], this[1]
    if same(before.ttft_seconds, after.ttft_seconds):
        later = after.second_token_seconds - before.second_token_seconds
        if not same(before.second_token_seconds, after.second_token_seconds):
            return ((f"the first token comes at the same time, the second {sooner_or_later(later)}", ""),)
        if same(before.transfer.seconds, after.transfer.seconds):
            return ((_same_tokens(before, after), ""),)
        return (
            ("the first two tokens come at the same time: the transfer takes ", ""),
            (moved_text(before.transfer.seconds, after.transfer.seconds), "wire"),
        )
    head = f"the first token comes {sooner_or_later(after.ttft_seconds - before.ttft_seconds)}"
    return ((head, ""), *_cause(first_token_terms(*pinned), first_token_terms(*this)))


def sooner_or_later(seconds: float) -> str:
    """A difference of time in words."""
    return f"{time_text(abs(seconds))} {'later' if seconds > 0 else 'sooner'}"


def first_token_terms(plan: Plan, result: Evaluation) -> dict[str, tuple[float, str]]:
    """(seconds, meaning) of what adds up to the first token, by name."""
    late = plan.engine.released_by != "prefill"
    exposed = result.transfer.exposed_seconds
    return {
        "prefill": (result.prefill.seconds, "prefill"),
        "exposed transfer": (exposed if late else 0.0, "exposed"),
        "fixed handoff": (result.gap_seconds - exposed if late else 0.0, ""),
        "first decode step": (result.decode.step_seconds if late and plan.engine.first_token == "decode" else 0.0, "decode"),
    }


def _cause(pinned: dict[str, tuple[float, str]], this: dict[str, tuple[float, str]]) -> Sentence:
    """The term that moves the first token most, from what to what, and the one that works against it."""
    by = {name: this[name][0] - pinned[name][0] for name in pinned}
    total = sum(by.values())
    along = {name: seconds for name, seconds in by.items() if seconds * total > 0}
    first = max(along, key=lambda name: abs(along[name]))
    against = {name: seconds for name, seconds in by.items() if seconds * total < 0 and abs(seconds) > 0.01 * abs(total)}
    share = along[first] / sum(along.values())
    shares = ((0.9995, "all of it"), (0.95, "nearly all of it"), (0.5, "most of it"))
    most = next((words for least, words in shares if share >= least and not against), "above all")
    pair = (pinned[first][0], this[first][0])
    found: Sentence = ((f", {most} {first}, ", ""), (moved_text(*pair), this[first][1]))
    if not against:
        return found
    other = max(against, key=lambda name: abs(against[name]))
    back = (pinned[other][0], this[other][0])
    return (*found, (f", against {other}, {moved_text(*back)}", ""))


def _doubts(pinned: Evaluation, this: Evaluation) -> str:
    """The end of the sentence, and whether one of the two cannot be built."""
    if pinned.feasible and this.feasible:
        return "."
    who = "This one is" if pinned.feasible else "The pinned one is" if this.feasible else "Both are"
    return f". {who} infeasible: times are computed all the same."
