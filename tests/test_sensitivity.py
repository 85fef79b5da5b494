"""Inputs turned by themselves: what they move is the model's own difference, and the verdict flips where it is said to."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvmodel import Scenario, evaluate
from kvmodel.flips import GAP_MARK
from kvmodel.sensitivity import INPUTS, WHOLE, sensitivity

SCENARIOS = st.builds(
    Scenario,
    model=st.sampled_from(["llama-3-70b", "deepseek-v3", "gemma-3-27b"]),
    link=st.sampled_from(["ib-ndr-400", "ethernet-100", "wan-100", "nvlink-4"]),
    prompt_tokens=st.sampled_from([128, 1000, 8192, 131_072]),
    batch=st.sampled_from([1, 3]),
    decode_held_tokens=st.sampled_from([0, 64]),
    engine=st.sampled_from(["ideal", "vllm-nixl"]),
    overlap=st.sampled_from(["serial", "chunk", "layer"]),
)


def verdict(result):
    return result.bound, result.gap_share > GAP_MARK


def turned_of(scenario):
    return {turned.field: turned for turned in sensitivity(scenario)}


def at(scenario, field, value):
    return evaluate(scenario.with_changes(**{field: int(value) if field in WHOLE else float(value)}))


@settings(max_examples=12, deadline=None)
@given(SCENARIOS)
def test_what_half_and_twice_move_is_the_difference_of_two_evaluations(scenario):
    base = evaluate(scenario).ttft_seconds
    for name, turned in turned_of(scenario).items():
        for value, moved in ((turned.half, turned.half_seconds), (turned.twice, turned.twice_seconds)):
            assert moved[0] == pytest.approx(at(scenario, name, value[0]).ttft_seconds - base, rel=1e-6, abs=1e-9)


@settings(max_examples=12, deadline=None)
@given(SCENARIOS)
def test_the_verdict_flips_where_it_is_said_to_and_not_before(scenario):
    own = verdict(evaluate(scenario))
    for name, turned in turned_of(scenario).items():
        value, now = float(turned.flips_at[0]), float(turned.now[0])
        if np.isnan(value):
            assert turned.would[0] == ""
            continue
        assert verdict(at(scenario, name, value)) != own
        assert (value > now) == bool(turned.flips_up[0])
        back = value + (-1 if value > now else 1) if name in WHOLE else value * (0.999 if value > now else 1.001)
        assert verdict(at(scenario, name, back)) == own


def test_a_link_falls_behind_prefill_at_a_layers_bytes_over_a_layers_time():
    """Layer by layer the wire hides while a layer's bytes cross within a layer's prefill: 33.55 MB in a 80th of it."""
    scenario = Scenario(overlap="layer", prefill_seconds=0.4)
    lane = turned_of(scenario)["link_gbytes_per_s"]
    assert lane.flips_at[0] == pytest.approx(2_684_354_560 / 80 / (0.4 / 80) / 1e9, rel=2e-4)
    assert lane.would == ("link-bound",)
    assert not lane.flips_up[0]


def test_over_positions_it_says_what_it_says_of_each():
    scenario = Scenario(link="ethernet-100", overlap="layer", engine="vllm-nixl")
    prompts = [256, 8192, 100_000]
    together = sensitivity(scenario, prompt_tokens=prompts)
    for i, tokens in enumerate(prompts):
        for many, one in zip(together, sensitivity(scenario.with_changes(prompt_tokens=tokens)), strict=True):
            assert many.would[i] == one.would[0]
            for name in ("now", "half", "twice", "half_seconds", "twice_seconds", "flips_at"):
                assert getattr(many, name)[i] == pytest.approx(getattr(one, name)[0], rel=1e-6, abs=1e-12, nan_ok=True)


def test_every_input_is_named_and_can_be_turned():
    assert set(turned_of(Scenario())) == set(INPUTS)
    assert turned_of(Scenario())["decode_held_tokens"].twice[0] == 4096
