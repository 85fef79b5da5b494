"""Bars of what would change the first token, of every input turned, of layers: the pinned scenario's below or before them."""

from __future__ import annotations

from collections.abc import Sequence

from app.charts.levers import changes_of, room_for_labels
from app.charts.marks import hollow_bars
from app.charts.pins.marks import OVER_FILLS, added, with_pin
from app.charts.spec import Figure, Spec, Table, at, four_digits
from app.charts.tornado import HEAD, ROW
from kvmodel.display import bytes_text
from kvmodel.plan import Plan
from kvmodel.scenario import Scenario

LEVERS = "Hollow bars: the same change made to the pinned scenario."
TORNADO = "Hollow bars: how far half and twice of each input move the pinned scenario's first token."


def with_levers_pin(figure: Figure, now: Scenario, pinned: Scenario, names: Sequence[str]) -> Figure:
    """What would change the first token, with the same changes made to the pinned scenario."""
    found = changes_of(now, pinned, names)
    bars = hollow_bars([v or None for v in four_digits([v or 0.0 for v in found])], range(len(found)), "muted")
    return with_pin(figure, lambda spec, _: added(spec, data=[bars], barmode="overlay"))


def levers_pin_table(table: Table, now: Scenario, pinned: Scenario, names: Sequence[str]) -> Table:
    """The axes over a slider's positions, wide enough for both."""
    found = [v or 0.0 for v in changes_of(now, pinned, names)]
    reach = {"l.wide": 0.18, "l.narrow": 0.34}
    return {name: [room_for_labels([*row, *found], share) for row in table["l.x"]] for name, share in reach.items()}


def with_tornado_pin(figure: Figure, count: int) -> Figure:
    """Every input turned, with how far the pinned scenario's first token moves."""
    rows = [HEAD + ROW * (k + 0.5) for k in range(count)]

    def more(spec: Spec, prefix: str) -> Spec:
        return added(spec, data=[hollow_bars(at(f"{prefix}.pin"), rows, "muted", base=at(f"{prefix}.pin_base"), pitch=ROW)])

    return with_pin(figure, more)


def with_layers_pin(figure: Figure, plan: Plan, tokens: int, layers: int) -> Figure:
    """What each layer keeps, with the pinned model's layers at the pinned prompt as dashed stairs."""
    held = held_of(plan, tokens)
    edges = [0.5, *(i + 0.5 for i in range(1, len(held) + 1))]
    stairs = {
        "type": "scatter",
        "mode": "lines",
        "x": edges,
        "y": four_digits([*held, held[-1]]),
        "line": {**OVER_FILLS, "shape": "hv"},
        "hoverinfo": "skip",
    }

    def more(spec: Spec, _: str) -> Spec:
        axis = spec["layout"]["xaxis"]
        return added(spec, data=[stairs], xaxis={**axis, "range": [0.3, max(layers, len(held)) + 0.7]})

    return with_pin(figure, more)


def layers_pin_table(table: Table, plan: Plan, tokens: int) -> Table:
    """The axis over a slider's positions, high enough for both, and the pinned layers in words."""
    most = max(held_of(plan, tokens))
    pinned = f"; pinned, dashed: {bytes_text(most)}"
    return {
        "w.layers_range": [[low, max(high, most * 1.08)] for low, high in table["w.layers_range"]],
        "w.layers_top": [text + pinned for text in table["w.layers_top"]],
    }


def held_of(plan: Plan, tokens: int) -> list[float]:
    """Bytes that each layer of a model keeps of a prompt, first layer first."""
    held = [float(layer.held(tokens)) for _, layer in plan.cache.layers]
    return [held[index] for index in plan.model.sequence]
