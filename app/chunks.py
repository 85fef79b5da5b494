"""Scripts of Streamlit's own that the page's elements need: its page asks for each only when the first element of the kind comes."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import streamlit as st

SCRIPTS = Path(st.__file__).parent / "static" / "static" / "js"
USED = ("BidiComponent", "Selectbox", "Slider", "TextInput", "Html", "Button", "ButtonGroup")
"""Elements of the page that have a script of their own, by the beginning of its name."""
_IMPORT = re.compile(r'(?:from|import)\s*"\./([\w.-]+\.js)"')


@cache
def late_scripts(html: str) -> tuple[str, ...]:
    """Names of the scripts that the page will ask for late, with all that they import, but for those that `html` names.

    Empty where the installed Streamlit keeps its scripts in another way: they then come when they are asked for.
    """
    waiting = [file.name for name in USED for file in sorted(SCRIPTS.glob(f"{name}.*.js"))]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in found or not (SCRIPTS / name).is_file():
            continue
        found.add(name)
        waiting += _IMPORT.findall((SCRIPTS / name).read_text(encoding="utf-8"))
    return tuple(name for name in sorted(found) if f"/{name}" not in html)
