"""How far prefill and the wire are, layer by layer and chunk by chunk: what the handoff's timeline is made of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from kvmodel.lane import Lane
from kvmodel.numeric import Num, ceil_div, maximum, minimum, where
from kvmodel.plan import Plan
from kvmodel.records.model import Chunked
from kvmodel.timeline import Run, WireState, advance
from kvmodel.wire import LayerWire


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


class Load(NamedTuple):
    """What one layer, or layers that leave together, put on the wire for the whole batch."""

    moved: Num
    """Bytes on the wire."""
    messages: Num
    """On one lane."""
    posted: Num
    """Messages that one rank posts."""
    rank_bytes: Num
    """Bytes of one rank's cache before compression."""
    spread: Num
    """Seconds until every receiving rank has it, beyond the link."""


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
    scale: float = 1.0
    """Prefill time over the modelled one."""

    def stretched(self, factor: float) -> Progress:
        """The same with prefill `factor` times as long."""
        layers = [factor * t for t in self.layer_seconds]
        return replace(self, prefill_seconds=factor * self.prefill_seconds, layer_seconds=layers, scale=factor * self.scale)


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
    layers = time.prefill_layers(new, held, a.batch, request_chunk(plan, a))
    if a.prefill_seconds is None:
        seconds = sum(layer.count * t for layer, t in zip(time.layers, layers, strict=True)) + time.head(a.batch)
    else:
        seconds = a.prefill_seconds + 0.0 * new
        layers = [seconds / plan.model.layers for _ in layers]
    x, total, messages = [], 0.0, 0.0
    for wire in plan.wires:
        load = layer_load(plan, a, wire, known)
        x.append(load_seconds(plan, a, load))
        total, messages = total + wire.count * load.moved, messages + wire.count * load.messages
    return Progress(new, held, known, seconds, layers, x, total, messages)


def layer_load(plan: Plan, a: Amounts, wire: LayerWire, known: Num) -> Load:
    """What one layer puts on the wire."""
    moved = wire.bytes(a.prompt_tokens, known) * a.batch
    messages = wire.messages(a.prompt_tokens, known, plan.block) * a.batch
    if wire.whole_share != 1.0 and plan.serial_below:
        messages = messages * where(sent_whole(plan, a), wire.whole_share, 1.0)
    return Load(moved, messages, messages * wire.posted_share, moved / wire.ratio / wire.rank_count, moved * wire.spread_per_byte)


def load_seconds(plan: Plan, a: Amounts, load: Load) -> Num:
    """Seconds for which a load keeps its lane."""
    return lane_at(plan, a).busy(load.moved / plan.lanes, load.messages, load.rank_bytes, a.shared_by, posted=load.posted) + load.spread


def sent_whole(plan: Plan, a: Amounts) -> Any:
    """Whether a prompt is so short that its engine sends it whole after prefill, whatever the overlap."""
    return a.prompt_tokens < plan.serial_below


def lane_at(plan: Plan, a: Amounts) -> Lane:
    """The plan's lane, with the bandwidth that was measured in place of its own."""
    return plan.lane if a.link_gbytes_per_s is None else replace(plan.lane, bandwidth=a.link_gbytes_per_s * 1e9)


def request_chunk(plan: Plan, a: Amounts) -> Num | None:
    """Tokens of each request in one prefill pass: requests of a batch advance together."""
    return None if plan.chunk is None else maximum(plan.chunk // a.batch, 1)


class Pace:
    """How far prefill and wire are after each chunk of the prompt; chunk numbers may be arrays.

    Chunks get no cheaper as the context grows and their bytes are equal until the last one, which
    also carries windows and state. So the path that decides when the wire is free before the last
    chunk turns at the first chunk that sends, the one after it, or the last but one. Only attention
    to local chunks gets cheaper again, where one of them begins: a path may turn there too.
    """

    def __init__(self, plan: Plan, a: Amounts, p: Progress) -> None:
        self.plan, self.a, self.p = plan, a, p
        chunk = request_chunk(plan, a)
        self.chunk = p.new if chunk is None else minimum(chunk, p.new)
        self.chunks = ceil_div(p.new, self.chunk)
        missing = maximum(a.prompt_tokens - p.known, 1)
        self.token_x = [x * _growing_share(wire, a.prompt_tokens, p.known) / missing for wire, x in zip(plan.wires, p.x, strict=True)]
        self.total_x = sum(wire.count * x for wire, x in zip(plan.wires, p.x, strict=True))
        self.total_token_x = sum(wire.count * x for wire, x in zip(plan.wires, self.token_x, strict=True))

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
        p = self.p
        if self.plan.chunk is None:
            return [j * t for t in p.layer_seconds]
        tokens = minimum(j * self.chunk, p.new)
        if self.a.prefill_seconds is not None:
            return [t * tokens / p.new for t in p.layer_seconds]
        layers = self.plan.prefill.time.prefill_layers(tokens, p.held, self.a.batch, self.chunk)
        return layers if p.scale == 1 else [p.scale * t for t in layers]

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
        for j in (first, first + 1, self.chunks - 1, *self._cheaper()):
            turn = maximum(minimum(j, self.chunks - 1), 1)
            free = maximum(free, where(self.chunks > 1, self._through(turn), 0.0))
        return free

    def _cheaper(self) -> list[Num]:
        """Chunks around the first and the last position where attention to local chunks begins anew.

        In between a turn would lose: the layers with full attention (one in four for Llama 4) get
        dearer by more than one local chunk can give back.
        """
        turns: list[Num] = []
        for local in {g.attention.chunk for g in self.plan.model.groups if isinstance(g.attention, Chunked)}:
            first, last = maximum(self.p.held, self.p.known) // local + 1, self.a.prompt_tokens // local
            turns += [(local * n - self.p.held) // self.chunk + after for n in (first, last) for after in (0, 1, 2)]
        return turns

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
        layers = [(t - start, self.layer_x(j, group)) for group, (start, t) in enumerate(zip(before, after, strict=True))]
        for group, count in self.plan.runs:
            each, x = layers[group]
            state = advance(state, Run(count, clock + each, each, x), alpha, decode_layer)
            clock = clock + count * each
        return state


def _growing_share(wire: LayerWire, tokens: Num, known: Num) -> Num:
    """Share of a layer's wire time that grows token by token; the rest goes with the last chunk."""
    growing = wire.cache.growing * wire.ratio * wire.copies + wire.cache.indexer * wire.copies
    if not growing:
        return 0.0
    if not (wire.cache.capped or wire.cache.state):
        return 1.0
    return growing * (tokens - known) / maximum(wire.bytes(tokens, known), 1.0)
