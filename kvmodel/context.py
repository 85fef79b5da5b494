"""Whether a prompt is longer than its model was made for: bytes and times are computed all the same, and it is said."""

from __future__ import annotations

import math

from kvmodel import registry
from kvmodel.display import count_text
from kvmodel.parameters import model_parameters
from kvmodel.records.model import ModelSpec


def context_note(model: ModelSpec, tokens: float) -> str:
    """A clause where `tokens` are more than the context that the model's makers state; empty where not, or where they state none.

    >>> from kvmodel.registry import find_model
    >>> context_note(find_model("llama-2-7b"), 4597)
    'beyond the context of Llama 2 7B: 4,597 tokens of prompt, its makers state 4,096'
    """
    stated = model.max_context
    if stated is None or tokens <= stated:
        return ""
    return f"beyond the context of {model.name}: {count_text(tokens)} tokens of prompt, its makers state {count_text(stated)}"


def context_words(model: ModelSpec, tokens: float) -> str:
    """The same in few words, for a line that names the model; empty where `tokens` fit.

    >>> from kvmodel.registry import find_model
    >>> context_words(find_model("llama-2-7b"), 4097)
    'beyond its stated context of 4,096'
    """
    stated = model.max_context
    return "" if stated is None or tokens <= stated else f"beyond its stated context of {count_text(stated)}"


def context_notes(model: ModelSpec, tokens: float) -> tuple[str, ...]:
    """The same as sentences, none or one."""
    note = context_note(model, tokens)
    return (f"{note[0].upper()}{note[1:]}.",) if note else ()


def fitting_model(model: ModelSpec, tokens: float) -> ModelSpec | None:
    """The model nearest in size, of the same family if there is one, whose stated context takes `tokens`; None where none does.

    >>> from kvmodel.registry import find_model
    >>> fitting_model(find_model("llama-3-70b"), 102_000).id
    'llama-3.1-70b'
    """
    size = model_parameters(model).total
    able = [other for other in registry.models().values() if other.max_context is not None and other.max_context >= tokens]
    away = {other.id: abs(math.log(model_parameters(other).total / size)) for other in able}
    return min(able, key=lambda other: (other.family != model.family, round(away[other.id], 3), other.id), default=None)
