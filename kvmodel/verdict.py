"""The answer in a sentence.

A sentence is a tuple of (text, meaning) parts: the one decisive quantity carries the meaning that
colours it (`exposed`, `wire`, ...), all else carries an empty one. A third item names the figure of
`kvmodel.explain` that explains the quantity.
"""

from __future__ import annotations

from collections.abc import Sequence

from kvmodel import registry
from kvmodel.breakdown import transfer_terms
from kvmodel.display import bytes_text, count_text, share_text, shared_time_unit, time_text
from kvmodel.flips import FIRST, GAP_MARK, Flip, flip_of
from kvmodel.handoff import handoff
from kvmodel.parts import timeline_parts
from kvmodel.plan import Plan, plan_of
from kvmodel.progress import Amounts
from kvmodel.reason import reason_of
from kvmodel.results import Evaluation
from kvmodel.scenario import Scenario

Sentence = tuple[tuple[str, str] | tuple[str, str, str], ...]

LONGEST = 125
"""Characters of an answer sentence."""

FAR = 0.5
"""Share of a link's bandwidth below which engines are far from what the ideal one has."""


def plain(sentence: Sentence) -> str:
    """A sentence without its colours."""
    return "".join(part[0] for part in sentence)


def first_short(said: Sequence[Sentence]) -> Sentence:
    """The first of several sentences that is short enough; the last where none is."""
    return next((one for one in said if len(plain(one)) <= LONGEST), said[-1])


def supposed(sentence: Sentence, *, feasible: bool) -> Sentence:
    """A sentence that holds only if the scenario could run, said as such where it cannot."""
    if feasible:
        return sentence
    head, *rest = sentence
    text = head[0] if head[0][1:2].isupper() else f"{head[0][:1].lower()}{head[0][1:]}"
    return (("If this could run: ", ""), (text, *head[1:]), *rest)


def answer(plan: Plan, amounts: Amounts, scenario: Scenario, result: Evaluation) -> Sentence:
    """The answer sentence of one handoff, with what the band of a time would change of it where there is room."""
    return doubted(plan, amounts, scenario, result, flip_of(plan, amounts, result))


def doubted(plan: Plan, amounts: Amounts, scenario: Scenario, result: Evaluation, flip: Flip | None) -> Sentence:
    """The answer sentence with a flip that is known, or with what engines reach of a link where the ideal one has all of it."""
    said, doubts = _answer(plan, amounts, scenario, result), [flip.clauses] if flip else []
    reached = reached_share(scenario)
    if reached is not None and result.feasible and result.bound != "nothing":
        most = f"engines get at most {share_text(reached)}"
        doubts = [(f"real {most} of the link’s rate", f"{most} of the link’s rate", f"{most} of the rate"), *doubts]
    ways = (said, _answer(plan, amounts, scenario, result, brief=True)) if doubts else ()
    tried = (with_clause(one, clause) for clauses in doubts for one in ways for clause in clauses)
    return next((one for one in tried if one is not None), said)


def with_clause(sentence: Sentence, clause: str) -> Sentence | None:
    """A sentence that ends in a clause of doubt; None where that would make it too long."""
    if len(plain(sentence)) + len(clause) + 2 > LONGEST:
        return None
    *before, last = sentence
    return (*before, (f"{last[0].removesuffix('.')}; {clause}.", last[1]))


def reached_share(scenario: Scenario) -> float | None:
    """The share of its link's bandwidth that engines reach, where the scenario's takes all of it and that is less than half."""
    link = registry.links()[scenario.link]
    far = plan_of(scenario).engine.nominal_link and scenario.link_gbytes_per_s is None and scenario.achieved is None
    return link.achieved if far and link.achieved < FAR else None


def verdict_and_note(plan: Plan, amounts: Amounts, scenario: Scenario, result: Evaluation) -> tuple[str, str]:
    """The answer as plain text, and what the band of a time would change of it in a sentence of its own."""
    flip = flip_of(plan, amounts, result)
    return plain(doubted(plan, amounts, scenario, result, flip)), flip.note if flip else ""


def _answer(plan: Plan, amounts: Amounts, scenario: Scenario, result: Evaluation, *, brief: bool = False) -> Sentence:
    """The first sentence that holds; a `brief` one leaves out the share of the whole request, or another way to send."""
    reason = result.reason or (reason_of(plan, amounts, scenario) if not result.feasible else "")
    if reason:
        return ((reason[0].upper() + reason[1:] + ".", ""),)
    exposed, ttft, fixed = result.transfer.exposed_seconds, result.ttft_seconds, result.gap_seconds - result.transfer.exposed_seconds
    if result.bound == "nothing":
        return (("Decode already holds this prompt: ", ""), (bytes_text(0), "wire", "kv.wire_bytes"), (" to move.", ""))
    if result.bound == "hidden":
        return _hidden(plan, result, exposed, fixed, _chunked(plan, amounts, scenario, result))
    if result.bound == "link":
        return _link_bound(plan, amounts, result)
    latency = plan.lane.latency
    posting = _posting(plan, amounts)
    overhead = fixed + latency
    if overhead > result.transfer.seconds - latency:
        return (
            (f"At {count_text(scenario_tokens(amounts))} tokens the fixed cost, ", ""),
            (time_text(overhead), "exposed", "gap_seconds"),
            (", outweighs the bytes.", ""),
        )
    if posting > result.transfer.seconds / 2:
        many = count_text(result.transfer.messages)
        return (
            (f"Messages, not bytes, fill the wire: {many} a rank add ", ""),
            (time_text(posting), "exposed", "transfer.seconds"),
            (" to the handoff.", ""),
        )
    if result.gap_share <= GAP_MARK:
        of = "" if plan.engine.released_by == "prefill" else f" of {time_text(ttft)} to the first token"
        share = "" if brief and of else f", {share_text(result.gap_seconds / result.request_seconds)} of the whole request"
        return (
            ("The handoff adds ", ""),
            (time_text(result.gap_seconds), "exposed", "gap_seconds"),
            (f"{of}{share}.", ""),
        )
    otherwise = "" if brief else f"; layer by layer, decode would wait {time_text(_layered_gap(scenario, amounts))}"
    gap, what = result.gap_seconds, "handoff" if fixed > 0 else "wire"
    if plan.engine.released_by == "prefill":
        wait = (time_text(gap), "exposed", "gap_seconds")
        return (("Nothing is hidden: after the first token, the second waits ", ""), wait, (f" for the {what}{otherwise}.", ""))
    unit = shared_time_unit(gap, ttft)
    wait = (time_text(gap, unit), "exposed", "gap_seconds" if fixed > 0 else "transfer.exposed_seconds")
    return (("Nothing is hidden: ", ""), wait, (f" of {time_text(ttft, unit)} to the first token is the {what}{otherwise}.", ""))


def _layered_gap(scenario: Scenario, amounts: Amounts) -> float:
    """Seconds that decode would wait, sent layer by layer."""
    return float(handoff(plan_of(scenario, overlap="layer"), amounts).gap_seconds)


def scenario_tokens(amounts: Amounts) -> float:
    """Prompt tokens of a scenario's amounts."""
    return float(amounts.prompt_tokens)


def _posting(plan: Plan, amounts: Amounts) -> float:
    """Transfer time that messages add to the bytes."""
    return float(sum(term.seconds for term in transfer_terms(plan, amounts) if term.id in ("posting", "waiting")))


def _chunked(plan: Plan, amounts: Amounts, scenario: Scenario, result: Evaluation) -> tuple[float, float]:
    """Seconds by which chunks make prefill longer than one pass, where they are 1 % of the first token, and by which that comes later."""
    if plan.overlap != "chunk":
        return 0.0, 0.0
    whole = handoff(plan_of(scenario, overlap="serial"), amounts)
    more = float(result.prefill.seconds - whole.prefill.seconds)
    return (more, more + float(result.gap_seconds - whole.gap_seconds)) if more >= 0.01 * result.ttft_seconds else (0.0, 0.0)


def _hidden(plan: Plan, result: Evaluation, exposed: float, fixed: float, chunked: tuple[float, float]) -> Sentence:
    share = fixed / result.ttft_seconds
    if fixed > exposed and share >= 0.01:
        return (
            (f"The bytes hide; the {time_text(fixed)} of fixed handoff does not, and it is ", ""),
            (share_text(share), "exposed", "gap_seconds"),
            (f" of {FIRST}.", ""),
        )
    if result.gap_share > GAP_MARK:
        return _late(result)
    behind = "prefill and decode's own layers" if plan.overlap == "layer-both" and exposed <= 0 else "prefill"
    (longer, later), after = chunked, "second" if plan.engine.released_by == "prefill" else "first"
    if longer:
        head = ("Chunks hide the wire but for ", ""), (time_text(exposed), "exposed", "transfer.exposed_seconds")
        much, way = f" and make prefill {time_text(longer)} longer", "later" if later > 0 else "sooner"
        change = f"{time_text(abs(later))} {way} than sent whole"
        ends = f"{much}: the {after} token comes {change}.", f"{much}: {change}."
        return first_short([(*head, (end, "")) for end in ends])
    hides = f"The wire hides behind {behind}: of {time_text(result.transfer.seconds)} on the link, decode waits for "
    return first_short([((hides, ""), (time_text(exposed), "exposed", "transfer.exposed_seconds"), (end, "")) for end in _besides(result)])


def _besides(result: Evaluation) -> tuple[str, ...]:
    """Ends of a sentence on the exposed transfer: what decode waits for besides, where that is a hundredth of all; the longest first."""
    fixed = result.gap_seconds - result.transfer.exposed_seconds
    return (f", and {time_text(fixed)} for the engine.", ".") if fixed >= 0.01 * result.gap_seconds > 0 else (".",)


def _late(result: Evaluation) -> Sentence:
    return (
        ("Once prefill ends, decode waits for ", ""),
        (share_text(result.gap_share), "exposed", "gap_seconds"),
        (f" of {FIRST}: past the 20\u202f% mark.", ""),
    )


def _link_bound(plan: Plan, amounts: Amounts, result: Evaluation) -> Sentence:
    parts = timeline_parts(plan, amounts, limit=1_000_000)
    some = f"{count_text(parts.left)} of {count_text(parts.total)} {parts.kind}s"
    head = f"Link-bound: {some} have yet to cross when prefill ends, and decode waits "
    waits = (time_text(result.transfer.exposed_seconds), "exposed", "transfer.exposed_seconds")
    return first_short([((head, ""), waits, (end, "")) for end in _besides(result)])
