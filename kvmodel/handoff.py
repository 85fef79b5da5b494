"""The handoff itself: one implementation for numbers and for arrays.

`evaluate` and `sweep` both call `handoff`; the only difference is whether the amounts are plain
numbers or NumPy arrays.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from kvmodel.compute import GRID_BELOW_MEASURED
from kvmodel.memory import RankMemory
from kvmodel.numeric import Num, ceil_div, maximum, minimum, where
from kvmodel.plan import Plan, Side
from kvmodel.results import Decode, Evaluation, Kv, Prefill, Transfer
from kvmodel.timeline import Run, WireState, advance


@dataclass(slots=True)
class Amounts:
    """The numbers of a scenario; each may be an array, shapes broadcast."""

    prompt_tokens: Num
    output_tokens: Num
    batch: Num
    prefill_held_tokens: Num
    decode_held_tokens: Num
    shared_by: Num
    prefill_seconds: Num | None
    decode_step_seconds: Num | None
    link_gbytes_per_s: Num | None
    decode_batch: Num


AMOUNTS = tuple(Amounts.__dataclass_fields__)


@dataclass(slots=True)
class Progress:
    """Prefill and wire as functions of the chunks done; what the timeline is made of."""

    new: Num
    """Tokens prefill computes, per request."""
    held: Num
    """Tokens it starts from."""
    known: Num
    """Tokens decode holds."""
    prefill_seconds: Num
    """All of prefill."""
    layer_seconds: list[Num]
    """Prefill of one layer, by group, all chunks added."""
    x: list[Num]
    """Wire time of one layer, by group."""
    wire_bytes: Num
    messages: Num


def cut(plan: Plan, a: Amounts) -> tuple[Num, Num, Num]:
    """(tokens prefill computes, tokens it starts from, tokens decode holds), whole blocks held.

    Engines compute at least the last prompt token; a prefix longer than the prompt counts as the prompt.
    """
    s = a.prompt_tokens
    new = maximum(s - minimum(a.prefill_held_tokens // plan.block * plan.block, s), 1)
    known = minimum(a.decode_held_tokens // plan.block * plan.block, s) if plan.engine.skips_held else 0 * s
    return new, s - new, known


def progress(plan: Plan, a: Amounts) -> Progress:
    """Prefill and wire times of the scenario's layers."""
    new, held, known = cut(plan, a)
    time = plan.prefill.time
    layers = time.prefill_layers(new, held, a.batch, _request_chunk(plan, a))
    if a.prefill_seconds is None:
        seconds = sum(layer.count * t for layer, t in zip(time.layers, layers, strict=True)) + time.head(a.batch)
    else:
        seconds = a.prefill_seconds + 0.0 * new
        layers = [seconds / plan.model.layers for _ in layers]
    lane = plan.lane if a.link_gbytes_per_s is None else replace(plan.lane, bandwidth=a.link_gbytes_per_s * 1e9)
    ranks = min(plan.prefill.tp, plan.decode.tp)
    x, total, messages = [], 0.0, 0.0
    for wire in plan.wires:
        layer_bytes = wire.bytes(a.prompt_tokens, known) * a.batch
        layer_messages = wire.messages(a.prompt_tokens, known, plan.block) * a.batch
        x.append(lane.busy(layer_bytes / plan.lanes, layer_messages, layer_bytes / wire.ratio / ranks, a.shared_by))
        total, messages = total + wire.count * layer_bytes, messages + wire.count * layer_messages
    return Progress(new, held, known, seconds, layers, x, total, messages)


def _request_chunk(plan: Plan, a: Amounts) -> Num | None:
    """Tokens of each request in one prefill pass: requests of a batch advance together."""
    return None if plan.chunk is None else maximum(plan.chunk // a.batch, 1)


def handoff(plan: Plan, a: Amounts) -> Evaluation:
    """Evaluate a plan. `reason` and `verdict` are left empty."""
    p = progress(plan, a)
    step, tpot = step_times(plan, a)
    alpha = plan.lane.latency * (p.wire_bytes > 0)
    busy = sum(wire.count * x for wire, x in zip(plan.wires, p.x, strict=True))
    whole = busy + alpha
    exposed, bound = _exposed(plan, a, p, whole, alpha, step)
    gap = exposed + plan.engine.handoff_seconds + plan.engine.admission_seconds
    ttft, second = _first_tokens(plan, p.prefill_seconds, gap, step, tpot)
    request = where(a.output_tokens <= 1, ttft, second + (a.output_tokens - 2) * tpot)
    prefill_rank, decode_rank = rank_bytes(plan.prefill, a.prompt_tokens), rank_bytes(plan.decode, a.prompt_tokens)
    fits = prefill_memory(plan, a).fits & decode_memory(plan, a).fits
    lane_bandwidth = plan.lane.bandwidth if a.link_gbytes_per_s is None else a.link_gbytes_per_s * 1e9
    prefill_error = plan.prefill.time.error if a.prefill_seconds is None else 0.0
    above = (1 + prefill_error) / (1 - GRID_BELOW_MEASURED) if a.prefill_seconds is None else 1.0
    step_error = plan.decode.time.error if a.decode_step_seconds is None else 0.0
    cache = plan.cache
    return Evaluation(
        feasible=fits & (not plan.refusal),
        reason="",
        kv=Kv(
            bytes_per_token=cache.bytes_per_token,
            window_bytes_max=cache.window_bytes_max,
            state_bytes=cache.state_bytes,
            prompt_bytes=cache.prompt_bytes(a.prompt_tokens),
            prefill_rank_bytes=prefill_rank,
            decode_rank_bytes=decode_rank,
            wire_bytes=p.wire_bytes,
        ),
        transfer=Transfer(plan.lanes, lane_bandwidth / a.shared_by, p.messages, whole, exposed),
        prefill=Prefill(
            flop=plan.prefill.time.prefill_flop(p.new, p.held, a.batch),
            seconds=p.prefill_seconds,
            low=p.prefill_seconds * max(0.0, 1 - prefill_error),
            high=p.prefill_seconds * above,
        ),
        decode=Decode(step, step * max(0.0, 1 - step_error), step * (1 + step_error)),
        gap_seconds=gap,
        gap_share=gap / ttft,
        ttft_seconds=ttft,
        second_token_seconds=second,
        tpot_seconds=tpot,
        request_seconds=request,
        bound=bound,
    )


def step_times(plan: Plan, a: Amounts) -> tuple[Num, Num]:
    """(one decode step at the prompt's length, mean time per output token after the first)."""
    if a.decode_step_seconds is not None:
        step = a.decode_step_seconds + 0.0 * a.prompt_tokens
        return step, step
    time = plan.decode.time
    return time.step(a.prompt_tokens, a.decode_batch), time.mean_step(a.prompt_tokens, a.output_tokens, a.decode_batch)


def _first_tokens(plan: Plan, prefill: Num, gap: Num, step: Num, tpot: Num) -> tuple[Num, Num]:
    """(first token, second token) since arrival."""
    if plan.engine.released_by == "prefill":
        return prefill, prefill + gap + tpot
    ttft = prefill + gap + (step if plan.engine.first_token == "decode" else 0.0)
    return ttft, ttft + tpot


def rank_bytes(side: Side, tokens: Num) -> Num:
    """Cache of one request on one rank of the fullest pipeline stage."""
    return reduce(maximum, [stage.prompt_bytes(tokens) for stage in side.stages])


def prefill_memory(plan: Plan, a: Amounts) -> RankMemory:
    """What a prefill accelerator holds: weights and the batch's prompts."""
    side = plan.prefill
    cache = ceil_div(a.batch, side.attention_dp) * rank_bytes(side, a.prompt_tokens)
    return RankMemory(side.rank_weights, cache, side.usable_bytes)


def decode_memory(plan: Plan, a: Amounts) -> RankMemory:
    """What a decode accelerator holds: weights and the decoded requests with all their output."""
    side = plan.decode
    requests = ceil_div(maximum(a.batch, a.decode_batch), side.attention_dp)
    return RankMemory(side.rank_weights, requests * rank_bytes(side, a.prompt_tokens + a.output_tokens), side.usable_bytes)


def _exposed(plan: Plan, a: Amounts, p: Progress, whole: Num, alpha: Num, step: Num) -> tuple[Num, Any]:
    """(transfer left after prefill, what bounds it) under the plan's overlap."""
    nothing = p.wire_bytes <= 0
    if plan.overlap == "serial":
        return whole, where(nothing, "nothing", "exposed")
    both = plan.overlap == "layer-both"
    end, last_ready, last_x = wire_end(plan, a, p, alpha, step / plan.model.layers if both else None)
    late = end.done - step - p.prefill_seconds if both else end.busy + alpha - p.prefill_seconds
    exposed = where(nothing, 0.0 * whole, maximum(late, 0.0))
    in_step = end.busy <= last_ready + last_x * (1 + 1e-9)
    bound = where(in_step, "hidden", "link")
    if plan.overlap == "chunk":
        bound = where(p.new <= _request_chunk(plan, a), "exposed", bound)
    return exposed, where(nothing, "nothing", bound)


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
    head = 0.0 if a.prefill_seconds is not None else plan.prefill.time.head(a.batch)
    return state, p.prefill_seconds - head, pace.layer_x(pace.chunks, group)


class Pace:
    """How far prefill and wire are after each chunk of the prompt; chunk numbers may be arrays.

    Chunks get no cheaper as the context grows and their bytes are equal until the last one, which
    also carries windows and state. So the path that decides when the wire is free before the last
    chunk turns at the first chunk that sends, the one after it, or the last but one.
    """

    def __init__(self, plan: Plan, a: Amounts, p: Progress) -> None:
        self.plan, self.a, self.p = plan, a, p
        chunk = _request_chunk(plan, a)
        self.chunk = p.new if chunk is None else minimum(chunk, p.new)
        self.chunks = ceil_div(p.new, self.chunk)
        missing = maximum(a.prompt_tokens - p.known, 1)
        self.token_x = [x * _growing_share(wire, a.prompt_tokens, p.known) / missing for wire, x in zip(plan.wires, p.x, strict=True)]
        self.total_x = sum(wire.count * x for wire, x in zip(plan.wires, p.x, strict=True))
        self.total_token_x = sum(wire.count * x for wire, x in zip(plan.wires, self.token_x, strict=True))
        self._memo: dict[int, list[Num]] = {}

    def sent_tokens(self, j: Num) -> Num:
        """Tokens whose growing cache has been sent before chunk `j` (1 is the first) is."""
        p = self.p
        ahead = maximum(p.held + minimum((j - 1) * self.chunk, p.new) - p.known, 0)
        return ahead if self.plan.engine.early_prefix else ahead * (j > 1)

    def sent(self, j: Num) -> Num:
        """Wire time of what was sent before chunk `j` is."""
        return self.total_token_x * self.sent_tokens(j)

    def layer_x(self, j: Num, group: int) -> Num:
        """Wire time of one layer's part of chunk `j`."""
        rate = self.token_x[group]
        last = self.p.x[group] - rate * self.sent_tokens(self.chunks)
        return where(j >= self.chunks, last, rate * (self.sent_tokens(j + 1) - self.sent_tokens(j)))

    def compute(self, j: Num) -> list[Num]:
        """Prefill seconds of one layer, by group, over the first `j` chunks."""
        p, tokens = self.p, minimum(j * self.chunk, self.p.new)
        if self.a.prefill_seconds is not None:
            return [t * tokens / p.new for t in p.layer_seconds]
        time = self.plan.prefill.time
        return time.prefill_layers(tokens, p.held, self.a.batch, self.chunk)

    def computed(self, j: Num) -> Num:
        """Prefill seconds of all layers over the first `j` chunks."""
        return sum(wire.count * t for wire, t in zip(self.plan.wires, self.compute(j), strict=True))

    def before_last_chunk(self) -> Num:
        """When the wire is free of all chunks but the last."""
        early = self.sent(self.chunks) if self.plan.engine.early_prefix else 0.0 * self.total_x
        if self.plan.chunk is None:
            return early
        first = maximum((self.p.known - self.p.held) // self.chunk, 0) + 1
        free = early
        for j in (first, first + 1, self.chunks - 1):
            turn = maximum(minimum(j, self.chunks - 1), 1)
            free = maximum(free, where(self.chunks > 1, self._through(turn), 0.0))
        return free

    def _through(self, j: Num) -> Num:
        """When the wire is free of all chunks but the last, if it was idle before chunk `j`."""
        later = self.sent(self.chunks)
        if self.plan.overlap == "chunk":
            return self.computed(j) + later - self.sent(j)
        idle = WireState(0.0 * self.total_x, 0.0)
        return self.layers_of(j, idle, 0.0, None).busy + later - self.sent(j + 1)

    def layers_of(self, j: Num, state: WireState, alpha: Num, decode_layer: Num | None) -> WireState:
        """The state after the layers of chunk `j`."""
        before, after = self.compute(j - 1), self.compute(j)
        clock = sum(wire.count * t for wire, t in zip(self.plan.wires, before, strict=True))
        for group, count in self.plan.runs:
            each = after[group] - before[group]
            run = Run(count, clock + each, each, self.layer_x(j, group))
            state = advance(state, run, latency=alpha, decode_layer=decode_layer)
            clock = clock + count * each
        return state


def _growing_share(wire: Any, tokens: Num, known: Num) -> Num:
    """Share of a layer's wire time that grows token by token; the rest goes with the last chunk."""
    growing = wire.cache.growing * wire.ratio * wire.copies + wire.cache.indexer * wire.copies
    if not growing:
        return 0.0
    if not (wire.cache.capped or wire.cache.state):
        return 1.0
    return growing * (tokens - known) / maximum(wire.bytes(tokens, known), 1.0)
