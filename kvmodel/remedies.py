"""What would make a side fit that does not: each change tried on the side's memory, with what comes with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kvmodel.capacity import decode_memory, prefill_memory
from kvmodel.display import bytes_text, count_text
from kvmodel.errors import BadScenarioError
from kvmodel.memory import PASS_TOKENS
from kvmodel.parallel import accepted_tps
from kvmodel.plan import Plan, Side, plan_of
from kvmodel.progress import AMOUNTS, Amounts
from kvmodel.records.hardware import Accelerator
from kvmodel.registry import accelerators, formats
from kvmodel.results import Remedy, SideMemory
from kvmodel.scenario import Scenario

MAX_TP, MAX_PP = 64, 16

Changes = dict[str, Any]

Formats = tuple[tuple[str, Changes], ...]

FP8: Formats = (
    ("an FP8 cache", {"kv_dtype": "fp8"}),
    ("FP8 weights", {"weight_dtype": "fp8"}),
    ("FP8 weights and cache", {"weight_dtype": "fp8", "kv_dtype": "fp8"}),
)
INT4: Formats = (
    ("an INT4 cache", {"kv_dtype": "int4"}),
    ("INT4 weights", {"weight_dtype": "int4"}),
    ("INT4 weights and cache", {"weight_dtype": "int4", "kv_dtype": "int4"}),
)
"""Narrower formats, the one that changes least first."""


def side_memory(plan: Plan, amounts: Amounts, phase: str) -> SideMemory:
    """Memory of one accelerator of the side."""
    return (prefill_memory if phase == "prefill" else decode_memory)(plan, amounts)


@dataclass(frozen=True, slots=True)
class Case:
    """A side that does not fit."""

    scenario: Scenario
    amounts: Amounts
    phase: str

    @property
    def side(self) -> Side:
        """The side as it is."""
        side: Side = getattr(plan_of(self.scenario), self.phase)
        return side

    @property
    def node(self) -> int:
        """Accelerators that NVLink or its like joins."""
        return self.side.accelerator.gpus_per_node

    def named(self, field: str) -> str:
        """A field of this side."""
        return f"{self.phase}_{field}"

    def fits(self, **changes: Any) -> bool:
        """Whether the side fits and engines accept the layout, with some of the scenario changed."""
        try:
            trial = plan_of(self.scenario, **changes)
        except BadScenarioError:
            return False
        amounts = replace(self.amounts, **{name: value for name, value in changes.items() if name in AMOUNTS})
        return not trial.refusal and bool(side_memory(trial, amounts, self.phase).fits)

    def tps(self, low: int = 1, high: int = MAX_TP) -> tuple[int, ...]:
        """Degrees in a range that engines accept for the model."""
        return tuple(tp for tp in accepted_tps(plan_of(self.scenario).model, MAX_TP) if low <= tp <= high)

    def layouts(self, tp: int) -> tuple[Changes, Changes]:
        """Changes that give the side a TP without attention DP: of its own, and with the other side alike."""
        own, other = ({f"{side}_tp": tp, f"{side}_attention_dp": 1} for side in (self.phase, other_side(self.phase)))
        return own, own | other

    def smallest_tp(self, tps: Sequence[int], **changes: Any) -> tuple[int, bool] | None:
        """(smallest of some TPs at which the side fits and engines accept the layout, whether the other side needs it too).

        No rank holds more at a higher TP, and no engine refuses equal TP: what does not fit at the highest fits at none.
        """
        if not tps or not self.fits(**self.layouts(tps[-1])[1], **changes):
            return None
        tried = ((tp, both) for tp in tps for both in (False, True) if self.fits(**self.layouts(tp)[both], **changes))
        return next(tried, None)

    def remedy(self, use: str, cost: str, **changes: Any) -> Remedy:
        """A change that makes the side fit."""
        return Remedy(self.phase, use, cost, changes)


Finder = Callable[[Case], Remedy | None]


def other_side(phase: str) -> str:
    """`decode` of `prefill`, and the reverse."""
    return "decode" if phase == "prefill" else "prefill"


def side_remedies(scenario: Scenario, amounts: Amounts, phase: str) -> Iterator[Remedy]:
    """Changes of which each alone makes a side fit, the one to try first in front; one of each kind.

    TP inside a node, FP8, pipeline stages, another accelerator, INT4, TP over several nodes; where none of them
    does, two together; then fewer requests and a shorter prompt.
    """
    case = Case(scenario, amounts, phase)
    layout = list(_found(ALONE, case))
    yield from layout or list(_found((*TOGETHER, _for_one), case))[:1]
    yield from _found((_requests, _tokens), case)


def first_remedy(scenario: Scenario, amounts: Amounts, phase: str) -> Remedy | None:
    """The first of the remedies; None where there is none."""
    return next(_found((*ALONE, *TOGETHER, _for_one, _requests, _tokens), Case(scenario, amounts, phase)), None)


def _found(finders: Iterable[Finder], case: Case) -> Iterator[Remedy]:
    """What each way of looking finds, one after the other."""
    return (found for find in finders if (found := find(case)))


def _attention_dp(case: Case) -> Remedy | None:
    changes = {case.named("attention_dp"): 1}
    if case.side.attention_dp > 1 and case.fits(**changes):
        return case.remedy("use attention DP 1", f"all {case.side.tp} ranks share each request", **changes)
    return None


def _chunks(case: Case) -> Remedy | None:
    chunk = plan_of(case.scenario).chunk or 0
    if case.phase == "prefill" and chunk > PASS_TOKENS and case.fits(chunk_tokens=PASS_TOKENS):
        return case.remedy(f"use chunks of {count_text(PASS_TOKENS)} tokens", "prefill takes more passes", chunk_tokens=PASS_TOKENS)
    return None


def _tp_in_node(case: Case) -> Remedy | None:
    return _more_tp(case, case.tps(high=case.node))


def _tp_across(case: Case) -> Remedy | None:
    return None if _more_tp(case, case.tps(high=case.node)) else _more_tp(case, case.tps(low=case.node + 1))


def _more_tp(case: Case, tps: tuple[int, ...]) -> Remedy | None:
    found = case.smallest_tp(tps)
    if found is None:
        return None
    tp, both = found
    use = f"use TP {tp} on both sides" if both else f"use TP {tp} or more" + (" and attention DP 1" if case.side.attention_dp > 1 else "")
    return case.remedy(use, _ranks_text(case, tp, both=both), **case.layouts(tp)[both])


def _ranks_text(case: Case, tp: int, *, both: bool, node: int = 0) -> str:
    """How many accelerators a TP takes, and where they stand."""
    side, node = case.side, node or case.node
    count = count_text(side.rank_count // side.tp * tp)
    gpus = f"{count} GPU{'s' * (count != '1')}{' on this side, the other alike' if both else ''}"
    if tp <= node:
        return f"{gpus}, each TP group inside one node"
    return f"{gpus}; a TP group spans {-(-tp // node)} nodes, so every all-reduce crosses the network between them"


def _fp8(case: Case) -> Remedy | None:
    return _format(case, FP8)


def _int4(case: Case) -> Remedy | None:
    return None if _format(case, FP8) else _format(case, INT4)


def _format(case: Case, formats_: Formats) -> Remedy | None:
    name, changes = next(((name, changes) for name, changes in formats_ if case.fits(**changes)), ("", {}))
    return case.remedy(f"use {name}", _format_text(changes), **changes) if name else None


def _format_text(changes: Changes) -> str:
    """What narrower formats cost, as far as somebody measured it."""
    parts = ["on both sides"]
    if "weight_dtype" in changes:
        parts.append("the weights must be quantized to it")
    if "kv_dtype" in changes:
        measured = formats()[changes["kv_dtype"]].accuracy
        parts.append(f"the cache is {measured.partition('.')[0].partition(':')[0].lower()}")
    return "; ".join(parts)


def _pipeline(case: Case) -> Remedy | None:
    """Pipeline stages at the TP there is where TP alone would do inside the node, else at the largest TP of the node first."""
    side, name, layers = case.side, case.named("pp"), plan_of(case.scenario).model.layers
    node, most = case.tps(high=case.node)[-1], min(MAX_PP, layers)
    as_it_is: tuple[int, Changes] = (side.tp, {})
    filled = [(node, changes) for changes in case.layouts(node)]
    first_own = _tp_in_node(case) or side.tp >= node
    for tp, layout in (as_it_is, *filled) if first_own else (*filled, as_it_is):
        stages = range(2, most + 1) if case.fits(**layout, **{name: most}) else ()
        pp = next((pp for pp in stages if case.fits(**layout, **{name: pp})), 0)
        if pp:
            use = f"use PP {pp}" if not layout else f"use TP {tp}{' on both sides' * (len(layout) > 2)} with PP {pp}"
            return case.remedy(use, _stages_text(tp, pp), **layout, **{name: pp})
    return None


def _stages_text(tp: int, pp: int) -> str:
    """What pipeline stages take."""
    return f"{count_text(tp * pp)} GPUs; activations pass from stage to stage, and the wait between stages is not in the times"


def _by_size() -> list[Accelerator]:
    """Accelerators, least memory first."""
    return sorted(accelerators().values(), key=lambda gpu: gpu.hbm_visible)


def _accelerator(case: Case) -> Remedy | None:
    name, gpus = case.named("accelerator"), _by_size()
    if not case.fits(**{name: gpus[-1].id}):
        return None
    gpu = next((gpu for gpu in gpus if case.fits(**{name: gpu.id})), None)
    return case.remedy(f"use {gpu.name}", _memory_text(gpu), **{name: gpu.id}) if gpu else None


def _memory_text(gpu: Accelerator) -> str:
    return f"{bytes_text(gpu.hbm_visible)} of memory each"


def _format_and_tp(case: Case) -> Remedy | None:
    for name, changes in (*FP8, *INT4):
        found = case.smallest_tp(case.tps(), **changes)
        if found:
            tp, both = found
            use = f"use {name} and TP {tp}" + (" on both sides" if both else "")
            cost = f"{_format_text(changes)}; {_ranks_text(case, tp, both=both)}"
            return case.remedy(use, cost, **changes, **case.layouts(tp)[both])
    return None


def _accelerator_and_tp(case: Case) -> Remedy | None:
    name = case.named("accelerator")
    for gpu in _by_size():
        found = case.smallest_tp(case.tps(), **{name: gpu.id})
        if found:
            tp, both = found
            use = f"use {gpu.name} and TP {tp}" + (" on both sides" if both else "")
            cost = f"{_memory_text(gpu)}; {_ranks_text(case, tp, both=both, node=gpu.gpus_per_node)}"
            return case.remedy(use, cost, **{name: gpu.id}, **case.layouts(tp)[both])
    return None


def _requests(case: Case) -> Remedy | None:
    names = ("batch",) if case.phase == "prefill" else ("batch", "decode_batch")
    most = int(side_memory(plan_of(case.scenario), case.amounts, case.phase).batch_fits)
    changes = {name: min(most, int(getattr(case.amounts, name))) for name in names}
    if not most or not case.fits(**changes):
        return None
    use = "only 1 request fits" if most == 1 else f"only {count_text(most)} requests fit"
    asked = max(int(getattr(case.amounts, name)) for name in names)
    return case.remedy(use, f"in place of {count_text(asked)}; the others wait", **changes)


def _tokens(case: Case) -> Remedy | None:
    """The longest prompt that fits, else the longest output."""
    for name, words in (("prompt_tokens", "a prompt"), *([("output_tokens", "an output")] * (case.phase == "decode"))):
        low, high = 0, int(getattr(case.amounts, name))
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if case.fits(**{name: middle}) else (low, middle)
        if low:
            use = f"only {words} of up to {count_text(low)} token{'s' * (low > 1)} fits"
            return case.remedy(use, f"in place of {count_text(getattr(case.amounts, name))}", **{name: low})
    return None


def _for_one(case: Case) -> Remedy | None:
    """A change of layout and a single request, where not one request fits as it is."""
    one = {name: 1 for name in ("batch", "decode_batch") if getattr(case.amounts, name) > 1}
    if not one or _requests(case):
        return None
    found = next(_found((*ALONE, *TOGETHER), replace(case, amounts=replace(case.amounts, **one))), None)
    return replace(found, use=f"{found.use} for one request", changes=found.changes | one) if found else None


ALONE: tuple[Finder, ...] = (_attention_dp, _chunks, _tp_in_node, _fp8, _pipeline, _accelerator, _int4, _tp_across)
"""Changes of layout, formats or accelerator, the one to try first in front."""

TOGETHER: tuple[Finder, ...] = (_format_and_tp, _accelerator_and_tp)
"""Two changes, where none alone would do."""
