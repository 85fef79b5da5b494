"""The link: what it carries, what it refuses, and that nothing is lost on the way."""

from urllib.parse import parse_qs, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.state import URL_KEYS, State, from_link
from kvmodel import Scenario, Turn


def test_a_link_carries_only_what_differs_from_the_defaults():
    assert State().query() == ""
    changed = State(Scenario(link="ethernet-25", overlap="layer", prompt_tokens=4096), Turn(delta_tokens=512))
    assert changed.query() == "prompt_tokens=4096&link=ethernet-25&overlap=layer&delta_tokens=512"


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "model": st.sampled_from(["llama-3.1-8b", "deepseek-v3", "gpt-oss-120b"]),
            "prompt_tokens": st.integers(1, 2**20),
            "batch": st.integers(1, 1024),
            "prefill_tp": st.sampled_from([1, 2, 4, 8]),
            "kv_dtype": st.sampled_from(["auto", "fp8", "bf16"]),
            "link": st.sampled_from(["wan-100", "nvlink-4"]),
            "lanes": st.one_of(st.just("auto"), st.integers(1, 512)),
            "prefill_seconds": st.floats(1e-4, 1e4),
            "overlap": st.sampled_from(["serial", "chunk", "layer"]),
        },
    ),
    st.integers(1, 2**19),
)
def test_a_scenario_survives_the_link(fields, delta):
    state = State(Scenario(**fields), Turn(delta_tokens=delta))
    parameters = {name: values[-1] for name, values in parse_qs(state.query()).items()}
    back = from_link(parameters)
    assert back.scenario == state.scenario
    assert back.turn == state.turn
    assert back.notes == ()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("prompt_tokens", "-5"),
        ("prompt_tokens", "99999999999"),
        ("prompt_tokens", "abc"),
        ("prompt_tokens", ""),
        ("prompt_tokens", "1e6"),
        ("prompt_tokens", "NaN"),
        ("prompt_tokens", "12k"),
        ("model", "does-not-exist"),
        ("model", "/etc/passwd.json"),
        ("link", "0"),
        ("kv_dtype", "fp7"),
        ("prefill_seconds", "0,8"),
        ("delta_tokens", "0"),
        ("engine", "<script>alert(1)</script>"),
        ("batch", "9" * 500),
    ],
)
def test_a_bad_value_falls_back_is_named_and_costs_no_other(name, text):
    state = from_link({name: text, "decode_tp": "4"})
    assert len(state.notes) == 1
    assert f"{name}={text[:30]}" in state.notes[0]
    assert "Allowed:" in state.notes[0] or "nearest: " in state.notes[0]
    assert state.scenario == Scenario(decode_tp=4)
    assert state.turn == Turn()


def test_values_that_do_not_go_together_fall_back_too():
    state = from_link({"model": "llama-3-70b", "kv_dtype": "fp8_ds_mla"})
    assert state.scenario == Scenario()
    assert "kv_dtype=fp8_ds_mla" in state.notes[0]
    assert "use fp8 or nvfp4" in state.notes[0]
    assert "Allowed:" not in state.notes[0]


def test_unknown_parameters_are_ignored():
    assert from_link({"utm_source": "x", "embed": "true"}).notes == ()
    assert "embed" not in URL_KEYS


def test_the_query_is_encoded():
    assert urlencode({"a": "<b>"}) not in State().query()


@given(st.sampled_from(["prompt_tokens", "batch"]), st.integers(128, 10_000), st.integers(1, 64))
def test_a_sliders_table_goes_with_everything_but_the_slider(slider, tokens, batch):
    state = State()
    moved = State(Scenario(**{slider: tokens if slider == "prompt_tokens" else batch}))
    assert moved.table_id(slider) == state.table_id(slider)
    other = "batch" if slider == "prompt_tokens" else "prompt_tokens"
    assert (moved.table_id(other) == state.table_id(other)) == (moved.scenario == state.scenario)
    assert State(Scenario(model="deepseek-v3")).table_id(slider) != state.table_id(slider)
