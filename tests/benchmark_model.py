"""How fast the model answers: `pytest tests/benchmark_model.py --benchmark-only`. Prints times, asserts none."""

from __future__ import annotations

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from kvmodel import Scenario, agent_turn, critical_lengths, evaluate, sweep

LENGTHS = np.linspace(128, 131_072, 1_000_000).astype(int)


@pytest.mark.parametrize("overlap", ["serial", "chunk", "layer"])
@pytest.mark.parametrize("model", ["llama-3-70b", "gemma-3-27b", "nemotron-3-super"])
def test_evaluate(benchmark: BenchmarkFixture, model: str, overlap: str) -> None:
    result = benchmark(evaluate, Scenario(model=model, overlap=overlap))
    assert result.transfer.exposed_seconds <= result.transfer.seconds


@pytest.mark.parametrize("overlap", ["serial", "layer"])
def test_sweep_of_a_million(benchmark: BenchmarkFixture, overlap: str) -> None:
    result = benchmark.pedantic(sweep, (Scenario(overlap=overlap),), {"prompt_tokens": LENGTHS}, rounds=3, warmup_rounds=1)
    print(f"\nsweep, {overlap}: {len(LENGTHS) / benchmark.stats.stats.min:,.0f} scenarios a second")
    assert result.ttft_seconds.shape == LENGTHS.shape


def test_the_slider_s_positions(benchmark: BenchmarkFixture) -> None:
    positions = np.unique(np.geomspace(128, 2**20, 129).astype(int))
    result = benchmark(sweep, Scenario(overlap="layer"), prompt_tokens=positions)
    assert result.ttft_seconds.shape == positions.shape


def test_critical_lengths(benchmark: BenchmarkFixture) -> None:
    assert benchmark(critical_lengths, Scenario(link="ethernet-100", decode_step_seconds=0.03)).decode_step_tokens == 1145


def test_agent_turn(benchmark: BenchmarkFixture) -> None:
    assert len(benchmark(agent_turn, Scenario()).designs) == 5
