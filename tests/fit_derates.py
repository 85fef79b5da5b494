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

import numpy as np
from scipy.optimize import nnls

from kvmodel.registry import accelerators, data_folder, find_model
from kvmodel.terms import Placement, decode_terms, full_pairs, prefill_terms, shape_of

SYSTEMS = {"a100_sxm": "a100-sxm", "h100_sxm": "h100-sxm", "h200_sxm": "h200-sxm", "b200_sxm": "b200-sxm", "gb200": "gb200"}
DTYPES = {"bf16": ("bf16", "bf16"), "fp8_static": ("fp8", "fp8"), "fp8_block+kvbf16": ("fp8", "bf16")}
SOURCE = "operator-table latencies of aiconfigurator (TensorRT-LLM 1.0.0 on A100, 1.3.0rc20 on the others), fitted by tests/fit_derates.py"


def placement(row: dict[str, str]) -> Placement:
    """The grid row's model on its accelerators."""
    weights, kv = DTYPES[row["dtype"]]
    return Placement(find_model(row["model"]), accelerators()[SYSTEMS[row["system"]]], int(row["tp"]), 1, 1, kv, weights)


def features(row: dict[str, str]) -> np.ndarray:
    """Seconds at peak of each term, summed over the layers, LM head with the matmul and weight terms."""
    place, tokens, batch = placement(row), float(row["isl"]), float(row["batch"])
    prefill = row["phase"] == "prefill"
    total = np.zeros(7)
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


def fit(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Non-negative constants with the least squared relative error."""
    return nnls(x / y[:, None], np.ones(len(y)))[0]


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
    fitted = {}
    random = np.random.default_rng(20261129)
    print("family      phase    weights  rows   median    p90   dense-median  dense-p90   V3-median  V3-p90")
    for key, members in sorted(groups.items()):
        x = np.array([features(row) for row in members])
        y = np.array([float(row["latency_ms"]) * 1e-3 for row in members])
        dense = np.array(["DeepSeek" not in row["model"] for row in members])
        half = (random.permutation(len(y)) < len(y) // 2) & dense
        judged = ~half & np.array([row["phase"] == "decode" or row["batch"] == "1" for row in members])
        left_out = errors(x, y, fit(x[half], y[half]))
        numbers = [quantile(left_out[judged & keep], q) for keep in (np.ones_like(dense), dense, ~dense) for q in (0.5, 0.9)]
        fitted[key] = (fit(x[dense], y[dense]), numbers[2], numbers[3], int(dense.sum()))
        print(f"{key[0]:10}  {key[1]:8} {key[2]:6} {len(y):5}   " + "   ".join(f"{n:7.1%}" for n in numbers))
        print("   ", " ".join(f"{c:.4g}" for c in fitted[key][0]))
    if arguments.write:
        write(fitted)


def write(fitted: dict[tuple[str, str, str], tuple[np.ndarray, float, float, int]]) -> None:
    """Write data/derates.toml."""
    lines = ["# Fitted constants; written by tests/fit_derates.py. Order of terms: kvmodel/terms.py.", ""]
    for family in sorted({key[0] for key in fitted}):
        lines += ["[[derate]]", f'id = "{family}"', f'source = "{SOURCE}"', f"checked = {date.today().isoformat()}"]
        for phase in ("prefill", "decode"):
            for weights in ("bf16", "fp8"):
                if (family, phase, weights) in fitted:
                    constants, median, p90, count = fitted[family, phase, weights]
                    listed = ", ".join(f"{c:.5g}" for c in constants)
                    error = f"median_error = {median:.3f}, p90_error = {p90:.3f}, rows = {count}"
                    lines.append(f"{phase}_{weights} = {{constants = [{listed}], {error}}}")
        lines.append("")
    (data_folder() / "derates.toml").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
