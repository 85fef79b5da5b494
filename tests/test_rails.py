"""Lanes that an engine takes by itself, and more lanes than two sides have."""

from __future__ import annotations

import pytest
from hypothesis import given

from kvmodel import Scenario, evaluate
from kvmodel.rails import derived_lanes
from kvmodel.registry import accelerators, engines, links
from tests.strategies import scenarios


@pytest.mark.parametrize(
    ("link", "engine", "prefill_tp", "decode_tp", "lanes"),
    [
        ("ib-ndr-400", "ideal", 8, 8, 8), ("ib-ndr-400", "ideal", 2, 8, 2), ("ib-ndr-400", "ideal", 8, 4, 4),
        ("ib-ndr-400", "ideal", 16, 16, 16),
        ("wan-100", "ideal", 8, 8, 1), ("ethernet-100", "ideal", 8, 8, 1), ("ethernet-100", "ideal", 16, 16, 2),
        ("nvlink-4", "ideal", 4, 4, 4),
        ("efa-200", "vllm-nixl", 8, 8, 8),
    ],
)  # fmt: skip
def test_lanes_are_the_nics_of_the_narrower_side(link: str, engine: str, prefill_tp: int, decode_tp: int, lanes: int) -> None:
    scenario = Scenario(lanes="auto", link=link, engine=engine, prefill_tp=prefill_tp, decode_tp=decode_tp)
    assert evaluate(scenario).transfer.lanes == lanes


def test_a_latent_with_a_single_reader_travels_on_one_lane() -> None:
    assert evaluate(Scenario(model="deepseek-v3", lanes="auto", prefill_tp=8, decode_tp=8)).transfer.lanes == 1
    assert evaluate(Scenario(model="deepseek-v3", lanes="auto", prefill_tp=8, decode_tp=8, engine="vllm-nixl")).transfer.lanes == 8


def test_gpus_that_share_a_nic_make_fewer_lanes() -> None:
    gpus = accelerators()["h100-pcie"]
    assert derived_lanes(links()["ib-hdr-200"], engines()["ideal"], gpus, gpus, 8, 8, one_reader=False) == 4
    assert derived_lanes(links()["ib-hdr-200"], engines()["ideal"], gpus, gpus, 1, 1, one_reader=False) == 1


def test_rails_are_capped_by_the_engine() -> None:
    many = accelerators()["h100-sxm"].model_copy(update={"nics_per_gpu": 4.0})
    lanes = [derived_lanes(links()["efa-200"], engines()[e], many, many, 2, 2, one_reader=False) for e in ("ideal", "vllm-nixl")]
    assert lanes == [8, 4]


@pytest.mark.parametrize(
    ("changes", "offered"),
    [
        ({"lanes": 512}, "512 lanes are more than the 8 NICs that the narrower side offers; times assume them all the same."),
        ({"lanes": 17, "prefill_tp": 16, "decode_tp": 16, "model": "llama-3.1-405b"}, "17 lanes are more than the 16 NICs"),
        ({"lanes": 9, "engine": "vllm-nixl", "prefill_tp": 4, "nics_per_gpu": 4.0}, "narrower side offers at 2 a rank"),
        ({"lanes": 2, "link": "ethernet-100"}, "2 lanes are more than the 1 link"),
        ({"lanes": 9, "link": "nvlink-4"}, "9 lanes are more than the 8 ranks"),
        ({"lanes": 8}, ""), ({"lanes": 8, "prefill_tp": 1, "model": "llama-3.1-8b"}, ""), ({"lanes": 16, "nics_per_gpu": 2.0}, ""),
    ],
)  # fmt: skip
def test_more_lanes_than_two_sides_have_are_said(changes: dict[str, object], offered: str) -> None:
    result = evaluate(Scenario(**changes))
    assert offered in " ".join(result.notes)
    assert bool(result.notes) == bool(offered)
    assert result.transfer.lanes == changes["lanes"]


@given(scenarios(lanes="auto"))
def test_lanes_that_are_derived_are_there(scenario: Scenario) -> None:
    assert not any("lanes" in note for note in evaluate(scenario).notes)
