"""What a static copy holds: the presets, and a grid of models, links, TP, KV dtypes and whatever else is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any
from urllib.parse import parse_qsl, urlencode

from app.controls import NAMED
from app.site.axes import AXES, Axis
from app.state import State, from_link
from kvmodel import registry
from kvmodel.errors import BadScenarioError, KvModelError, UnknownNameError
from kvmodel.evaluate import evaluate
from kvmodel.plan import plan_of
from kvmodel.scenario import Scenario, from_text

ALL = "all"

Values = Mapping[str, tuple[Any, ...]]
"""Values of each axis, by its option."""


@dataclass(frozen=True, slots=True)
class Held:
    """A scenario that the copy holds."""

    name: str
    """Of its files."""
    state: State
    preset: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """Values of the axes that the copy does not draw, and why; the links play no part."""

    query: str
    reason: str


@dataclass(frozen=True, slots=True)
class Grid:
    """Everything a copy holds, in families that share all but the link."""

    families: tuple[tuple[Held, ...], ...]
    refused: tuple[Refused, ...]
    values: Values

    @property
    def held(self) -> list[Held]:
        """Every scenario, presets first."""
        return [one for family in self.families for one in family]


def values_of(texts: Mapping[str, str]) -> dict[str, tuple[Any, ...]]:
    """The values of every axis, from lists as typed. Raises KvModelError."""
    return {axis.option: _values(axis, texts.get(axis.option, axis.default)) for axis in AXES}


def _values(axis: Axis, text: str) -> tuple[Any, ...]:
    field = axis.fields[0]
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise BadScenarioError(f"{axis.option}: got {text[:60]!r}; allowed: values with commas between; --help says which")
    if ALL in words and field in NAMED:
        words = list(NAMED[field]())
    return tuple(dict.fromkeys(_value(field, word) for word in words))


def _value(field: str, word: str) -> Any:
    if field == "model":
        return registry.find_model(word).id
    value = getattr(from_text({field: word}), field)
    if field in NAMED and value not in NAMED[field]():
        raise UnknownNameError(field, word, list(NAMED[field]()))
    return value


def grid_of(values: Values) -> Grid:
    """The presets, and every combination of the values; of what does not fit only the reason, where another TP or GPU does."""
    presets = tuple(Held(one.id, from_link(dict(parse_qsl(one.query))), one.id) for one in registry.presets().values())
    taken = {one.state.query() for one in presets}
    families, refused = [(one,) for one in presets], []
    for model, kv_dtype, engine, overlap in product(*(values[name] for name in ("models", "kv-dtype", "engine", "overlap"))):
        others = {"model": model, "kv_dtype": kv_dtype, "engine": engine, "overlap": overlap}
        for inputs, reason in _tried(others, values):
            if reason:
                refused.append(Refused(urlencode(_changed(inputs)), reason))
            else:
                families.append(_family(inputs, values["links"], taken))
    return Grid(tuple(family for family in families if family), tuple(refused), values)


def _tried(others: Mapping[str, Any], values: Values) -> list[tuple[dict[str, Any], str]]:
    """Inputs at each TP on the first GPU on which one of them fits, each with why it is not drawn, and those tried before.

    Where none fits anywhere, the largest TP on the first GPU is drawn all the same, if it can be timed.
    """
    found: list[tuple[dict[str, Any], str]] = []
    supposed = None
    for gpu in values["gpu"]:
        for tp in sorted(values["tp"]):
            inputs = {**others, "prefill_tp": tp, "decode_tp": tp, "prefill_accelerator": gpu, "decode_accelerator": gpu}
            reason, timed = _reason({**inputs, "link": values["links"][0]})
            supposed = len(found) if timed and gpu == values["gpu"][0] else supposed
            found.append((inputs, reason))
        if not all(reason for _, reason in found):
            return found
    return [(inputs, "" if index == supposed else reason) for index, (inputs, reason) in enumerate(found)]


def _reason(inputs: Mapping[str, Any]) -> tuple[str, bool]:
    """Why a scenario is infeasible, empty where it is not; and whether it can be timed at all."""
    try:
        return evaluate(Scenario(**inputs)).reason, True
    except KvModelError as error:
        return str(error), False


def _changed(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs that differ from the defaults, in the order of a link."""
    return {name: inputs[name] for name, field in Scenario.model_fields.items() if name in inputs and inputs[name] != field.default}


def _family(inputs: Mapping[str, Any], links: Sequence[str], taken: set[str]) -> tuple[Held, ...]:
    """The scenarios over the links, but those that are held already."""
    states = [State(Scenario(**inputs, link=link)) for link in links]
    return tuple(Held(_name(state.scenario), state) for state in states if state.query() not in taken)


def _name(scenario: Scenario) -> str:
    """A name for the files of a scenario of the grid: its values by axis, those of the last two where they are not the default."""
    more = [str(value) for value in (scenario.engine if scenario.engine != "ideal" else None, scenario.overlap) if value]
    return ".".join([str(scenario.model), scenario.link, f"tp{scenario.prefill_tp}", scenario.kv_dtype, *more])


def query_of(grid: Grid, model: str) -> str:
    """The query of a model's scenario that is nearest to the defaults, with the largest TP."""
    usual = Scenario()

    def near(state: State) -> tuple[int, int, int]:
        same = sum(getattr(state.scenario, name) == getattr(usual, name) for name in ("link", "kv_dtype", "engine", "overlap"))
        return same, state.scenario.prefill_tp, -len(state.query())

    own = [one.state for one in grid.held if one.state.scenario.model == model]
    return max(own, key=near, default=State(Scenario(model=model))).query()


def stored_dtypes(models: Sequence[str]) -> dict[str, str]:
    """The KV dtype that `auto` stands for, by model."""
    return {model: plan_of(Scenario(model=model)).kv_dtype for model in models}
