"""What a test needs and is not here: it is skipped, with the reason, unless the check requires it."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def absent(what: str, reason: str) -> NoReturn:
    """Skip; fail where the environment variable KV_HANDOFF_TEST_{what} is `required`."""
    if os.environ.get(f"KV_HANDOFF_TEST_{what}") == "required":
        pytest.fail(f"{what.lower()} is required, but {reason}")
    pytest.skip(reason)
