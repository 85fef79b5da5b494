"""Every published figure that the model can express, with the convention it was published under.

`golden/published.csv` holds a row a figure: what the page prints, what the arithmetic gives exactly,
the convention that leads from one to the other, and how far apart the two may lie.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from kvmodel import Scenario, Turn, agent_turn, critical_lengths, evaluate, find_model
from kvmodel.cache import model_cache
from kvmodel.compute import weight_bytes
from kvmodel.flop import layer_flop
from kvmodel.pairs import full_pairs
from kvmodel.parameters import layer_parameters, model_parameters
from kvmodel.quantity import parse_quantity
from kvmodel.registry import accelerators

TABLE = Path(__file__).parent / "golden" / "published.csv"
L70 = find_model("llama-3-70b")
B200 = accelerators()["b200-sxm"]
ROUNDED = 5e-4
"""Exact figures in units other than bytes are written with four digits."""


def per_token(model: str) -> float:
    return model_cache(find_model(model), kv_dtype="bf16").bytes_per_token


def prompt(model: str, tokens: int) -> float:
    return evaluate(Scenario(model=model, prompt_tokens=tokens)).kv.prompt_bytes


def wire(model: str, tokens: int) -> float:
    return evaluate(Scenario(model=model, prompt_tokens=tokens)).transfer.seconds


def thousand(batch: int, link: str = "ib-ndr-400", gbytes_per_s: float | None = None) -> Scenario:
    return Scenario(prompt_tokens=1024, batch=batch, link=link, link_gbytes_per_s=gbytes_per_s)


def request() -> tuple[float, float]:
    """(share of the handoff, seconds of decode) of the published request."""
    result = evaluate(Scenario(prefill_seconds=0.4, decode_step_seconds=0.020))
    return result.gap_seconds / result.request_seconds, result.request_seconds - result.gap_seconds - 0.4


@cache
def edges(design: str) -> dict[tuple[str, str], tuple[float, float]]:
    rows = agent_turn(Scenario(), Turn(history_tokens=30_000, delta_tokens=2_000, generated_tokens=500)).designs
    row = next(row for row in rows if row.id == design and row.warm)
    found = {(edge.source, edge.target): (edge.bytes, edge.seconds) for edge in row.edges if not edge.text}
    return {**found, ("all", "once"): (row.unique_bytes, 0.0)}


def layer_attention(pairs: float) -> float:
    return layer_flop(L70.groups[0], L70.hidden).pair * pairs


FIGURES: dict[str, tuple[Callable[[], float], str]] = {
    "70B KV per token": (lambda: per_token("llama-3-70b"), "B"),
    "8B KV per token": (lambda: per_token("llama-3.1-8b"), "B"),
    "V3 latent per token": (lambda: per_token("deepseek-v3"), "B"),
    "7B MHA KV per token": (lambda: per_token("llama-2-7b"), "B"),
    "70B 8k prompt": (lambda: prompt("llama-3-70b", 8192), "B"),
    "70B 32k prompt": (lambda: prompt("llama-3-70b", 32_768), "B"),
    "8B 32k prompt": (lambda: prompt("llama-3.1-8b", 32_768), "B"),
    "V3 32k prompt": (lambda: prompt("deepseek-v3", 32_768), "B"),
    "70B 32k over 50 GB/s": (lambda: wire("llama-3-70b", 32_768), "s"),
    "8B 32k over 50 GB/s": (lambda: wire("llama-3.1-8b", 32_768), "s"),
    "V3 32k over 50 GB/s": (lambda: wire("deepseek-v3", 32_768), "s"),
    "70B 8k over 50 GB/s": (lambda: wire("llama-3-70b", 8192), "s"),
    "70B 8k share of the request": (lambda: request()[0], "1"),
    "500 tokens at 20 ms": (lambda: request()[1], "s"),
    "design A bytes": (lambda: edges("recompute")["all", "once"][0], "B"),
    "design A wire": (lambda: edges("recompute")["prefill", "decode"][1], "s"),
    "design B delta": (lambda: edges("pool")["prefill", "pool"][0], "B"),
    "design B delta wire": (lambda: edges("pool")["prefill", "pool"][1], "s"),
    "design B generated": (lambda: edges("pool")["decode", "pool"][0], "B"),
    "design B bytes": (lambda: edges("pool")["all", "once"][0], "B"),
    "design C bytes": (lambda: edges("sticky")["all", "once"][0], "B"),
    "layer parameters": (lambda: layer_parameters(L70.groups[0], L70.hidden).total, "parameters"),
    "layer matmul": (lambda: layer_flop(L70.groups[0], L70.hidden).token * 8192, "FLOP"),
    "layer attention over all S^2": (lambda: layer_attention(8192**2), "FLOP"),
    "layer attention, causal": (lambda: layer_attention(full_pairs(8192, 0)), "FLOP"),
    "layer FLOP": (lambda: layer_flop(L70.groups[0], L70.hidden).token * 8192 + layer_attention(8192**2), "FLOP"),
    "layer weights": (lambda: 2 * layer_parameters(L70.groups[0], L70.hidden).total, "B"),
    "layer KV": (lambda: prompt("llama-3-70b", 8192) / 80, "B"),
    "decode token FLOP": (lambda: 2 * (model_parameters(L70).active - model_parameters(L70).embedding), "FLOP"),
    "decode token weights": (lambda: weight_bytes(L70, "auto"), "B"),
    "decode token at 8 TB/s": (lambda: (weight_bytes(L70, "auto") + prompt("llama-3-70b", 8192)) / B200.hbm_bandwidth, "s"),
    "ridge": (lambda: B200.peak_bf16 / B200.hbm_bandwidth, "1"),
    "1k batch 1": (lambda: evaluate(thousand(1)).kv.wire_bytes, "B"),
    "1k batch 32": (lambda: evaluate(thousand(32)).kv.wire_bytes, "B"),
    "1k batch 1 on NVLink": (lambda: evaluate(thousand(1, "nvlink-4", 900)).transfer.seconds, "s"),
    "1k batch 32 on NVLink": (lambda: evaluate(thousand(32, "nvlink-4", 900)).transfer.seconds, "s"),
    "1k batch 32 on NVLink one way": (lambda: evaluate(thousand(32, "nvlink-4")).transfer.seconds, "s"),
    "1k batch 1 on NDR": (lambda: evaluate(thousand(1)).transfer.seconds, "s"),
    "1k batch 32 on NDR": (lambda: evaluate(thousand(32)).transfer.seconds, "s"),
    "1k batch 1 on HDR": (lambda: evaluate(thousand(1, "ib-hdr-200")).transfer.seconds, "s"),
    "1k batch 32 on HDR": (lambda: evaluate(thousand(32, "ib-hdr-200")).transfer.seconds, "s"),
    "1k batch 1 on 100GbE": (lambda: evaluate(thousand(1, "ethernet-100")).transfer.seconds, "s"),
    "1k batch 32 on 100GbE": (lambda: evaluate(thousand(32, "ethernet-100")).transfer.seconds, "s"),
    "critical length on 100GbE": (
        lambda: (critical_lengths(Scenario(link="ethernet-100", decode_step_seconds=0.030)).decode_step_tokens or 0) - 1,
        "1",
    ),
    "INT8 on the wire": (lambda: evaluate(Scenario(wire_dtype="int8")).kv.wire_bytes / evaluate(Scenario()).kv.wire_bytes, "1"),
}


def rows() -> list[dict[str, str]]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def quantity(text: str, unit: str) -> float:
    return float(text) if unit == "parameters" and text.isdigit() else parse_quantity(text, unit)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["figure"])
def test_the_model_gives_the_exact_figure_and_the_published_one_within_its_tolerance(row: dict[str, str]) -> None:
    compute, unit = FIGURES[row["figure"]]
    value, exact = compute(), quantity(row["exact"], unit)
    if row["exact"].endswith(" B") or unit == "parameters":
        assert value == exact
    else:
        assert value == pytest.approx(exact, rel=ROUNDED)
    if row["published"]:
        tolerance = parse_quantity(row["tolerance"], "1")
        assert value == pytest.approx(quantity(row["published"], unit), rel=tolerance + 1e-12, abs=0)


def test_every_row_states_its_convention_its_tolerance_and_its_page() -> None:
    table = rows()
    assert list(table[0]) == ["figure", "published", "exact", "convention", "tolerance", "source"]
    assert all(row["exact"] and row["convention"] and row["source"] for row in table)
    assert all(bool(row["tolerance"]) == bool(row["published"]) for row in table)
    assert [row["figure"] for row in table] == list(FIGURES)


@pytest.mark.parametrize(
    ("changes", "bound"),
    [({"model": "llama-2-7b"}, "link"), ({"model": "llama-3.1-8b"}, "hidden"), ({"model": "llama-2-7b", "kv_dtype": "fp8"}, "hidden")],
)
def test_mha_falls_behind_on_100_gigabit_and_gqa_and_fp8_do_not(changes: dict[str, str], bound: str) -> None:
    # the KV-cache bill, one H100 on a 100 Gb/s NIC at 8k: 7B params x 2 x 8,192 at 40 to 50 % of peak is 0.2 to 0.3 s of prefill
    scenario = Scenario(prefill_tp=1, decode_tp=1, link="roce-100", overlap="layer", prefill_seconds=0.2, **changes)
    assert evaluate(scenario).bound == bound
