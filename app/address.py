"""Whether the page can listen where it is asked to, said before anything is started."""

from __future__ import annotations

import socket

from kvmodel.errors import BadScenarioError


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
