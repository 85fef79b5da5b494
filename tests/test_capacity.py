"""Memory of both sides, and the batch that fits: by hand, tried one by one, and what the accelerators hold."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import assume, given

from app.cli import main
from kvmodel import Scenario, evaluate
from kvmodel.capacity import capacity, decode_memory, prefill_memory
from kvmodel.evaluate import amounts_of
from kvmodel.memory import USABLE_MEMORY
from kvmodel.plan import plan_of
from kvmodel.registry import accelerators
from kvmodel.results import SideMemory
from tests.strategies import scenarios

MODELS = ("llama-3-70b", "deepseek-v3", "gemma-3-27b", "nemotron-3-super", "gpt-oss-120b")


def test_the_default_scenario_by_hand() -> None:
    memory = evaluate(Scenario(decode_batch=32)).memory
    usable = 0.9 * 79.11 * 2**30
    weights = 2 * 70_552_387_584 / 8  # parameters without norms, BF16, eight ranks
    token, request = 2 * (3 * 8192 + 3 * 28_672 / 8), 14 * 128_256
    assert memory.prefill.usable_bytes == memory.decode.usable_bytes == pytest.approx(usable)
    assert memory.prefill.weights_bytes == memory.decode.weights_bytes == pytest.approx(weights, rel=1e-6)
    assert memory.prefill.cache_bytes == 327_680 / 8 * 8192
    assert memory.decode.cache_bytes == 32 * 327_680 / 8 * 8692
    assert memory.prefill.activation_bytes == 8192 * token
    assert memory.decode.activation_bytes == 32 * request
    assert memory.prefill.fits
    assert memory.decode.fits
    room = usable - memory.prefill.weights_bytes
    assert memory.prefill.batch_fits == math.floor((room - 8192 * token) / (40_960 * 8192))
    assert memory.decode.batch_fits == math.floor(room / (40_960 * 8692 + request))


def test_a_chunk_that_is_asked_for_sets_the_workspace() -> None:
    whole, chunks = (evaluate(Scenario(prompt_tokens=65_536, chunk_tokens=n)).memory.prefill.activation_bytes for n in (65_536, 2048))
    assert whole == 32 * chunks
    assert evaluate(Scenario(prompt_tokens=65_536)).memory.prefill.activation_bytes == 4 * chunks


@given(scenarios(longest=1_048_576))
def test_the_batch_that_fits_does_and_one_more_does_not(scenario: Scenario) -> None:
    plan, amounts = plan_of(scenario), amounts_of(scenario)
    for memory, names in ((prefill_memory, ("batch",)), (decode_memory, ("batch", "decode_batch"))):
        most = memory(plan, amounts).batch_fits
        assert most >= 0

        def of(batch: int, memory: object = memory, names: tuple[str, ...] = names) -> SideMemory:
            changed = amounts_of(scenario, **dict.fromkeys(names, batch))
            return memory(plan, changed)  # type: ignore[operator, no-any-return]

        near = abs(needed(of(most + 1)) / of(1).usable_bytes - 1) < 1e-9 or (most and abs(needed(of(most)) / of(1).usable_bytes - 1) < 1e-9)
        assume(not near)
        assert not most or of(most).fits
        assert not of(most + 1).fits


def needed(memory: SideMemory) -> float:
    return float(memory.weights_bytes + memory.cache_bytes + memory.activation_bytes)


@given(scenarios(longest=1_048_576))
def test_a_side_fits_exactly_where_its_batch_is_within_the_batch_that_fits(scenario: Scenario) -> None:
    result = evaluate(scenario)
    for side, batch in ((result.memory.prefill, scenario.batch), (result.memory.decode, max(scenario.batch, scenario.decode_batch))):
        assume(abs(needed(side) / side.usable_bytes - 1) > 1e-9)
        assert side.fits == (needed(side) <= side.usable_bytes)
        assert side.fits == (batch <= side.batch_fits)
    assert result.feasible == (result.memory.prefill.fits and result.memory.decode.fits and not plan_of(scenario).refusal)


@pytest.mark.parametrize("model", MODELS)
def test_more_ranks_hold_no_smaller_batch(model: str) -> None:
    held = [capacity(plan_of(s), amounts_of(s)) for s in (Scenario(model=model, prefill_tp=tp, decode_tp=tp) for tp in (1, 2, 4, 8, 16))]
    for side in ("prefill", "decode"):
        batches = [getattr(memory, side).batch_fits for memory in held]
        assert batches == sorted(batches)


def test_a_longer_output_leaves_room_for_fewer_on_decode_alone() -> None:
    short, long = (evaluate(Scenario(output_tokens=n)).memory for n in (500, 50_000))
    assert long.decode.batch_fits < short.decode.batch_fits
    assert long.prefill == short.prefill


def test_the_command_line_prints_both_sides(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "--prefill-tp", "1", "--json"]) == 0
    memory = json.loads(capsys.readouterr().out)["memory"]
    keys = ["weights_bytes", "cache_bytes", "activation_bytes", "usable_bytes", "fits", "batch_fits"]
    assert [list(memory[side]) for side in ("prefill", "decode")] == [keys, keys]
    assert memory["prefill"]["fits"] is False
    assert memory["decode"]["fits"] is True
    assert memory["prefill"]["batch_fits"] == 0
    assert type(memory["decode"]["batch_fits"]) is int


def test_accelerators_show_programs_about_what_they_are_sold_with() -> None:
    for a in accelerators().values():
        assert 0.98 * a.hbm_bytes <= a.hbm_visible <= 1.075 * a.hbm_bytes, a.id  # GB of 10^9 to GiB
        assert a.hbm_visible_source
    assert accelerators()["h100-sxm"].hbm_visible == pytest.approx(79.11 * 2**30)
    usable = plan_of(Scenario(prefill_accelerator="mi300x")).prefill.usable_bytes
    assert usable == pytest.approx(USABLE_MEMORY * 191.98 * 2**30)
