"""Explain a figure: where it comes from, term by term and value by value, and what would halve it."""

from kvmodel.explain.explain import explain, explained, formula_of
from kvmodel.explain.figures import FIGURES, Case, Figure, figures_of, find_figure
from kvmodel.explain.given import SEE
from kvmodel.explain.record import Explanation, Formula, Given, Part, Remedy

__all__ = [
    "FIGURES",
    "SEE",
    "Case",
    "Explanation",
    "Figure",
    "Formula",
    "Given",
    "Part",
    "Remedy",
    "explain",
    "explained",
    "figures_of",
    "find_figure",
    "formula_of",
]
