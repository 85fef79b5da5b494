"""An agent's next turn: what five ways of serving it move and how long its first token takes.

History tokens 0 to H are known, of which the last g were generated on decode; d tokens are new. Each
design is a choice of who holds which leading tokens: prefill, decode, and a pool reachable by both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from pydantic import Field, ValidationError

from kvmodel.errors import BadScenarioError
from kvmodel.evaluate import amounts_of
from kvmodel.handoff import handoff
from kvmodel.numeric import Num, maximum, minimum, where
from kvmodel.plan import Plan, plan_of
from kvmodel.progress import Amounts, progress
from kvmodel.records.base import Record
from kvmodel.scenario import MAX_PROMPT_TOKENS, Scenario, describe_errors
from kvmodel.wire import copies_of

LOCAL_PREFILL_SHARE = 0.7
"""Sticky routing prefills on decode only below this share of new tokens.

Dynamo's conditional disaggregation: lib/kv-router/src/conditional_disagg.rs (ai-dynamo 1.6.1)."""


class Turn(Record):
    """Inputs of one agent turn, beside those of Scenario."""

    history_tokens: int = Field(30_000, ge=0, le=MAX_PROMPT_TOKENS // 2, title="History tokens")
    """Tokens before this turn, generated ones included."""
    delta_tokens: int = Field(2_000, ge=1, le=MAX_PROMPT_TOKENS // 2, title="New tokens this turn")
    """Tokens the turn adds to the prompt."""
    generated_tokens: int = Field(500, ge=0, le=MAX_PROMPT_TOKENS // 2, title="Generated last turn")
    """Tokens of the history whose KV was born on decode; no more than the history counts."""
    turns: int = Field(1, ge=1, le=200, title="Turns")
    """Turns to add up, the history growing by the new and the generated tokens each time."""
    prefill_held_tokens: int | None = Field(None, ge=0, le=MAX_PROMPT_TOKENS, title="Prefill holds")
    """Leading tokens prefill holds, in place of each design's own assumption."""
    decode_held_tokens: int | None = Field(None, ge=0, le=MAX_PROMPT_TOKENS, title="Decode holds")
    """Leading tokens decode holds, in place of each design's own assumption."""
    pool_held_tokens: int | None = Field(None, ge=0, le=MAX_PROMPT_TOKENS, title="Pool holds")
    """Leading tokens the pool holds, in place of each design's own assumption."""
    local_prefill_tokens: int = Field(2_048, ge=0, le=MAX_PROMPT_TOKENS, title="Local prefill below")
    """Sticky: decode prefills fewer new tokens than this itself."""

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise BadScenarioError(describe_errors(error, type(self))) from None


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
    """Longest extra wait of one request decoded beside it."""
    flop: Num
    """Prefill FLOP over all ranks."""

    def as_dict(self) -> dict[str, Any]:
        """The JSON row of the command line."""
        row = asdict(self)
        row["edges"] = [{"from": e.source, "to": e.target, "bytes": e.bytes, "seconds": e.seconds} for e in self.edges if e.text or e.bytes]
        return row


@dataclass(frozen=True, slots=True)
class Total:
    """One design over all turns."""

    id: str
    warm: bool
    unique_bytes: float
    wire_bytes: float
    flop: float
    ttft_seconds: float
    """Sum of all turns' times to the first token."""


@dataclass(frozen=True, slots=True)
class TurnResult:
    """All designs for one turn, and their totals over several."""

    designs: tuple[Design, ...]
    turns: int
    totals: tuple[Total, ...]

    def as_dict(self) -> dict[str, Any]:
        """Nested dictionaries of plain values, ready for JSON."""
        return {
            "designs": [design.as_dict() for design in self.designs],
            "turns": self.turns,
            "totals": [asdict(total) for total in self.totals],
        }


def agent_turn(scenario: Scenario, turn: Turn | None = None) -> TurnResult:
    """Serve an agent's next turn by each design.

    The scenario gives model, sides, link and engine; its own prompt and held tokens are not used.

    >>> rows = agent_turn(Scenario(), Turn(history_tokens=30_000, delta_tokens=2_000)).designs
    >>> [(row.id, round(row.unique_bytes / 1e9, 2)) for row in rows]
    [('recompute', 10.49), ('pool', 0.82), ('pool', 10.49), ('sticky', 0.0), ('pull-back', 0.82)]

    Raises UnknownNameError and BadScenarioError.
    """
    asked = turn or Turn()
    plan, amounts = plan_of(scenario), amounts_of(scenario)
    last = asked.history_tokens + (asked.turns - 1) * (asked.delta_tokens + asked.generated_tokens) + asked.delta_tokens
    if last > MAX_PROMPT_TOKENS:
        raise BadScenarioError(f"turns: got {asked.turns}, which reach {last:,} tokens; allowed: up to {MAX_PROMPT_TOKENS:,}")
    first = designs(plan, amounts, asked)
    rows = [first]
    for number in range(1, asked.turns):
        history = asked.history_tokens + number * (asked.delta_tokens + asked.generated_tokens)
        rows.append(designs(plan, amounts, asked, history=history))
    totals = tuple(_total([row[i] for row in rows]) for i in range(len(first)))
    return TurnResult(first, asked.turns, totals)


def _total(rows: Sequence[Design]) -> Total:
    sums = {name: float(sum(getattr(row, name) for row in rows)) for name in ("unique_bytes", "wire_bytes", "flop", "ttft_seconds")}
    return Total(rows[0].id, rows[0].warm, **sums)


def designs(plan: Plan, amounts: Amounts, turn: Turn, *, history: Num | None = None, delta: Num | None = None) -> tuple[Design, ...]:
    """All designs; `history` and `delta` may be arrays in place of the turn's own."""
    h = turn.history_tokens if history is None else history
    d = turn.delta_tokens if delta is None else delta
    born = maximum(h - turn.generated_tokens, 0)
    served = _Serving(plan, amounts, h, d)

    def hold(own: Num, override: int | None) -> Num:
        return own if override is None else minimum(override, h) + 0 * own

    p, q, k = turn.prefill_held_tokens, turn.pool_held_tokens, turn.decode_held_tokens
    zero = 0 * (h + d)
    return (
        served.recompute(hold(zero, p), hold(zero, k)),
        served.pool(hold(born, p), hold(h + zero, k), hold(born, q), warm=True),
        served.pool(zero, zero, hold(h + zero, q), warm=False),
        served.sticky(hold(born, p), hold(h + zero, k), turn.local_prefill_tokens),
        served.pull_back("pull-back", hold(born, p), hold(h + zero, k)),
    )


@dataclass(frozen=True, slots=True)
class _Serving:
    """One turn on one plan: history `h`, new tokens `d`."""

    plan: Plan
    amounts: Amounts
    h: Num
    d: Num

    @property
    def s(self) -> Num:
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
        """KV of tokens `known` to `tokens`, from one node to another, over the scenario's link."""
        known = minimum(known, tokens)
        plan = self.plan
        tp = {"decode": plan.decode.tp // plan.decode.attention_dp, "prefill": plan.prefill.tp // plan.prefill.attention_dp, "pool": 1}[
            target
        ]
        wires = tuple(
            replace(wire, copies=copies_of(group, plan.engine, tp) if target != "pool" else 1.0)
            for wire, group in zip(plan.wires, plan.model.groups, strict=True)
        )
        moved = replace(self.amounts, prompt_tokens=tokens, prefill_held_tokens=0 * tokens, decode_held_tokens=known, prefill_seconds=1.0)
        p = progress(replace(plan, wires=wires), moved)
        busy = sum(wire.count * x for wire, x in zip(wires, p.x, strict=True))
        return _KvEdge(source, target, p.wire_bytes, busy + plan.lane.latency * (p.wire_bytes > 0), False, p.known, tokens + 0 * known)

    def unique(self, edges: list[Edge]) -> Num:
        """Bytes of the union of all token ranges that travel, one copy."""
        spans = [(e.known, e.tokens) for e in edges if isinstance(e, _KvEdge)]
        total: Num = 0.0
        for i, (low, high) in enumerate(spans):
            for a, b in _minus((low, high), spans[:i]):
                moved = sum(count * layer.moved(b, a) for count, layer in self.plan.cache.layers)
                total = total + where(b > a, moved * self.amounts.batch, 0.0)
        return total


@dataclass(frozen=True, slots=True)
class _KvEdge(Edge):
    known: Num = 0
    tokens: Num = 0


def _text(source: str, target: str) -> Edge:
    return Edge(source, target, 0.0, 0.0, True)


def _minus(span: tuple[Num, Num], others: Sequence[tuple[Num, Num]]) -> list[tuple[Num, Num]]:
    """A range of tokens less other ranges, as ranges that may be empty (start at or past end)."""
    pieces = [span]
    for low, high in others:
        pieces = [piece for a, b in pieces for piece in ((a, minimum(b, low)), (maximum(a, high), b))]
    return pieces
