"""The inputs that the grid of a static copy varies."""

from __future__ import annotations

from typing import NamedTuple


class Axis(NamedTuple):
    """An input that the grid varies."""

    option: str
    """Name of the command line's option."""
    fields: tuple[str, ...]
    """Fields of a scenario that take its value."""
    default: str
    """Values as typed, with commas between."""
    what: str


AXES = (
    Axis("models", ("model",), "llama-3-70b,llama-3.1-8b,deepseek-v3,qwen3-235b-a22b,gpt-oss-120b", "models, or all"),
    Axis("links", ("link",), "all", "links, or all"),
    Axis(
        "tp",
        ("prefill_tp", "decode_tp"),
        "1,2,4,8",
        "tensor-parallel degrees, both sides alike; what does not fit is given with its reason",
    ),
    Axis(
        "gpu",
        ("prefill_accelerator", "decode_accelerator"),
        "h100-sxm,h200-sxm,b300-sxm",
        "accelerators, both sides alike; a model takes the first on which a TP fits",
    ),
    Axis("kv-dtype", ("kv_dtype",), "auto,fp8", "KV dtypes"),
    Axis("engine", ("engine",), "ideal", "engines, or all; presets have their own"),
    Axis("overlap", ("overlap",), "none", "overlaps; none is the engine's own"),
)
