"""Python callers get a sentence for what they pass by mistake, as the command line's users do."""

from typing import Any

import pytest

from kvmodel import (
    BadConfigError,
    BadScenarioError,
    Scenario,
    Turn,
    agent_turn,
    critical_lengths,
    evaluate,
    parse_model_config,
    sweep,
)


@pytest.mark.parametrize("wrong", [None, {}, "llama-3-70b", 5])
def test_anything_but_a_scenario_is_refused(wrong: Any) -> None:
    for call in (evaluate, critical_lengths, agent_turn, lambda s: sweep(s, batch=[1])):
        with pytest.raises(BadScenarioError, match="allowed: a Scenario"):
            call(wrong)


@pytest.mark.parametrize("wrong", [{}, 5])
def test_anything_but_a_turn_is_refused(wrong: Any) -> None:
    with pytest.raises(BadScenarioError, match="allowed: a Turn"):
        agent_turn(Scenario(), wrong)


@pytest.mark.parametrize("wrong", [None, 5, [], b"{}"])
def test_a_configuration_is_text_or_a_mapping(wrong: Any) -> None:
    with pytest.raises(BadConfigError, match="allowed: the text"):
        parse_model_config(wrong)


def test_true_is_not_one() -> None:
    with pytest.raises(BadScenarioError, match="prompt_tokens: got True"):
        Scenario(prompt_tokens=True)
    with pytest.raises(BadScenarioError, match="turns: got True"):
        Turn(turns=True)
