"""Terms a newcomer meets on the page, explained where they stand and together under Method."""

from __future__ import annotations

import re
from typing import Any

WORDS = {
    "attention DP": "Attention replicas inside one instance: each keeps whole requests, in place of splitting every request's heads.",
    "block": "The tokens whose KV an engine keeps and sends together, often 16 or 64.",
    "decode step": "One pass of the decode side, which gives every request in its batch one more token.",
    "exposed transfer": "The part of the time on the wire that prefill does not hide: decode waits for it.",
    "first decode step": "Decode's first pass over the whole cache, where decode makes the first token.",
    "first token": "What the user sees first; the time until it comes is TTFT.",
    "fixed handoff": "What the engine spends on each handoff whatever its bytes: dispatch, notification, admission.",
    "KV": "Keys and values of every token in every layer, which decode needs so as not to compute the prompt again.",
    "lane": "One link used from one side to the other, such as one NIC; a handoff may use several side by side.",
    "MLA": "Multi-head latent attention: one latent row a token in place of keys and values by head.",
    "NIC": "The network card of a GPU or of a node; what a lane between nodes runs on.",
    "Time to first token": "TTFT: from the request's arrival to its first token, here without queueing.",
    "TP": "Tensor parallelism: the GPUs of one instance that share every layer, each with some of its heads.",
    "TPOT": "Time per output token: the mean of the decode steps of a request.",
}
"""Terms and what they mean, in a sentence."""
_FOUND = re.compile(rf"\b({'|'.join(sorted(WORDS, key=len, reverse=True))})s?\b")


def explained_words(text: str, *words: str) -> list[Any]:
    """A text with its terms explained in place, each where it first stands; only `words` where they are named."""
    parts: list[Any] = []
    said: set[str] = set()
    rest = 0
    for found in _FOUND.finditer(text):
        word = found[1]
        if word in said or (words and word not in words):
            continue
        said.add(word)
        parts += [text[rest : found.start()], {"tag": "abbr", "title": WORDS[word], "children": [found[0]]}]
        rest = found.end()
    return [part for part in [*parts, text[rest:]] if part != ""]
