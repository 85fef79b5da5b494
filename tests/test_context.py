"""A prompt beyond what its model was made for is computed all the same, and said in every answer."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cli import main
from kvmodel import Scenario, evaluate, find_model
from kvmodel.context import fitting_model
from kvmodel.registry import models


@pytest.mark.parametrize(("prompt", "said"), [(4096, False), (4097, True)])
def test_llama_2_7b_is_stated_for_4096_tokens(prompt: int, said: bool) -> None:
    # meta-llama/Llama-2-7b-hf config.json: max_position_embeddings 4096
    notes = evaluate(Scenario(model="llama-2-7b", prompt_tokens=prompt)).notes
    assert notes == (("Beyond the context of Llama 2 7B: 4,097 tokens of prompt, its makers state 4,096.",) if said else ())


@given(st.sampled_from(sorted(models())), st.integers(1, 1_048_576), st.integers(1, 100_000))
def test_a_note_stands_exactly_where_the_stated_context_is_exceeded(model: str, prompt: int, output: int) -> None:
    result, stated = evaluate(Scenario(model=model, prompt_tokens=prompt, output_tokens=output)), find_model(model).max_context
    assert bool(result.notes) == (stated is not None and prompt > stated)
    assert result.prefill.seconds > 0


def test_the_command_line_says_it_readable_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["evaluate"], ["turn"], ["wire"]):
        words = [*command, "--model", "llama-2-7b", "--prompt-tokens", "5000"][: 3 if command == ["turn"] else None]
        assert main(words) == 0
        assert "\nBeyond the context of Llama 2 7B: " in capsys.readouterr().out
        assert main([*words, "--json"]) == 0
        assert len(json.loads(capsys.readouterr().out)["notes"]) == 1
    assert main(["model", "llama-2-7b", "--tokens", "4096", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == []


@given(st.sampled_from(sorted(models())), st.integers(1, 1_048_576))
def test_the_model_offered_takes_the_prompt_and_is_of_the_family_where_one_of_it_can(model: str, tokens: int) -> None:
    asked = find_model(model)
    found = fitting_model(asked, tokens)
    assert found is not None
    assert found.max_context is not None
    assert found.max_context >= tokens
    kin = [other for other in models().values() if other.family == asked.family and (other.max_context or 0) >= tokens]
    assert (found.family == asked.family) == bool(kin)


def test_an_input_that_does_nothing_here_is_named() -> None:
    asked = Scenario(group_layers=4, early_prefix="yes")
    first, second = evaluate(asked).notes
    assert first == "Layers of a group (group_layers) does nothing under overlap serial: only layer-group sends layers in groups."
    assert "early_prefix" in second
    assert evaluate(asked.with_changes(overlap="layer-group")).notes == ()
    bare = Scenario(prefill_held_tokens=4096)
    same = [evaluate(scenario).transfer.exposed_seconds for scenario in (bare, bare.with_changes(group_layers=4, early_prefix="yes"))]
    assert same[0] == same[1]
