"""What would change the first token: six other scenarios, compared with this one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from app.charts.marks import words
from app.charts.scale import NARROW, WIDE
from app.charts.spec import Figure, Spec, Table, at, colour, four_digits
from app.live import block
from app.over import Over
from kvmodel import registry
from kvmodel.display import MINUS, time_text
from kvmodel.errors import KvModelError
from kvmodel.evaluate import sweep
from kvmodel.plan import plan_of
from kvmodel.results import Evaluation
from kvmodel.scenario import Scenario

COUNT = 6
FASTER, HALVED = "Prefill twice as fast", "Half the prompt"
"""Changes that follow from the scenario that they are made to."""
_FASTER = ("ethernet-10", "ethernet-25", "roce-100", "ib-hdr-200", "ib-ndr-400", "ib-xdr-800", "nvlink-4", "nvlink-5")


@dataclass(frozen=True, slots=True)
class Lever:
    """One change of a scenario."""

    name: str
    changes: dict[str, Any]
    """Inputs and values that make it, from the scenario as it is."""
    run: Callable[[Any], Evaluation]
    """The scenario so changed, over arrays of its fields."""


def levers(scenario: Scenario) -> list[Lever]:
    """Changes that can be made."""
    plan = plan_of(scenario)
    other = "layer" if plan.overlap == "serial" else "serial"
    every = plan.offered_lanes > plan.lanes
    lanes = plan.offered_lanes if every else min(plan.lanes * 2, 512)
    found: list[tuple[str, dict[str, Any]]] = [
        (f"All {lanes} lanes" if every else f"{lanes} lanes", {"lanes": lanes}),
        ("Layer by layer" if other == "layer" else "Serial, no overlap", {"overlap": other}),
        (_next_link(scenario)[0], {"link": _next_link(scenario)[1], "link_gbytes_per_s": None}),
    ]
    found.append(
        ("FP8 KV", {"kv_dtype": "fp8", "wire_dtype": "same"})
        if plan.kv_dtype in ("bf16", "fp16", "fp32")
        else ("BF16 KV", {"kv_dtype": "bf16"})
    )
    made = [Lever(name, changes, run) for name, changes in found if (run := _changed(scenario, changes))]
    half = float(f"{_half_prefill(scenario, {'batch': [scenario.batch]})[0]:.4g}")
    faster = Lever(FASTER, {"prefill_seconds": half}, _faster(scenario))
    return [*made, faster, Lever(HALVED, {"prompt_tokens": max(scenario.prompt_tokens // 2, 1)}, _halved(scenario))]


def _next_link(scenario: Scenario) -> tuple[str, str]:
    now = registry.links()[scenario.link].bandwidth
    faster = [registry.links()[name] for name in _FASTER if registry.links()[name].bandwidth > now * 1.01]
    link = faster[0] if faster else registry.links()["ib-ndr-400"]
    return f"Link {link.short}", link.id


def _changed(scenario: Scenario, changes: dict[str, Any]) -> Callable[[Any], Evaluation] | None:
    try:
        other = scenario.with_changes(**changes)
        plan_of(other)
    except KvModelError:
        return None
    return lambda arrays: sweep(other, **arrays)


def _faster(scenario: Scenario) -> Callable[[Any], Evaluation]:
    return lambda arrays: sweep(scenario, **{**arrays, "prefill_seconds": _half_prefill(scenario, arrays)})


def _half_prefill(scenario: Scenario, arrays: Any) -> Any:
    return np.clip(np.asarray(sweep(scenario, **arrays).prefill.seconds) / 2, 1e-9, 1e5)


def _halved(scenario: Scenario) -> Callable[[Any], Evaluation]:
    def run(arrays: Any) -> Evaluation:
        tokens = np.asarray(arrays.get("prompt_tokens", scenario.prompt_tokens))
        return sweep(scenario, **{**arrays, "prompt_tokens": np.maximum(tokens // 2, 1)})

    return run


def levers_table(over: Over, order: Sequence[str]) -> Table:
    """Bars over the positions, levers in the given order of names."""
    arrays = {over.field: np.asarray(over.values)}
    found = sorted((lever for lever in levers(over.scenario) if lever.name in order), key=lambda lever: order.index(lever.name))
    base = np.asarray(over.swept.ttft_seconds)
    terms = {"prefill": "prefill.seconds", "exposed": "gap_seconds", "decode": "decode.step_seconds"}
    changes, meanings = [], []
    for lever in found:
        other = lever.run(arrays)
        changes.append(np.asarray(other.ttft_seconds) - base)
        moved = [np.abs(_term(other, path) - _term(over.swept, path)) for path in terms.values()]
        meanings.append(np.argmax(np.broadcast_arrays(*moved), axis=0))
    colours = list(terms)
    x = np.array(changes).T
    fills = np.array([np.broadcast_to(meaning, base.shape) for meaning in meanings]).T
    return {
        "l.names": [[lever.name for lever in found]] * len(x),
        "l.x": four_digits(x),
        "l.fill": [[colour(colours[m]) for m in row] for row in fills.tolist()],
        "l.ink": [[colour(colours[m] + "_text") for m in row] for row in fills.tolist()],
        "l.text": [[f"\u2002{signed(v)}\u2002" for v in row] for row in x.tolist()],
        "l.says": [[f"{lever.name}<br>{signed(v)}" for lever, v in zip(found, row, strict=True)] for row in x.tolist()],
        "l.position": [["middle left" if v < 0 else "middle right" for v in row] for row in x.tolist()],
        "l.wide": [room_for_labels(row, 0.18) for row in x.tolist()],
        "l.narrow": [room_for_labels(row, 0.34) for row in x.tolist()],
    }


@lru_cache(maxsize=256)
def ranked(scenario: Scenario) -> tuple[Lever, ...]:
    """The changes that are drawn, the largest at the scenario itself first."""
    alone = {"prompt_tokens": np.array([scenario.prompt_tokens])}
    now = float(np.asarray(sweep(scenario, **alone).ttft_seconds)[0])
    found = [(lever, float(np.asarray(lever.run(alone).ttft_seconds)[0]) - now) for lever in levers(scenario)[:COUNT]]
    return tuple(lever for lever, _ in sorted(found, key=lambda pair: -abs(pair[1])))


@lru_cache(maxsize=128)
def changes_of(scenario: Scenario, other: Scenario, names: tuple[str, ...]) -> tuple[float | None, ...]:
    """Seconds by which changes of one scenario, by name, move the first token of another; None where it cannot be so changed."""
    alone = {"prompt_tokens": np.array([other.prompt_tokens])}
    now = float(np.asarray(sweep(other, **alone).ttft_seconds)[0])
    made = {lever.name: _changed(other, lever.changes) for lever in levers(scenario)}
    runs = {**made, FASTER: _faster(other), HALVED: _halved(other)}
    found = [runs.get(name) for name in names]
    return tuple(None if run is None else float(np.asarray(run(alone).ttft_seconds)[0]) - now for run in found)


def room_for_labels(x: list[Any], share: float) -> list[Any]:
    """Range of an axis on which a label of `share` of its width fits beyond each bar."""
    left, right = max(0.0, -min(x)), max(0.0, max(x))
    ends = (left > 0) + (right > 0)
    label = max(left + right, 1e-9) * share / (1 - max(1, ends) * share)
    return four_digits([-left - (label if left else 0.02 * right), right + (label if right else 0.02 * left)])


def _term(result: Evaluation, path: str) -> Any:
    node: Any = result
    for name in path.split("."):
        node = getattr(node, name)
    return np.asarray(node)


def signed(seconds: float) -> str:
    """A change of time with its sign; one that rounds to nothing is 0."""
    if abs(seconds) < 5e-10:
        return time_text(0.0)
    return ("+" if seconds > 0 else MINUS) + time_text(abs(seconds))


def levers_figure(addresses: Sequence[str] = (), count: int = COUNT) -> Figure:
    """Signed bars, a row a lever; a bar with an address opens it, the scenario so changed."""
    layouts = (_layout(addresses, count, WIDE), _layout(addresses, count, NARROW))
    return Figure("levers", *layouts, "What would change the first token: the table lists each change")


def applied_block(found: Sequence[Lever], addresses: Sequence[str], told: str) -> dict[str, Any]:
    """The same changes as links, for those who use no pointer, each with what it does as its title."""
    words: list[Any] = ["Apply", block("span", " and compare", class_="kv-page-only"), ": "]
    for lever, address in zip(found, addresses, strict=True):
        words += [*([" · "] if len(words) > 3 else []), block("a", lever.name, href=address, title=told)]
    return block("p", *words, class_="kv-note")


def _layout(addresses: Sequence[str], count: int, width: int) -> Spec:
    rows = list(range(count))
    bar = {
        "type": "bar",
        "orientation": "h",
        "x": at("l.x"),
        "y": rows,
        "width": 0.46,
        "marker": {"color": at("l.fill")},
        "hovertext": at("l.says"),
        "customdata": [["", address] for address in addresses],
        "hovertemplate": f"%{{hovertext}}{'<br>Click applies it' if addresses else ''}<extra></extra>",
    }
    axis = {"showticklabels": False, "zeroline": True, "zerolinecolor": colour("muted"), "fixedrange": True}
    names = {"tickvals": rows, "ticktext": at("l.names"), "ticklabelstandoff": 6, "tickfont": {"color": colour("body"), "size": 13}}
    layout = {
        "height": 36 * count + 8,
        "margin": {"l": 150 if width == WIDE else 138, "r": 0, "t": 4, "b": 4},
        "xaxis": {**axis, "range": at("l.wide" if width == WIDE else "l.narrow")},
        "yaxis": {**names, "range": [count - 0.5, -0.5], "showgrid": False, "fixedrange": True},
    }
    return {"data": [bar, words(at("l.x"), rows, at("l.text"), at("l.ink"), 13, place=at("l.position"))], "layout": layout}
