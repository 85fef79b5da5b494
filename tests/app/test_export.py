"""Charts as files: numbers, images' figures, pages of their own."""

import csv
import gzip
import io
import json
import math
import re
import shlex

import pytest

from app.behind import behind
from app.catalog import CHARTS, VIEWS, find_chart
from app.charts.spec import placed
from app.cli import main
from app.export import page
from app.export.command import command_of, size_of, state_of
from app.export.image import chart_figure, stable
from app.export.page import chart_data, chart_html
from app.export.rows import chart_csv, chart_json
from app.palette import DARK, LIGHT
from app.state import State
from kvmodel import BadScenarioError, Scenario, UnknownNameError, evaluate, find_model
from kvmodel.traffic import Traffic

BIG, SMALL, BESIDE_SHARED = 1_600_000, 450_000, 60_000
"""Gzipped bytes a page may have with Plotly's full bundle, with its basic one, and beside a shared script."""


def html_of(name, state=None, **options):
    defaults = {"theme": "light", "shared": True, "explorer": "", "command": "kv-handoff chart"}
    return chart_html(find_chart(name), state or State(), **{**defaults, **options})


def leaves(node):
    if isinstance(node, dict):
        for value in node.values():
            yield from leaves(value)
    elif isinstance(node, list | tuple):
        for value in node:
            yield from leaves(value)
    else:
        yield node


@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_is_json_with_rows_and_a_whole_figure(name):
    whole = json.loads(chart_json(find_chart(name), State(), "x"), parse_constant=lambda word: pytest.fail(word))
    assert whole["chart"] == name
    assert whole["rows"]
    assert whole["scenario"]["model"] == "llama-3-70b"
    assert whole["answer"] == VIEWS[CHARTS[name].view].at(State()).views["answer_view"]["say"]
    for figure in whole["figures"]:
        assert placed(figure, "$at") == placed(figure, "$col") == placed(figure, "$c") == set()
        assert figure["layout"]["height"] > 0


@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_is_a_table(name):
    rows = list(csv.DictReader(io.StringIO(chart_csv(find_chart(name), State()))))
    assert len(rows) == len(behind(name, State()))
    assert all(None not in row and None not in row.values() for row in rows)


def test_rows_are_the_models_numbers():
    e = evaluate(Scenario(overlap="layer"))
    spans = behind("timeline", State(Scenario(overlap="layer")))
    prefill = [row for row in spans if row["lane"] == "prefill"]
    assert len(prefill) == 80
    assert prefill[-1]["end_seconds"] == pytest.approx(e.prefill.seconds, rel=0.01)
    assert spans[-1]["start_seconds"] == pytest.approx(e.prefill.seconds + e.gap_seconds)
    at = next(row for row in behind("critical", State()) if row["prompt_tokens"] == 8192)
    assert at["ib-ndr-400_seconds"] == pytest.approx(evaluate(Scenario()).transfer.seconds)
    assert at["ethernet-25_seconds"] == pytest.approx(evaluate(Scenario(link="ethernet-25")).transfer.seconds)
    layers = behind("layers", State(Scenario(model="gemma-3-27b")))
    assert sum(row["bytes"] for row in layers) == evaluate(Scenario(model="gemma-3-27b")).kv.prompt_bytes
    gaps = next(row for row in behind("pipelining", State()) if row["prompt_tokens"] == 8192)
    assert gaps["layer_gap_seconds"] == pytest.approx(evaluate(Scenario(overlap="layer")).gap_seconds)


def test_text_that_a_spreadsheet_could_run_is_quoted(monkeypatch):
    hostile = ["=HYPERLINK(1)", "+1", "-1+cmd", "@SUM(1)", "\t=1", "\r=1", " =1", "\n@x"]
    monkeypatch.setattr("app.export.rows.behind", lambda *_: [{"text": text, "number": -1.5, "words": "a = b"} for text in hostile])
    rows = list(csv.DictReader(io.StringIO(chart_csv(find_chart("layers"), State()), newline="")))
    assert [row["text"] for row in rows] == ["'" + text.replace("\r", " ") for text in hostile]
    assert {(row["number"], row["words"]) for row in rows} == {("-1.5", "a = b")}


@pytest.mark.parametrize("name", CHARTS)
def test_a_page_of_its_own_asks_nothing_of_the_network(name):
    text = html_of(name)
    assert re.findall(r'(?:src|href)="(?!https://)([^"]*)"', text) == [page.SHARED_NAME]
    assert re.findall(r"<(?:script|link|img|iframe)[^>]*https?:", text) == []
    assert len(gzip.compress(text.encode())) <= BESIDE_SHARED


def test_a_whole_page_is_no_larger_than_said():
    size = len(gzip.compress(html_of("timeline", shared=False, theme="auto").encode()))
    assert size <= (SMALL if page.bundle()[1] else BIG)


def test_names_and_data_stay_data_in_a_page():
    hostile = find_model("llama-3-70b").model_copy(update={"name": "</script><script>alert(1)</script>"})
    text = html_of("timeline", State(Scenario(model=hostile)), explorer='https://x.example/"><script>')
    assert "<script>alert(1)" not in text
    assert '"><script>' not in text
    assert text.count("<script") == 3


def test_a_page_moves_by_the_explorers_own_table():
    data = chart_data(find_chart("timeline"), State())
    (slider,) = data["sliders"]
    table = data["tables"]["prompt_tokens"]
    assert slider["positions"][slider["at"]] == "8192"
    assert slider["texts"][slider["at"]] == "8,192"
    assert table["id"] == data["chart"]["tables"]["prompt_tokens"]
    for view in (data["answer"], data["chart"]):
        for name, value in view["now"].items():
            column = table["table"][name]
            assert (column["$same"] if isinstance(column, dict) else column[slider["at"]]) == value


def test_a_chart_that_nothing_moves_has_no_slider():
    assert chart_data(find_chart("residuals"), State())["sliders"] == []


def test_the_theme_of_a_page_is_fixed_or_the_readers():
    light, dark, auto = (html_of("ratio", theme=theme) for theme in ("light", "dark", "auto"))
    assert f"--kv-bg:{LIGHT['bg']}" in light
    assert DARK["bg"] not in light
    assert f"--kv-bg:{DARK['bg']}" in dark
    assert "prefers-color-scheme:dark" in auto


def test_a_page_links_back_with_the_scenario():
    text = html_of("ratio", State(Scenario(link="ethernet-25")), explorer="https://example.org/kv/")
    assert 'href="https://example.org/kv/?link=ethernet-25"' in text


@pytest.mark.parametrize("fields", [{}, {"model": "deepseek-v3", "prompt_tokens": 4096, "overlap": "layer", "link_gbytes_per_s": 12.5}])
def test_the_command_makes_the_chart_again(fields, tmp_path, capsys):
    state = State(Scenario(**fields), traffic=Traffic(in_flight=32))
    words = shlex.split(command_of(find_chart("congestion"), state))
    out = tmp_path / "again.json"
    assert main([*words[1:], "--out", str(out)]) == 0
    assert "wrote" in capsys.readouterr().out
    assert json.loads(out.read_text()) == json.loads(chart_json(find_chart("congestion"), state, " ".join(words)))


def test_an_image_has_the_answer_above_and_says_below_what_made_it():
    figure = chart_figure(find_chart("critical"), State(Scenario(link="ethernet-25")), theme="dark", size=(600, 500))
    *_, title, source = figure["layout"]["annotations"]
    assert title["text"].replace("<br>", " ").replace("<b>", "").replace("</b>", "").startswith("On Ethernet 25, a prompt past")
    assert "link ethernet-25" in source["text"]
    assert (figure["layout"]["width"], figure["layout"]["height"]) == (600, 500)
    assert figure["layout"]["paper_bgcolor"] == DARK["bg"]
    you = next(shape for shape in figure["layout"]["shapes"] if shape["line"]["color"] == DARK["ink"])
    assert you["x0"] == 8192
    assert not any(isinstance(v, float) and not math.isfinite(v) for v in leaves(figure))


def test_random_ids_of_an_image_are_numbered():
    svg = '<g id="clip3f2a1bxyplot" class="trace scatter trace9c01ff"/><use href="#clip3f2a1bxyplot"/> font: 123456'
    other = svg.replace("3f2a1b", "77aa01").replace("9c01ff", "0000bb")
    assert stable(svg) == stable(other)
    assert "3f2a1b" not in stable(svg)
    assert "123456" in stable(svg)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["timelin", "--out", "x.json"], "nearest: timeline"),
        (["timeline", "--out", "x.pdf"], "out: got 'x.pdf'; allowed: a file name that ends in .html"),
        (["timeline", "--out", "nowhere/x.json"], "out: cannot write 'x.json': there is no directory 'nowhere'"),
        (["timeline", "--out", "x.png", "--size", "10x10"], "size: got '10x10'"),
        (["timeline", "--out", "x.html", "--theme", "blue"], "theme: got 'blue'; allowed: light, dark, auto"),
        (["timeline", "--out", "x.html", "--explorer", "javascript:1"], "explorer: got 'javascript:1'"),
        (["timeline"], "--out"),
        (["timeline", "--out", "x.json", "--in-flight", "0"], "in_flight: got 0"),
        (["timeline", "--out", "x.json", "--prompt-tokens", "8,192"], "prompt_tokens"),
    ],
)
def test_what_cannot_be_made_is_one_sentence(words, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["chart", *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_shared_script_is_written_beside_the_page(tmp_path, capsys):
    assert main(["chart", "ratio", "--out", str(tmp_path / "r.html"), "--shared-js", "--json"]) == 0
    written = json.loads(capsys.readouterr().out)
    assert (tmp_path / written["shared"]).stat().st_size == written["shared_bytes"]
    assert written["gzip_bytes"] <= BESIDE_SHARED


def test_charts_can_be_listed(capsys):
    assert main(["list", "charts", "--json"]) == 0
    assert [row["id"] for row in json.loads(capsys.readouterr().out)["charts"]] == list(CHARTS)


def test_names_and_sizes_are_read_strictly():
    assert size_of("600x360") == (600, 360)
    assert size_of("") is None
    with pytest.raises(BadScenarioError):
        size_of("600×360")
    with pytest.raises(UnknownNameError):
        find_chart("")
    assert state_of(Scenario(), {"delta_tokens": "512"}).turn.delta_tokens == 512
