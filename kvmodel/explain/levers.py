"""What could be changed of a scenario, input by input: the values to try, the least change first."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from kvmodel import registry
from kvmodel.display import count_text, rate_text, time_text
from kvmodel.dtypes import BYTES_PER_ELEMENT
from kvmodel.explain.figures import Case, Family
from kvmodel.handoff import step_times

Number = Literal["whole", "broken", ""]
MOST_TP, MOST_LANES, MOST_BLOCK = 64, 64, 1024
STEPS = 8
"""Values tried of a number before the least is looked for between two of them."""


@dataclass(frozen=True, slots=True)
class Lever:
    """One input, or one kind of both sides, and the values to try."""

    fields: tuple[str, ...]
    """All set to the value."""
    words: Callable[[Any], str]
    tried: tuple[Any, ...]
    """The least change first; of `best` ones the lowest result counts instead."""
    number: Number = ""
    """Values between two neighbours can be tried too: whole or broken numbers."""
    best: bool = False

    def values(self, value: Any) -> dict[str, Any]:
        """Fields with the value."""
        return dict.fromkeys(self.fields, value)


def levers(case: Case, family: Family) -> list[Lever]:
    """Levers of a figure's family."""
    own = {"request": _prompt_levers, "critical": _count_levers, "turn": _turn_levers}[family](case)
    return [*own, *_format_levers(case), *_layout_levers(case), *_wire_levers(case), *_time_levers(case)]


def _down(now: int, low: int) -> tuple[int, ...]:
    """Whole numbers from below `now` to `low`, evenly in their logarithm."""
    if now <= low:
        return ()
    span = math.log(now / max(low, 1))
    steps = [max(low, math.floor(now * math.exp(-span * i / STEPS))) for i in range(1, STEPS + 1)]
    return tuple(sorted({n for n in steps if n < now} | {low}, reverse=True))


def _up(now: float, high: float) -> tuple[int, ...]:
    """Whole numbers from above `now` to `high`, evenly in their logarithm."""
    if now >= high:
        return ()
    base = max(now, 1)
    steps = [math.ceil(base * (high / base) ** (i / STEPS)) for i in range(1, STEPS + 1)]
    return tuple(sorted({min(n, int(high)) for n in steps if n > now}))


def _whole(field: str, words: Callable[[Any], str], tried: tuple[int, ...]) -> Lever:
    return Lever((field,), words, tried, "whole")


def _prompt_levers(case: Case) -> list[Lever]:
    s = case.scenario
    n = s.prompt_tokens
    return [
        _whole("prompt_tokens", lambda v: f"a prompt of {count_text(v)} tokens", _down(n, 1)),
        _whole("decode_held_tokens", lambda v: f"{count_text(v)} tokens held by decode", _held(s.decode_held_tokens, n)),
        _whole("prefill_held_tokens", lambda v: f"{count_text(v)} tokens held by prefill", _held(s.prefill_held_tokens, n)),
        _whole("output_tokens", lambda v: f"an output of {count_text(v)} tokens", _down(s.output_tokens, 1)),
        *_count_levers(case),
    ]


def _held(now: int, prompt: int) -> tuple[int, ...]:
    return tuple(sorted({now + math.ceil((prompt - now) * i / STEPS) for i in range(1, STEPS + 1)})) if now < prompt else ()


def _count_levers(case: Case) -> list[Lever]:
    s = case.scenario
    return [
        _whole("batch", lambda v: f"a batch of {count_text(v)}", _down(s.batch, 1)),
        _whole("decode_batch", lambda v: f"a decode batch of {count_text(v)}", _down(s.decode_batch, 1)),
        _whole("shared_by", lambda v: f"{count_text(v)} on each lane", _down(s.shared_by, 1)),
    ]


def _turn_levers(case: Case) -> list[Lever]:
    t = case.turn
    return [
        _whole("history_tokens", lambda v: f"{count_text(v)} tokens of history", _down(t.history_tokens, 0)),
        _whole("delta_tokens", lambda v: f"{count_text(v)} new tokens", _down(t.delta_tokens, 1)),
        _whole(
            "generated_tokens", lambda v: f"{count_text(v)} tokens generated last turn", _down(min(t.generated_tokens, t.history_tokens), 0)
        ),
        _whole("batch", lambda v: f"a batch of {count_text(v)}", _down(case.scenario.batch, 1)),
    ]


def _format_levers(case: Case) -> list[Lever]:
    """Narrower formats: of the cache, of the wire alone, of the weights."""
    plan, s = case.plan, case.scenario
    narrow = tuple(d for d in ("fp8", "int4") if BYTES_PER_ELEMENT[d] < BYTES_PER_ELEMENT.get(plan.kv_dtype, 1.0))
    weights = plan.model.weight_dtype if s.weight_dtype == "auto" else s.weight_dtype
    lighter = tuple(d for d in ("fp8", "int4") if BYTES_PER_ELEMENT[d] < BYTES_PER_ELEMENT[weights])
    return [
        Lever(("kv_dtype",), lambda v: f"{v.upper()} KV", narrow),
        Lever(("wire_dtype",), lambda v: f"{v.upper()} on the wire", narrow if s.wire_dtype == "same" else ()),
        Lever(("weight_dtype",), lambda v: f"{v.upper()} weights", lighter),
    ]


def _layout_levers(case: Case) -> list[Lever]:
    """More accelerators, or others."""
    s, gpus = case.scenario, registry.accelerators()
    found = []
    for fields, side in ((("prefill_tp", "decode_tp"), "each side"), (("prefill_tp",), "prefill"), (("decode_tp",), "decode")):
        now = max(getattr(s, field) for field in fields)
        tried = tuple(tp for tp in (2, 4, 8, 16, 32, 64) if now < tp <= MOST_TP)
        found.append(Lever(fields, lambda v, side=side: f"TP {v} on {side}", tried))  # type: ignore[misc]
    for phase, peak in (("prefill", "peak_bf16"), ("decode", "hbm_bandwidth")):
        field = f"{phase}_accelerator"
        now = getattr(gpus[getattr(s, field)], peak)
        faster = sorted((gpu for gpu in gpus.values() if getattr(gpu, peak) > now), key=lambda gpu, peak=peak: getattr(gpu, peak))  # type: ignore[misc]
        found.append(Lever((field,), lambda v, phase=phase: f"{gpus[v].name} for {phase}", tuple(gpu.id for gpu in faster)))  # type: ignore[misc]
    return found


def _wire_levers(case: Case) -> list[Lever]:
    """Lanes, links, bandwidth, overlap, engine and its messages."""
    plan, s, links, engines = case.plan, case.scenario, registry.links(), registry.engines()
    bandwidth = plan.lane.bandwidth if s.link_gbytes_per_s is None else s.link_gbytes_per_s * 1e9
    faster = sorted((link for link in links.values() if link.bandwidth > plan.link.bandwidth), key=lambda link: link.bandwidth)
    reach = tuple(bandwidth / 1e9 * 2.0**i for i in range(1, STEPS + 1) if bandwidth / 1e9 * 2.0**i <= 100_000)
    latent_copies = (
        max(wire.copies for wire in plan.wires) if any(g.attention.kind in ("mla", "compressed") for g in plan.model.groups) else 1
    )
    named = sorted((e for e in engines if e not in (plan.engine.id, "ideal")), key=str)
    return [
        Lever(("lanes",), lambda v: f"{count_text(v)} lanes", _up(plan.lanes, MOST_LANES), "whole"),
        Lever(
            ("link",), lambda v: f"{links[v].name} as the link", tuple(link.id for link in faster) if s.link_gbytes_per_s is None else ()
        ),
        Lever(("link_gbytes_per_s",), lambda v: f"lanes that reach {rate_text(v * 1e9)}", reach, "broken"),
        Lever(("overlap",), lambda v: f"overlap {v}", tuple(o for o in ("layer", "chunk", "layer-both") if o != plan.overlap)),
        Lever(("engine",), lambda v: f"{engines[v].name} as the engine", () if plan.engine.id == "ideal" else tuple(named), best=True),
        Lever(("engine",), lambda _: "the ideal engine", () if plan.engine.id == "ideal" else ("ideal",)),
        Lever(("mla_copies",), lambda v: f"MLA copies {v}", ("single", "split") if latent_copies > 1 else (), best=True),
        Lever(
            ("block_tokens",),
            lambda v: f"blocks of {count_text(v)} tokens",
            tuple(b for b in (32, 64, 128, 256, 512, MOST_BLOCK) if b > plan.block),
        ),
        Lever(("handoff_seconds",), lambda v: f"a fixed handoff of {time_text(v)}", (0.0,) if plan.engine.handoff_seconds else ()),
        Lever(("contact",), lambda _: "instances that have met", ("warm",) if s.contact == "first" else ()),
    ]


def _time_levers(case: Case) -> list[Lever]:
    """Faster prefill and decode, however that is done."""
    prefill, step = case.result.prefill.seconds, step_times(case.plan, case.amounts)[0]
    return [
        Lever((f"{name}_seconds",), lambda v, words=words: f"{words} of {time_text(v)}", tuple(_shorter(seconds)), "broken")  # type: ignore[misc]
        for name, words, seconds in (("prefill", "a prefill", prefill), ("decode_step", "a decode step", step))
    ]


def _shorter(seconds: float) -> list[float]:
    return [seconds * 2.0**-i for i in range(1, STEPS + 1) if seconds * 2.0**-i >= 1e-6]
