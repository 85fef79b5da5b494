"""The folder of a static copy: whether it may be written, and how a new copy takes the place of an older one."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from kvmodel.errors import BadScenarioError

MARK = "kv-handoff-site.json"
"""Says that a folder is a copy, and which names in it are the copy's."""
PARTIAL = ".kv-handoff-partial"
"""What is being written; pages never name it."""


def opened(out: str) -> Path:
    """The folder, made where there is none. Raises BadScenarioError: not a folder, or one that holds something else."""
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        others = [path.name for path in folder.iterdir()]
        if others and MARK not in others:
            raise BadScenarioError(
                f"out: {out[-120:]!r} is not empty and not an earlier export; allowed: a new or empty folder, or one with {MARK}"
            )
        shutil.rmtree(folder / PARTIAL, ignore_errors=True)
        (folder / PARTIAL).mkdir()
        if not others:
            write_mark(folder, [])
    except OSError as error:
        raise refusal(out, error) from None
    return folder


def refusal(out: str, error: OSError) -> BadScenarioError:
    """What to say of a folder that cannot be written."""
    return BadScenarioError(f"out: cannot write to {out[-120:]!r}: {error.strerror or type(error).__name__}")


def named(folder: Path) -> list[str]:
    """Names in the folder that belong to the copy in it."""
    try:
        names = json.loads((folder / MARK).read_text(encoding="utf-8"))["names"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [name for name in names if isinstance(name, str) and name and name == Path(name).name and name[0] != "."]


def write_mark(folder: Path, names: Iterable[str]) -> None:
    """Say which names are the copy's."""
    (folder / MARK).write_text(json.dumps({"made_by": "kv-handoff export-site", "names": sorted(names)}) + "\n", encoding="utf-8")


def token_of(files: Iterable[tuple[str, str]]) -> str:
    """A short name for what files hold, from their names and hashes: the same for the same bytes."""
    return sha256("\n".join(f"{name} {digest}" for name, digest in sorted(files)).encode()).hexdigest()[:12]


def hashed(name: str, content: bytes) -> str:
    """A file's name with what it holds in it, so that browsers may keep it for ever: `site.1a2b3c4d5e6f.js`."""
    stem, _, suffix = name.partition(".")
    return f"{stem}.{sha256(content).hexdigest()[:12]}.{suffix}"


def taken(folder: Path, *, last: Iterable[str]) -> None:
    """Put what was written in its place: what pages load first, the pages of `last` then, and what nothing names any more goes.

    A reader of the older copy is served throughout; names that are not the copy's stay.
    """
    partial, pages, old = folder / PARTIAL, list(last), named(folder)
    new = [path.name for path in partial.iterdir()]
    write_mark(folder, {*old, *new})
    for name in sorted(new, key=lambda name: (name in pages, name)):
        if (folder / name).is_dir():
            os.replace(folder / name, partial / f"{name}.old")
        os.replace(partial / name, folder / name)
    for path in (folder / name for name in old if name not in new):
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
    write_mark(folder, new)
    shutil.rmtree(partial, ignore_errors=True)
