"""What can be wrong with an input, as exceptions whose text is fit to show a reader.

Infeasible scenarios are not errors: they are results that carry a reason (see `kvmodel.memory`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

SAME_WORD = {"gbe": "ethernet", "gige": "ethernet", "eth": "ethernet", "infiniband": "ib", "pciex": "pcie", "gen": "pcie", "nvl": "nvlink"}
"""What people write for a word of an id."""
ALIKE = 0.4
"""Least likeness of a name that is suggested."""


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
        near = nearest_names(asked, names) or names[:3]
        shown = asked if len(asked) <= 60 else asked[:57] + "..."
        super().__init__(f"no {kind} is called {shown!r}; nearest: {', '.join(near)}")
        self.kind, self.asked, self.nearest = kind, asked, tuple(near)


def nearest_names(asked: str, names: Sequence[str], most: int = 3) -> list[str]:
    """Names most like what was asked, by their letters or by the words and numbers they share in any order.

    >>> nearest_names("100gbe", ["ethernet-10", "ethernet-100", "ib-hdr-200", "roce-100"])[0]
    'ethernet-100'
    """
    typed, wanted = asked.strip().lower(), name_words(asked)
    matcher = SequenceMatcher(None, b=typed)
    found = []
    for name in names:
        matcher.set_seq1(name.lower())
        own = name_words(name)
        likeness = max(matcher.ratio(), len(wanted & own) / max(1, len(wanted | own)))
        if likeness >= ALIKE:
            found.append((-likeness, name))
    return [name for _, name in sorted(found)[:most]]


def name_words(name: str) -> frozenset[str]:
    """Words and numbers of a name, each as ids write it."""
    return frozenset(SAME_WORD.get(word, word) for word in re.findall(r"[a-z]+|[0-9]+", name[:200].lower()))
