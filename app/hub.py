"""Fetch a model's configuration from a model hub, where the optional package and a network are there.

Only the command line does this: the page never fetches what a visitor names.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path

from kvmodel.config import ParsedConfig, parse_model_config
from kvmodel.errors import BadConfigError

REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
"""`organisation/name`."""
TIMEOUT_SECONDS = 10


def is_repository(name: str) -> bool:
    """Whether a name has the form of a repository."""
    return REPOSITORY.fullmatch(name) is not None


def fetch_config(repository: str, *, speculation: bool = False) -> ParsedConfig:
    """Read the `config.json` of a repository; `HF_ENDPOINT` and `HF_TOKEN` count as usual.

    Raises BadConfigError: the package is missing, the hub cannot be reached, there is no such
    repository or file, or it cannot be read as a configuration.
    """
    try:
        from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
        from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, RepositoryNotFoundError
    except ImportError:
        raise BadConfigError(
            f"model: {repository!r} is not in the registry; pip install 'kv-handoff[hub]' to fetch its configuration, or name a config.json"
        ) from None
    logging.getLogger("huggingface_hub").setLevel(logging.CRITICAL)
    try:
        # Asked once: the download itself would ask six times, for half a minute, of a hub that is out of reach.
        try:
            get_hf_file_metadata(hf_hub_url(repository, "config.json"), timeout=TIMEOUT_SECONDS)
            reached = True
        except HfHubHTTPError:
            raise
        except Exception:  # of whichever library the hub's package asks with
            reached = False
        path = hf_hub_download(repository, "config.json", etag_timeout=TIMEOUT_SECONDS, local_files_only=not reached)
    except (RepositoryNotFoundError, EntryNotFoundError) as error:
        offline = "offline" if type(error).__name__.startswith("Local") else "no such repository, or it has no config.json, or it is gated"
        raise BadConfigError(f"model: {repository!r} cannot be fetched: {offline}") from None
    except (HfHubHTTPError, OSError, ValueError) as error:
        raise BadConfigError(f"model: {repository!r} cannot be fetched: {_first_line(error)}") from None
    return parse_model_config(Path(path).read_text(encoding="utf-8"), name=repository, speculation=speculation)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:160]
