"""Fetching a configuration, against a hub of our own on loopback."""

import hashlib
import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.hub import is_repository
from tests.configs import QWEN3

BODY = json.dumps(QWEN3).encode()


class Hub(http.server.BaseHTTPRequestHandler):
    """Serves one repository's config.json; every other name is unknown."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        """Answer with what the client asks for first: commit, tag and length."""
        self.answer(body=False)

    def do_GET(self) -> None:
        """Answer with the file."""
        self.answer(body=True)

    def answer(self, *, body: bool) -> None:
        """The file, or that there is no such repository."""
        known = self.path.split("?")[0] == "/maker/some-model/resolve/main/config.json"
        self.send_response(200 if known else 404)
        self.send_header("Content-Length", str(len(BODY) if known else 0))
        if known:
            self.send_header("ETag", f'"{hashlib.sha256(BODY).hexdigest()[:40]}"')
            self.send_header("X-Repo-Commit", "0" * 40)
        else:
            self.send_header("X-Error-Code", "RepoNotFound")
        self.end_headers()
        if body and known:
            self.wfile.write(BODY)


@pytest.fixture
def hub() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def ask(endpoint: str, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HF_ENDPOINT": endpoint, "HF_HOME": str(home), "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_XET": "1"}
    environment |= {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    command = [sys.executable, "-m", "app.cli", *words]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)


def test_a_repository_is_fetched_and_read(hub: str, tmp_path: Path) -> None:
    done = ask(hub, tmp_path, "model", "maker/some-model", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["kv_bytes_per_token"] == 147_456
    done = ask(hub, tmp_path, "evaluate", "--model", "maker/some-model", "--json")
    assert json.loads(done.stdout)["kv"]["prompt_bytes"] == 8192 * 147_456


def test_an_unknown_repository_is_one_sentence(hub: str, tmp_path: Path) -> None:
    done = ask(hub, tmp_path, "model", "maker/other-model")
    assert (done.returncode, done.stdout) == (2, "")
    assert "'maker/other-model' cannot be fetched" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_without_a_network_it_is_one_sentence(tmp_path: Path) -> None:
    done = ask("http://127.0.0.1:9", tmp_path, "model", "maker/some-model")
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot be fetched" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("name", ["llama-3-70b", "a/b/c", "/etc", "../x", "a b/c", "https://x/y", "-x/y"])
def test_other_names_are_no_repositories(name: str) -> None:
    assert not is_repository(name)


def test_the_page_does_not_fetch() -> None:
    app = Path(__file__).parents[1] / "app"
    importers = {path.name for path in app.rglob("*.py") if "app.hub" in path.read_text(encoding="utf-8")}
    assert importers == {"model_names.py"}
    assert "model_names" not in "".join(path.read_text(encoding="utf-8") for path in (app / "views").rglob("*.py"))
