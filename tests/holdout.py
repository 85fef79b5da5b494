"""How well constants predict rows they were not fitted to: random halves, a model left out, a degree of parallelism left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from tests.fit_constants import fit_all
from tests.grid_rows import Amounts, Row, amounts

SEEDS = (0, 1, 2, 3, 4)
"""Seeds of the random halves; errors of all of them are pooled."""


@dataclass(frozen=True)
class Phase:
    """The rows of one phase, with what is known of each."""

    rows: tuple[Row, ...]
    amounts: Amounts
    keys: np.ndarray
    experts: np.ndarray
    judged: np.ndarray
    """Rows that errors are taken on: prefill of one request, and every decode step."""

    def where(self, condition: Callable[[Row], bool]) -> np.ndarray:
        """Mask of the rows that meet a condition."""
        return np.array([condition(row) for row in self.rows])


@dataclass(frozen=True)
class Left:
    """Relative errors of rows left out, with their keys."""

    off: np.ndarray
    keys: np.ndarray
    experts: np.ndarray

    def of(self, key: tuple[str, str] | None = None, experts: bool = False) -> np.ndarray:
        """Absolute errors of one key, or of all, on dense models or on models with experts."""
        same = np.array([key is None or k == key for k in self.keys], dtype=bool)
        return self.off[same & (self.experts == experts)]


def phase_of(rows: Iterable[Row], phase: str) -> Phase:
    """The rows of a phase, terms evaluated."""
    mine = tuple(row for row in rows if row.phase == phase)
    keys = np.empty(len(mine), dtype=object)
    keys[:] = [row.key for row in mine]
    judged = np.array([phase == "decode" or row.batch == 1 for row in mine])
    return Phase(mine, amounts(mine, phase), keys, np.array([row.experts for row in mine]), judged)


def left_out(p: Phase, train: np.ndarray, test: np.ndarray) -> Left:
    """Errors on some rows of constants fitted to others; rows whose key was not fitted are not judged."""
    constants = fit_all(p.amounts.of(train), p.keys[train], p.experts[train])
    predicted = np.full(len(p.rows), np.nan)
    for key, found in constants.items():
        mine = test & p.judged & np.array([k == key for k in p.keys])
        if mine.any():
            predicted[mine] = p.amounts.of(mine).predict(found)
    known = np.isfinite(predicted)
    return Left(np.abs(predicted[known] / p.amounts.seconds[known] - 1), p.keys[known], p.experts[known])


def joined(parts: list[Left]) -> Left:
    """Errors of several fits together."""
    return Left(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("off", "keys", "experts")))


def random_halves(p: Phase, seeds: Iterable[int] = SEEDS) -> Left:
    """Fitted on a random half of all rows, judged on the other half, over several seeds."""
    parts = []
    for seed in seeds:
        half = np.random.default_rng(seed).permutation(len(p.rows)) < len(p.rows) // 2
        parts.append(left_out(p, half, ~half))
    return joined(parts)


def models_left_out(p: Phase) -> Left:
    """Every dense model predicted from the others."""
    models = sorted({row.model for row in p.rows if not row.experts})
    masks = [p.where(lambda row, name=name: row.model == name) for name in models]  # type: ignore[misc]
    return joined([left_out(p, ~mask, mask) for mask in masks])


def parallelism_left_out(p: Phase, tp: int = 8) -> Left:
    """Dense models on `tp` ranks predicted from other degrees of tensor parallelism."""
    mask = p.where(lambda row: row.tp == tp)
    return left_out(p, ~mask & ~p.experts, mask & ~p.experts)


def spread(off: np.ndarray) -> tuple[float, float]:
    """(median, 90th percentile); NaN of nothing."""
    return (float(np.median(off)), float(np.quantile(off, 0.9))) if len(off) else (float("nan"), float("nan"))
