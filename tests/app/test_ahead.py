"""Charts asked for ahead of the page's own run: the same as that run brings."""

import json

import pytest
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from app.ahead import ahead, answer, choice_of
from app.catalog import VIEWS
from app.controls import name_of
from tests.app.test_page import views

MODULES = {
    "one-request": "one_request",
    "critical-length": "critical_length",
    "next-turn": "next_turn",
    "wire": "wire",
    "interconnects": "interconnects",
    "sensitivity": "sensitivity",
    "matrices": "matrices",
    "measured": "measured",
    "weighs": "weighs",
}
CHOICES = [
    ("model", name_of("model", "deepseek-v3"), "deepseek-v3"),
    ("prefill_tp", "4", 4),
    ("decode_tp", "16", 16),
    ("kv_dtype", "fp8", "fp8"),
    ("link", "Ethernet 25", "ethernet-25"),
]


def run_of(view, **query):
    page = AppTest.from_string(f"from app.views import {MODULES[view]}\n{MODULES[view]}.show()", default_timeout=60)
    for name, value in query.items():
        page.query_params[name] = value
    return page.run()


@pytest.mark.parametrize(
    ("view", "name", "label", "value"),
    [(view, *choice) for i, view in enumerate(MODULES) for j, choice in enumerate(CHOICES) if i == 0 or (i + j) % 2],
)
def test_what_is_asked_ahead_is_what_the_run_then_mounts(view, name, label, value):
    page = run_of(view)
    before = views(page)["answer_view"]
    found = json.loads(ahead(view, before["url"]["query"], name, label))["views"]
    page.selectbox(key=name).select(value).run()
    assert not page.exception
    mounted = views(page)
    assert found
    assert {key: data for key, data in mounted.items() if key in found} == found
    assert mounted["answer_view"] != before


def test_an_overlap_asked_ahead_is_the_one_the_run_draws():
    page = run_of("one-request", link="roce-100")
    found = json.loads(ahead("one-request", "link=roce-100", "overlap", "layer"))["views"]
    page.segmented_control[0].select("layer").run()
    assert {key: data for key, data in views(page).items() if key in found} == found


def test_every_view_with_charts_can_be_asked_for():
    assert set(VIEWS) == set(MODULES)


def test_the_page_says_how_to_ask_but_not_for_a_model_of_the_readers_own():
    page = run_of("weighs")
    assert views(page)["tables"]["asked"]["view"] == "weighs"
    own = '{"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "intermediate_size": 11008}'
    page.text_area(key="own_text").input(own).run()
    assert not page.exception
    assert views(page)["tables"]["asked"]["names"] == []


@pytest.mark.parametrize(
    ("view", "name", "label"),
    [
        ("nowhere", "model", "DeepSeek-V3"),
        ("one-request", "batch", "4"),
        ("one-request", "model", "<script>"),
        ("one-request", "prefill_tp", "3"),
        ("", "", ""),
    ],
)
def test_what_there_is_not_is_answered_with_nothing(view, name, label):
    client = TestClient(Starlette(routes=[Route("/ahead", answer)]))
    reply = client.get("/ahead", params={"view": view, "query": "", "name": name, "label": label})
    assert (reply.status_code, reply.content) == (204, b"")


def test_a_bad_scenario_falls_back_as_a_link_does():
    client = TestClient(Starlette(routes=[Route("/ahead", answer)]))
    reply = client.get(
        "/ahead",
        params={"view": "one-request", "query": "batch=zero&" + "x" * 5000, "name": "model", "label": name_of("model", "deepseek-v3")},
    )
    assert reply.status_code == 200
    assert reply.json()["views"]["answer_view"]["url"]["query"] == "model=deepseek-v3"


def test_a_choice_is_named_as_its_control_shows_it():
    assert choice_of("link", "Ethernet 25") == "ethernet-25"
    assert choice_of("decode_tp", "8") == 8
    with pytest.raises(KeyError):
        choice_of("engine", "Ideal")
