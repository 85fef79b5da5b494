"""Explanations on the page and the command line: the same text, sources as links, and the report of a wrong number."""

import json
from urllib.parse import parse_qs, urlparse

import pytest
from hypothesis import given, settings
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

import kvmodel
from app import own_models, report
from app.catalog import VIEWS
from app.cli import main
from app.explained import explanation_text, filled_text, headline, value_text
from app.explaining import answer
from app.state import State
from app.views import explain as view
from kvmodel import Scenario, Turn, evaluate, find_model
from kvmodel.display import time_text
from kvmodel.explain import FIGURES, Case, explain, explained
from tests.app.test_page import opened, views
from tests.strategies import scenarios


def printed(capsys, *words):
    assert main([*map(str, words)]) == 0
    return capsys.readouterr().out.replace("\u202f", " ")


def texts(node):
    if isinstance(node, dict):
        for child in node.get("children", []):
            yield from texts(child)
    elif isinstance(node, str):
        yield node


def nodes(node, tag):
    if isinstance(node, dict):
        if node.get("tag") == tag:
            yield node
        for child in node.get("children", []):
            yield from nodes(child, tag)


def test_the_command_line_explains_a_figure(capsys):
    text = printed(capsys, "evaluate", "--link", "ethernet-25", "--explain", "transfer")
    assert "Transfer time (transfer.seconds): 859 ms" in text
    assert "t_wire = B ÷ (n·W)\n    = 2.684 GB ÷ (1 × 3.125 GB/s) = 859 ms" in text
    assert "Nominal bandwidth, Ethernet 25 (W)  3.13 GB/s           links.toml ethernet-25, checked 2026-11-29" in text
    assert "links.toml ethernet-25  https://www.ieee802.org/3/" in text
    assert "Halve it\n    a prompt of 4,096 tokens: 429 ms, 50.0 % of now" in text
    assert f"version {kvmodel.__version__} and: kv-handoff evaluate --link ethernet-25 --explain transfer.seconds" in text


@pytest.mark.parametrize(
    ("words", "figures"),
    [
        (["evaluate", "--explain", "ttft"], ["ttft_seconds"]),
        (["critical", "--explain"], [name for name, figure in FIGURES.items() if figure.family == "critical"]),
        (["turn", "--explain=pool-cold.ttft_seconds", "--delta-tokens", "500"], ["pool-cold.ttft_seconds"]),
        (["wire", "--explain", "gap"], ["gap_seconds"]),
    ],
)
def test_json_carries_explanations_under_their_key(words, figures, capsys):
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["figure"] for one in found["explain"]] == figures
    for one in found["explain"]:
        assert {"value", "unit", "words", "symbols", "terms", "inputs", "goal", "remedies", "left_out"} <= set(one)
    if words[0] == "evaluate":
        assert found["explain"][0]["value"] == found["ttft_seconds"]


def test_without_the_flag_nothing_changes_and_a_wrong_name_is_refused(capsys):
    assert main(["evaluate", "--json"]) == 0
    assert "explain" not in json.loads(capsys.readouterr().out)
    assert main(["critical", "--explain", "ttft"]) == 2
    assert "no figure is called 'ttft'; nearest: " in capsys.readouterr().err


@settings(max_examples=5)
@given(scenarios())
def test_every_explanation_can_be_written(scenario):
    """No unit is missing, no sum is empty: as text and as blocks."""
    for name in view.SHOWN["one-request"]:
        told = explained(FIGURES[name], Case(scenario))
        assert told.name in explanation_text(told)
        assert view.row(told, State(scenario), "one-request", "https://x.org")["tag"] == "details"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (327_680.0, "B", "327,680 B (320 KiB)"),
        (2_684_354_560.0, "B", "2.68 GB (2.50 GiB)"),
        (8192, "tokens", "8,192 tokens"),
        (None, "tokens", "never"),
        (((1, 161), (222_555, 1_048_576)), "ranges", "up to 161 tokens, from 223,000 tokens"),
        (989.4e12, "FLOP/s", "989 TFLOP/s"),
        (0.96, "", "0.96"),
        (27443.2, "", "27,443"),
        (-0.01, "s", "−10.0 ms"),
        ("layer", "", "layer"),
    ],
)
def test_values_are_written_in_their_units(value, unit, text):
    assert value_text(value, unit).replace("\u202f", " ") == text


def test_the_head_says_the_band_and_the_sum_ends_in_the_figure():
    told = explain(Scenario(), "ttft")
    r = evaluate(Scenario())
    low, high = (r.transfer.seconds + getattr(r.prefill, end) + getattr(r.decode, end) for end in ("low", "high"))
    whole, prefill, step = (time_text(v) for v in (r.ttft_seconds, r.prefill.seconds, r.decode.step_seconds))
    assert headline(told) == f"{whole}, band {time_text(low)} to {time_text(high)}"
    assert filled_text(told) == f"= {prefill} + {time_text(r.transfer.seconds)} + {step} = {whole}"


EXPLAIN = TestClient(Starlette(routes=[Route("/explain", answer)]))


def asked(**query):
    return EXPLAIN.get("/explain", params={"view": "one-request", "query": "link=ethernet-25", **query})


def test_one_figure_is_explained_when_it_is_asked_for_with_what_the_command_line_says(capsys):
    found = asked(figure="transfer.seconds").json()
    said = " ".join(text for item in found["items"] for text in texts(item))
    assert (found["name"], found["value"].replace("\u202f", " ")) == ("Transfer time", "859 ms")
    assert "https://www.ieee802.org/3/" in [link["href"] for item in found["items"] for link in nodes(item, "a")]
    told = explain(Scenario(link="ethernet-25"), "transfer")
    lines = [line.strip() for line in explanation_text(told).splitlines()]
    assert {told.words, told.symbols, filled_text(told), told.left_out} <= set(lines)
    for words in (told.words, told.symbols, filled_text(told), told.left_out, *(value.name for value in told.inputs)):
        assert words in said


def test_a_fold_holds_all_figures_of_its_view():
    rows = asked().json()["items"]
    assert [row["data-figure"] for row in rows] == list(view.SHOWN["one-request"])
    assert {row["name"] for row in rows} == {"explain"}  # only one open at a time
    assert "859 ms" in " ".join(texts(rows[2])).replace("\u202f", " ")
    turn = asked(view="next-turn", figure="pull-back.ttft_seconds", query="link=ethernet-25&delta_tokens=500").json()
    assert turn["value"] == headline(TOLD)


@pytest.mark.parametrize("wrong", [{"view": "none"}, {"figure": "none"}, {"own": "0" * 32}])
def test_what_there_is_not_is_answered_with_nothing(wrong):
    reply = asked(figure="ttft_seconds", **{k: v for k, v in wrong.items() if k != "figure"}) if "figure" not in wrong else asked(**wrong)
    assert (reply.status_code, reply.content) == (204, b"")


def test_a_model_of_ones_own_is_explained_by_the_name_of_its_content():
    own = find_model("llama-3.1-8b").model_copy(update={"id": "own", "name": "Your model"})
    name = own_models.keep(own)
    assert own_models.keep(own.model_copy()) == name
    assert asked(figure="kv.bytes_per_token", own=name).json()["value"].startswith("131,072\u202fB")
    for i in range(own_models.MOST):
        own_models.keep(own.model_copy(update={"name": str(i)}))
    with pytest.raises(KeyError):
        own_models.find(name)


def test_the_page_sends_no_explanation_before_one_is_asked_for():
    page = views(opened(link="ethernet-25"))
    assert "t_wire" not in json.dumps(page)
    assert page["tables"]["asked"]["at"] == {"batch": "1", "prompt_tokens": "8192"}
    assert len(json.dumps(page["explain_view"])) < 1_200


def buttons(item):
    return [button["data-explain"] for button in nodes(item, "button")]


def test_numbers_of_the_sum_and_rows_behind_them_open_explanations_that_are_there():
    page = views(opened(engine="vllm-nixl"))
    opens = [figure for item in page["sum_view"]["items"] for figure in buttons(item)]
    opens += [row["data-explains"] for item in page["behind_view"]["items"] for row in nodes(item, "details") if "data-explains" in row]
    assert len(opens) == 7 + 4
    assert set(opens) <= set(view.SHOWN["one-request"])


@settings(max_examples=8)
@given(scenarios())
def test_the_coloured_number_of_an_answer_opens_a_figure_that_there_is(scenario):
    """Of a time or bytes it is that very number, so that the explanation ends in what was pressed."""
    parts = VIEWS["one-request"].at(State(scenario)).views["answer_view"]["now"]["answer"]
    for text, _, figure in (part for part in parts if len(part) == 3):
        told = explained(FIGURES[figure], Case(scenario))
        assert figure in view.SHOWN["one-request"]
        if figure == "transfer.exposed_seconds":
            assert text in {time_text(told.value, unit) for unit in (None, ("s", 1.0), ("ms", 1e-3), ("µs", 1e-6))}


def test_every_view_with_charts_has_figures():
    assert set(view.SHOWN) == set(VIEWS)
    assert {name for shown in view.SHOWN.values() for name in shown} <= set(FIGURES)


# the report of a wrong number

TOLD = explained(FIGURES["pull-back.ttft_seconds"], Case(Scenario(link="ethernet-25"), Turn(delta_tokens=500)))


def test_a_report_carries_figure_value_version_and_scenario():
    state = State(Scenario(link="ethernet-25"), Turn(delta_tokens=500))
    body = report.body_of(TOLD, view.command_of(TOLD, state), view.link_of(state, "next-turn", "https://kv.example/app/next-turn?x=1"))
    assert f"Value: {TOLD.value!r} s" in body
    assert f"Version: kv-handoff {kvmodel.__version__}" in body
    assert "Page: https://kv.example/app/next-turn?link=ethernet-25&delta_tokens=500" in body
    assert "Command: kv-handoff turn --link ethernet-25 --delta-tokens 500 --explain pull-back.ttft_seconds" in body


def test_the_command_in_a_report_gives_the_same_value(capsys):
    state = State(Scenario(link="ethernet-25"), Turn(delta_tokens=500))
    assert main([*view.command_of(TOLD, state).split()[1:], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["explain"][0]["value"] == TOLD.value


@pytest.mark.parametrize(
    ("to", "subject"),
    [
        ("mailto:numbers@example.org", "subject"),
        ("https://tracker.example/new?labels=number", "title"),
        ("https://tracker.example/new?issue[title]={title}&issue[description]={body}", "issue[title]"),
    ],
)
def test_a_report_goes_where_the_installation_wants_it(to, subject, monkeypatch):
    monkeypatch.setenv(report.SETTING, to)
    link = report.link_of(TOLD, "a & b\nc")
    fields = parse_qs(urlparse(link).query)
    assert link.startswith(to.partition("?")[0])
    assert fields[subject] == ["Wrong number: pull-back.ttft_seconds"]
    assert ["a & b\nc"] in fields.values()


@pytest.mark.parametrize("to", ["", "javascript:alert(1)", "tracker.example"])
def test_without_an_address_a_report_is_a_text_to_copy(to, monkeypatch):
    monkeypatch.setenv(report.SETTING, to)
    row = view.row(TOLD, State(), "next-turn", "https://x.org")
    copied = [button["data-copy"] for button in nodes(row, "button") if "data-copy" in button]
    assert len(copied) == 1
    assert copied[0].startswith("Figure: pull-back.ttft_seconds")
    assert report.link_of(TOLD, copied[0]) == ""


def test_a_change_that_leaves_nothing_of_a_stall_says_what_is_done_instead(capsys):
    """Under 857 tokens of history 2,000 new ones are 70 % of the prompt, and decode leaves them to prefill."""
    assert main(["turn", "--explain", "sticky.stall_seconds"]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert "857 tokens of history: 0\u202fs, 0\u202f% of now, because the prefill side serves the turn then" in lines
    assert 2000 / (2000 + 857) >= 0.7 > 2000 / (2000 + 858)
    assert sum("because" in line for line in lines) == 1
