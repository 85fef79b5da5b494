"""A second derivation of the handoff's timeline: every part of every chunk, one after the other, in plain Python.

`kvmodel.handoff` finds the end of the wire in closed form. Here nothing is shortened: prefill computes
chunk after chunk and layer after layer, each part becomes ready, and the wire takes the parts in order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from kvmodel import Scenario
from kvmodel.plan import Plan, plan_of
from kvmodel.registry import accelerators, engines, links, transports


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


def ranks_of(scenario: Scenario) -> tuple[int, int]:
    """Ranks that share one request's attention on either side."""
    return (
        max(1, scenario.prefill_tp // scenario.prefill_attention_dp),
        max(1, scenario.decode_tp // scenario.decode_attention_dp),
    )


def own(asked: object, otherwise: object) -> Any:
    """What the scenario asks for, else what engine or link have."""
    return otherwise if asked is None else asked


def layer_messages(scenario: Scenario, plan: Plan, group: int, missing: int) -> float:
    """Messages of one layer of one request on one lane: its blocks as far as they are fragmented, or slices of them."""
    cache, engine = plan.wires[group].cache, engines()[scenario.engine]
    if missing == 0 or not (cache.growing or cache.indexer or cache.capped or cache.state):
        return 0.0
    grows = cache.growing or cache.indexer
    if cache.state and not grows and not cache.capped:
        return 1.0
    kept = missing if grows else min(missing, int(cache.cap_tokens))
    blocks = -(-missing // plan.block)
    if not grows:
        blocks = min(blocks, int(-(-cache.cap_tokens // plan.block)))
    apart, split = own(scenario.fragmentation, engine.fragmentation), own(scenario.kv_split, engine.kv_split)
    heads, (senders, receivers) = getattr(plan.model.groups[group].attention, "kv_heads", 0), ranks_of(scenario)
    partners = 1
    if heads and senders < receivers:
        partners = math.ceil(receivers / senders)
    elif heads and senders > receivers:
        partners = max(1, min(senders, heads) // min(receivers, heads))
    if engine.gathers if scenario.gather is None else scenario.gather == "yes":
        return float(partners)
    if heads and senders != receivers:
        if own(scenario.unequal_tp, engine.unequal_tp) == "tokens":
            return max(float(partners), kept * split * partners)
        return max(float(partners), float(blocks * split * partners))
    together = shares_messages(scenario, plan, group)
    runs = split if heads and not together else 1  # blocks of all layers hold keys and values, as latents do
    at_once = together and (plan.overlap in ("serial", "chunk") or is_short(scenario))
    return max(float(runs), blocks * runs * apart) / (plan.wires[group].count if at_once else 1.0)


def posted_each(scenario: Scenario, plan: Plan, group: int) -> float:
    """Messages of a lane that one rank posts: all, its part of those to a rank of the narrower side, or those of several latents."""
    attention, engine = plan.model.groups[group].attention, engines()[scenario.engine]
    senders, receivers = ranks_of(scenario)
    pushes = own(scenario.direction, engine.direction) == "push"
    if attention.kind in ("mla", "compressed"):
        copied = own(scenario.mla_copies, engine.mla_copies) == "per-rank"
        return float(math.ceil(receivers / senders)) if pushes and copied else 1.0
    heads = getattr(attention, "kv_heads", 0)
    if not heads or (senders <= receivers if pushes else receivers <= senders):
        return 1.0
    return 1 / max(1, min(senders, heads) // min(receivers, heads)) if pushes else 1 / math.ceil(receivers / senders)


def sharers(scenario: Scenario, plan: Plan, group: int) -> int:
    """Ranks over which a layer's bytes spread."""
    kind, copies = plan.model.groups[group].attention.kind, own(scenario.mla_copies, engines()[scenario.engine].mla_copies)
    if kind in ("mla", "compressed") and copies != "split":
        return 1 if copies == "single" else ranks_of(scenario)[1]
    return min(ranks_of(scenario))


def is_short(scenario: Scenario) -> bool:
    """Whether the prompt crosses whole after prefill, whatever the overlap."""
    engines_own = engines()[scenario.engine].serial_below_tokens if scenario.overlap is None else 0
    return bool(scenario.prompt_tokens < own(scenario.serial_below_tokens, engines_own))


def shares_messages(scenario: Scenario, plan: Plan, group: int) -> bool:
    """Whether a message carries a block of all like layers that leave together: not slices of blocks, gathered runs or states."""
    senders, receivers = ranks_of(scenario)
    sliced = senders != receivers and getattr(plan.model.groups[group].attention, "kv_heads", 0)
    gathers = own(scenario.gather, "yes" if engines()[scenario.engine].gathers else "no") == "yes"
    return scenario.cross_layer == "yes" and not sliced and not gathers and plan.model.groups[group].attention.kind != "linear"


def nominal(scenario: Scenario) -> bool:
    """Whether links count as nominal where nothing else is asked for."""
    return engines()[scenario.engine].nominal_link if scenario.nominal_link is None else scenario.nominal_link == "yes"


def latency_of(scenario: Scenario, plan: Plan) -> float:
    """Seconds from the last byte sent to the last byte usable."""
    return float(own(scenario.latency_seconds, 0.0 if nominal(scenario) else links()[scenario.link].latency))


def lane_bandwidth(scenario: Scenario, plan: Plan) -> float:
    """Bytes per second of one lane, before sharing."""
    if scenario.link_gbytes_per_s is not None:
        return scenario.link_gbytes_per_s * 1e9
    link = links()[scenario.link]
    bandwidth = link.bandwidth * own(scenario.achieved, 1.0 if nominal(scenario) else link.achieved)
    if scenario.host_bounce == "yes":
        nodes = min(
            math.ceil(scenario.prefill_tp / accelerators()[scenario.prefill_accelerator].gpus_per_node),
            math.ceil(scenario.decode_tp / accelerators()[scenario.decode_accelerator].gpus_per_node),
        )
        bandwidth = min(bandwidth, transports()["transfer-engine"].constants.host_bandwidth * nodes / plan.lanes)
    return bandwidth


def layer_seconds(scenario: Scenario, plan: Plan, group: int, missing: LayerBytes) -> float:
    """Time one layer of the whole batch keeps its lane busy."""
    moved = missing.total * scenario.batch
    messages = layer_messages(scenario, plan, group, missing.missing) * scenario.batch
    posted = messages * posted_each(scenario, plan, group)
    return lane_seconds(scenario, plan, moved, messages, posted) + beside(scenario, plan, group, moved, plan.wires[group].ratio)


def group_seconds(scenario: Scenario, plan: Plan, layers: tuple[int, ...], sizes: list[LayerBytes]) -> tuple[float, float]:
    """(time, messages) of layers of the whole batch that leave together: those alike share messages where blocks hold all layers."""
    moved = messages = posted = more = 0.0
    for group in layers:
        size = sizes[group].total * scenario.batch
        moved, more = moved + size, more + beside(scenario, plan, group, size, plan.wires[group].ratio)
        alike = layers.count(group) if shares_messages(scenario, plan, group) and not is_short(scenario) else 1
        each = layer_messages(scenario, plan, group, sizes[group].missing) * scenario.batch / alike
        messages, posted = messages + each, posted + each * posted_each(scenario, plan, group)
    return lane_seconds(scenario, plan, moved, messages, posted) + more, messages


def lane_seconds(scenario: Scenario, plan: Plan, moved: float, messages: float, posted: float) -> float:
    """Time that bytes and messages keep the lane, without what is done beside it."""
    engine, link_cost = engines()[scenario.engine], 0.0 if nominal(scenario) else links()[scenario.link].message_seconds
    cost = own(scenario.message_seconds, own(engine.message_seconds, link_cost))
    send = moved / plan.lanes / (lane_bandwidth(scenario, plan) / scenario.shared_by)
    in_flight = own(scenario.outstanding_messages, engine.outstanding_messages)
    if in_flight is not None:
        send = max(send, (send + messages * latency_of(scenario, plan)) / in_flight)
    post = posted * cost / own(scenario.posting_threads, engine.posting_threads)
    overlaps = engine.posts_while_sending if scenario.posts_while_sending is None else scenario.posts_while_sending == "yes"
    return float(max(send, post) if overlaps else send + post)


def beside(scenario: Scenario, plan: Plan, group: int, moved: float, ratio: float) -> float:
    """Staging, compression, host copies, and handing a latent round."""
    engine, sender, receiver = engines()[scenario.engine], plan.prefill.accelerator, plan.decode.accelerator
    gathers = engine.gathers if scenario.gather is None else scenario.gather == "yes"
    copies = own(scenario.staging_copies, engine.staging_copies) + (2 if gathers else 0)
    cache = moved / ratio / sharers(scenario, plan, group)
    staging = copies * 2 * ratio / min(sender.hbm_bandwidth, receiver.hbm_bandwidth)
    narrowing = (
        (1 + ratio) * (1 / sender.hbm_bandwidth + 1 / receiver.hbm_bandwidth) if scenario.wire_dtype not in ("same", plan.kv_dtype) else 0.0
    )
    host = 0.0
    if scenario.host_bounce == "yes":
        achieved = transports()["pcie"].constants.achieved
        host = ratio / (achieved * sender.host_bandwidth) + ratio / (achieved * receiver.host_bandwidth)
    round_trip = 0.0
    ranks = ranks_of(scenario)[1]
    if own(scenario.mla_copies, engine.mla_copies) == "split" and plan.model.groups[group].attention.kind in ("mla", "compressed"):
        round_trip = moved * (ranks - 1) / ranks / receiver.scale_up_bandwidth
    return cache * (staging + narrowing + host) + round_trip


def walk(scenario: Scenario) -> Walk:
    """Step through the scenario's prefill and wire."""
    plan = plan_of(scenario)
    held, known = holdings(scenario, plan)
    s, batch, sequence = scenario.prompt_tokens, scenario.batch, plan.model.sequence
    together = s - held if plan.chunk is None else max(1, plan.chunk // batch)
    cuts = [*range(held, s, together), s]
    sizes = [layer_bytes(plan, g, s, known) for g in range(len(plan.wires))]
    busy = [layer_seconds(scenario, plan, g, size) for g, size in enumerate(sizes)]
    overlap = "serial" if is_short(scenario) else plan.overlap
    head = 0.0 if scenario.prefill_seconds is not None else plan.prefill.time.head(batch)

    def compute(group: int, low: int, high: int) -> float:
        if scenario.prefill_seconds is not None:
            return scenario.prefill_seconds / len(sequence) * (high - low) / (s - held)
        return plan.prefill.time.layers[group].prefill(high - low, low, batch)

    def crosses(group: int, tokens: int, at_end: bool) -> float:
        size = sizes[group]
        return busy[group] * (size.token * tokens + (size.at_end if at_end else 0.0)) / size.total if size.total else 0.0

    early_tokens = max(held - known, 0) if plan.engine.early_prefix else 0
    size_of_group = (scenario.group_layers or 1) if plan.overlap == "layer-group" else 1
    shares = []
    for start in range(0, len(sequence), size_of_group):
        layers = sequence[start : start + size_of_group]
        alone = sum(busy[g] for g in layers)
        together = group_seconds(scenario, plan, layers, sizes)[0] if plan.overlap == "layer-group" else alone
        shares += [together / alone if alone else 1.0] * len(layers)
    early = sum(crosses(g, early_tokens, False) * share for g, share in zip(sequence, shares, strict=True))
    clock, sent, parts = 0.0, early_tokens, []
    for number, (low, high) in enumerate(pairwise(cuts), start=1):
        final, tokens = high == s, max(high - known, 0) - sent
        sent += tokens
        waiting = 0.0
        for layer, g in enumerate(sequence, start=1):
            clock += compute(g, low, high)
            waiting += crosses(g, tokens, final) * shares[layer - 1]
            if overlap != "chunk" and (layer % size_of_group == 0 or layer == len(sequence)):
                parts.append(Part(number, clock, waiting))
                waiting = 0.0
        if overlap == "chunk":
            parts.append(Part(number, clock + (head if final else 0.0), waiting))
    end = clock + head
    if overlap == "serial":
        early, parts = 0.0, [Part(1, end, busy[g] * share) for g, share in zip(sequence, shares, strict=True)]
    total = batch * sum(sizes[g].total for g in sequence)
    alpha = latency_of(scenario, plan) if total else 0.0
    return Walk(tuple(parts), early, len(cuts) - 1, end, alpha, total)
