"""Which input moves the first token most, and where turning it alone flips the verdict.

Every input is turned by itself, its other values as the scenario has them: halved and doubled for what it moves,
and out to `REACH` times either way for where what bounds the transfer, or the gap's mark of TTFT, changes. Values at
which it flips are narrowed down to, to the whole number or to one part in 10,000.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from kvmodel.evaluate import sweep
from kvmodel.flips import GAP_MARK
from kvmodel.plan import plan_of
from kvmodel.results import Evaluation
from kvmodel.scenario import Scenario, bounds

Array = np.ndarray[Any, Any]

INPUTS = {
    "prompt_tokens": "Prompt length",
    "batch": "Batch",
    "link_gbytes_per_s": "Lane bandwidth",
    "prefill_seconds": "Prefill time",
    "decode_step_seconds": "Decode step",
    "decode_batch": "Decode batch",
    "shared_by": "Lane sharing",
    "decode_held_tokens": "Prefix held by decode",
}
"""Inputs that are turned, and what they are called."""
WHOLE = ("prompt_tokens", "batch", "decode_batch", "shared_by", "decode_held_tokens")
REACH = 64.0
"""How many times smaller or larger an input is tried."""
_STEPS = 24
_PARTS = 16
"""Parts into which the interval of a flip is cut at once."""
_NARROWINGS = (5, 10)
"""How often it is cut: until a ratio is exact to a millionth, and until two whole numbers are neighbours."""
BOUNDS = ("nothing", "hidden", "link", "exposed")


@dataclass(frozen=True, slots=True)
class Turned:
    """One input turned, at each position of the sweep: arrays of one shape."""

    field: str
    now: Array
    """Its value, in the scenario's own units."""
    half: Array
    twice: Array
    """Values nearest to half and twice that it can take."""
    half_seconds: Array
    twice_seconds: Array
    """What the time to the first token changes by, in seconds."""
    flips_at: Array
    """The value nearest to its own, by ratio, at which the verdict flips; NaN where none does."""
    flips_up: Array
    """Whether that value lies above its own."""
    would: tuple[str, ...]
    """What would hold from there on, in words; empty where it does not flip."""

    @property
    def spread(self) -> Array:
        """Seconds between the first token at half and at twice the input."""
        values: Array = np.abs(self.twice_seconds - self.half_seconds)
        return values

    @property
    def distance(self) -> Array:
        """How far it is turned until the verdict flips, as a ratio of 1 or more; infinite where it does not."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(self.now > 0, self.flips_at / self.now, REACH)
        distance: Array = np.where(np.isnan(self.flips_at), np.inf, np.maximum(ratio, 1 / np.maximum(ratio, 1e-300)))
        return distance


def sensitivity(scenario: Scenario, **arrays: Any) -> tuple[Turned, ...]:
    """Every input of `INPUTS` turned by itself; over arrays of other fields of one length, or of the scenario alone.

    >>> max(sensitivity(Scenario()), key=lambda turned: float(turned.spread[0])).field
    'prompt_tokens'

    Raises UnknownNameError and BadScenarioError.
    """
    fields = {name: np.atleast_1d(np.asarray(values)) for name, values in arrays.items()} or {"batch": np.array([scenario.batch])}
    base = sweep(scenario, **fields)
    return tuple(_turned(scenario, fields, base, name) for name in INPUTS)


def order_of(scenario: Scenario) -> tuple[str, ...]:
    """Inputs by the seconds between the first token at half and at twice of them, the most first."""
    found = changes_of(scenario)
    return tuple(sorted(INPUTS, key=lambda name: -abs(found[name][1] - found[name][0])))


@lru_cache(maxsize=256)
def changes_of(scenario: Scenario) -> Mapping[str, tuple[float, float]]:
    """Seconds by which half and twice of each input move the first token."""
    fields, found = {"batch": np.array([scenario.batch])}, {}
    base = sweep(scenario, **fields)
    for name in INPUTS:
        _, _, (half, twice) = _moved(scenario, fields, base, name, _now(scenario, fields, base, name))
        found[name] = float(half[0]), float(twice[0])
    return found


def _turned(scenario: Scenario, fields: dict[str, Array], base: Evaluation, name: str) -> Turned:
    now = _now(scenario, fields, base, name)
    half, twice, moved = _moved(scenario, fields, base, name, now)
    at, up, would = _flip(scenario, fields, name, now, base)
    return Turned(name, now, half, twice, moved[0], moved[1], at, up, would)


def _moved(scenario: Scenario, fields: dict[str, Array], base: Evaluation, name: str, now: Array) -> tuple[Array, Array, list[Array]]:
    """(half, twice, seconds by which each moves the first token)."""
    half, twice = (_allowed(scenario, fields, name, value) for value in (now / 2, _more(scenario, fields, name, now)))
    moved = [np.asarray(_at(scenario, fields, name, value).ttft_seconds) - np.asarray(base.ttft_seconds) for value in (half, twice)]
    return half, twice, moved


def _more(scenario: Scenario, fields: dict[str, Array], name: str, now: Array) -> Array:
    """Twice the value; of tokens that decode holds, half of those it does not."""
    prompt = np.asarray(fields.get("prompt_tokens", scenario.prompt_tokens), dtype=float)
    more: Array = (now + prompt) / 2 if name == "decode_held_tokens" else now * 2
    return more


def _now(scenario: Scenario, fields: dict[str, Array], base: Evaluation, name: str) -> Array:
    """The input's own value; what the model says where the scenario leaves it open."""
    shape = np.asarray(base.ttft_seconds).shape
    if name in fields:
        return np.asarray(fields[name], dtype=float)
    given = getattr(scenario, name)
    if given is not None:
        return np.full(shape, float(given))
    own = {
        "link_gbytes_per_s": plan_of(scenario).lane.bandwidth / 1e9,
        "prefill_seconds": base.prefill.seconds,
        "decode_step_seconds": base.decode.step_seconds,
    }
    return np.broadcast_to(np.asarray(own[name], dtype=float), shape)


def _allowed(scenario: Scenario, fields: dict[str, Array], name: str, wanted: Array) -> Array:
    """The values nearest to the wanted ones that the input can take; decode holds no more than the prompt."""
    low, high = bounds(Scenario, name)
    top = np.asarray(high if high is not None else np.inf, dtype=float)
    if name == "decode_held_tokens":
        top = np.asarray(fields.get("prompt_tokens", scenario.prompt_tokens), dtype=float)
    values: Array = np.minimum(np.maximum(wanted, low if low is not None else 1e-9), top)
    return np.asarray(np.round(values)) if name in WHOLE else values


def _at(scenario: Scenario, fields: dict[str, Array], name: str, values: Array) -> Evaluation:
    """The scenario with the input at other values, which may have an axis more than the fields."""
    columns = {
        field: np.broadcast_to(column.reshape(column.shape + (1,) * (values.ndim - 1)), values.shape) for field, column in fields.items()
    }
    return sweep(scenario, **{**columns, name: values.astype(np.int64) if name in WHOLE else values})


def _verdict(result: Evaluation) -> Array:
    """A number for each verdict: what bounds the transfer, and whether the gap is past its mark."""
    bound = np.asarray(result.bound)
    number = sum((np.where(bound == name, 2 * i, 0) for i, name in enumerate(BOUNDS)), np.zeros(bound.shape, dtype=int))
    verdict: Array = number + (np.asarray(result.gap_share) > GAP_MARK)
    return verdict


def _flip(scenario: Scenario, fields: dict[str, Array], name: str, now: Array, base: Evaluation) -> tuple[Array, Array, tuple[str, ...]]:
    """(value, whether it is above, words) of the nearest flip at each position."""
    own = np.broadcast_to(_verdict(base), now.shape)
    found = [_side(scenario, fields, name, now, own, up) for up in (False, True)]
    with np.errstate(divide="ignore", invalid="ignore"):
        far = [
            np.where(np.isnan(at), np.inf, np.abs(np.log(np.maximum(at, 1e-12) / np.maximum(now, 0.5 if name in WHOLE else 1e-12))))
            for at, _ in found
        ]
    up = far[1] < far[0]
    at = np.where(up, found[1][0], found[0][0])
    new = np.where(up, found[1][1], found[0][1])
    return at, up, tuple("" if np.isnan(v) else _words(int(a), int(b)) for v, a, b in zip(at, own, new, strict=True))


def _side(scenario: Scenario, fields: dict[str, Array], name: str, now: Array, own: Array, up: bool) -> tuple[Array, Array]:
    """(value, verdict) of the first flip in one direction; NaN where there is none within reach."""
    ratios = REACH ** (np.arange(1, _STEPS + 1) / _STEPS)
    start = np.where(now > 0, now, 1.0)[:, None]
    grid = (
        _allowed(scenario, fields, name, start * ratios if up else start / ratios)
        if name != "decode_held_tokens"
        else _held(scenario, fields, now, up)
    )
    verdicts = _verdict(_at(scenario, fields, name, grid))
    differs = verdicts != own[:, None]
    first = np.argmax(differs, axis=1)
    rows = np.arange(len(now))
    any_ = differs.any(axis=1)
    far = grid[rows, first]
    near = np.where(first > 0, grid[rows, np.maximum(first - 1, 0)], now)
    near = np.where(any_, near, far)
    for _ in range(_NARROWINGS[name in WHOLE]):
        if bool(np.all(np.abs(far - near) <= (1 if name in WHOLE else 0))):
            break
        inner = _between(near, far, whole=name in WHOLE)
        flipped = _verdict(_at(scenario, fields, name, inner)) != own[:, None]
        at, some = np.argmax(flipped, axis=1), flipped.any(axis=1)
        last = np.where(at > 0, inner[rows, np.maximum(at - 1, 0)], near)
        near, far = np.where(some, last, inner[:, -1]), np.where(some, inner[rows, at], far)
    far = _allowed(scenario, fields, name, far)
    new = _verdict(_at(scenario, fields, name, far))
    return np.where(any_ & (new != own), far, np.nan), new


def _between(near: Array, far: Array, *, whole: bool) -> Array:
    """Values from near to far, both left out: evenly spread, by ratio where the input is no whole number."""
    parts = np.arange(1, _PARTS) / _PARTS
    if whole:
        even: Array = near[:, None] + np.trunc((far - near)[:, None] * parts)
        return even
    start = np.maximum(near, 1e-300)[:, None]
    by_ratio: Array = start * (far[:, None] / start) ** parts
    return by_ratio


def _held(scenario: Scenario, fields: dict[str, Array], now: Array, up: bool) -> Array:
    """Tokens that decode could hold instead, evenly spread: an input that starts at 0 has no ratios."""
    prompt = np.broadcast_to(np.asarray(fields.get("prompt_tokens", scenario.prompt_tokens), dtype=float), now.shape)
    end = prompt if up else np.zeros(now.shape)
    grid: Array = np.round(now[:, None] + (end - now)[:, None] * np.arange(1, _STEPS + 1) / _STEPS)
    return grid


def _words(own: int, new: int) -> str:
    if own // 2 != new // 2:
        return {"nothing": "nothing to move", "hidden": "hidden", "link": "link-bound", "exposed": "nothing hidden"}[BOUNDS[new // 2]]
    return f"gap {'over' if new % 2 else 'under'} 20\u202f% of TTFT"
