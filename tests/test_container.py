"""The container: what it is built from, and, where containers can be built, the page it serves."""

import json
import os
import re
import shutil
import subprocess
import time
import tomllib
import urllib.request
import uuid
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
PINS = dict(re.findall(r"^([a-z0-9-]+)==(\S+)$", (ROOT / ".ci" / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE))
MOST_MB = 700


def test_every_line_of_the_constraints_pins_a_version_and_names_no_place():
    lines = (ROOT / ".ci" / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert all(line.startswith("# ") or re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", line) for line in lines)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for requirement in project["dependencies"]:
        assert re.match(r"[a-z0-9-]+", requirement)[0] in PINS


def test_the_image_is_built_in_stages_and_runs_without_rights():
    assert len(re.findall(r"^FROM ", DOCKERFILE, re.MULTILINE)) == 3
    last = DOCKERFILE.rpartition("\nFROM ")[2]
    assert re.search(r"^USER [1-9]\d*:[1-9]\d*$", last, re.MULTILINE)
    assert "HEALTHCHECK" in last
    assert "pip" not in last
    assert "-c constraints.txt" in DOCKERFILE
    copied = {word for line in re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.MULTILINE) for word in line.split()}
    shown = {line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line.startswith("!")}
    assert copied <= shown


def ran(*words, **options):
    return subprocess.run(words, capture_output=True, text=True, cwd=ROOT, timeout=600, check=False, **options)


@pytest.fixture
def image():
    """A built image's name; skipped, with the reason, where none can be built."""
    if shutil.which("buildah") is None or shutil.which("podman") is None:
        pytest.skip("buildah and podman, which build and run the container, are not here")
    name = f"kv-handoff-test-{uuid.uuid4().hex[:8]}"
    bases = [
        f"--build-arg={key}={os.environ[f'KV_HANDOFF_IMAGE_{key}']}" for key in ("BASE", "NODE") if f"KV_HANDOFF_IMAGE_{key}" in os.environ
    ]
    built = ran("buildah", "build", "--format=docker", *bases, "-t", name, ".")
    if built.returncode and re.search(r"(?i)initializing source|pulling|no such host|dial tcp|not permitted", built.stderr):
        pytest.skip(f"the base image cannot be had here: {built.stderr.strip().splitlines()[-1][:200]}")
    assert built.returncode == 0, built.stderr[-2000:]
    yield name
    ran("buildah", "rmi", "-f", name)


def test_the_container_serves_the_page_from_a_read_only_file_system(image):
    size = json.loads(ran("podman", "image", "inspect", image).stdout)[0]["Size"] / 1e6
    assert size <= MOST_MB, f"{size:.0f} MB"
    started = ran("podman", "run", "-d", "--rm", "--read-only", "--tmpfs", "/tmp", "-p", "127.0.0.1::8501", image)
    assert started.returncode == 0, started.stderr[-2000:]
    container = started.stdout.strip()
    try:
        address = ran("podman", "port", container, "8501").stdout.strip()
        for _ in range(100):
            try:
                assert urllib.request.urlopen(f"http://{address}/healthz", timeout=2).read() == b"ok"
                break
            except OSError:
                time.sleep(0.3)
        page = urllib.request.urlopen(f"http://{address}/embed/timeline.html").read()
        assert b"kvHandoffChart" in page
        assert ran("podman", "healthcheck", "run", container).returncode == 0
        assert ran("podman", "exec", container, "id", "-u").stdout.strip() == "10001"
    finally:
        ran("podman", "rm", "-f", container)
