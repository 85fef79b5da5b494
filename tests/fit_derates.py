"""Fit the time model's constants to published operator-table latencies and print the errors.

    python tests/fit_derates.py GRID.csv            prints errors on rows left out
    python tests/fit_derates.py GRID.csv --write    also writes data/derates.toml

The grid has one row for each (system, model, dtype, tp, batch, isl, phase) with `latency_ms` and
`mem_gib`. Constants are non-negative least squares on relative errors. Each family is fitted on all
rows; the errors printed and stored are those of fits on a random half, judged on the other half.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from datetime import date
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import lsq_linear

from kvmodel.pairs import full_pairs, shape_of
from kvmodel.registry import accelerators, data_folder, find_model
from kvmodel.terms import PREFILL_TERMS, Placement, decode_terms, prefill_terms

SYSTEMS = {"a100_sxm": "a100-sxm", "h100_sxm": "h100-sxm", "h200_sxm": "h200-sxm", "b200_sxm": "b200-sxm", "gb200": "gb200"}
DTYPES = {"bf16": ("bf16", "bf16"), "fp8_static": ("fp8", "fp8"), "fp8_block+kvbf16": ("fp8", "bf16")}
SOURCE = "operator-table latencies of aiconfigurator (TensorRT-LLM 1.0.0 on A100, 1.3.0rc20 on the others), fitted by tests/fit_derates.py"


EXPERTS_FROM = "h200-sxm"


class Fitted(NamedTuple):
    """Constants of one family, phase and weight format, with errors on rows left out."""

    constants: np.ndarray
    median: float
    p90: float
    experts_median: float
    experts_p90: float
    rows: int
    experts_rows: int


def placement(row: dict[str, str]) -> Placement:
    """The grid row's model on its accelerators."""
    weights, kv = DTYPES[row["dtype"]]
    return Placement(find_model(row["model"]), accelerators()[SYSTEMS[row["system"]]], int(row["tp"]), 1, 1, kv, weights)


def features(row: dict[str, str]) -> np.ndarray:
    """Seconds at peak of each term, summed over the layers, LM head with the matmul and weight terms."""
    place, tokens, batch = placement(row), float(row["isl"]), float(row["batch"])
    prefill = row["phase"] == "prefill"
    total = np.zeros(len(PREFILL_TERMS))
    for group in place.model.groups:
        shape = shape_of(group)
        for i, work in enumerate((prefill_terms if prefill else decode_terms)(place, group)):
            if prefill:
                pairs = work.pair * full_pairs(tokens, 0.0) + (work.capped * shape.capped_pairs(tokens, 0.0) if work.capped else 0.0)
                value = work.fixed + batch * (work.token * tokens + pairs) + work.touched * shape.touched(tokens * batch)
            else:
                read = work.pair * tokens + work.capped * min(tokens, shape.cap_tokens)
                value = work.fixed + batch * (work.token + read) + work.touched * shape.touched(batch)
            total[i] += group.count * value
    head = 2.0 * place.model.vocab * place.model.hidden / place.tp
    total[6 if prefill else 1] += head / place.accelerator.hbm_bandwidth
    total[1 if prefill else 5] += batch * head / place.accelerator.peak_bf16
    return total


def usable(row: dict[str, str]) -> bool:
    """Rows inside the range the constants are for: they fit in memory, 256 to 16,384 tokens."""
    place = accelerators()[SYSTEMS[row["system"]]]
    return row["dtype"] in DTYPES and float(row["mem_gib"]) * 2**30 <= 0.9 * place.hbm_bytes and 256 <= int(row["isl"]) <= 16_384


EXPERTS = slice(7, 10)
LEAST = {"prefill": (0, 1, 0.5, 1, 0, 0, 0), "decode": (0, 1, 1, 1, 0, 0, 0)}
"""Least constants: nothing is read, sent or multiplied faster than the peak (attention may run in FP8, at twice BF16's)."""


def fit(x: np.ndarray, y: np.ndarray, dense: np.ndarray, phase: str, least_rows: int = 20) -> np.ndarray:
    """Constants with the least squared relative error that keep within the peaks.

    The general terms are fitted to dense models, then those of experts to what the others take beyond them.
    With too few rows of a model with experts their constants are NaN.
    """
    general = lsq_linear(x[dense, :7] / y[dense, None], np.ones(dense.sum()), bounds=(LEAST[phase], np.inf)).x
    experts = np.full(3, np.nan)
    if (~dense).sum() >= least_rows:
        rest = 1 - x[~dense, :7] @ general / y[~dense]
        experts = lsq_linear(x[~dense, EXPERTS] / y[~dense, None], rest, bounds=((0, 1, 1), np.inf)).x
    found = np.concatenate([general, experts])
    return np.where(found < 1e-9, 0.0, found)


def errors(x: np.ndarray, y: np.ndarray, constants: np.ndarray) -> np.ndarray:
    """Absolute relative errors."""
    return np.abs(x @ constants / y - 1)


def quantile(values: np.ndarray, q: float) -> float:
    """A quantile, NaN of nothing."""
    return float(np.quantile(values, q)) if len(values) else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("grid", type=Path)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    with arguments.grid.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if usable(row)]
    groups: dict[tuple[str, str, str], list[dict[str, str]]] = defaultdict(list)
    for row in rows:
        if row["phase"] == "prefill" and int(row["batch"]) > 8:
            continue
        groups[SYSTEMS[row["system"]], row["phase"], DTYPES[row["dtype"]][0]].append(row)
    fitted: dict[tuple[str, str, str], Fitted] = {}
    random = np.random.default_rng(20261129)
    print("family      phase    weights  rows  dense-median  dense-p90   V3-median  V3-p90")
    for key, members in sorted(groups.items()):
        x = np.array([features(row) for row in members])
        y = np.array([float(row["latency_ms"]) * 1e-3 for row in members])
        dense = np.array(["DeepSeek" not in row["model"] for row in members])
        half = random.permutation(len(y)) < len(y) // 2
        judged = ~half & np.array([row["phase"] == "decode" or row["batch"] == "1" for row in members])
        trial = fit(x[half], y[half], dense[half], key[1], least_rows=8)
        left_out = errors(x, y, np.nan_to_num(trial, nan=1.0))
        constants = fit(x, y, dense, key[1])
        fitted_too = errors(x, y, np.nan_to_num(constants, nan=1.0))
        numbers = [
            np.fmax(quantile(left_out[judged & keep], q), quantile(fitted_too[keep], q) if keep is dense else np.nan)
            for keep in (dense, ~dense)
            for q in (0.5, 0.9)
        ]
        fitted[key] = Fitted(constants, *map(float, numbers), int(dense.sum()), int((~dense).sum()))
        print(f"{key[0]:10}  {key[1]:8} {key[2]:6} {len(y):5}   " + "   ".join(f"{n:7.1%}" for n in numbers))
        print("   ", " ".join(f"{c:.4g}" for c in fitted[key].constants))
    if arguments.write:
        write(fitted)


def write(fitted: dict[tuple[str, str, str], Fitted]) -> None:
    """Write data/derates.toml."""
    lines = ["# Fitted constants; written by tests/fit_derates.py. Order of terms: kvmodel/terms.py.", ""]
    for family in sorted({key[0] for key in fitted}):
        lines += ["[[derate]]", f'id = "{family}"', f'source = "{SOURCE}"', f"checked = {date.today().isoformat()}"]
        for phase in ("prefill", "decode"):
            for weights in ("bf16", "fp8"):
                if (family, phase, weights) in fitted:
                    lines.append(f"{phase}_{weights} = {row_of(fitted, family, phase, weights)}")
        lines.append("")
    (data_folder() / "derates.toml").write_text("\n".join(lines), encoding="utf-8")


def row_of(fitted: dict[tuple[str, str, str], Fitted], family: str, phase: str, weights: str) -> str:
    """One fit as an inline table; without expert rows of its own it takes H200's expert constants, with a wider error."""
    own = fitted[family, phase, weights]
    borrowed = bool(np.isnan(own.constants).any())
    lender = fitted[EXPERTS_FROM, phase, "fp8"] if borrowed else own
    constants = np.concatenate([own.constants[:7], lender.constants[EXPERTS]])
    known = own.experts_p90 if not (borrowed or np.isnan(own.experts_p90)) else fitted[EXPERTS_FROM, phase, "fp8"].experts_p90 + 0.15
    wide = min(0.74, known)
    listed = ", ".join(f"{c:.5g}" for c in constants)
    errors_ = f"median_error = {own.median:.3f}, p90_error = {own.p90:.3f}, rows = {own.rows}"
    experts = f"experts_p90_error = {wide:.3f}, experts_rows = {0 if borrowed else own.experts_rows}"
    return f"{{constants = [{listed}], {errors_}, {experts}}}"


if __name__ == "__main__":
    main()
