"""Fit the time model's constants to published operator-table latencies and print the errors on rows left out.

    python -m tests.fit_derates GRID.csv            prints errors against targets, and the constants
    python -m tests.fit_derates GRID.csv --write    also writes data/derates.toml

Rows used: at most 90 % of memory, 256 to 16,384 tokens, labels `bf16`, `fp8_static` and `fp8_block+kvbf16`;
prefill up to batch 8 (judged at batch 1), decode at batch 1 to 64. The constants written are fitted to all
rows; the errors beside them are of rows left out: of a random half or of the model left out, whichever are larger.
`tests/list_published.py` lists measured prefill and decode times beside the model's.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import numpy as np

from kvmodel.compute import BORROWED
from kvmodel.registry import data_folder
from tests.fit_constants import fit_all
from tests.grid_rows import NAMES, read_rows
from tests.holdout import SEEDS, Left, Phase, models_left_out, parallelism_left_out, phase_of, random_halves, spread

SOURCE = (
    "operator-table latencies of aiconfigurator (TensorRT-LLM 1.0.0 on A100, 1.3.0rc20 on the others), fitted by tests/fit_derates.py, "
    "drawn towards what accelerators of one chip have in common"
)
SLOW_STEPS = (
    "; the tables have steps of one request up to {} % longer than on an H200 (Llama 3.1 8B, FP8, TP 8), and so has the model; "
    "engines too at times: https://github.com/vllm-project/vllm/issues/18725"
)
REMARKS = {
    "b200-sxm": f"{SLOW_STEPS.format(12)}; between nodes they take the NICs for 800 Gb/s, so all-reduces go twice as fast as at 400 Gb/s",
    "gb200": SLOW_STEPS.format(8),
}
"""What else a reader of an accelerator's constants must know."""
HALF = {"prefill": (0.05, 0.15), "decode": (0.03, 0.10)}
MODEL, PARALLELISM, EXPERTS = (0.08, 0.20), (0.10, 0.20), (0.12, 0.30)
"""Targets, (median, 90th percentile)."""
COUNTED = ("launch", "all-reduce latency")
"""Terms that count occurrences, whose constants are seconds."""

Key = tuple[str, str]


def line(name: str, off: np.ndarray, target: tuple[float, float] | None = None) -> str:
    """One row of the report."""
    median, p90 = spread(off)
    told = f"  {name:32} {len(off):5} rows   median {median:6.1%}   p90 {p90:6.1%}"
    if target is None:
        return told
    verdict = "pass" if median <= target[0] and p90 <= target[1] else "FAIL"
    return f"{told}   target {f'{target[0]:.0%} / {target[1]:.0%}':9}   {verdict}"


def report(phase: str, halves: Left, models: Left, parallelism: Left) -> Iterator[str]:
    """Errors of a phase against the targets."""
    keys = sorted(set(halves.keys))
    everything, seeds = "all accelerators and formats", ", ".join(map(str, SEEDS))
    yield f"\n{phase}: fitted on a random half, judged on the other (seeds {seeds}); dense models"
    yield from (line(" ".join(key), halves.of(key), HALF[phase]) for key in keys)
    yield f"{phase}: one dense model left out"
    yield line(everything, models.of(), MODEL)
    yield from (line(f"  {' '.join(key)}", models.of(key)) for key in sorted(set(models.keys)))
    yield f"{phase}: TP 8 left out; dense models"
    yield line(everything, parallelism.of(), PARALLELISM)
    yield f"{phase}: DeepSeek-V3, fitted on a random half, judged on the other"
    yield line(everything, halves.of(experts=True), EXPERTS)
    yield from (line(f"  {' '.join(key)}", halves.of(key, experts=True)) for key in keys if key[1] == "fp8")


def table(phase: str, constants: dict[Key, np.ndarray]) -> Iterator[str]:
    """The constants fitted to all rows; those of launches and waits in microseconds."""
    yield f"\n{phase}: constants fitted to all rows"
    for key, found in sorted(constants.items()):
        shown = (f"{n} {c * 1e6:.2f} us" if n in COUNTED else f"{n} {c:.2f}" for n, c in zip(NAMES[phase], found, strict=True))
        yield f"  {' '.join(key):14} {', '.join(shown)}"


def record(p: Phase, key: Key, constants: np.ndarray, halves: Left, models: Left) -> str:
    """One fit as an inline table of data/derates.toml."""
    own = np.array([k == key for k in p.keys])
    median, p90 = (np.nanmax(pair) for pair in zip(spread(halves.of(key)), spread(models.of(key)), strict=True))
    experts_rows = int((own & p.experts).sum())
    _, experts = spread(halves.of(key if experts_rows else None, experts=True))
    experts = max(experts, p90) + (0.0 if experts_rows else BORROWED)
    listed = ", ".join(f"{c:.4g}" for c in constants)
    errors = f"median_error = {median:.3f}, p90_error = {p90:.3f}, rows = {int((own & ~p.experts).sum())}"
    return f"{{constants = [{listed}], {errors}, experts_p90_error = {min(experts, 0.74):.3f}, experts_rows = {experts_rows}}}"


def write(records: dict[tuple[str, str, str], str]) -> None:
    """Write data/derates.toml from records by (accelerator, phase, weights)."""
    lines = ["# Fitted constants; written by tests/fit_derates.py. Order of terms: kvmodel/terms.py.", ""]
    order = (("prefill", "bf16"), ("prefill", "fp8"), ("decode", "bf16"), ("decode", "fp8"))
    for family in sorted({name[0] for name in records}):
        lines += [
            "[[derate]]",
            f'id = "{family}"',
            f'source = "{SOURCE}{REMARKS.get(family, "")}"',
            f"checked = {date.today().isoformat()}",
        ]
        mine = [(phase, weights) for phase, weights in order if (family, phase, weights) in records]
        lines += [f"{phase}_{weights} = {records[family, phase, weights]}" for phase, weights in mine]
        lines.append("")
    (data_folder() / "derates.toml").write_text("\n".join(lines), encoding="utf-8")


def main() -> None:
    """Fit, report, and write if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("grid", type=Path)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    rows, records = read_rows(arguments.grid), {}
    for phase in NAMES:
        p = phase_of(rows, phase)
        halves, models = random_halves(p), models_left_out(p)
        print("\n".join(report(phase, halves, models, parallelism_left_out(p))))
        constants = fit_all(p.amounts, p.keys, p.experts)
        print("\n".join(table(phase, constants)))
        records |= {(key[0], phase, key[1]): record(p, key, found, halves, models) for key, found in constants.items()}
    if arguments.write:
        write(records)


if __name__ == "__main__":
    main()
