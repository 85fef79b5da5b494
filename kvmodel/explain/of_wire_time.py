"""Times on the wire explained: the transfer, what is left of it after prefill, and the gap until decode starts."""

from __future__ import annotations

from collections.abc import Sequence

from kvmodel.breakdown import Term, gap_terms, transfer_terms
from kvmodel.display import time_text
from kvmodel.explain.bands import band_of
from kvmodel.explain.figures import Case
from kvmodel.explain.given import asked, chunk_inputs, computed, of_engine, of_figure, of_link, once, stated
from kvmodel.explain.record import Formula, Given, Part, parts_of
from kvmodel.layer_groups import group_load, posted_by_a_rank, sent_in_groups, sent_together
from kvmodel.progress import progress
from kvmodel.registry import transports

SYMBOLS = {
    "bytes": "B ÷ (n·W)",
    "copies": "(B − B₁) ÷ (n·W)",
    "achieved": "B·(1 ÷ aW − 1 ÷ W) ÷ n",
    "ceiling": "B·(1 ÷ W_host − 1 ÷ aW) ÷ n",
    "sharing": "B·(s − 1) ÷ (n·aW)",
    "waiting": "max((m·α + send) ÷ q − send, 0)",
    "posting": "m·o",
    "staging": "B_rank·k_staging",
    "host": "B_rank·k_host",
    "quantize": "B_rank·k_narrow",
    "dequantize": "B_rank·k_widen",
    "spread": "B·k_gather",
    "latency": "α",
    "hidden": "− hidden",
    "handoff": "t_handoff",
    "admission": "t_admission",
    "handshake": "t_handshake",
}
"""Terms of `kvmodel.breakdown` in symbols."""
OVERLAPS = {
    "serial": "Nothing crosses before prefill ends.",
    "chunk": "Chunks cross while later chunks compute; the last one cannot hide.",
    "layer": "Layers cross while later layers compute: busy(i) = max(ready(i), busy(i − 1)) + x(i); only the logits hide any of the last.",
    "layer-group": "Groups of layers cross while later layers compute: busy(i) = max(ready(i), busy(i − 1)) + x(i); the last cannot hide.",
    "layer-both": "Layers cross while later layers compute, and decode starts on layers that have arrived.",
}


def of_transfer(case: Case) -> Formula:
    """The whole batch on the slowest lane, nothing overlapped."""
    terms = transfer_terms(case.plan, case.amounts)
    r = case.result
    parts = _parts(case, terms)
    words = "Bytes over the bandwidth of all lanes, and what engine and link add to it; the link's latency once, after the last byte."
    symbols = "t_wire = " + " + ".join(part.symbol for part in parts)
    filled = ""
    if [term.id for term in terms if term.seconds] == ["bytes"]:
        filled = f"{r.kv.wire_bytes / 1e9:.4g} GB ÷ ({r.transfer.lanes} × {r.transfer.bandwidth_bytes_per_s / 1e9:.4g} GB/s)"
    return Formula(words, symbols, parts, once(wire_inputs(case)), filled)


def of_exposed(case: Case) -> Formula:
    """What is left of the transfer after prefill."""
    terms = gap_terms(case.plan, case.amounts)
    kept = tuple(term for term in terms if term.id not in ("handoff", "admission", "handshake"))
    words = f"The transfer, less what hides behind prefill. {_overlap_words(case)}"
    given = [*_hidden_inputs(case), *wire_inputs(case), *_overlap_inputs(case)]
    band = band_of(case, lambda course: course.exposed)
    return Formula(words, "t_exposed = t_wire − hidden", _parts(case, kept), once(given), _filled(given[:2]), band=band)


def of_gap(case: Case) -> Formula:
    """From the end of prefill until decode can start."""
    plan, s = case.plan, case.scenario
    words = f"The exposed transfer and the fixed times of the engine. {_overlap_words(case)}"
    hidden, fixed = _hidden_inputs(case), fixed_inputs(case)
    given = [*hidden, *wire_inputs(case), *_overlap_inputs(case), *fixed]
    parts = _parts(case, gap_terms(plan, case.amounts))
    band = band_of(case, lambda course: course.gap)
    symbols = "gap = t_wire − hidden + t_handoff + t_admission" + (" + t_handshake" if s.contact == "first" else "")
    return Formula(words, symbols, parts, once(given), _filled([*hidden, *(row for row in fixed if row.unit == "s")]), band=band)


def _hidden_inputs(case: Case) -> list[Given]:
    """The transfer, and what of it prefill hides."""
    hidden = -next(float(term.seconds) for term in gap_terms(case.plan, case.amounts) if term.id == "hidden")
    return [of_figure(case, "transfer.seconds", "t_wire"), computed("Hidden behind prefill", "hidden", hidden + 0.0, "s")]


def _filled(rows: Sequence[Given]) -> str:
    """Times put in: the transfer, less what hides, and what is fixed."""
    whole, hidden, *fixed = (time_text(row.value) for row in rows)
    return " + ".join([f"{whole} − {hidden}", *fixed])


def fixed_inputs(case: Case) -> list[Given]:
    """Fixed times of the engine."""
    plan, s = case.plan, case.scenario
    engine = plan.engine
    rows = [
        of_engine(plan, s, "handoff_seconds", "t_handoff", engine.handoff_seconds, "s"),
        of_engine(plan, s, "admission_seconds", "t_admission", engine.admission_seconds, "s"),
    ]
    first = [asked(s, "contact", ""), of_engine(plan, s, "handshake_seconds", "t_handshake", plan.handshake_seconds, "s")]
    return [*rows, *(first if s.contact == "first" else [])]


def wire_inputs(case: Case) -> list[Given]:
    """What the transfer's terms come from; those of terms that are nothing are left out."""
    plan, s = case.plan, case.scenario
    some = {term.id: float(term.seconds) for term in transfer_terms(plan, case.amounts) if term.seconds}
    lanes = lane_inputs(case)
    rows = [of_figure(case, "kv.wire_bytes", "B")]
    if "copies" in some:
        rows.append(computed("One copy of them", "B₁", some["bytes"] * plan.lanes * lanes[-1].value, "B", "without copies for more ranks"))
    rows += lanes
    if s.link_gbytes_per_s is None:
        share = 1.0 if plan.engine.nominal_link else plan.link.achieved
        rows.append(of_link(plan, s, "achieved", "a", share, "", plan.link.achieved_source))
    rows += [asked(s, "shared_by", "s")] if s.shared_by > 1 else []
    rows += [of_link(plan, s, "latency_seconds", "α", plan.lane.latency, "s")] if some.keys() & {"latency", "waiting"} else []
    rows += _message_inputs(case) if some.keys() & {"posting", "waiting"} else []
    return [*rows, *_copy_inputs(case, set(some))]


def lane_inputs(case: Case) -> list[Given]:
    """Lanes and the bandwidth of one, nominal or as measured."""
    plan, s = case.plan, case.scenario
    lanes = asked(s, "lanes", "n") if s.lanes != "auto" else computed("Lanes", "n", plan.lanes, "", "NICs of the narrower side")
    if s.link_gbytes_per_s is not None:
        return [lanes, asked(s, "link_gbytes_per_s", "W", "B/s", s.link_gbytes_per_s * 1e9)]
    return [lanes, stated(f"Nominal bandwidth, {plan.link.short}", "W", plan.link.bandwidth, "B/s", plan.link, "links.toml")]


def _message_inputs(case: Case) -> list[Given]:
    plan, s, r, engine = case.plan, case.scenario, case.result, case.plan.engine
    cost = plan.lane.message_seconds
    if s.message_seconds is None and engine.message_seconds is None:
        message = stated("Cost of a message", "o", cost, "s", plan.link, "links.toml")
    else:
        message = of_engine(plan, s, "message_seconds", "o", cost, "s")
    posted, m = posted_by_a_rank(plan, case.amounts), r.transfer.messages
    own = computed("Messages that a rank posts", "p", posted, "", "its own part, or one for each rank it writes to")
    rows = [
        computed("Messages on a lane", "m", m, "", "layers × blocks × messages for K and V × fragmentation"),
        *([own] if posted != m else []),
        message,
        of_engine(plan, s, "posts_while_sending", "", "yes" if plan.lane.posts_while_sending else "no"),
        of_engine(plan, s, "block_tokens", "", plan.block, "tokens"),
        of_engine(plan, s, "fragmentation", "", engine.fragmentation),
        of_engine(plan, s, "kv_split", "", engine.kv_split),
    ]
    rows += [of_engine(plan, s, "posting_threads", "", engine.posting_threads)] if engine.posting_threads > 1 else []
    rows += [of_engine(plan, s, "outstanding_messages", "q", engine.outstanding_messages)] if engine.outstanding_messages else []
    return rows


def _copy_inputs(case: Case, some: set[str]) -> list[Given]:
    """What copies through memory and the host, compression and gathering come from."""
    plan, s, extra = case.plan, case.scenario, case.plan.extra
    rows: list[Given] = []
    if some & {"staging", "host", "quantize", "dequantize"}:
        loads = [(times, group_load(plan, case.amounts, counts)) for times, counts in sent_together(plan, case.amounts)]
        rank = sum(times * load.rank_bytes for times, load in loads)
        rows.append(computed("Bytes of one rank, uncompressed", "B_rank", rank, "B"))
        for side in dict.fromkeys((plan.prefill.accelerator, plan.decode.accelerator)):
            rows.append(stated(f"Memory bandwidth, {side.name}", "", side.hbm_bandwidth, "B/s", side, "accelerators.toml"))
    if "staging" in some:
        rows.append(
            computed("Staging, a byte", "k_staging", extra.staging, "s/B", "a read and a write for each pass through device memory")
        )
        rows.append(of_engine(plan, s, "staging_copies", "", plan.engine.staging_copies))
        rows.append(of_engine(plan, s, "gather", "", "yes" if plan.engine.gathers else "no"))
    if some & {"host", "ceiling"}:
        pcie, node = transports()["pcie"], transports()["transfer-engine"]
        rows.append(stated("Share of PCIe reached", "", pcie.constants.achieved, "", pcie, "transports.toml"))
        rows.append(stated("Host memory of a node", "", node.constants.host_bandwidth, "B/s", node, "transports.toml"))
    if "host" in some:
        rows.append(computed("Host copies, a byte", "k_host", extra.host, "s/B", "one copy from the device, one to it"))
    if some & {"quantize", "dequantize"}:
        rows.append(computed("Quantizing, a byte", "k_narrow", extra.quantize, "s/B", "read wide, write narrow"))
        rows.append(computed("Dequantizing, a byte", "k_widen", extra.dequantize, "s/B", "read narrow, write wide"))
    if "spread" in some:
        gather = max(wire.spread_per_byte for wire in plan.wires)
        rows.append(computed("Gathering, a byte", "k_gather", gather, "s/B", "all-gather over the decode node's own fabric"))
    return rows


def _overlap_words(case: Case) -> str:
    plan = case.plan
    if plan.serial_below and case.amounts.prompt_tokens < plan.serial_below:
        return f"This engine sends prompts below {plan.serial_below:,} tokens whole after prefill."
    return OVERLAPS[plan.overlap]


def _overlap_inputs(case: Case) -> list[Given]:
    plan, s = case.plan, case.scenario
    rows = [of_engine(plan, s, "overlap", "", plan.overlap)]
    if plan.overlap == "serial":
        return rows
    rows.append(of_figure(case, "prefill.seconds", "t_prefill"))
    if plan.overlap == "layer-group":
        sent = sent_in_groups(plan, case.amounts, progress(plan, case.amounts))
        found = computed("Layers of a group", "", int(sent.layers), "", "the size that exposes least")
        rows.append(found if s.group_layers is None else asked(s, "group_layers", ""))
    return [*rows, *chunk_inputs(plan, s)]


def _parts(case: Case, terms: tuple[Term, ...]) -> tuple[Part, ...]:
    own = dict(SYMBOLS)
    if any(term.id == "copies" and term.seconds for term in terms):
        own["bytes"] = "B₁ ÷ (n·W)"
    post = "m·o" if posted_by_a_rank(case.plan, case.amounts) == case.result.transfer.messages else "p·o"
    own["posting"] = f"max({post} − send, 0)" if case.plan.lane.posts_while_sending else post
    return parts_of([(term.name, own[term.id], float(term.seconds), "") for term in terms])
