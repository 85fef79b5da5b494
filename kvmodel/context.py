"""Whether a prompt is longer than its model was made for: bytes and times are computed all the same, and it is said."""

from __future__ import annotations

from kvmodel.display import count_text
from kvmodel.records.model import ModelSpec


def context_note(model: ModelSpec, tokens: float, *, what: str = "prompt and output") -> str:
    """A clause where `tokens` are more than the context that the model's makers state; empty where not, or where they state none.

    >>> from kvmodel.registry import find_model
    >>> context_note(find_model("llama-2-7b"), 4596)
    'beyond the context of Llama 2 7B: 4,596 tokens of prompt and output, its makers state 4,096'
    """
    stated = model.max_context
    if stated is None or tokens <= stated:
        return ""
    return f"beyond the context of {model.name}: {count_text(tokens)} tokens of {what}, its makers state {count_text(stated)}"


def context_notes(model: ModelSpec, tokens: float, *, what: str = "prompt and output") -> tuple[str, ...]:
    """The same as sentences, none or one."""
    note = context_note(model, tokens, what=what)
    return (f"{note[0].upper()}{note[1:]}.",) if note else ()
