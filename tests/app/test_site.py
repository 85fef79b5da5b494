"""A static copy: its files, their numbers, what it holds and what it refuses."""

import gzip
import html
import json
import re
import sys
from types import ModuleType
from urllib.parse import parse_qsl, urlsplit

import pytest

from app.catalog import VIEWS
from app.charts.spec import placed
from app.cli import main
from app.live import block
from app.markup import html_of
from app.site.data import view_data
from app.site.folder import MARK, PARTIAL, hashed, named, opened
from app.site.grid import grid_of, query_of, values_of
from app.site.make import script
from app.state import State, from_link
from kvmodel import BadScenarioError, Scenario, evaluate
from kvmodel.display import bytes_text, digits, time_text

VIEW = "one-request"
WORDS = ["--models", "llama-3.1-8b,llama-3-70b", "--links", "ib-ndr-400,ethernet-25", "--tp", "1,8", "--kv-dtype", "auto", "--jobs", "1"]
LIVE = "https://kv.example/handoff"


def export(folder, *words):
    return main(["export-site", str(folder), *WORDS, *words])


def unpacked(path):
    return json.loads(gzip.decompress(path.read_bytes()), parse_constant=lambda word: pytest.fail(word))


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    assert export(folder, "--views", f"{VIEW},weighs", "--app-url", LIVE + "/", "--compress") == 0
    return folder


@pytest.fixture(scope="module")
def grid(site):
    return unpacked(next(site.glob("grid.*.json.gz")))


def state_of(query):
    return from_link(dict(parse_qsl(query)))


def test_every_scenario_has_its_files_under_the_query_that_the_page_knows_it_by(site, grid):
    queries = {one["query"]: one["name"] for one in grid["scenarios"]}
    assert len(queries) == len(grid["scenarios"]) == 7 + 6 - 1  # the presets, and the grid, which has one of them
    for query, name in queries.items():
        state = state_of(query)
        assert state.query() == query
        assert state.notes == ()
        for view in (VIEW, "weighs"):
            assert unpacked(site / grid["data"] / view / f"{name}.json.gz") == json.loads(json.dumps(view_data(view, state)))
    assert {key: grid["defaults"][key] for key in ("model", "prefill_tp", "overlap")} == {
        "model": "llama-3-70b",
        "prefill_tp": "8",
        "overlap": "",
    }


def test_numbers_of_files_are_those_of_evaluate(site, grid):
    for one in grid["scenarios"]:
        table = unpacked(site / grid["data"] / VIEW / f"{one['name']}.json.gz")["tables"]["prompt_tokens"]
        for at in (0, len(table["positions"]) // 2, len(table["positions"]) - 1):
            scenario = state_of(one["query"]).scenario.with_changes(prompt_tokens=int(table["positions"][at]))
            result = evaluate(scenario)
            cell = {name: column[at] if isinstance(column, list) else column["$same"] for name, column in table["table"].items()}
            assert cell["s.bytes"] == bytes_text(result.kv.wire_bytes)
            assert cell["s.wire"] == f"in {time_text(result.transfer.seconds)}"
            size = {"s": 1, "ms": 1e-3, "µs": 1e-6}[cell["s.unit"]]
            for name, seconds in (("s.ttft", result.ttft_seconds), ("s.prefill", result.prefill.seconds)):
                shown, told = float(cell[name].replace(",", "")) * size, float(digits(seconds / size).replace(",", "")) * size
                assert abs(shown - seconds) <= max(abs(told - seconds), 5e-4), name  # three digits, or the nearest millisecond


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_has_what_its_spec_takes_and_opens_no_explanations(view):
    data = view_data(view, State(Scenario(link="ethernet-25")))
    for shown in data["views"].values():
        assert placed(shown["items"], "$at") == set(shown["now"])
        assert placed(shown["items"], "$col") == set(shown["columns"])
    assert "data-explain" not in json.dumps(data)
    assert [one["name"] for one in data["sliders"]] == list(data["tables"])
    assert data["sliders"][0]["name"] in VIEWS[view].sliders


def test_addresses_of_pages_are_files_of_the_copy_or_the_live_page(site):
    pages = sorted(path.name for path in site.glob("*.html"))
    assert pages == sorted(["index.html", "method.html", f"{VIEW}.html", "weighs.html"])
    for name in pages:
        text = (site / name).read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|link)[^>]*(?:src|href)="([^"]*)"', text) + re.findall(r'data-grid="([^"]*)"', text)
        assert all((site / one).is_file() for one in loaded if one != "data:,")
        for address in map(html.unescape, re.findall(r'<a [^>]*href="([^"]*)"', text)):
            parts = urlsplit(address)
            if parts.scheme:
                assert name == "method.html" or address.startswith(LIVE)
            elif parts.path:
                assert parts.path in pages
            assert state_of(parts.query).notes == ()
        assert "<script>" not in text
        assert gzip.decompress((site / f"{name}.gz").read_bytes()).decode() == text


def test_a_first_page_begins_with_an_answer_and_finds_every_model(site):
    text = (site / "index.html").read_text(encoding="utf-8")
    assert "The handoff adds" in text.partition("</h1>")[0]
    assert html.escape("Llama-3.1-8B".lower()) in text
    assert f'href="{LIVE}/?model=gemma-3-27b"' in text
    assert 'href="one-request.html?model=llama-3.1-8b"' in text


def test_a_tp_that_does_not_fit_is_given_with_its_reason(grid, capsys):
    (refused,) = grid["refused"]
    assert state_of(refused["query"]).scenario == Scenario(prefill_tp=1, decode_tp=1)
    assert refused["reason"] == evaluate(Scenario(prefill_tp=1, decode_tp=1)).reason != ""
    never = grid_of(values_of({"models": "deepseek-v2-lite", "tp": "1,8", "links": "roce-400", "kv-dtype": "fp8_per_token_head"}))
    assert not any(one.preset == "" for one in never.held)
    assert all("fp8_per_token_head" in one.reason for one in never.refused)
    assert query_of(never, "deepseek-v2-lite") == "model=deepseek-v2-lite"


def test_a_model_takes_the_first_gpu_on_which_it_fits_and_is_supposed_to_where_it_fits_on_none():
    asked = {"models": "deepseek-v3", "tp": "4,8", "links": "roce-400", "kv-dtype": "auto"}
    two, one = grid_of(values_of(asked)), grid_of(values_of({**asked, "gpu": "h100-sxm"}))
    h200 = {"prefill_accelerator": "h200-sxm", "decode_accelerator": "h200-sxm"}
    assert [held.state.scenario for held in two.held if not held.preset] == [Scenario(model="deepseek-v3", link="roce-400", **h200)]
    assert {state_of(refused.query).scenario for refused in two.refused} == {
        Scenario(model="deepseek-v3", prefill_tp=tp, decode_tp=tp, **gpu) for tp, gpu in ((4, {}), (8, {}), (4, h200))
    }
    assert [held.state.scenario for held in one.held if not held.preset] == [Scenario(model="deepseek-v3", link="roce-400")]


def test_a_copy_is_the_same_bytes_again_and_takes_the_place_of_an_older_one(site, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))  # a page that was run leaves its script there
    assert export(tmp_path, "--views", "weighs", "--json") == 0
    first = json.loads(capsys.readouterr().out)
    assert first["files"] == len(contents(tmp_path))
    assert first["bytes"] == sum(map(len, contents(tmp_path).values()))
    (tmp_path / "CNAME").write_text("kv.example")
    assert export(tmp_path, "--views", f"{VIEW},weighs", "--app-url", LIVE, "--compress", "--jobs", "2") == 0
    again = contents(tmp_path)
    assert again.pop("CNAME") == b"kv.example"
    assert again == contents(site)


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path, capsys):
    (tmp_path / "thesis.txt").write_text("mine")
    assert export(tmp_path) == 2
    assert "is not empty and not an earlier export" in capsys.readouterr().err
    assert contents(tmp_path) == {"thesis.txt": b"mine"}
    (tmp_path / "file").write_text("")
    assert export(tmp_path / "file") == 2
    assert "out: cannot write to" in capsys.readouterr().err


def test_an_export_that_was_broken_off_is_taken_up_again(tmp_path):
    folder = opened(str(tmp_path / "new"))
    (folder / PARTIAL / "half").write_text("")
    assert json.loads((folder / MARK).read_text())["names"] == []
    assert list((opened(str(folder)) / PARTIAL).iterdir()) == []
    (folder / MARK).write_text(json.dumps({"names": ["", ".", "..", "../x", ".git", "data-1", 3]}))
    assert named(folder) == ["data-1"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--models", "llama-3-70"], "no model is called 'llama-3-70'; nearest: llama-3-70b"),
        (["--links", "ndr"], "no link is called 'ndr'"),
        (["--tp", "8,x"], "prefill_tp: got 'x'; allowed: a whole number from 1 to 64"),
        (["--kv-dtype", ","], "kv-dtype: got ','; allowed: values with commas between"),
        (["--views", "wires"], "views: got 'wires'; allowed: all, or some of one-request"),
        (["--app-url", "javascript:alert(1)"], "app-url: got 'javascript:alert(1)'; allowed: an address that begins with https://"),
        (["--jobs", "0"], "jobs: got '0'; allowed: a whole number from 1 to 64"),
        (["--link", "ndr"], "got '--link'; this command takes no more words"),
    ],
)
def test_what_cannot_be_exported_is_said_in_a_line(words, said, tmp_path, capsys):
    assert main(["export-site", str(tmp_path / "out"), *words]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_texts_stay_texts_in_pages_and_names_hold_what_files_are():
    hostile = block("p", "</script><b>", {"tag": "span", "parts": [["<i>", 'wire"']], "children": []}, title='"><script>')
    assert html_of(hostile) == (
        '<p title="&quot;&gt;&lt;script&gt;">&lt;/script&gt;&lt;b&gt;<span><span class="kv-wire&quot;">&lt;i&gt;</span></span></p>'
    )
    assert re.fullmatch(r"grid\.[0-9a-f]{12}\.json\.gz", hashed("grid.json.gz", b"x"))
    assert hashed("a.js", b"x") != hashed("a.js", b"y")
    with pytest.raises(BadScenarioError, match="engine"):
        values_of({"engine": ""})


def test_the_scripts_that_a_copy_joins_have_no_name_twice():
    """They stand in one scope there, and a name that two of them have is an error that leaves every page of the copy empty."""
    heads = re.findall(r"^(?:const|let|class|(?:async )?function) +(.*)$", script(), re.MULTILINE)
    first = [re.match(r"\w+", head)[0] for head in heads if head[0] not in "{["]
    more = [name for head in heads for name in re.findall(r"(?<=, )(\w+)(?=[,;] | = |, |;)", head.partition("//")[0].partition("=")[0])]
    names = first + more
    assert {name for name in names if names.count(name) > 1} == set()
    assert {"shown", "grid", "revealed", "slider", "element", "sent"} <= set(names)
