r"""A handoff that fails on the way: what it costs the request, and the memory held meanwhile.

An attempt of length :math:`T` fails with probability :math:`p` at a share :math:`u` of its bytes, spread
evenly. With :math:`E` of the transfer exposed, the failure comes :math:`\max(0, E - (1 - u) T)` after
prefill ends, :math:`E^2 / 2T` in the mean, and is known :math:`d` later. From there

* retry sends everything again: :math:`T`, and :math:`p / (1 - p)` more failures of :math:`T / 2 + d` each;
* resume sends what is missing: :math:`T / 2` in the mean, and :math:`p / (1 - p)` more waits of :math:`d`;
* recompute prefills the prompt on decode's accelerators, which makes the first token, and moves nothing.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from kvmodel.handoff import handoff
from kvmodel.numeric import Num, maximum
from kvmodel.plan import Plan, Side
from kvmodel.progress import Amounts, cut, request_chunk
from kvmodel.results import Evaluation
from kvmodel.traffic import Traffic


@dataclass(frozen=True, slots=True)
class Failure:
    """Handoffs that fail, in the mean; numbers may be arrays."""

    ttft_seconds: Num
    """Without a failure."""
    failed_ttft_seconds: Num
    """Mean time to the first token of the requests whose first attempt fails."""
    expected_ttft_seconds: Num
    """Mean over all requests."""
    resent_bytes: Num
    """Mean bytes that cross again, or in vain, for each request."""
    prefill_held_bytes: Num
    """Memory that prefill keeps until decode has its cache, on all ranks that hold it, whole batch."""
    prefill_held_seconds: Num
    """Mean time it keeps it after prefill ends."""
    prefill_worst_seconds: Num
    """The longest: nobody comes for it, and the lease runs out."""
    decode_reserved_bytes: Num
    """Memory that decode keeps free for it on all ranks that hold it, whole batch."""
    decode_reserved_seconds: Num
    """Mean time it is kept before the first token."""

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


def failure(plan: Plan, a: Amounts, traffic: Traffic) -> Failure:
    """What failures cost; any amount may be an array.

    Where prefill releases the first token, times are to the second one, which is the first that waits.
    """
    e = handoff(plan, a)
    waits = e.second_token_seconds if plan.engine.released_by == "prefill" else e.ttft_seconds
    whole, exposed, p = e.transfer.seconds, e.transfer.exposed_seconds, traffic.failure_probability
    known = exposed * exposed / (2 * maximum(whole, 1e-300)) + traffic.detection_seconds
    again = _again(plan, a, traffic, e)
    moves = e.kv.wire_bytes > 0
    late = (known + again - exposed) * moves
    extra = p * late
    waste = {"retry": 0.5, "resume": 0.0, "recompute": 0.5}[traffic.recovery]
    failures = p if traffic.recovery == "recompute" else p / (1 - p)
    early = e.prefill.seconds if plan.overlap != "serial" else 0.0
    held = (1 - p) * exposed + p * known if traffic.recovery == "recompute" else exposed + extra
    return Failure(
        ttft_seconds=waits,
        failed_ttft_seconds=waits + late,
        expected_ttft_seconds=waits + extra,
        resent_bytes=waste * failures * e.kv.wire_bytes,
        prefill_held_bytes=e.kv.prefill_rank_bytes * _holders(plan.prefill) * a.batch,
        prefill_held_seconds=held,
        prefill_worst_seconds=maximum(exposed, traffic.lease_seconds + 0.0 * exposed),
        decode_reserved_bytes=e.kv.decode_rank_bytes * _holders(plan.decode) * a.batch,
        decode_reserved_seconds=early + e.gap_seconds + extra,
    )


def _holders(side: Side) -> int:
    """Ranks that hold a part, or a copy, of one request's cache: those of its attention replica, on each stage."""
    return side.attention_ranks * side.rank_count // side.tp


def _again(plan: Plan, a: Amounts, traffic: Traffic, e: Evaluation) -> Num:
    """Mean time from knowing of the first failure until decode has the cache."""
    p, whole = traffic.failure_probability, e.transfer.seconds
    more = p / (1 - p)
    if traffic.recovery == "retry":
        return whole + more * (whole / 2 + traffic.detection_seconds)
    if traffic.recovery == "resume":
        return whole / 2 + more * traffic.detection_seconds
    _, _, known = cut(plan, a)
    makes_token = plan.engine.first_token == plan.engine.released_by == "decode"
    return prefill_on_decode(plan, a, maximum(a.prompt_tokens - known, 1)) - (e.decode.step_seconds if makes_token else 0.0)


def prefill_on_decode(plan: Plan, a: Amounts, new: Num) -> Num:
    """Seconds in which decode's accelerators prefill the last `new` tokens of each prompt themselves."""
    return plan.local.prefill(new, a.prompt_tokens - new, a.batch, request_chunk(plan, a))
