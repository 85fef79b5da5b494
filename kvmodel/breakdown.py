"""Where the time goes: a transfer and the gap after prefill split into named terms that add up.

The terms follow the lane of `kvmodel.lane`: what the same bytes would take on an ideal link, and then everything
that the engine, the link and the layout add to it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kvmodel.handoff import handoff
from kvmodel.lane import reached
from kvmodel.layer_groups import Counts, group_load, sent_together
from kvmodel.numeric import Num
from kvmodel.plan import Plan
from kvmodel.progress import Amounts, cut, lane_at

NAMES: dict[str, str] = {
    "bytes": "Bytes at nominal bandwidth",
    "copies": "Copies for more ranks",
    "achieved": "Bandwidth not reached",
    "ceiling": "Host memory's ceiling",
    "sharing": "Other handoffs on the lane",
    "waiting": "Waiting for messages in flight",
    "posting": "Posting messages",
    "staging": "Staging copies",
    "host": "Copies to and from the host",
    "quantize": "Quantizing",
    "dequantize": "Dequantizing",
    "spread": "Gathering parts on every rank",
    "latency": "Link latency",
    "hidden": "Hidden behind prefill",
    "handoff": "Fixed handoff",
    "admission": "Admission to decode",
    "handshake": "Handshake",
}
"""Terms by id, as the page writes them, in the order in which they add up."""


@dataclass(frozen=True, slots=True)
class Term:
    """One named part of a time."""

    id: str
    """A key of `NAMES`."""
    seconds: Num
    """Its part; `hidden` is negative."""

    @property
    def name(self) -> str:
        """As the page writes it."""
        return NAMES[self.id]


def transfer_terms(plan: Plan, a: Amounts) -> tuple[Term, ...]:
    """Terms of `transfer.seconds`: the whole batch on the slowest lane, nothing overlapped.

    >>> from kvmodel import Scenario
    >>> from kvmodel.evaluate import amounts_of
    >>> from kvmodel.plan import plan_of
    >>> scenario = Scenario(engine="vllm-nixl")
    >>> terms = transfer_terms(plan_of(scenario), amounts_of(scenario))
    >>> [(term.id, round(term.seconds * 1e3, 2)) for term in terms if term.seconds]
    [('bytes', 53.69), ('achieved', 2.24), ('posting', 7.96), ('latency', 0.01)]
    """
    parts = [(times, _group_terms(plan, a, counts)) for times, counts in sent_together(plan, a)]
    sums = {key: sum(times * terms[key] for times, terms in parts) for key in parts[0][1]}
    moves = sum(wire.count * wire.bytes(a.prompt_tokens, cut(plan, a)[2]) for wire in plan.wires) > 0
    return (*(Term(key, seconds) for key, seconds in sums.items()), Term("latency", plan.lane.latency * moves))


def gap_terms(plan: Plan, a: Amounts) -> tuple[Term, ...]:
    """Terms of `gap_seconds`: the transfer, less what hides behind prefill, and what the engine adds to any handoff."""
    transfer = handoff(plan, a).transfer
    zero, engine = 0.0 * transfer.seconds, plan.engine
    return (
        *transfer_terms(plan, a),
        Term("hidden", _settled(transfer.exposed_seconds - transfer.seconds, transfer.seconds)),
        Term("handoff", engine.handoff_seconds + zero),
        Term("admission", engine.admission_seconds + zero),
        Term("handshake", plan.handshake_seconds + zero),
    )


def _settled(difference: Num, of: Num) -> Num:
    """A difference without what rounding leaves of one that is nothing."""
    return difference * (abs(difference) > 1e-9 * of)


def message_bytes(plan: Plan, a: Amounts) -> Num:
    """Mean bytes of a message; 0 where nothing moves. Ranks that share a lane have messages of their own.

    >>> from kvmodel import Scenario
    >>> from kvmodel.evaluate import amounts_of
    >>> from kvmodel.plan import plan_of
    >>> scenario = Scenario(engine="vllm-nixl", fragmentation=1.0)  # 16 tokens of one of 8 heads, keys and values, bf16
    >>> message_bytes(plan_of(scenario), amounts_of(scenario))
    8192.0
    """
    known, messages = cut(plan, a)[2], handoff(plan, a).transfer.messages
    rank = sum(w.count * w.bytes(a.prompt_tokens, known) / w.rank_count for w in plan.wires) * a.batch
    some = messages > 0
    return some * rank / (messages + (1 - some))


def _group_terms(plan: Plan, a: Amounts, counts: Counts) -> dict[str, Num]:
    """Terms of layers that leave together, in order."""
    known, lane = cut(plan, a)[2], lane_at(plan, a)
    moved, messages, posted, rank, spread = group_load(plan, a, counts)
    once = sum(count * replace(plan.wires[index], copies=1.0).bytes(a.prompt_tokens, known) for index, count in counts) * a.batch
    nominal, free = _bandwidths(plan, a)
    send = moved / plan.lanes * a.shared_by / lane.bandwidth
    waiting = lane.waiting(send, messages)
    extra = plan.extra
    return {
        "bytes": once / plan.lanes / nominal,
        "copies": (moved - once) / plan.lanes / nominal,
        "achieved": moved / plan.lanes * (1 / free - 1 / nominal),
        "ceiling": moved / plan.lanes * (1 / lane.bandwidth - 1 / free),
        "sharing": moved / plan.lanes * (a.shared_by - 1) / lane.bandwidth,
        "waiting": waiting,
        "posting": lane.posting(send + waiting, posted),
        "staging": rank * extra.staging,
        "host": rank * extra.host,
        "quantize": rank * extra.quantize,
        "dequantize": rank * extra.dequantize,
        "spread": spread,
    }


def _bandwidths(plan: Plan, a: Amounts) -> tuple[Num, Num]:
    """(nominal, reached without host memory's ceiling); what was measured is both."""
    if a.link_gbytes_per_s is not None:
        measured = a.link_gbytes_per_s * 1e9
        return measured, measured
    return plan.link.bandwidth, reached(plan.link, plan.engine)
