"""What can be wrong with an input, as exceptions whose text is fit to show a reader.

Infeasible scenarios are not errors: they are results that carry a reason (see `kvmodel.memory`).
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class KvModelError(ValueError):
    """An input that cannot be used; the message names what came and what is allowed."""


class BadQuantityError(KvModelError):
    """A text that is not a quantity of the wanted dimension."""


class BadConfigError(KvModelError):
    """A model configuration that does not say enough, or contradicts itself."""


class BadScenarioError(KvModelError):
    """A scenario with a field out of bounds, of the wrong type, or at odds with another field."""


class UnknownNameError(KvModelError):
    """An id that no row of the data carries; lists the nearest ids."""

    def __init__(self, kind: str, asked: str, known: Iterable[str]) -> None:
        names = sorted(known)
        near = get_close_matches(asked.lower(), names, n=3, cutoff=0.4) or names[:3]
        shown = asked if len(asked) <= 60 else asked[:57] + "..."
        super().__init__(f"no {kind} is called {shown!r}; nearest: {', '.join(near)}")
        self.kind, self.asked, self.nearest = kind, asked, tuple(near)
