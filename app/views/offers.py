"""What stands a click away from the setup line: the engine, and a model whose context takes the prompt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from app.charts import hiding
from app.charts.pinned import applies_text
from app.charts.spec import Table, at
from app.live import block
from app.over import Over
from app.state import TURN_FIELDS, State
from app.views.opens import opener
from kvmodel import registry
from kvmodel.context import fitting_model
from kvmodel.display import count_text, time_text
from kvmodel.dtypes import BYTES_PER_ELEMENT
from kvmodel.errors import KvModelError
from kvmodel.evaluate import sweep
from kvmodel.plan import plan_of
from kvmodel.results import Evaluation
from kvmodel.scenario import Scenario

OTHER = "vllm-nixl"
"""Engine whose wait stands beside that of the ideal one, which is bandwidth alone."""


def engine_offer(state: State) -> list[dict[str, Any]]:
    """The way to the choice of an engine."""
    name = registry.engines()[state.scenario.engine].name
    button = opener("Change engine", "engine", f"Now {name}: opens the choice under More inputs")
    return [block("span", " · ", button, class_="kv-page-only")]


def other_engine(scenario: Scenario) -> Scenario | None:
    """The scenario under an engine that has costs of its own; None where it has them already, or where that engine cannot."""
    return _tried(scenario, engine=OTHER) if scenario.engine == "ideal" else None


def _tried(scenario: Scenario, **changes: Any) -> Scenario | None:
    """The scenario with a change; None where engines refuse it."""
    try:
        other = scenario.with_changes(**changes)
        return None if plan_of(other).refusal else other
    except KvModelError:
        return None


def _swept(over: Over, other: Scenario, read: Callable[[Evaluation], Any]) -> list[Any]:
    """What one reads of another scenario at each of a slider's positions."""
    found = read(sweep(other, **{over.field: np.asarray(over.values)}))
    return np.broadcast_to(found, len(over.values)).tolist()


def other_table(over: Over) -> Table:
    """What the handoff would add with the other engine, over a slider's positions."""
    other = other_engine(over.scenario)
    if other is None:
        return {}
    waits = _swept(over, other, lambda e: e.gap_seconds)
    so = "" if plan_of(other).overlap == plan_of(other).engine.overlap else ", if it sent so,"
    return worded(other, [f"the handoff adds {time_text(v)}" for v in waits], so)


def worded(other: Scenario, said: Sequence[str], so: str = "") -> Table:
    """What an engine makes of it, over a slider's positions; `so` says that it would have to send in another way."""
    return {"o.said": [f"with {registry.engines()[other.engine].name}{so} {one}" for one in said]}


def other_format(scenario: Scenario) -> Scenario | None:
    """The scenario with its cache in the model's own format, or in fp8 where it is in that; None where it cannot be, or is no less."""
    own = plan_of(scenario, kv_dtype="auto", wire_dtype="same").kv_dtype
    if own != plan_of(scenario).kv_dtype:
        return _tried(scenario, kv_dtype="auto")
    return _tried(scenario, kv_dtype="fp8") if BYTES_PER_ELEMENT[own] > 1 else None


def format_table(over: Over) -> Table:
    """What the handoff would add and decode would hold in another format, over a slider's positions."""
    other = other_format(over.scenario)
    if other is None:
        return {}
    gaps, fits = _swept(over, other, lambda e: e.gap_seconds), _swept(over, other, lambda e: e.memory.decode.batch_fits)
    head, said = f"In {plan_of(other).kv_dtype} the handoff would add", []
    for gap, fit, row in zip(gaps, fits, over.rows, strict=True):
        now, requests = row.memory.decode.batch_fits, f"{count_text(fit)} request{'' if fit == 1 else 's'}"
        held = f"{requests} of this length, not {count_text(now)}" if fit != now else f"no more than {requests} of this length"
        said.append(f"{head} {time_text(gap)}{f' and decode would hold {held}' if fit else ''}")
    return {"f.said": said}


def format_blocks(state: State) -> list[dict[str, Any]]:
    """A line on what another format for the cache would change, a link that compares them; where one was chosen, its own is the other."""
    other = other_format(state.scenario)
    if other is None:
        return []
    said = _applied(state, at("f.said"), kv_dtype=other.kv_dtype)
    chosen = " kv-format-chosen" * (other.kv_dtype == "auto")
    return [block("p", said, ".", class_=f"kv-note kv-format{chosen} kv-page-only")]


def hiding_block(state: State) -> dict[str, Any]:
    """The line below an answer on something else: on which links prefill hides the handoff."""
    whose = hiding.whose_text(state.scenario)
    last = hiding.last_text(state.scenario)
    way = f"{hiding.way_text(state.scenario)}{f' ({whose})' if whose else ''}"
    where = [f"{way}, prefill hides {f'all but {last}' if last else 'it'} ", block("b", at("h.where"))]
    return block("p", *where, *hiding_offer(state, before="; "), ".", class_="kv-second")


def hiding_offer(state: State, *, before: str = "", after: str = "") -> list[Any]:
    """On which links with the other engine, a link to it, between some signs."""
    if other_engine(state.scenario) is None:
        return []
    return [block("span", before, _applied(state, at("h.other"), engine=OTHER), after, class_="kv-page-only")]


def hiding_table(scenario: Scenario, name: str, values: tuple[int, ...]) -> Table:
    """What that line says, over a slider's positions."""
    return hiding.hiding_table(scenario, name, values, other_engine(scenario))


def other_offer(state: State) -> list[dict[str, Any]]:
    """What the other engine makes of it, a link to it."""
    other = other_engine(state.scenario)
    if other is None or state.is_own():
        return []
    return [block("span", "; ", _applied(state, at("o.said"), engine=OTHER), class_="kv-page-only")]


def _applied(state: State, said: Any, **changes: Any) -> Any:
    """Words that lead to the scenario with a change, beside what was; words alone where no link carries its model."""
    return said if state.is_own() else block("a", said, href=f"?{state.applied(**changes).query()}", title=applies_text(state))


def model_offer(state: State, slider: str) -> list[dict[str, Any]]:
    """The same scenario with a model whose stated context takes it, where this one's does not."""
    model, turn = plan_of(state.scenario).model, state.turn
    tokens = turn.history_tokens + turn.delta_tokens if slider in TURN_FIELDS else state.scenario.prompt_tokens
    if state.is_own() or model.max_context is None or tokens <= model.max_context:
        return []
    found = fitting_model(model, tokens)
    if found is None:
        return []
    query = replace(state, scenario=state.scenario.with_changes(model=found.id)).query()
    words = f"{found.name} takes it"
    return [block("span", ": ", block("a", words, href=f"?{query}", title="The same with this model"), class_="kv-page-only")]
