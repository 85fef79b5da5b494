"""Rows of the compute grid, and what each term of the time model amounts to on them.

The grid has one row for each (system, model, dtype, tp, batch, isl, phase) with `latency_ms` and `mem_gib`.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kvmodel import find_model
from kvmodel.allreduce import Across, across_of, short_tokens
from kvmodel.compute import head_terms
from kvmodel.pairs import shape_of
from kvmodel.placement import Placement
from kvmodel.records.model import Moe
from kvmodel.registry import accelerators
from kvmodel.terms import ALL_REDUCE, DECODE_TERMS, MATMUL, PREFILL_TERMS, WEIGHTS, decode_terms, first_pairs, prefill_terms

SYSTEMS = {"a100_sxm": "a100-sxm", "h100_sxm": "h100-sxm", "h200_sxm": "h200-sxm", "b200_sxm": "b200-sxm", "gb200": "gb200"}
DTYPES = {"bf16": ("bf16", "bf16"), "fp8_static": ("fp8", "fp8"), "fp8_block+kvbf16": ("fp8", "bf16")}
"""The grid's labels used here, as (weights, cache); `fp8` and `fp8_block+kvfp8` are other settings of the engine."""
NAMES = {"prefill": PREFILL_TERMS, "decode": DECODE_TERMS}
MOST_BATCH = {"prefill": 8, "decode": 64}


@dataclass(frozen=True)
class Row:
    """One latency of the grid."""

    accelerator: str
    phase: str
    model: str
    weights: str
    kv: str
    tp: int
    batch: int
    tokens: int
    seconds: float
    memory_bytes: float

    @property
    def key(self) -> tuple[str, str]:
        """What constants belong to, beside the phase."""
        return self.accelerator, self.weights

    @property
    def experts(self) -> bool:
        """Whether the model routes tokens to experts."""
        return any(isinstance(group.ffn, Moe) for group in find_model(self.model).groups)

    @property
    def place(self) -> Placement:
        """The row's model on its accelerators."""
        return Placement(find_model(self.model), accelerators()[self.accelerator], self.tp, 1, 1, self.kv, self.weights)

    @property
    def usable(self) -> bool:
        """At most 90 % of memory, 256 to 16,384 tokens, batches the constants are for; between nodes where the model follows the tables."""
        if across_of(self.place) is Across.NICS:
            return False
        fits = self.memory_bytes <= 0.9 * accelerators()[self.accelerator].hbm_bytes
        return fits and 256 <= self.tokens <= 16_384 and self.batch <= MOST_BATCH[self.phase]


def read_rows(path: Path) -> list[Row]:
    """Usable rows of a grid."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [_row(cells) for cells in csv.DictReader(file) if cells["dtype"] in DTYPES]
    return [row for row in rows if row.usable]


def _row(cells: dict[str, str]) -> Row:
    weights, kv = DTYPES[cells["dtype"]]
    return Row(
        accelerator=SYSTEMS[cells["system"]],
        phase=cells["phase"],
        model=cells["model"],
        weights=weights,
        kv=kv,
        tp=int(cells["tp"]),
        batch=int(cells["batch"]),
        tokens=int(cells["isl"]),
        seconds=float(cells["latency_ms"]) * 1e-3,
        memory_bytes=float(cells["mem_gib"]) * 2**30,
    )


@dataclass(frozen=True)
class Amounts:
    """Terms at peak of some rows of one phase: what the fit multiplies with constants."""

    phase: str
    added: np.ndarray
    """Seconds at peak (or occurrences) of each term, all layers together: rows x terms; weights and matmul are 0."""
    sweep: np.ndarray
    """Weight sweep of one layer: rows x layer groups."""
    multiply: np.ndarray
    """Matrix multiplication of one layer: rows x layer groups."""
    layers: np.ndarray
    """Layers of each group: rows x layer groups."""
    head: np.ndarray
    """LM head: rows x (weight sweep, multiplication)."""
    spans: np.ndarray
    """Whether the ranks leave the node, all-reduces as the tables have them: rows."""
    seconds: np.ndarray
    """The grid's latency: rows."""

    def of(self, rows: np.ndarray) -> Amounts:
        """Some of the rows, by mask or index."""
        arrays = (getattr(self, name)[rows] for name in ("added", "sweep", "multiply", "layers", "head", "spans", "seconds"))
        return Amounts(self.phase, *arrays)

    def predict(self, constants: np.ndarray) -> np.ndarray:
        """Modelled seconds: `kvmodel.compute` on many rows at once."""
        names = NAMES[self.phase]
        weights, matmul = constants[names.index(WEIGHTS)], constants[names.index(MATMUL)]
        added = self.added @ constants[:-1]
        reduced = [names.index(name) for name in ALL_REDUCE]
        across = (constants[-1] - 1) * self.spans * (self.added[:, reduced] @ constants[reduced])
        overlapped = (self.layers * np.hypot(weights * self.sweep, matmul * self.multiply)).sum(axis=1)
        return added + across + overlapped + self.head @ np.array([weights, matmul])


GROUPS = 4
"""Most layer groups of a model in the grid."""


def amounts(rows: Iterable[Row], phase: str) -> Amounts:
    """Terms at peak of rows of one phase."""
    parts = [_amounts(row) for row in rows]
    stacked = [np.array([part[i] for part in parts]) for i in range(7)]
    return Amounts(phase, *stacked)


def _amounts(row: Row) -> tuple[object, ...]:
    names, place, prefill = NAMES[row.phase], row.place, row.phase == "prefill"
    tokens = row.tokens * row.batch if prefill else row.batch
    added, lines = np.zeros(len(names) - 1), np.zeros((3, GROUPS))
    for g, group in enumerate(place.model.groups):
        shape, terms = shape_of(group), dict(zip(names, (prefill_terms if prefill else decode_terms)(place, group), strict=False))
        lines[:, g] = terms[WEIGHTS].fixed, terms[MATMUL].token * tokens, group.count
        for i, (name, work) in enumerate(terms.items()):
            if name not in (WEIGHTS, MATMUL):
                straight = (
                    work.of_prefill(shape, row.tokens, 0, row.batch)
                    if prefill
                    else work.of_step(shape, row.tokens, row.batch, first_pairs(place, group))
                )
                added[i] += group.count * (straight + work.bends(shape, tokens, short_tokens(place, row.phase)))
    sweep, per_request, _ = head_terms(place)
    return added, lines[0], lines[1], lines[2], (sweep, per_request * row.batch), across_of(place) is Across.TABLES, row.seconds
