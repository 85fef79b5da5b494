"""`kv-handoff nginx`: the configuration of nginx in front of several replicas, from a template that explains itself."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from pathlib import Path

from app.flags import read_flags
from app.hosting.wire import small_page
from kvmodel.errors import BadScenarioError

TEMPLATE = Path(__file__).with_name("nginx.conf")
CACHE = "/var/lib/nginx/kv-handoff"
_PLACE = re.compile(r"(?:(?P<v4>[0-9.]+)|\[(?P<v6>[0-9a-f:]+)\]):(?P<port>[0-9]{1,5})", re.ASCII)


def arguments(command: argparse.ArgumentParser) -> None:
    """The flags of the command."""
    command.add_argument("--replica", action="append", default=[], metavar="IP:PORT", help="where one replica listens; once for each")
    command.add_argument("--listen", default="8080", metavar="[IP:]PORT", help="where readers come in")
    command.add_argument("--cache", default=CACHE, metavar="FOLDER", help="folder of cached charts and files; its parent has to be there")


def run(options: argparse.Namespace, rest: Sequence[str]) -> tuple[dict[str, object], str]:
    """The command's answer. Raises BadScenarioError for an address or folder that cannot be used."""
    read_flags(rest, [])
    made = configuration(options.replica, listen=options.listen, cache=options.cache)
    return {"replicas": options.replica, "configuration": made}, made.rstrip()


def configuration(replicas: Sequence[str], *, listen: str, cache: str = CACHE) -> str:
    """A file for nginx's http block: readers stay with a replica while it is there, charts are cached.

    Raises BadScenarioError for an address or folder that cannot be used.
    """
    if not replicas:
        raise BadScenarioError("replica: none was named; allowed: --replica 127.0.0.1:8501 --replica 127.0.0.1:8502")
    for replica in replicas:
        _check("replica", replica)
    _check("listen", listen if ":" in listen else f"0.0.0.0:{listen}")
    if not re.fullmatch(r"/[\w./-]+", cache, re.ASCII):
        raise BadScenarioError(f"cache: got {cache[:60]!r}; allowed: a folder's whole path of letters, digits, '.', '-' and '_'")
    away = small_page("The page is away", "It will be back in a moment; this tries again every 5 seconds.", refresh=5).decode()
    words = ["kv-handoff nginx", *(f"--replica {one}" for one in replicas), f"--listen {listen}"]
    numbered = list(enumerate(replicas))
    parts = {
        "COMMAND": " ".join([*words, f"--cache {cache}"] if cache != CACHE else words),
        "ANY": _lines(f"server {one} max_fails=0;" for one in replicas),
        "OWN": "\n".join(_own(number, replicas) for number, _ in numbered),
        "CHARTS": _lines(f"server {one} max_fails=1 fail_timeout=5s;" for one in replicas),
        "CHOSEN": _lines(f"{number} kv_{number};" for number, _ in numbered),
        "SERVED": _lines(f'"~(^|[ ,]){re.escape(one)}$" {number};' for number, one in numbered),
        "CACHE": cache,
        "LISTEN": listen,
        "AWAY": away,
    }
    return re.sub(r"@([A-Z]+)@", lambda found: parts[found[1]], TEMPLATE.read_text(encoding="utf-8"))


def _check(name: str, place: str) -> None:
    """Refuse what is no address with a port: nginx names a replica by its address, which a host name does not tell."""
    found = _PLACE.fullmatch(place)
    try:
        if found and ip_address(found["v4"] or found["v6"]) and 1 <= int(found["port"]) <= 65_535:
            return
    except ValueError:
        pass
    raise BadScenarioError(f"{name}: got {place[:60]!r}; allowed: an IP address and a port, such as 127.0.0.1:8501 or [::1]:8501")


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(f"    {line}" for line in lines)


def _own(number: int, replicas: Sequence[str]) -> str:
    """The group of one replica, with the others to fall back on."""
    others = [f"server {one} max_fails=0 backup;" for one in replicas if one != replicas[number]]
    servers = _lines([f"server {replicas[number]} max_fails=0;", *others])
    return f"upstream kv_{number} {{\n    zone kv_{number} 64k;\n{servers}\n    keepalive 16;\n    keepalive_timeout 4s;\n}}"
