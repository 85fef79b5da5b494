"""Scenario: one declaration of each input, read from text without guessing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kvmodel import BadScenarioError, Scenario, UnknownNameError, evaluate
from kvmodel.scenario import MAX_PROMPT_TOKENS, allowed_values, bounds, from_text, parse_text, read_field
from kvmodel.turn import Turn
from tests.strategies import AS_THE_ENGINE, scenarios

DEFAULTS: dict[str, Any] = {
    "model": "llama-3-70b", "prompt_tokens": 8192, "output_tokens": 500, "batch": 1, "prefill_held_tokens": 0, "decode_held_tokens": 0,
    "kv_dtype": "auto", "weight_dtype": "auto", "wire_dtype": "same", "prefill_accelerator": "h100-sxm", "decode_accelerator": "h100-sxm",
    "prefill_tp": 8, "decode_tp": 8, "prefill_pp": 1, "decode_pp": 1, "ep": 1, "link": "ib-ndr-400", "lanes": 1, "shared_by": 1,
    "engine": "ideal", "overlap": None, "block_tokens": None, "chunk_tokens": None, "prefill_seconds": None, "decode_step_seconds": None,
    "link_gbytes_per_s": None, "group_layers": None, "decode_batch": 1, "prefill_attention_dp": 1, "decode_attention_dp": 1,
    **AS_THE_ENGINE,
}  # fmt: skip
WHOLE = tuple(n for n in Scenario.model_fields if "a whole number" in allowed_values(Scenario, n))
MEASURED = ("prefill_seconds", "decode_step_seconds", "link_gbytes_per_s")


def test_the_defaults_are_the_published_scenario() -> None:
    assert {name: getattr(Scenario(), name) for name in Scenario.model_fields} == DEFAULTS


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("text", ["8,192", "1e6", "NaN", "0,8", "8.0", "8 192", "0x10", "ten", "٣", "8_192", "inf", "1" * 30, "8k", "+-3"])
def test_a_whole_number_is_digits_only(name: str, text: str) -> None:
    with pytest.raises(BadScenarioError, match=f"^{name}: got ") as refused:
        from_text({name: text})
    assert "allowed: a whole number from" in str(refused.value)


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_number_out_of_its_bounds_is_refused_with_them(name: str) -> None:
    low, high = bounds(Scenario, name)
    assert low is not None
    assert high is not None
    for value in (int(low) - 1, int(high) + 1, -5):
        with pytest.raises(BadScenarioError, match=f"^{name}: got {value}; allowed: a whole number from {int(low):,} to {int(high):,}"):
            from_text({name: str(value)})
    assert getattr(from_text({name: str(int(high))}), name) == high
    assert getattr(from_text({name: f" {int(low)} "}), name) == low


@pytest.mark.parametrize("name", MEASURED)
@pytest.mark.parametrize("text", ["0,8", "NaN", "nan", "inf", "-1", "0", "1e999", "8,192.5", "0.4 s", "100001", "1e", "--1"])
def test_a_measured_value_is_a_plain_positive_number(name: str, text: str) -> None:
    with pytest.raises(BadScenarioError, match=f"^{name}: got "):
        from_text({name: text})


@pytest.mark.parametrize(
    ("text", "value"), [("0.4", 0.4), (".4", 0.4), ("4e-1", 0.4), ("1e3", 1000.0), ("2", 2.0), ("none", None), ("", None)]
)
def test_a_measured_value_may_be_a_decimal_or_nothing(text: str, value: float | None) -> None:
    assert from_text({"prefill_seconds": text}).prefill_seconds == value


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("kv_dtype", "fp7", "kv_dtype: got 'fp7'; allowed: auto, bf16"),
        ("overlap", "both", "overlap: got 'both'; allowed: serial, chunk, layer, layer-group, layer-both or none"),
        ("lanes", "many", "lanes: got 'many'; allowed: a whole number from 1 to 512 or auto"),
        ("lanes", "0", "lanes: got 0"),
        ("promt_tokens", "1", "no input is called 'promt_tokens'"),
    ],
)
def test_a_value_that_is_none_of_those_allowed_is_refused_with_them(name: str, text: str, words: str) -> None:
    with pytest.raises(BadScenarioError) as refused:
        from_text({name: text})
    assert str(refused.value).startswith(words)


@pytest.mark.parametrize(
    ("name", "text", "near"),
    [
        ("model", "llama-9", "llama3"), ("link", "ib-ndr", "ib-ndr-400"), ("engine", "vllm", "vllm-nixl"),
        ("prefill_accelerator", "h100", "h100-sxm"),
        ("link", "carrier-pigeon", ""),
    ],
)  # fmt: skip
def test_an_unknown_id_is_refused_with_the_nearest_when_evaluated(name: str, text: str, near: str) -> None:
    with pytest.raises(UnknownNameError, match=f"is called '{text}'; nearest: .*{near}"):
        evaluate(from_text({name: text}))


def test_ids_are_read_whatever_their_case() -> None:
    scenario = from_text({"model": "Llama-3-70B", "link": "IB-NDR-400", "overlap": "LAYER", "lanes": "AUTO"})
    assert (scenario.link, scenario.overlap, scenario.lanes) == ("ib-ndr-400", "layer", "auto")
    assert evaluate(scenario).kv.prompt_bytes == 2_684_354_560


@given(scenarios())
@example(Scenario(decode_step_seconds=0.0033570126878492883, prefill_seconds=0.00012345678901234567))
def test_a_scenario_survives_being_written_as_text(scenario: Scenario) -> None:
    assert from_text({name: str(value) for name, value in scenario.changed().items()}) == scenario
    assert from_text({name: str(value) for name, value in scenario}) == scenario


@given(scenarios(), scenarios())
def test_texts_change_only_what_they_name(base: Scenario, other: Scenario) -> None:
    texts = {name: str(value) for name, value in other.changed().items()}
    changed = from_text(texts, base)
    assert {n: getattr(changed, n) for n in Scenario.model_fields} == {
        n: getattr(other if n in texts else base, n) for n in Scenario.model_fields
    }


@given(st.sampled_from(sorted(Scenario.model_fields)), st.text(max_size=40))
def test_any_text_is_read_or_refused_in_a_short_sentence(name: str, text: str) -> None:
    try:
        from_text({name: text})
        refusal = f"{name}: got "
    except BadScenarioError as error:
        refusal = str(error)
    assert refusal.startswith(f"{name}: got ")
    assert len(refusal) < 400


@pytest.mark.parametrize(
    "changes", [{"prompt_tokens": 0}, {"batch": 1.5}, {"prompt_tokens": float("nan")}, {"prefill_tp": "8x"}, {"speed": 1}]
)
def test_a_change_is_validated(changes: dict[str, Any]) -> None:
    with pytest.raises(BadScenarioError, match=next(iter(changes))):
        Scenario().with_changes(**changes)


def test_changes_leave_the_original_alone() -> None:
    scenario = Scenario()
    assert scenario.with_changes(prompt_tokens=1024).prompt_tokens == 1024
    assert scenario.prompt_tokens == 8192
    assert scenario.with_changes(prompt_tokens=1024).changed() == {"prompt_tokens": 1024}


def test_several_faults_are_named_together() -> None:
    with pytest.raises(BadScenarioError, match=r"prompt_tokens: got 0; .*batch: got -1; "):
        Scenario(prompt_tokens=0, batch=-1)


def test_every_field_has_a_title_and_says_what_it_is() -> None:
    for record in (Scenario, Turn):
        assert all(field.title and field.description for field in record.model_fields.values())
        assert all(allowed_values(record, name) for name in record.model_fields)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("prompt_tokens", "a whole number from 1 to 1,048,576"),
        ("chunk_tokens", "a whole number from 16 to 1,048,576 or none"),
        ("prefill_seconds", "a number from 0.000001 to 100,000 or none"),
        ("lanes", "a whole number from 1 to 512 or auto"),
        ("link", "an id from `kv-handoff list`"),
        ("fragmentation", "a number from 0 to 1 or none"),
        ("achieved", "a number above 0 up to 1 or none"),
        ("gather", "no, yes or none"),
    ],
)
def test_what_a_field_takes_in_words(name: str, words: str) -> None:
    assert allowed_values(Scenario, name) == words


def test_a_turn_is_read_the_same_way() -> None:
    assert parse_text(Turn, {"history_tokens": "1000", "pool_held_tokens": "none"}) == Turn(history_tokens=1000)
    with pytest.raises(BadScenarioError, match="history_tokens: got '1e6'"):
        parse_text(Turn, {"history_tokens": "1e6"})
    assert read_field(Scenario, "prompt_tokens", str(MAX_PROMPT_TOKENS)) == MAX_PROMPT_TOKENS
