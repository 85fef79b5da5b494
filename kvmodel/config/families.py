"""Defaults of the configuration classes, by `model_type` (`data/config_defaults.toml`)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal

from pydantic import Field

from kvmodel.records.base import Sourced
from kvmodel.registry import data_folder, read_rows

Variant = Literal["mamba2", "mamba1", "gdn", "kda", "lightning", "conv"]


class Family(Sourced):
    """What the configuration class of one `model_type` means by the fields a file leaves out."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    """The `model_type`."""
    same_as: tuple[str, ...] = ()
    """Other `model_type`s read the same way."""
    windows: Literal["", "all", "upper", "pattern", "ignored"] = ""
    """Which layers a `sliding_window` narrows: all, those from `max_window_layers` on, all but each
    `sliding_window_pattern`-th, none; empty where the file must say."""
    last_full: bool = False
    """The last layer sees everything, whatever the pattern says."""
    layers: Literal["attention", "state", "parallel"] = "attention"
    """What a layer is where the file does not say: attention, a state, or both side by side."""
    state: Variant | None = None
    """Equations of its state layers."""
    bare_states: bool = False
    """Its state layers have no feed-forward block."""
    gated: bool = True
    """Feed-forward blocks have three matrices, not two."""
    shared_expert: bool = False
    """Expert layers also have an expert of `intermediate_size` that every token visits."""
    half_inter: bool = False
    """`intermediate_size` counts gate and up projection together."""
    defaults: Mapping[str, bool | int | str] = Field(default_factory=dict)
    """Class defaults under their usual key."""


UNKNOWN = Family(id="unknown", source="no row of data/config_defaults.toml", checked="2026-11-29")
"""A `model_type` without a row: nothing is assumed of it."""


@cache
def families() -> Mapping[str, Family]:
    """Families by each `model_type` they read."""
    rows = read_rows(data_folder() / "config_defaults.toml", "family", Family)
    return {name: row for row in rows for name in (row.id, *row.same_as)}


def family_of(model_type: str) -> Family:
    """The family of a `model_type`, `UNKNOWN` where there is no row for it."""
    return families().get(model_type) or families().get(model_type.removesuffix("_text")) or UNKNOWN
