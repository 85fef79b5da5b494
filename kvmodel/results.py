"""What an evaluation says, under the names of the command line's JSON.

Every number is in base units; `evaluate` fills them with plain numbers, `sweep` with arrays of the
swept shape.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from kvmodel.numeric import Num


@dataclass(frozen=True, slots=True)
class Kv:
    """Bytes of the cache. One request and one copy unless a name says otherwise."""

    bytes_per_token: Num
    """Growing bytes a token adds, whole model."""
    window_bytes_max: Num
    """Bytes of window-capped caches once full."""
    state_bytes: Num
    """Fixed state."""
    prompt_bytes: Num
    """Cache of the prompt, exact in tokens."""
    prefill_rank_bytes: Num
    """Cache on one prefill rank, with its copies."""
    decode_rank_bytes: Num
    """Cache on one decode rank, with its copies."""
    wire_bytes: Num
    """Everything that crosses, copies included, whole batch."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """The wire."""

    lanes: Num
    """Links used side by side."""
    bandwidth_bytes_per_s: Num
    """One lane, one direction, achieved, after sharing."""
    messages: Num
    """Messages of one rank on the slowest lane; ranks that share a lane post theirs side by side."""
    seconds: Num
    """Whole batch on the slowest lane, nothing overlapped."""
    exposed_seconds: Num
    """What is left of it after prefill ends."""


@dataclass(frozen=True, slots=True)
class Prefill:
    """Prefill compute."""

    flop: Num
    """FLOP over all ranks, whole batch."""
    seconds: Num
    """Whole batch."""
    low: Num
    """Lower end of the band."""
    high: Num
    """Upper end of the band."""


@dataclass(frozen=True, slots=True)
class Decode:
    """One decode step at a context of the prompt."""

    step_seconds: Num
    """Its duration."""
    low: Num
    """Lower end of the band."""
    high: Num
    """Upper end of the band."""


@dataclass(frozen=True, slots=True)
class SideMemory:
    """Memory of one accelerator of a side."""

    weights_bytes: Num
    """Its share of the weights."""
    cache_bytes: Num
    """Cache of the requests it holds: prompts on prefill, prompts and output on decode."""
    activation_bytes: Num
    """Workspace of the fullest pass."""
    usable_bytes: Num
    """What it can give to the three."""
    fits: Num
    """Whether it does."""
    batch_fits: Num
    """Most requests the side holds at once, 0 where not one fits."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of both sides."""

    prefill: SideMemory
    """At the scenario's batch."""
    decode: SideMemory
    """At the larger of batch and decode batch."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change that alone makes a side fit."""

    side: str
    """`prefill` or `decode`."""
    use: str
    """The change in words."""
    cost: str
    """What comes with it."""
    changes: dict[str, Any]
    """Fields of the scenario and their new values."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One handoff, evaluated."""

    feasible: Num
    """Both sides fit and the engine accepts the layout."""
    reason: str
    """Why not; empty where feasible. Empty in a sweep."""
    kv: Kv
    transfer: Transfer
    prefill: Prefill
    decode: Decode
    gap_seconds: Num
    """From the end of prefill until decode can start: exposed transfer and fixed times."""
    gap_share: Num
    """Gap over TTFT; may pass 1 where prefill releases the first token before the gap."""
    ttft_seconds: Num
    """From arrival to the first token."""
    second_token_seconds: Num
    """From arrival to the second token."""
    tpot_seconds: Num
    """Mean time per output token after the first."""
    request_seconds: Num
    """From arrival to the last token."""
    bound: Any
    """`hidden`, `exposed`, `link` or `nothing`."""
    memory: Memory
    verdict: str = ""
    """The answer in a sentence. Empty in a sweep."""
    band_note: str = ""
    """What a time elsewhere in its band would change of the answer; empty where nothing, and in a sweep."""
    notes: tuple[str, ...] = ()
    """What else a reader should know, in sentences: a prompt beyond the model's context, more lanes than there are. Empty in a sweep."""

    def at(self, index: int) -> Evaluation:
        """The evaluation at one position of a one-dimensional sweep, as plain numbers."""
        picked: Evaluation = pick(self, index)
        return picked

    def as_dict(self) -> dict[str, Any]:
        """Nested dictionaries of plain values, ready for JSON."""
        return asdict(self)


def pick(node: Any, index: int) -> Any:
    """A tree of one-dimensional arrays at one position, as plain numbers."""
    if isinstance(node, tuple):
        return tuple(pick(item, index) for item in node)
    if isinstance(node, np.ndarray):
        return node[index].item()
    if hasattr(node, "__dataclass_fields__"):
        return type(node)(**{name: pick(getattr(node, name), index) for name in node.__dataclass_fields__})
    return node
