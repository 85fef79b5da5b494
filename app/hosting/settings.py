"""Settings of a hosted page, from environment variables that begin with KV_HANDOFF_."""

from __future__ import annotations

import ipaddress
import logging
import os
import re
from collections.abc import Iterable
from functools import cache
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from app.report import SCHEMES
from kvmodel.errors import BadScenarioError, nearest_names
from kvmodel.scenario import allowed_values

PREFIX = "KV_HANDOFF_"
OF_TESTS = f"{PREFIX}TEST_"
"""Beginning of the variables that only tests read."""
_SOURCE = re.compile(r"'none'|'self'|\*|(https?://)?(\*\.)?[A-Za-z0-9.-]+(:[0-9]+|:\*)?", re.ASCII)


def _address(text: str) -> str:
    """An address of a page, without a slash at its end, or nothing."""
    parts = urlsplit(text)
    whole = parts.scheme in ("http", "https") and parts.hostname and not parts.query and not parts.fragment
    if text and (not whole or re.search(r"[\s\"'<>;,]", text)):
        raise ValueError("allowed: an address that begins with https:// or http://, without ? and #")
    return text.rstrip("/")


def _sources(text: str) -> str:
    """Origins as a Content-Security-Policy names them."""
    words = text.replace(",", " ").split()
    if not words or not all(_SOURCE.fullmatch(word) for word in words):
        raise ValueError("allowed: 'none', 'self', * or origins such as https://blog.example, with spaces between")
    return " ".join(words)


def _hosts(text: str) -> str:
    """Names of hosts, lower case, without ports."""
    words = text.lower().replace(",", " ").split()
    if not all(re.fullmatch(r"(\*\.)?[a-z0-9.-]+|\[[0-9a-f:.]+\]", word, re.ASCII) for word in words):
        raise ValueError("allowed: host names without ports, such as kv.example or *.kv.example, with spaces between")
    return " ".join(words)


def _proxies(text: str) -> str:
    """Addresses or networks of proxies, or * for any."""
    words = text.replace(",", " ").split()
    if "*" in words:
        return "*"
    try:
        return " ".join(str(ipaddress.ip_network(word, strict=False)) for word in words)
    except ValueError:
        raise ValueError("allowed: IP addresses or networks such as 10.0.0.0/8, with spaces between, or *") from None


def _report(text: str) -> str:
    """An address that a report can be sent to, or nothing."""
    if text and not text.startswith(SCHEMES):
        raise ValueError(f"allowed: an address that begins with {', '.join(SCHEMES)}")
    return text


Address = Annotated[str, AfterValidator(_address)]


class Settings(BaseSettings):
    """Every setting with its default; `KV_HANDOFF_PORT=80` sets `port`."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore", use_attribute_docstrings=True)

    address: str = Field("127.0.0.1", max_length=253)
    """Address to listen on; 0.0.0.0 for all."""
    port: int = Field(8501, ge=1, le=65_535)
    """Port to listen on."""
    public_url: Address = ""
    """Where readers find the page, for absolute links in frames and files, such as https://kv.example/handoff; never the request's Host."""
    allowed_hosts: Annotated[str, AfterValidator(_hosts)] = ""
    """Host names that are answered, others get 400; empty for any."""
    trusted_proxies: Annotated[str, AfterValidator(_proxies)] = ""
    """Proxies whose X-Forwarded-For and -Proto are believed: addresses, networks, or * for any; empty for none."""
    frame_ancestors: Annotated[str, AfterValidator(_sources)] = "*"
    """Who may frame charts (/embed/) and embedded views (?embed=true): origins, 'self', 'none', or * for anyone."""
    page_frame_ancestors: Annotated[str, AfterValidator(_sources)] = "'self'"
    """Who may frame the whole page."""
    max_sessions: int = Field(100, ge=1, le=100_000)
    """Readers at once; the next sees a page that says it is full."""
    max_sessions_per_address: int = Field(25, ge=0, le=100_000)
    """Of these, from one client address (an IPv6 network of 64 bits counts as one; loopback is not counted); 0 for no limit."""
    rate_per_second: float = Field(20, ge=0, le=1e6)
    """Charts that one client address may ask for each second, in the long run; 0 for no limit."""
    rate_burst: int = Field(100, ge=1, le=1_000_000)
    """Charts that one client address may ask for at once."""
    chart_cache_mb: int = Field(64, ge=1, le=10_000)
    """Megabytes of rendered charts to keep."""
    prepare: bool = False
    """1 makes the first view at all positions of its sliders before the page answers: some 3 s, for a page with many readers."""
    slow_seconds: float = Field(20, ge=0.1, le=3600)
    """Time that a client has to send a request, and to take each part of the answer."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """What is logged; info has a line for each request."""
    static_url: Address = ""
    """A static copy of the site, which a full page names."""
    report_to: Annotated[str, AfterValidator(_report)] = ""
    """Where a wrong number is reported: `mailto:someone@example.org`, or a tracker's page for a new issue."""


@cache
def settings() -> Settings:
    """The settings of this process; what begins like one and is none is logged. Raises BadScenarioError that names the variable."""
    for said in misspelt(os.environ):
        logging.getLogger("kv_handoff.settings").warning(said)
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        raise BadScenarioError(f"{PREFIX}{name.upper()}: got {str(first['input'])[:60]!r}; {_allowed(name, first)}") from None


def _allowed(name: str, error: ErrorDetails) -> str:
    """What a setting takes: as its own check says it, or by its kind and bounds."""
    if error["type"] == "value_error":
        return error["msg"].removeprefix("Value error, ")
    if error["type"] == "string_too_long":
        return f"allowed: up to {error['ctx']['max_length']} characters"
    if Settings.model_fields[name].annotation is bool:
        return "allowed: 0 or 1"
    return f"allowed: {allowed_values(Settings, name)}"


def misspelt(names: Iterable[str]) -> list[str]:
    """A sentence for each variable that begins like a setting and is none, with those most like it."""
    known = [name.upper() for name in Settings.model_fields]
    asked = sorted(name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX) and not name.startswith(OF_TESTS))
    strange = {name: nearest_names(name, known, 1) for name in asked if name not in known}
    return [f"{PREFIX}{name[:80]} is no setting and changes nothing; {_instead(near)}" for name, near in strange.items()]


def _instead(near: list[str]) -> str:
    return f"did you mean {PREFIX}{near[0]}?" if near else "kv-handoff serve --help lists what there is."


def settings_help() -> str:
    """Every variable, its default and what it does, for `kv-handoff serve --help`."""
    lines = ["environment variables:"]
    for name, default, what in listed():
        lines += [f"  {name}={default}", f"      {what}"]
    return "\n".join(lines)


def listed() -> list[tuple[str, str, str]]:
    """Name, default and meaning of every variable."""
    defaults = {name: field.default for name, field in Settings.model_fields.items()}
    shown = {name: str(int(default) if isinstance(default, bool) else default) for name, default in defaults.items()}
    return [(PREFIX + name.upper(), shown[name], field.description or "") for name, field in Settings.model_fields.items()]
