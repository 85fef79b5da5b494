"""Explanations on the page and the command line: the same text, sources as links, and the report of a wrong number."""

import json
from urllib.parse import parse_qs, urlparse

import pytest
from hypothesis import given, settings

import kvmodel
from app import report
from app.cli import main
from app.explained import explanation_text, filled_text, headline, value_text
from app.state import State
from app.views import explain as view
from kvmodel import Scenario, Turn, evaluate
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


def test_the_page_explains_the_figures_of_each_view_while_the_fold_is_open():
    page = opened(link="ethernet-25")
    assert not any(key.startswith("explain_") for key in views(page))
    page.session_state["explain_fold"] = True
    page.run()
    assert not page.exception
    rows = views(page)["explain_one-request"]["items"]
    assert [row["data-figure"] for row in rows] == list(view.SHOWN["one-request"])
    assert {row["name"] for row in rows} == {"explain"}  # only one open at a time
    assert "859 ms" in " ".join(texts(rows[2])).replace("\u202f", " ")
    links = [link["href"] for link in nodes(rows[5], "a")]
    assert "https://www.ieee802.org/3/" in links
    page.selectbox(key="link").select("ib-ndr-400").run()
    assert "53.7 ms" in " ".join(texts(views(page)["explain_one-request"]["items"][2])).replace("\u202f", " ")


def test_numbers_of_the_sum_open_explanations_that_are_there():
    page = views(opened(engine="vllm-nixl"))
    buttons = [button["data-explain"] for item in page["sum_view"]["items"] for button in nodes(item, "button")]
    assert len(buttons) == 7
    assert set(buttons) <= set(view.SHOWN["one-request"])


def test_every_view_with_charts_has_figures():
    from app.catalog import VIEWS

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
