"""A second derivation of the handoff's timeline: every part of every chunk, one after the other, in plain Python.

`kvmodel.handoff` finds the end of the wire in closed form. Here nothing is shortened: prefill computes
chunk after chunk and layer after layer, each part becomes ready, and the wire takes the parts in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from kvmodel import Scenario
from kvmodel.plan import Plan, plan_of


@dataclass(frozen=True)
class Part:
    """What becomes ready at once."""

    chunk: int
    ready: float
    x: float


@dataclass(frozen=True)
class Walk:
    """The timeline of one scenario."""

    parts: tuple[Part, ...]
    early: float
    """Wire time of a prefix sent before the first part."""
    last_chunk: int
    prefill_end: float
    alpha: float
    bytes: float

    def wire_ends(self) -> list[float]:
        """When each part has left."""
        busy, ends = self.early, []
        for part in self.parts:
            busy = max(part.ready, busy) + part.x
            ends.append(busy)
        return ends

    def exposed(self) -> float:
        """What is left of the wire after prefill."""
        return max(0.0, self.wire_ends()[-1] + self.alpha - self.prefill_end) if self.bytes else 0.0

    def exposed_both(self, step: float, layers: int) -> float:
        """The same where decode starts a layer as soon as it has arrived, and a step takes `step`."""
        done = 0.0
        for part, end in zip(self.parts, self.wire_ends(), strict=True):
            if part.chunk == self.last_chunk:
                done = max(end + self.alpha, done) + step / layers
        return max(0.0, done - step - self.prefill_end) if self.bytes else 0.0


@dataclass(frozen=True)
class LayerBytes:
    """Bytes of one layer of one request on the wire."""

    token: float
    """For each missing token."""
    at_end: float
    """Windows, sums of tokens not merged yet, and state, which are final only when the prompt is."""
    missing: int

    @property
    def total(self) -> float:
        return self.token * self.missing + self.at_end


def holdings(scenario: Scenario, plan: Plan) -> tuple[int, int]:
    """(tokens prefill starts from, tokens decode keeps), in whole blocks; prefill computes at least one token."""
    s, block = scenario.prompt_tokens, plan.block
    held = min(scenario.prefill_held_tokens - scenario.prefill_held_tokens % block, s - 1)
    known = min(scenario.decode_held_tokens - scenario.decode_held_tokens % block, s)
    return held, known if plan.engine.skips_held else 0


def layer_bytes(plan: Plan, group: int, tokens: int, known: int) -> LayerBytes:
    """Bytes of one layer: growing, window-capped and fixed, copies and compression included."""
    wire, missing = plan.wires[group], tokens - known
    c = wire.cache
    token = (c.growing * wire.ratio + c.indexer) * wire.copies
    window = (min(missing, c.cap_tokens) * c.capped * wire.ratio + min(missing, c.tail_tokens) * c.tail) * wire.copies
    return LayerBytes(token, window + (c.state if missing else 0.0), missing)


def layer_messages(plan: Plan, group: int, missing: int) -> float:
    """Messages of one layer of one request: its blocks, as far as they are fragmented, and at least one."""
    cache = plan.wires[group].cache
    per_block = plan.engine.kv_split * plan.engine.fragmentation
    if missing == 0 or not (cache.growing or cache.indexer or cache.capped or cache.state):
        return 0.0
    if cache.state:
        return 1.0
    blocks = -(-missing // plan.block)
    if cache.capped and not (cache.growing or cache.indexer):
        blocks = min(blocks, int(-(-cache.cap_tokens // plan.block)))
    return max(1.0, blocks * per_block)


def layer_seconds(scenario: Scenario, plan: Plan, group: int, missing: LayerBytes) -> float:
    """Time one layer of the whole batch keeps its lane busy."""
    nominal, engine, link = plan.engine.nominal_link, plan.engine, plan.link
    bandwidth = link.bandwidth * (1.0 if nominal else link.achieved)
    if scenario.link_gbytes_per_s is not None:
        bandwidth = scenario.link_gbytes_per_s * 1e9
    cost = engine.message_seconds if engine.message_seconds is not None else 0.0 if nominal else link.message_seconds
    moved = missing.total * scenario.batch
    send = moved / plan.lanes / (bandwidth / scenario.shared_by)
    post = layer_messages(plan, group, missing.missing) * scenario.batch * cost / engine.posting_threads
    busy = max(send, post) if engine.posts_while_sending else send + post
    ratio = plan.wires[group].ratio
    out, into = plan.prefill.accelerator.hbm_bandwidth, plan.decode.accelerator.hbm_bandwidth
    cache = moved / ratio / min(scenario.prefill_tp, scenario.decode_tp)
    staging = engine.staging_copies * 2 * ratio / min(out, into)
    narrowing = (1 + ratio) * (1 / out + 1 / into) if ratio != 1 else 0.0
    return busy + cache * (staging + narrowing)


def walk(scenario: Scenario) -> Walk:
    """Step through the scenario's prefill and wire."""
    plan = plan_of(scenario)
    held, known = holdings(scenario, plan)
    s, batch, sequence = scenario.prompt_tokens, scenario.batch, plan.model.sequence
    together = s - held if plan.chunk is None else max(1, plan.chunk // batch)
    cuts = [*range(held, s, together), s]
    sizes = [layer_bytes(plan, g, s, known) for g in range(len(plan.wires))]
    busy = [layer_seconds(scenario, plan, g, size) for g, size in enumerate(sizes)]
    overlap, head = plan.overlap, 0.0 if scenario.prefill_seconds is not None else plan.prefill.time.head(batch)

    def compute(group: int, low: int, high: int) -> float:
        if scenario.prefill_seconds is not None:
            return scenario.prefill_seconds / len(sequence) * (high - low) / (s - held)
        return plan.prefill.time.layers[group].prefill(high - low, low, batch)

    def crosses(group: int, tokens: int, at_end: bool) -> float:
        size = sizes[group]
        return busy[group] * (size.token * tokens + (size.at_end if at_end else 0.0)) / size.total if size.total else 0.0

    early_tokens = max(held - known, 0) if plan.engine.early_prefix else 0
    early = sum(crosses(g, early_tokens, False) for g in sequence)
    clock, sent, parts = 0.0, early_tokens, []
    for number, (low, high) in enumerate(pairwise(cuts), start=1):
        final, tokens = high == s, max(high - known, 0) - sent
        sent += tokens
        whole_chunk = 0.0
        for g in sequence:
            clock += compute(g, low, high)
            whole_chunk += crosses(g, tokens, final)
            if overlap != "chunk":
                parts.append(Part(number, clock, crosses(g, tokens, final)))
        if overlap == "chunk":
            parts.append(Part(number, clock + (head if final else 0.0), whole_chunk))
    end = clock + head
    if overlap == "serial":
        early, parts = 0.0, [Part(1, end, busy[g]) for g in sequence]
    total = batch * sum(sizes[g].total for g in sequence)
    alpha = (0.0 if plan.engine.nominal_link else plan.link.latency) if total else 0.0
    return Walk(tuple(parts), early, len(cuts) - 1, end, alpha, total)
