"""What an accelerator family achieves of its peaks: constants of the time model and their error."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kvmodel.records.base import Record, Sourced

Constants = Annotated[tuple[float, ...], Field(min_length=1, max_length=10)]


class PhaseFit(Record):
    """Constants of one phase for one weight format."""

    constants: Constants
    """Non-negative factors on the physical terms of `kvmodel.compute`, in their order."""
    median_error: float = Field(ge=0, lt=1)
    """Median relative error on rows of dense models left out of the fit."""
    p90_error: float = Field(ge=0, lt=1)
    """90th percentile of the same."""
    rows: int = Field(ge=1)
    """Rows of dense models fitted."""
    experts_p90_error: float = Field(ge=0, lt=1)
    """90th percentile on rows of a model with experts, left out likewise."""
    experts_rows: int = Field(ge=0)
    """Rows of a model with experts fitted; 0 where the constants of experts are another family's."""


class Derates(Sourced):
    """Fitted constants of one accelerator family."""

    id: str
    """Id that `Accelerator.derates` names."""
    prefill_bf16: PhaseFit
    """Prefill, BF16 weights."""
    prefill_fp8: PhaseFit | None = None
    """Prefill, FP8 weights; None where FP8 is not multiplied natively."""
    decode_bf16: PhaseFit
    """Decode, BF16 weights."""
    decode_fp8: PhaseFit | None = None
    """Decode, FP8 weights."""
