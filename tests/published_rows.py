"""Rows of a table of measurements in the form of the published folder, as measurements that a transport predicts.

Columns used: id, category, url, link, transport, gpu, nic_count, block_bytes, n_msgs, nominal_GBps, bytes,
measured_ms, measured_GBps, note. Which transport a row belongs to follows from its words alone.
"""

from __future__ import annotations

import csv
from datetime import date
from pathlib import Path

from kvmodel.records.measurement import Measurement

WORDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("efa", ("efa",)),
    ("tcp", ("tcp", "ethernet")),
    ("nvlink", ("nvlink", "cuda_ipc", "mnnvl", "xgmi")),
    ("nccl", ("nccl",)),
    ("pcie", ("pcie", "memcpy", "gds", "nvme", "host_to_device", "h2d", "io_uring")),
    ("transfer-engine", ("mooncake te", "transfer engine", "transfer_engine", "nixl mooncake", "concurrency 64", "production remote")),
    ("connector", ("kv_transfer",)),
    ("rdma", ("",)),
)
"""Transports and the words that name them, the first that fits: what is said of the medium before what is said of the program."""

HOST = ("host", "cpu", "dram", "concurrency 64", "production remote reads")
SPREAD = {"kv_transfer", "link_bw", "per_message", "h2d", "storage", "latency"}


def transport_of(row: dict[str, str]) -> str | None:
    """The transport a row's words name; None for rows that are no transfer."""
    if row["category"] not in SPREAD:
        return None
    if "connector" in row["transport"].lower() and "mooncake" in row["transport"].lower():
        return "connector"
    words = " ".join((row["link"], row["transport"], row["category"])).lower()
    return next(name for name, marks in WORDS if any(mark in words for mark in marks))


def quantity(text: str, unit: str) -> str | None:
    """A cell with its unit, None where it is empty."""
    return f"{text} {unit}" if text else None


def whole(text: str) -> int | None:
    """A whole number, None where the cell holds none."""
    return int(float(text)) if text.replace(".", "", 1).isdigit() else None


def read_table(path: Path) -> list[Measurement]:
    """Rows with a time or a rate."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["measured_ms"] or row["measured_GBps"]]
    return [measurement(row) for row in rows]


def measurement(row: dict[str, str]) -> Measurement:
    """One row as a measurement."""
    timed = bool(row["measured_ms"] and row["bytes"])
    words = " ".join((row["link"], row["transport"], row["source"])).lower()
    cells = {
        "source": row["url"] if row["url"].startswith("https://") else f"https://{row['url'].replace(' ', '/')}",
        "transport": transport_of(row),
        "host_memory": any(mark in words for mark in HOST),
        "nics": whole(row["nic_count"]),
        "message_bytes": quantity(row["block_bytes"], "B"),
        "messages": whole(row["n_msgs"]),
        "nominal": quantity(row["nominal_GBps"], "GB/s"),
        "nominal_source": row["nominal_basis"] or "the table" if row["nominal_GBps"] else None,
        "bytes": quantity(row["bytes"], "B"),
        "seconds": quantity(row["measured_ms"], "ms"),
        "bandwidth": None if timed else quantity(row["measured_GBps"], "GB/s"),
        "steady": "pipelined BW" in row["note"] and (whole(row["bytes"]) or 0) > 2,
    }
    graded = {"category": row["category"], "confidence": row["confidence"] or "low"}
    return Measurement.model_validate({"id": f"table/{row['id']}", "checked": date(2026, 11, 29), **graded, **cells})
