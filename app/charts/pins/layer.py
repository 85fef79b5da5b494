"""The pinned scenario beside one layer of this one: outlines of what crosses, and rings under the roofline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.charts.layer_picture import GEOMETRY, Picture, Shapes, scale_of, sent_outlines
from app.charts.layer_runs import Run, runs_of
from app.charts.marks import line
from app.charts.matrices import shapes_of
from app.charts.pins.marks import added, with_pin
from app.charts.roofs import roofs_of
from app.charts.spec import Figure, Spec, colour, four_digits
from app.over import Over, evaluate_over
from kvmodel.display import count_text
from kvmodel.evaluate import amounts_of
from kvmodel.matrices import main_group
from kvmodel.plan import placement_of
from kvmodel.progress import cut
from kvmodel.scenario import Scenario

MATRICES = "Dashed outlines: what crosses of one layer in the pinned scenario, to the same scale"
RINGS = "Rings: the same three points of the pinned scenario's layer"
ROOFLINE = f"{RINGS}; the dotted grey roof is that of its accelerator."
NO_ROOF = f"{RINGS}."


@dataclass(frozen=True, slots=True)
class Pinned:
    """The pinned scenario at its own prompt, and the layer of it that is compared."""

    over: Over
    index: int

    @property
    def runs(self) -> list[Run]:
        """The layer in its three passes."""
        return runs_of(self.over, self.index)


def pinned_layer(now: Scenario, pinned: Scenario, index: int) -> Pinned:
    """The same group of the same model, else the main group of the other."""
    over = evaluate_over(pinned, "prompt_tokens", (pinned.prompt_tokens,))
    return Pinned(over, index if pinned.model == now.model else main_group(over.plan.model))


def matrices_note(shapes: Shapes, pinned: Pinned) -> str:
    """What the outlines are, and how tall they would be where they are cut."""
    g = GEOMETRY["w"]
    tall = max((t.rows for t in _shapes(pinned).sent), default=0.0) * scale_of(shapes, g)
    cut_at = f", cut: their true height is {count_text(tall)}\u202fpx" if tall > g.tall else ""
    return f"{MATRICES}{cut_at}."


def _shapes(pinned: Pinned) -> Shapes:
    scenario, amounts = pinned.over.scenario, amounts_of(pinned.over.scenario)
    new, _, known = cut(pinned.over.plan, amounts)
    group = pinned.over.plan.model.groups[pinned.index]
    return shapes_of(group, placement_of(scenario, "prefill"), amounts, int(new), int(known))


def with_matrices_pin(figure: Figure, shapes: Shapes, pinned: Pinned) -> Figure:
    """The picture with outlines of what crosses in the pinned scenario, at the scale of this one."""
    theirs = _shapes(pinned)

    def more(spec: Spec, prefix: str) -> Spec:
        g = GEOMETRY[prefix]
        picture = Picture(g, scale_of(shapes, g))
        x, y = sent_outlines(picture, theirs)
        return added(spec, data=[line(x, y, "ink", 1.5, dash="dash")])

    return with_pin(figure, more)


def with_roofline_pin(figure: Figure, runs: Sequence[Run], pinned: Pinned) -> Figure:
    """The roofline with rings where the pinned layer stands, and its own roofs where they are others."""
    theirs, other = pinned.runs, other_roofs(runs, pinned.runs)
    x, y = [float(run.layer.intensity[0]) for run in theirs], [float(run.reached()[0]) / 1e12 for run in theirs]
    marker = {"size": 11, "symbol": "circle-open", "color": [colour(run.phase) for run in theirs], "line": {"width": 2}}
    says = [f"pin: {run.name}<br>{v:.3g} FLOP a byte" for run, v in zip(theirs, x, strict=True)]
    rings = {"type": "scatter", "mode": "markers", "x": four_digits(x), "y": four_digits(y), "marker": marker, "cliponaxis": False}
    rings |= {"customdata": says, "hovertemplate": "%{customdata}<extra></extra>"}

    def more(spec: Spec, _: str) -> Spec:
        roof = [_roof_line(other, *spec["layout"]["xaxis"]["range"])] if other else []
        return added(spec, data=[*roof, rings])

    return with_pin(figure, more)


def other_roofs(runs: Sequence[Run], theirs: Sequence[Run]) -> list[tuple[float, float]]:
    """(peak, bandwidth) of the roofs of the pinned scenario that are none of this one's."""
    own = {_height(run) for run in runs}
    return [height for height in dict.fromkeys(map(_height, theirs)) if height not in own]


def _height(run: Run) -> tuple[float, float]:
    roof = roofs_of(run)[0]
    return roof.peak, roof.bandwidth


def _roof_line(roofs: Sequence[tuple[float, float]], low: float, high: float) -> Spec:
    """Roofs in one trace."""
    x: list[Any] = []
    y: list[Any] = []
    for peak, bandwidth in roofs:
        at = [10.0**low, peak / bandwidth, 10.0**high]
        x += [*four_digits(at), None]
        y += [*four_digits([min(peak, v * bandwidth) / 1e12 for v in at]), None]
    return line(x, y, "muted", 1.5, dash="dot")
