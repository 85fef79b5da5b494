"""`kv-handoff serve`: start the page by its settings; what is said on the command line goes before them."""

from __future__ import annotations

import socket

from app.hosting.settings import settings
from kvmodel.errors import BadScenarioError


def start(*, address: str | None, port: str | None, browser: bool) -> None:
    """Serve the page until it is ended. Raises BadScenarioError that names the flag or variable."""
    asked = settings()
    here, number = address or asked.address, port or str(asked.port)
    check_address(here, number)
    from app.serve import serve

    serve(asked.model_copy(update={"address": here, "port": int(number)}), browser=browser)


def check_address(address: str, port: str) -> None:
    """Refuse an address or a port that cannot be listened on, in one sentence."""
    if not (port.isascii() and port.isdigit() and 1 <= int(port) <= 65_535):
        raise BadScenarioError(f"port: got {port[:40]!r}; allowed: a whole number from 1 to 65,535")
    try:
        family = socket.getaddrinfo(address, int(port), type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind((address, int(port)))
    except (OSError, UnicodeError) as error:
        raise BadScenarioError(
            f"address: cannot listen on {address[:60]!r}, port {port}: {getattr(error, 'strerror', None) or error}"
        ) from None
