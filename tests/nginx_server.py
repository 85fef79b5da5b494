"""Nginx in front of pages of this project, from the configuration that is shipped."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.hosting.nginx import configuration

NGINX = shutil.which("nginx", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"]))
MAIN = """
{user}
daemon off;
pid {folder}/pid;
error_log {folder}/errors warn;
worker_processes 1;
events {{ worker_connections 512; }}
http {{
    include {folder}/site.conf;
    {folders}
}}
"""
FOLDERS = ("client_body_temp_path", "proxy_temp_path", "fastcgi_temp_path", "uwsgi_temp_path", "scgi_temp_path")


@contextmanager
def nginx_server(replicas: list[str], folder: Path) -> Iterator[str]:
    """The address of an nginx that keeps its files in a folder; RuntimeError, with its words, where it does not start."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{free.getsockname()[1]}"
    (folder / "site.conf").write_text(configuration(replicas, listen=place, cache=f"{folder}/cache"), encoding="utf-8")
    folders = "\n    ".join(f"{name} {folder}/{name};" for name in FOLDERS)
    main = MAIN.format(folder=folder, folders=folders, user="user root;" if os.geteuid() == 0 else "")
    (folder / "nginx.conf").write_text(main, encoding="utf-8")
    process = subprocess.Popen([NGINX or "nginx", "-e", folder / "errors", "-c", folder / "nginx.conf"], stderr=subprocess.DEVNULL)
    try:
        host, port = place.split(":")
        for _ in range(100):
            if process.poll() is not None:
                raise RuntimeError((folder / "errors").read_text(encoding="utf-8"))
            try:
                socket.create_connection((host, int(port)), timeout=1).close()
                break
            except OSError:
                time.sleep(0.05)
        yield place
    finally:
        process.terminate()
        process.wait(timeout=10)
