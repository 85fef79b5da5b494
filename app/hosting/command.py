"""`kv-handoff serve`: start the page by its settings; what is said on the command line goes before them."""

from __future__ import annotations

from app.address import check_address
from app.hosting.settings import settings


def start(*, address: str | None, port: str | None, browser: bool) -> None:
    """Serve the page until it is ended. Raises BadScenarioError that names the flag or variable."""
    asked = settings()
    here, number = address or asked.address, port or str(asked.port)
    check_address(here, number)
    from app.serve import serve

    serve(asked.model_copy(update={"address": here, "port": int(number)}), browser=browser)
