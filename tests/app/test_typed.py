"""Numbers typed beside sliders, terms explained in place, and what stands a click away."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.typed import typed_number
from app.views.presets import presets_list
from app.words import WORDS, explained_words
from kvmodel.errors import BadScenarioError
from kvmodel.registry import presets
from tests.app.test_page import answer, opened, views


@pytest.mark.parametrize(("typed", "value"), [("8192", 8192), ("8k", 8192), (" 100K ", 102_400), ("1m", 1_048_576)])
def test_a_k_is_1024_as_on_the_scale(typed, value):
    assert typed_number("prompt_tokens", typed) == value


@pytest.mark.parametrize("typed", ["0,8", "8,192", "1.000", "1 000", "1e3", "-5", "0", "2m", "eight", "٨", "9" * 39])
def test_what_is_no_number_is_named_with_what_would_do(typed):
    with pytest.raises(BadScenarioError, match=r"Prompt tokens: got .*; type a whole number from 1 to 1,048,576, such as 8192 or 8k"):
        typed_number("prompt_tokens", typed)


@pytest.mark.parametrize("key", ["type_prompt_tokens", "text_decode_batch"])
def test_fields_of_numbers_count_no_characters_and_refuse_a_long_text_in_a_sentence(key):
    page = opened(more_inputs=True)
    box = page.text_input(key=key)
    assert box.proto.max_chars == 0
    box.input("9" * 5000).run()
    assert not page.exception
    assert "got 5,000 characters; type a number of at most 40" in json.dumps(views(page)["refused_view"]["items"])
    assert len(json.dumps(views(page)["refused_view"]["items"])) < 500


@given(st.text(max_size=12))
def test_whatever_is_typed_is_a_number_of_its_own_digits_or_refused(text):
    try:
        value = typed_number("history_tokens", text)
    except BadScenarioError:
        return
    digits = int("".join(c for c in text if c.isdigit()))
    assert value in (digits, digits * 1024, digits * 1024**2)


def test_a_typed_number_moves_its_slider_and_a_bad_one_leaves_it_where_it_was():
    page = opened()
    page.text_input(key="type_prompt_tokens").input("100k").run()
    assert page.select_slider(key="prompt_tokens").value == 102_400
    assert views(page)["answer_view"]["url"]["query"] == "prompt_tokens=102400"
    assert page.text_input(key="type_prompt_tokens").value == ""
    shown = views(page)
    assert shown["head_view_prompt_tokens"]["now"] == {"head.prompt_tokens": "102,400", "typed.prompt_tokens": "100k = "}
    slider = shown["tables"]["sliders"]["prompt_tokens"]
    assert {p for p, text in zip(slider["positions"], slider["table"]["typed.prompt_tokens"], strict=True) if text} == {"102400"}
    before = answer(page)
    page.text_input(key="type_prompt_tokens").input("0,8").run()
    (note,) = views(page)["refused_view"]["items"]
    assert note["children"][0].startswith("Prompt tokens: got '0,8'; type a whole number")
    assert note["role"] == "alert"
    assert page.text_input(key="type_prompt_tokens").value == "0,8"
    assert (answer(page), page.select_slider(key="prompt_tokens").value) == (before, 102_400)
    page.text_input(key="type_batch").input("2").run()
    assert not {"notices_view", "refused_view"} & set(views(page))
    assert views(page)["answer_view"]["url"]["query"] == "prompt_tokens=102400&batch=2"
    page.text_input(key="type_prompt_tokens").input("102400").run()
    assert views(page)["head_view_prompt_tokens"]["now"]["typed.prompt_tokens"] == ""


def test_terms_are_explained_where_they_first_stand():
    first, lane, rest = explained_words("one lane of NDR 400, more lanes", "lane")
    assert (first, lane["tag"], lane["title"], rest) == ("one ", "abbr", WORDS["lane"], " of NDR 400, more lanes")
    assert explained_words("a planet") == ["a planet"]


def test_every_preset_is_a_link_with_what_it_shows():
    rows = presets_list()["children"]
    assert [row["children"][0]["children"][0] for row in rows] == [preset.name for preset in presets().values()]
    assert len(rows) >= 7


def test_the_ideal_engine_says_what_another_would_take_and_an_engine_of_costs_does_not():
    ideal, real = opened(), opened(engine="vllm-nixl")
    assert "with vLLM NIXL the handoff adds 7" in views(ideal)["answer_view"]["now"]["o.said"]
    assert '"?engine=vllm-nixl&pin=defaults"' in json.dumps(views(ideal)["answer_view"]["items"])
    assert "o.said" not in views(real)["answer_view"]["now"]
    for page in (ideal, real):
        assert "Change engine" in json.dumps(views(page)["answer_view"]["items"])


def test_a_prompt_beyond_the_context_offers_a_model_that_takes_it():
    said = json.dumps(views(opened(prompt_tokens="100000"))["answer_view"]["items"])
    assert "Llama 3.1 70B takes it" in said
    assert '"?model=llama-3.1-70b&prompt_tokens=100000"' in said
    assert "takes it" not in json.dumps(views(opened())["answer_view"]["items"])


def test_an_input_that_does_nothing_is_named_on_the_page():
    notice = json.dumps(views(opened(group_layers="4"))["refused_view"]["items"])
    assert "Layers of a group (group_layers) does nothing under overlap serial" in notice
