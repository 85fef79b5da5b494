"""Report a wrong number: a message with the scenario, the version and the figure, to where this installation wants it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import kvmodel
from app.flags import flag
from kvmodel.explain import Explanation

SETTING = "KV_HANDOFF_REPORT_TO"
"""Environment variable: where reports go, as `mailto:someone@example.org` or a tracker's page for a new issue.

`{title}` and `{body}` in it are replaced; without them the usual names are appended: subject and body of a mail,
title and body of an issue.
"""
SCHEMES = ("mailto:", "https://", "http://")


def address() -> str:
    """Where reports go; empty where it is not set, or is no address."""
    asked = os.environ.get(SETTING, "").strip()
    return asked if asked.startswith(SCHEMES) else ""


def title_of(told: Explanation) -> str:
    """What the message is about."""
    return f"Wrong number: {told.figure}"


def body_of(told: Explanation, command: str, link: str = "") -> str:
    """The message: the figure to its last digit, the version, and how to get it again."""
    lines = [
        f"Figure: {told.figure} ({told.name})",
        f"Value: {told.value!r} {told.unit}".rstrip(),
        f"Version: kv-handoff {kvmodel.__version__}",
        *([f"Page: {link}"] if link else []),
        f"Command: {command}",
        "It should be: ",
        "Because (measurement, page or configuration): ",
    ]
    return "\n".join(lines)


def link_of(told: Explanation, body: str) -> str:
    """The address with the message filled in; empty where none is set."""
    to, title = address(), quote(title_of(told), safe="")
    if not to:
        return ""
    if "{body}" in to or "{title}" in to:
        return to.replace("{title}", title).replace("{body}", quote(body, safe=""))
    subject = "subject" if to.startswith("mailto:") else "title"
    return f"{to}{'&' if '?' in to else '?'}{subject}={title}&body={quote(body, safe='')}"


def command_of(name: str, changed: Mapping[str, Any], figure: str) -> str:
    """The command line that explains a figure again."""
    words = [f"{flag(key)} {getattr(value, 'id', value)}" for key, value in changed.items()]
    return " ".join([f"kv-handoff {name}", *words, f"--explain {figure}"])
