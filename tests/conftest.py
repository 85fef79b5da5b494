"""What every test shares: hypothesis profiles and the folder of published material beside the checkout."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
SHARE_A_PAGE = {f"tests/app/test_hosting_{name}.py" for name in ("replicas", "server", "slow")}
BESIDE_THE_PAGE = {
    f"tests/browser/test_{name}.py" for name in ("arrival", "explain", "files", "hosting", "own_config", "replicas", "share", "site")
}
"""Files whose tests with a browser go to a worker of their own, beside those of the page and its views."""

_QUIET = (HealthCheck.too_slow, HealthCheck.filter_too_much)
settings.register_profile("quick", max_examples=40, deadline=None, derandomize=True, suppress_health_check=_QUIET)
settings.register_profile("long", max_examples=3000, deadline=None, suppress_health_check=_QUIET)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's top folder."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """Published material that is not part of the repository; the test is skipped where it is absent."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("the folder of published material is not here")
    return folder


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """One worker for each half of the tests with a browser and for each file whose tests share a page; the rest go test by test."""
    from xdist.scheduler import LoadScopeScheduling

    class OneBrowser(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            if file.startswith("tests/browser/"):
                return f"browser {file in BESIDE_THE_PAGE}"
            return file if file in SHARE_A_PAGE else nodeid

    return OneBrowser(config, log)
