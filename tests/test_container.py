"""The container: what it is built from, and, where containers can be built, the page it serves."""

import asyncio
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
import urllib.request
import uuid
from pathlib import Path

import pytest
from websockets.asyncio.client import connect

from app.hosting.wire import STREAM
from tests.load_page import Reader
from tests.page_server import page_process

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


READ_ONLY = """
mount --make-rprivate /
for point in / "$(stat -c %m "$ROOT")"; do mount -o remount,bind,ro "$point"; done
mount -t tmpfs -o mode=1777 tmpfs "$TMPDIR"
cd /
exec unshare --user --map-user=10001 --map-group=10001 -- "$@"
"""
PROBE = """
import os, pathlib, tempfile
assert os.getuid() == 10001
for folder in (os.environ["ROOT"] + "/app", os.environ["HOME"], os.getcwd()):
    try:
        pathlib.Path(folder, "written").write_text("")
    except OSError:
        continue
    raise SystemExit(folder + " can be written")
tempfile.TemporaryFile().close()
"""


def test_the_page_needs_no_rights_and_writes_nowhere_but_in_its_temporary_folder(tmp_path):
    within = ["unshare", "--mount", *(["--map-root-user"] if os.geteuid() else []), "--", "sh", "-ec", READ_ONLY, "sh"]
    place = {"ROOT": str(ROOT), "PYTHONPATH": str(ROOT), "HOME": "/nowhere", "TMPDIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    tried = ran(*within, sys.executable, "-c", PROBE, env={**os.environ, **place}) if shutil.which("unshare") else None
    if tried is None or re.search(r"unshare|mount:", tried.stderr):
        pytest.skip(f"no file system can be made read-only here: {tried.stderr[-200:] if tried else 'there is no unshare'}")
    assert tried.returncode == 0, tried.stderr
    with page_process(within=within, **place) as (address, _):
        assert b"kvHandoffChart" in urllib.request.urlopen(f"{address}/embed/timeline.html").read()
        assert asyncio.run(first_run(address)).options


async def first_run(address):
    """A reader whose page was drawn."""
    async with connect(address.replace("http", "ws", 1) + STREAM, subprotocols=["streamlit"], max_size=None, close_timeout=0.3) as line:
        reader = Reader(line)
        await reader.run()
        return reader


@pytest.fixture(scope="module")
def image():
    """A built image's name; skipped, with the reason, where none can be built.

    KV_HANDOFF_TEST_IMAGE_BASE and _NODE name other images to start from, KV_HANDOFF_TEST_IMAGE_OPTIONS has more options of `buildah build`.
    """
    if shutil.which("buildah") is None:
        pytest.skip("buildah, which builds the container, is not here")
    name = f"kv-handoff-test-{uuid.uuid4().hex[:8]}"
    given = {key: os.environ.get(f"KV_HANDOFF_TEST_IMAGE_{key}", "") for key in ("BASE", "NODE", "OPTIONS")}
    options = [*shlex.split(given.pop("OPTIONS")), *(f"--build-arg={key}={value}" for key, value in given.items() if value)]
    built = ran("buildah", "build", "--format=docker", *options, "-t", name, ".")
    if built.returncode and re.search(r"(?i)initializing source|pulling|no such host|dial tcp|not permitted", built.stderr):
        pytest.skip(f"the base image cannot be had here: {built.stderr.strip().splitlines()[-1][:200]}")
    assert built.returncode == 0, built.stderr[-2000:]
    yield name
    ran("buildah", "rmi", "-f", name)


def test_the_image_is_small_and_says_how_it_is_run(image):
    told = json.loads(ran("buildah", "inspect", "--type", "image", image).stdout)["Docker"]
    assert told["config"]["User"] == "10001:10001"
    assert told["config"]["Healthcheck"]["Test"][0] == "CMD"
    size = next(one["size"] for one in json.loads(ran("buildah", "images", "--json", image).stdout))
    number, unit = re.fullmatch(r"([\d.]+) ([MG])B", size).groups()
    assert float(number) * {"M": 1, "G": 1000}[unit] <= MOST_MB, size


def test_the_container_serves_the_page_from_a_read_only_file_system(image):
    """KV_HANDOFF_TEST_PODMAN has the command with options of its own, KV_HANDOFF_TEST_RUN more options of `podman run`."""
    if shutil.which("podman") is None:
        pytest.skip("podman, which runs the container, is not here")
    podman = shlex.split(os.environ.get("KV_HANDOFF_TEST_PODMAN", "podman"))
    options = shlex.split(os.environ.get("KV_HANDOFF_TEST_RUN", ""))
    started = ran(*podman, "run", "-d", "--rm", "--read-only", "--tmpfs", "/tmp", "-p", "127.0.0.1::8501", *options, image)
    if started.returncode and re.search(r"OCI|cgroup", started.stderr):
        pytest.skip(f"containers do not run here: {started.stderr.strip().splitlines()[-1][:200]}")
    assert started.returncode == 0, started.stderr[-2000:]
    container = started.stdout.strip()
    try:
        address = ran(*podman, "port", container, "8501").stdout.strip()
        for _ in range(100):
            try:
                assert urllib.request.urlopen(f"http://{address}/healthz", timeout=2).read() == b"ok"
                break
            except OSError:
                time.sleep(0.3)
        page = urllib.request.urlopen(f"http://{address}/embed/timeline.html").read()
        assert b"kvHandoffChart" in page
        assert asyncio.run(first_run(f"http://{address}")).options
        assert ran(*podman, "exec", container, "touch", "/opt/venv/written").returncode != 0
        assert ran(*podman, "healthcheck", "run", container).returncode == 0
        assert ran(*podman, "exec", container, "id", "-u").stdout.strip() == "10001"
    finally:
        ran(*podman, "rm", "-f", container)
