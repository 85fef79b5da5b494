"""The fit of the constants: it finds what made the times, and the constants kept meet their targets."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kvmodel.compute import phase_time
from kvmodel.registry import derates
from tests.fit_constants import fit_all, least
from tests.fit_derates import EXPERTS, HALF, MODEL, PARALLELISM, line
from tests.grid_rows import NAMES, Row, amounts, read_rows
from tests.holdout import left_out, models_left_out, parallelism_left_out, phase_of, random_halves, spread

PHASES = ["prefill", "decode"]


def made_up(phase: str, accelerator: str = "h200-sxm", weights: str = "fp8") -> list[Row]:
    """Rows of two dense models and one with experts, without times."""
    models = (("llama-3.1-8b", (1, 2, 4, 8)), ("llama-3-70b", (2, 4, 8)), ("deepseek-v3", (8, 16)))
    return [
        Row(accelerator, phase, model, weights, "bf16", tp, batch, tokens, 1.0, 0.0)
        for model, tps in models
        for tp in tps
        for batch in ((1, 4) if phase == "prefill" else (1, 8, 64))
        for tokens in (256, 1024, 4096, 16_384)
    ]


def timed(rows: list[Row], constants: np.ndarray) -> list[Row]:
    """The rows with times that some constants make."""
    seconds = amounts(rows, rows[0].phase).predict(constants)
    return [replace(row, seconds=float(s)) for row, s in zip(rows, seconds, strict=True)]


def kept(phase: str, accelerator: str = "h200-sxm", weights: str = "fp8") -> np.ndarray:
    return np.array(getattr(derates()[accelerator], f"{phase}_{weights}").constants)


@pytest.mark.parametrize("phase", PHASES)
def test_the_fit_times_rows_as_the_model_does(phase: str) -> None:
    rows = made_up(phase)
    for row, seconds in zip(rows, amounts(rows, phase).predict(kept(phase)), strict=True):
        time = phase_time(row.place, phase)
        own = time.prefill(row.tokens, 0, row.batch) if phase == "prefill" else time.step(row.tokens, row.batch)
        assert seconds == pytest.approx(own, rel=2e-3), row  # constants are kept to four digits


@pytest.mark.parametrize("phase", PHASES)
def test_the_fit_finds_the_constants_that_made_the_times(phase: str) -> None:
    true = kept(phase) * 1.1
    p = phase_of(timed(made_up(phase), true), phase)
    found = fit_all(p.amounts, p.keys, p.experts, pull=0.01)["h200-sxm", "fp8"]
    assert p.amounts.predict(found) == pytest.approx(p.amounts.seconds, rel=0.01)
    weights = NAMES[phase].index("weights" if phase == "decode" else "matmul")
    assert found[weights] == pytest.approx(true[weights], rel=0.05)


@pytest.mark.parametrize("phase", PHASES)
def test_no_constant_beats_a_peak(phase: str) -> None:
    for accelerator, row in derates().items():
        for weights in ("bf16", "fp8"):
            fit = getattr(row, f"{phase}_{weights}")
            assert fit is None or (np.array(fit.constants) >= least(phase) * (1 - 1e-3)).all(), (accelerator, weights)


def test_a_key_without_rows_of_its_own_is_not_judged() -> None:
    rows = timed(made_up("decode"), kept("decode"))
    other = [replace(row, accelerator="b200-sxm") for row in rows]
    p = phase_of(rows + other, "decode")
    fitted = p.where(lambda row: row.accelerator == "h200-sxm")
    assert set(left_out(p, fitted, ~fitted).keys) == set()


def test_a_line_of_the_report_says_pass_or_fail() -> None:
    off = np.array([0.01, 0.02, 0.2])
    assert line("x", off, (0.03, 0.3)).endswith("pass")
    assert line("x", off, (0.01, 0.3)).endswith("FAIL")
    assert line("x", off, (0.03, 0.1)).endswith("FAIL")


# the grid itself, when it lies beside the checkout


def grid(shared: Path) -> list[Row]:
    return read_rows(shared / "measured" / "compute_grid.csv")


def within(off: np.ndarray, target: tuple[float, float]) -> bool:
    median, p90 = spread(off)
    return median <= target[0] and p90 <= target[1]


@pytest.mark.parametrize("phase", PHASES)
def test_rows_left_out_are_predicted_within_the_targets(shared: Path, phase: str) -> None:
    p = phase_of(grid(shared), phase)
    halves = random_halves(p, seeds=(7, 8, 9))
    assert len(set(halves.keys)) == 9
    assert [key for key in sorted(set(halves.keys)) if not within(halves.of(key), HALF[phase])] == []
    assert within(halves.of(experts=True), EXPERTS)
    assert within(models_left_out(p).of(), MODEL)
    assert within(parallelism_left_out(p).of(), PARALLELISM)


def test_the_constants_kept_are_those_of_the_grid(shared: Path) -> None:
    errors: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in grid(shared):
        time = phase_time(row.place, row.phase)
        modelled = time.prefill(row.tokens, 0, row.batch) if row.phase == "prefill" else time.step(row.tokens, row.batch)
        if not row.experts:
            errors[row.accelerator, f"{row.phase}_{row.weights}"].append(abs(modelled / row.seconds - 1))
    assert len(errors) == 18
    for (accelerator, phase), found in errors.items():
        fit = getattr(derates()[accelerator], phase)
        assert len(found) == fit.rows
        assert np.quantile(found, 0.9) <= 1.1 * fit.p90_error, (accelerator, phase)
