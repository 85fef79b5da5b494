"""The handoff itself: one implementation for numbers and for arrays.

`evaluate` and `sweep` both call `handoff`; the only difference is whether the amounts are plain
numbers or NumPy arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kvmodel.bands import Band, prefill_band, step_band
from kvmodel.capacity import capacity, rank_bytes
from kvmodel.layer_groups import Grouped, sent_in_groups
from kvmodel.numeric import Num, maximum, where
from kvmodel.plan import Plan
from kvmodel.progress import Amounts, Pace, Progress, lane_at, progress, request_chunk, sent_whole
from kvmodel.results import Decode, Evaluation, Kv, Prefill, Transfer
from kvmodel.timeline import WireState


@dataclass(frozen=True, slots=True)
class Course:
    """What follows from prefill, wire and decode step together."""

    wire_seconds: Num
    """Whole batch on the slowest lane, nothing overlapped."""
    messages: Num
    """Messages on that lane."""
    exposed: Num
    """What is left of it after prefill."""
    bound: Any
    gap: Num
    ttft: Num
    second: Num
    """Second token since arrival."""

    @property
    def gap_share(self) -> Num:
        """Gap over TTFT."""
        return self.gap / self.ttft


def course(plan: Plan, a: Amounts, p: Progress, step: Num, tpot: Num) -> Course:
    """The course of a handoff whose prefill and wire progress as `p` says, with decode steps of `step` seconds."""
    alpha = plan.lane.latency * (p.wire_bytes > 0)
    wire_seconds, messages = sum(wire.count * x for wire, x in zip(plan.wires, p.x, strict=True)) + alpha, p.messages
    if plan.overlap == "layer-group":
        sent = sent_in_groups(plan, a, p)
        wire_seconds, messages = sent.seconds, sent.messages
        exposed, bound = _exposed_in_groups(plan, a, p, sent)
    else:
        exposed, bound = _exposed(plan, a, p, wire_seconds, alpha, step)
    gap = exposed + fixed_seconds(plan)
    return Course(wire_seconds, messages, exposed, bound, gap, *first_tokens(plan, p.prefill_seconds, gap, step, tpot))


def handoff(plan: Plan, a: Amounts) -> Evaluation:
    """Evaluate a plan. `reason`, `verdict` and the notes are left empty."""
    p = progress(plan, a)
    step, tpot = step_times(plan, a)
    c = course(plan, a, p, step, tpot)
    memory, cache = capacity(plan, a), plan.cache
    low, high = _prefill_ends(plan, a, p)
    return Evaluation(
        feasible=memory.prefill.fits & memory.decode.fits & (not plan.refusal),
        reason="",
        kv=Kv(
            bytes_per_token=cache.bytes_per_token,
            window_bytes_max=cache.window_bytes_max,
            state_bytes=cache.state_bytes,
            prompt_bytes=cache.prompt_bytes(a.prompt_tokens),
            prefill_rank_bytes=rank_bytes(plan.prefill, a.prompt_tokens),
            decode_rank_bytes=rank_bytes(plan.decode, a.prompt_tokens),
            wire_bytes=p.wire_bytes,
        ),
        transfer=Transfer(plan.lanes, lane_at(plan, a).bandwidth / a.shared_by, c.messages, c.wire_seconds, c.exposed),
        prefill=Prefill(
            flop=plan.prefill.time.prefill_flop(p.new, p.held, a.batch),
            seconds=p.prefill_seconds,
            low=low,
            high=high,
        ),
        decode=Decode(step, *_step_ends(plan, a, step)),
        gap_seconds=c.gap,
        gap_share=c.gap_share,
        ttft_seconds=c.ttft,
        second_token_seconds=c.second,
        tpot_seconds=tpot,
        request_seconds=where(a.output_tokens <= 1, c.ttft, c.second + (a.output_tokens - 2) * tpot),
        bound=c.bound,
        memory=memory,
    )


def _prefill_ends(plan: Plan, a: Amounts, p: Progress) -> Band:
    """Ends of prefill's band; itself where it was measured."""
    if a.prefill_seconds is not None:
        return p.prefill_seconds, p.prefill_seconds
    return prefill_band(plan.prefill.time, p.prefill_seconds, p.new, p.held, a.batch, request_chunk(plan, a))


def _step_ends(plan: Plan, a: Amounts, step: Num) -> Band:
    """Ends of the decode step's band; itself where it was measured."""
    return (step, step) if a.decode_step_seconds is not None else step_band(plan.decode.time, step, a.prompt_tokens, a.decode_batch)


def fixed_seconds(plan: Plan) -> float:
    """What the engine adds to any handoff: dispatch, admission, and the handshake of a first contact."""
    return plan.engine.handoff_seconds + plan.engine.admission_seconds + plan.handshake_seconds


def step_times(plan: Plan, a: Amounts) -> tuple[Num, Num]:
    """(one decode step at the prompt's length, mean time per output token after the first)."""
    if a.decode_step_seconds is not None:
        step = a.decode_step_seconds + 0.0 * a.prompt_tokens
        return step, step
    time = plan.decode.time
    return time.step(a.prompt_tokens, a.decode_batch), time.mean_step(a.prompt_tokens, a.output_tokens, a.decode_batch)


def first_tokens(plan: Plan, prefill: Num, gap: Num, step: Num, tpot: Num) -> tuple[Num, Num]:
    """(first token, second token) since arrival."""
    if plan.engine.released_by == "prefill":
        return prefill, prefill + gap + tpot
    ttft = prefill + gap + (step if plan.engine.first_token == "decode" else 0.0)
    return ttft, ttft + tpot


def _exposed(plan: Plan, a: Amounts, p: Progress, whole: Num, alpha: Num, step: Num) -> tuple[Num, Any]:
    """(transfer left after prefill, what bounds it) under the plan's overlap."""
    nothing = p.wire_bytes <= 0
    if plan.overlap == "serial":
        return whole, where(nothing, "nothing", "exposed")
    both = plan.overlap == "layer-both"
    end, last_ready, last_x = wire_end(plan, a, p, alpha, step / plan.model.layers if both else None)
    late = end.done - step - p.prefill_seconds if both else end.busy + alpha - p.prefill_seconds
    exposed = where(nothing, 0.0 * whole, maximum(late, 0.0))
    in_step = end.busy <= last_ready * (1 + 1e-12) + last_x * (1 + 1e-9)
    bound = where(in_step, "hidden", "link")
    if plan.overlap == "chunk":
        bound = where(p.new <= request_chunk(plan, a), "exposed", bound)
    return _short_sent_whole(plan, a, whole, exposed, where(nothing, "nothing", bound))


def _exposed_in_groups(plan: Plan, a: Amounts, p: Progress, sent: Grouped) -> tuple[Num, Any]:
    """The same where layers leave in groups; one group of all layers in one pass hides nothing."""
    chunk = request_chunk(plan, a)
    one = (sent.layers >= plan.model.layers) & (True if chunk is None else p.new <= chunk)
    bound = where(one, "exposed", where(sent.in_step, "hidden", "link"))
    return _short_sent_whole(plan, a, sent.seconds, sent.exposed_seconds, where(p.wire_bytes <= 0, "nothing", bound))


def _short_sent_whole(plan: Plan, a: Amounts, whole: Num, exposed: Num, bound: Any) -> tuple[Num, Any]:
    """What is exposed and its bound, with prompts that the engine sends whole after prefill."""
    if not plan.serial_below:
        return exposed, bound
    short = sent_whole(plan, a) & (bound != "nothing")
    return where(short, whole, exposed), where(short, "exposed", bound)


def wire_end(plan: Plan, a: Amounts, p: Progress, alpha: Num, decode_layer: Num | None) -> tuple[WireState, Num, Num]:
    """(state when all has crossed, when the last part was ready, its time on the wire)."""
    pace = Pace(plan, a, p)
    before = pace.before_last_chunk()
    if plan.overlap == "chunk":
        ready = p.prefill_seconds
        x = pace.total_x - pace.sent(pace.chunks)
        return WireState(maximum(before, ready) + x, 0.0), ready, x
    state = pace.layers_of(pace.chunks, WireState(before, 0.0), alpha, decode_layer)
    group = plan.runs[-1][0]
    head = 0.0 if a.prefill_seconds is not None else p.scale * plan.prefill.time.head(a.batch)
    return state, p.prefill_seconds - head, pace.layer_x(pace.chunks, group)
