"""Ways of serving an agent's next turn: who computes, what moves along which edge, and how long the first token takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce
from operator import or_
from typing import Any

from kvmodel.handoff import handoff
from kvmodel.numeric import Num, maximum, minimum, where
from kvmodel.plan import Plan
from kvmodel.progress import Amounts, progress
from kvmodel.wire import copies_of

LOCAL_PREFILL_SHARE = 0.7
"""Sticky routing prefills on decode only below this share of new tokens.

Dynamo's conditional disaggregation: lib/kv-router/src/conditional_disagg.rs (ai-dynamo 1.6.1)."""


@dataclass(frozen=True, slots=True)
class Edge:
    """Bytes from one node to another. Nodes are `agent`, `prefill`, `decode`, `pool`."""

    source: str
    target: str
    bytes: Num
    """KV bytes, copies included; 0 where text travels."""
    seconds: Num
    """Time on the link, nothing overlapped; 0 where text travels."""
    text: bool = False
    """Prompt or tokens as text."""


@dataclass(frozen=True, slots=True)
class Design:
    """One way of serving the turn. Numbers may be arrays over a swept input."""

    id: str
    """`recompute`, `pool`, `sticky` or `pull-back`."""
    warm: bool
    """Caches are where the design left them; a cold pool serves any worker."""
    unique_bytes: Num
    """Each token's KV counted once, however many edges it takes."""
    wire_bytes: Num
    """Sum over all edges, copies included."""
    edges: tuple[Edge, ...]
    prefill_tokens: Num
    """Tokens computed."""
    prefill_seconds: Num
    """Their computation, on whichever side."""
    wait_seconds: Num
    """Time to the first token that is neither prefill nor the first decode step."""
    step_seconds: Num
    """First decode step, where decode makes the first token."""
    ttft_seconds: Num
    stall_seconds: Num
    """Longest extra wait of one request decoded beside it, if there is one."""
    flop: Num
    """Prefill FLOP over all ranks."""

    def as_dict(self) -> dict[str, Any]:
        """The JSON row of the command line."""
        row = asdict(self)
        row["edges"] = [{"from": e.source, "to": e.target, "bytes": e.bytes, "seconds": e.seconds} for e in self.edges if e.text or e.bytes]
        return row


@dataclass(frozen=True, slots=True)
class Serving:
    """One turn on one plan: history `h`, new tokens `d`."""

    plan: Plan
    amounts: Amounts
    h: Num
    d: Num

    @property
    def s(self) -> Num:
        """Tokens of the prompt."""
        return self.h + self.d

    def recompute(self, prefill_holds: Num, decode_holds: Num) -> Design:
        """Prefill computes the prompt and ships it."""
        edges = (_text("agent", "prefill"), self.edge("prefill", "decode", self.s, decode_holds), _text("decode", "agent"))
        return self.remote("recompute", True, prefill_holds, decode_holds, 0.0, edges)

    def pull_back(self, name: str, prefill_holds: Num, decode_holds: Num) -> Design:
        """Prefill first reads from decode what it lacks."""
        has = maximum(prefill_holds, decode_holds)
        pull = self.edge("decode", "prefill", has, prefill_holds)
        edges = (_text("agent", "prefill"), pull, self.edge("prefill", "decode", self.s, decode_holds), _text("decode", "agent"))
        return self.remote(name, True, has, decode_holds, pull.seconds, edges)

    def pool(self, prefill_holds: Num, decode_holds: Num, pool_holds: Num, *, warm: bool) -> Design:
        """Prefill and decode meet in a pool: what each lacks it reads, what the pool lacks it is given.

        Decode wrote what it generated after the last turn, off this turn's path. Decode reads history
        it lacks while prefill computes, and the new tokens once prefill has written them.
        """
        stored = maximum(pool_holds, decode_holds)
        has = maximum(prefill_holds, stored)
        read = self.edge("pool", "prefill", has, prefill_holds)
        back = self.edge("decode", "pool", stored, pool_holds)
        write = self.edge("prefill", "pool", self.s, stored)
        early = self.edge("pool", "decode", stored, decode_holds)
        late = self.edge("pool", "decode", self.s, maximum(stored, decode_holds))
        fetch = self.edge("pool", "decode", self.s, decode_holds)
        written = self.handoff(has, stored)
        path = read.seconds + written.prefill.seconds + written.transfer.exposed_seconds
        fixed = written.gap_seconds - written.transfer.exposed_seconds
        wait = maximum(path, early.seconds) + late.seconds + fixed - written.prefill.seconds
        edges = (_text("agent", "prefill"), back, read, write, fetch, _text("decode", "agent"))
        return self.design("pool", warm, has, wait, written, edges)

    def sticky(self, prefill_holds: Num, decode_holds: Num, local_tokens: int) -> Design:
        """The turn goes to the decode instance that holds the history; it prefills short turns itself."""
        remote = self.pull_back("sticky", prefill_holds, decode_holds)
        new = maximum(self.s - decode_holds, 1)
        local = (new < local_tokens) & (new < LOCAL_PREFILL_SHARE * self.s)
        time, batch = self.plan.local, self.amounts.batch
        chunk = None if self.plan.chunk is None else maximum(self.plan.chunk // batch, 1)
        seconds = time.prefill(new, self.s - new, batch, chunk)
        slice_ = new if chunk is None else minimum(new, chunk)
        stall = time.prefill(slice_, self.s - slice_, batch)
        edges = tuple(
            replace(e, bytes=where(local, 0.0, e.bytes), seconds=where(local, 0.0, e.seconds)) for e in remote.edges if not e.text
        )
        text = (_text("agent", "decode"), _text("decode", "agent"))
        return Design(
            "sticky",
            True,
            unique_bytes=where(local, 0.0, remote.unique_bytes),
            wire_bytes=where(local, 0.0, remote.wire_bytes),
            edges=text + edges,
            prefill_tokens=where(local, new, remote.prefill_tokens),
            prefill_seconds=where(local, seconds, remote.prefill_seconds),
            wait_seconds=where(local, 0.0, remote.wait_seconds),
            step_seconds=where(local, 0.0, remote.step_seconds),
            ttft_seconds=where(local, seconds, remote.ttft_seconds),
            stall_seconds=where(local, stall, 0.0),
            flop=where(local, time.prefill_flop(new, self.s - new, batch), remote.flop),
        )

    def remote(self, name: str, warm: bool, prefill_holds: Num, decode_holds: Num, before: Num, edges: tuple[Edge, ...]) -> Design:
        """A design whose prefill side computes and ships straight to decode, `before` seconds after arrival."""
        result = self.handoff(prefill_holds, decode_holds)
        return self.design(name, warm, prefill_holds, before + result.gap_seconds, result, edges)

    def design(self, name: str, warm: bool, prefill_has: Num, wait: Num, result: Any, edges: tuple[Edge, ...]) -> Design:
        """A row whose tokens beyond `prefill_has` the prefill side computes."""
        engine = self.plan.engine
        step = result.decode.step_seconds if engine.first_token == "decode" else 0.0 * wait
        released = result.prefill.seconds + wait + step
        if engine.released_by == "prefill":
            released, wait = result.prefill.seconds + (wait - result.gap_seconds), wait - result.gap_seconds
        kv = [edge for edge in edges if not edge.text]
        return Design(
            name,
            warm,
            unique_bytes=self.unique(kv),
            wire_bytes=sum(edge.bytes for edge in kv),
            edges=edges,
            prefill_tokens=maximum(self.s - prefill_has, 1),
            prefill_seconds=result.prefill.seconds,
            wait_seconds=wait,
            step_seconds=step,
            ttft_seconds=released,
            stall_seconds=0.0 * wait,
            flop=result.prefill.flop,
        )

    def handoff(self, prefill_holds: Num, decode_holds: Num) -> Any:
        """The handoff of the whole prompt to a receiver that holds some of it."""
        return handoff(
            self.plan,
            replace(self.amounts, prompt_tokens=self.s, prefill_held_tokens=prefill_holds, decode_held_tokens=decode_holds),
        )

    def edge(self, source: str, target: str, tokens: Num, known: Num) -> Edge:
        """KV of tokens `known` to `tokens`, from one node to another, over the scenario's link.

        Whether an engine leaves out what the other side holds is a question of decode's side alone: prefill and a
        pool find what they have by its hash.
        """
        known = minimum(known, tokens)
        plan = self.plan if target == "decode" else replace(self.plan, engine=self.plan.engine.model_copy(update={"skips_held": True}))
        side = plan.decode if target == "decode" else plan.prefill
        tp = max(1, side.tp // side.attention_dp)
        wires = tuple(
            replace(wire, copies=copies_of(group, plan.engine, tp)) if target != "pool" else replace(wire, copies=1.0, spread_per_byte=0.0)
            for wire, group in zip(plan.wires, plan.model.groups, strict=True)
        )
        moved = replace(self.amounts, prompt_tokens=tokens, prefill_held_tokens=0 * tokens, decode_held_tokens=known, prefill_seconds=1.0)
        p = progress(replace(plan, wires=wires), moved)
        busy = sum(wire.count * x for wire, x in zip(wires, p.x, strict=True))
        return _KvEdge(source, target, p.wire_bytes, busy + plan.lane.latency * (p.wire_bytes > 0), False, p.known, tokens + 0 * known)

    def unique(self, edges: list[Edge]) -> Num:
        """Bytes of all that travels, each counted once: tokens, those inside windows, and states by the prompt they end."""
        spans = [(e.known, e.tokens) for e in edges if isinstance(e, _KvEdge)]
        tokens, states, total = _union(spans), _ends(spans), 0.0
        for count, layer in self.plan.cache.layers:
            bytes_ = tokens * (layer.growing + layer.indexer) + states * layer.state
            if layer.capped:
                bytes_ = bytes_ + layer.capped * _union([(maximum(low, high - layer.cap_tokens), high) for low, high in spans])
            total = total + count * bytes_
        return total * self.amounts.batch


@dataclass(frozen=True, slots=True)
class _KvEdge(Edge):
    known: Num = 0
    tokens: Num = 0


def _text(source: str, target: str) -> Edge:
    return Edge(source, target, 0.0, 0.0, True)


def _union(spans: Sequence[tuple[Num, Num]]) -> Num:
    """Tokens inside any of the ranges."""
    total: Num = 0
    for i, span in enumerate(spans):
        pieces = [span]
        for low, high in spans[:i]:
            pieces = [piece for a, b in pieces for piece in ((a, minimum(b, low)), (maximum(a, high), b))]
        total = total + sum(maximum(b - a, 0) for a, b in pieces)
    return total


def _ends(spans: Sequence[tuple[Num, Num]]) -> Num:
    """Different ends of the ranges that are not empty."""
    total: Num = 0
    for i, (low, high) in enumerate(spans):
        known = reduce(or_, [(b == high) & (b > a) for a, b in spans[:i]], low >= high)
        total = total + where(known, 0, 1)
    return total
