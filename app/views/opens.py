"""Words that open one of the folded inputs."""

from __future__ import annotations

from typing import Any

from app.live import block
from app.reading import text_key
from app.state import record_of


def opening(name: str, words: Any) -> dict[str, Any]:
    """Words that open the field of an input that is typed; where there is no such field, the words alone."""
    return opener(words, text_key(name), f"Opens {record_of(name).model_fields[name].title} under More inputs")


def opener(words: Any, key: str, title: str) -> dict[str, Any]:
    """Words that open the input of a key."""
    return block("button", words, type="button", class_="kv-open", data_open=key, title=title)
