"""Constants of the time model by least squares, each accelerator drawn towards what all have in common.

Residuals are relative. A constant of a chip and weight format is drawn towards the one fitted to all
accelerators together, so that a format with few rows, or rows of one model only, stays sensible; that of an
accelerator, strongly, towards its chip's, so that an H200 is an H100 with more memory. The general constants
are fitted to dense models; those of experts and of all-reduces that leave the node then to what models with
experts take beyond them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.optimize import least_squares

from tests.grid_rows import NAMES, Amounts

START = {
    "launch": 6e-6,
    "weights": 1.2,
    "matmul": 1.3,
    "attention": 1.5,
    "KV read": 1.1,
    "all-reduce bytes": 1.2,
    "all-reduce latency": 4e-6,
    "activations": 1.7,
    "expert matmul": 4.0,
    "expert weights": 1.5,
    "across nodes": 1.0,
}
"""Where the search begins; also the scale on which a constant counts as near."""

LEAST = {
    "weights": 1.0,
    "matmul": 1.0,
    "attention": 0.5,
    "KV read": 1.0,
    "expert matmul": 1.0,
    "expert weights": 1.0,
    "across nodes": 0.3,
}
"""Least constants: nothing is read or multiplied faster than the peak. Attention may run in FP8, at twice BF16's;
switches add up all-reduces within the node, so their bytes have none."""

LEAST_IN_DECODE = {**LEAST, "attention": 0.0, "all-reduce latency": 3e-6}
"""In decode attention counts what reading the cache does not already hide, and the smallest all-reduce takes some 3 us."""

ERROR = {"prefill": 0.05, "decode": 0.03}
"""Relative error beyond which a row counts less."""

SPECIFIC = ("expert matmul", "expert weights", "across nodes")
PULL = 1.0
"""Strength of the draw: a constant off by its own size counts as much as this many rows, squared, that err by `ERROR`."""
PULL_OF_EXPERTS = 5.0
"""The same for constants that one model on one or two layouts tells."""

CHIPS = {"a100-sxm": "Ampere", "h100-sxm": "Hopper", "h200-sxm": "Hopper", "b200-sxm": "Blackwell", "gb200": "Blackwell"}
"""Chip of each accelerator of the grid: two that share one differ in memory, hardly in anything else."""
CHIP_PULL = 30.0
"""Times stronger than the draw towards all accelerators is the one towards those of the same chip."""

FP8_OVER_BF16 = 2.0
"""Peak FLOP/s of FP8 over BF16 on every accelerator of the grid that has both."""

Keyed = Mapping[tuple[str, str], np.ndarray]


def least(phase: str) -> np.ndarray:
    """Least constants of a phase."""
    table = LEAST if phase == "prefill" else LEAST_IN_DECODE
    return np.array([table.get(name, 0.0) for name in NAMES[phase]])


def specific(phase: str) -> np.ndarray:
    """Mask of the constants that only models with experts tell."""
    return np.array([name in SPECIFIC for name in NAMES[phase]])


def start(phase: str) -> np.ndarray:
    """Where the search begins."""
    return np.array([START[name] for name in NAMES[phase]])


def fit(x: Amounts, free: np.ndarray, towards: np.ndarray, pull: float) -> np.ndarray:
    """Constants of least robust relative error among the free ones; the others stay as in `towards`."""
    if not len(x.seconds):
        return towards
    scale = np.maximum(towards, 0.2 * start(x.phase))[free]

    def residuals(z: np.ndarray) -> np.ndarray:
        constants = towards.copy()
        constants[free] = z * scale
        off = (x.predict(constants) / x.seconds - 1) / ERROR[x.phase]
        return np.concatenate([off, pull * (z - towards[free] / scale)])

    low = least(x.phase)[free] / scale
    found = least_squares(residuals, np.maximum(towards[free] / scale, low + 1e-6), bounds=(low, np.inf), loss="soft_l1")
    constants = towards.copy()
    constants[free] = np.where(found.x < 1e-4, 0.0, found.x * scale)
    return constants


def fit_all(x: Amounts, keys: np.ndarray, experts: np.ndarray, pull: float = PULL) -> dict[tuple[str, str], np.ndarray]:
    """Constants of every (accelerator, weight format) among `keys`, one of which belongs to each row."""
    special, found = specific(x.phase), {}
    for weights in sorted({key[1] for key in keys}, reverse=True):
        same = np.array([key[1] == weights for key in keys])
        common = fit(x.of(same & ~experts), ~special, start(x.phase), 0.01)
        common = fit(x.of(same & experts), special, common, 0.01)
        for key in sorted({key for key in keys if key[1] == weights}):
            own, chip = np.array([k == key for k in keys]), same & np.array([CHIPS[k[0]] == CHIPS[key[0]] for k in keys])
            general = fit(x.of(chip & ~experts), ~special, common, pull)
            general = fit(x.of(own & ~experts), ~special, general, pull * CHIP_PULL)
            lent = _lent(general, found, key, special, bool((chip & experts).any()))
            lent = fit(x.of(chip & experts), special, lent, PULL_OF_EXPERTS)
            found[key] = fit(x.of(own & experts), special, lent, PULL_OF_EXPERTS * CHIP_PULL)
    return found


def _lent(general: np.ndarray, found: Keyed, key: tuple[str, str], special: np.ndarray, own: bool) -> np.ndarray:
    """Without rows of a model with experts: those constants from FP8 on the same accelerator, else the mean of all FP8 ones.

    Grouped kernels are then taken to reach the same FLOP/s as in FP8, which is another share of the peak.
    """
    lenders = [] if own or key[1] == "fp8" else [k for k in found if k[1] == "fp8" and (k[0] == key[0] or (key[0], "fp8") not in found)]
    if not lenders:
        return general
    lent = np.where(special, np.mean([found[k] for k in lenders], axis=0), general)
    matmul = SPECIFIC.index("expert matmul") - len(SPECIFIC)
    lent[matmul] = max(1.0, lent[matmul] / FP8_OVER_BF16)
    if lenders[0][0] != key[0]:
        lent[-1] = 1.0  # the mean would be of accelerators whose NICs the tables take for faster
    return lent
