"""Charts over HTTP, and what the share panel offers."""

import csv
import html
import io
import json
import re
import shlex
from urllib.parse import parse_qsl

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

import kvmodel
from app.behind import behind
from app.catalog import CHARTS, VIEWS, find_chart
from app.export.command import command_of
from app.export.page import SHARED_NAME, chart_html
from app.export.rows import chart_csv
from app.files import MAX_QUERY, ROUTES
from app.state import State, from_link
from app.views import share
from kvmodel import Scenario, find_model, registry

CLIENT = TestClient(Starlette(routes=ROUTES))


@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_can_be_embedded_and_kept(name):
    page = CLIENT.get(f"/embed/{name}.html?link=ethernet-25")
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    assert f'src="{SHARED_NAME}?v=' in page.text
    assert 'href="../?link=ethernet-25"' in page.text
    kept = CLIENT.get(f"/files/{name}.json?link=ethernet-25")
    assert kept.headers["content-disposition"] == f'attachment; filename="kv-handoff-{name}.json"'
    assert kept.json()["scenario"]["link"] == "ethernet-25"
    assert CLIENT.get(f"/files/{name}.csv").text.count("\n") > 2


def test_a_page_that_was_fetched_is_not_sent_again():
    first = CLIENT.get("/embed/ratio.html")
    again = CLIENT.get("/embed/ratio.html", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert "max-age" in first.headers["cache-control"]
    other = CLIENT.get("/embed/ratio.html?model=deepseek-v3")
    assert other.headers["etag"] != first.headers["etag"]


def test_the_script_is_shared_and_kept_long():
    (source,) = re.findall(rf'src="({SHARED_NAME}[^"]*)"', CLIENT.get("/embed/ratio.html").text)
    reply = CLIENT.get(f"/embed/{source}")
    assert "immutable" in reply.headers["cache-control"]
    assert "kvHandoffChart" in reply.text
    assert "immutable" not in CLIENT.get(f"/embed/{SHARED_NAME}?v=older").headers["cache-control"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/embed/timelin.html", "no chart is called 'timelin'; nearest: timeline"),
        ("/files/timeline.exe", "Files are html, json and csv"),
        ("/embed/timeline.html?model=" + "x" * MAX_QUERY, "allowed: up to 4,000"),
        ("/embed/..%2f..%2fetc%2fpasswd.html", "Not Found"),
    ],
)
def test_what_there_is_not_is_a_sentence_without_a_path(path, said):
    reply = CLIENT.get(path)
    assert reply.status_code == 404
    assert said in reply.text
    assert "Traceback" not in reply.text


def test_a_bad_value_in_a_query_falls_back_as_in_a_link():
    assert CLIENT.get("/files/ratio.json?model=<script>&batch=0&link=ethernet-25").json()["scenario"]["batch"] == 1


def test_the_theme_is_the_readers_unless_asked():
    assert "prefers-color-scheme:dark" in CLIENT.get("/embed/ratio.html").text
    assert "prefers-color-scheme:dark" not in CLIENT.get("/embed/ratio.html?theme=dark").text
    other = CLIENT.get("/embed/ratio.html?theme=blue").text
    assert "prefers-color-scheme:dark" in other
    assert "The address asked for theme=blue. Allowed: " in other


def texts(blocks):
    return [child["children"][0] for row in blocks for child in row["children"] if isinstance(child, dict) and child["tag"] == "code"]


@pytest.mark.parametrize("view", VIEWS)
def test_the_panel_offers_what_is_on_the_page(view):
    state = from_link({"link": "ethernet-25", "prompt_tokens": "4096"})
    blocks = share.blocks(state, view, "https://kv.example")
    frame, shell, python = texts(blocks)
    first = next(chart for chart in CHARTS.values() if chart.view == view)
    assert f'src="https://kv.example/embed/{first.name}.html?prompt_tokens=4096&amp;link=ethernet-25"' in frame
    assert shlex.split(shell)[:3] == ["kv-handoff", "chart", first.name]
    assert "--link ethernet-25" in shell
    made = {}
    exec(python.replace("print(", "made = ("), made)
    turns = kvmodel.agent_turn(state.scenario, state.turn).designs
    told = [(d.id, d.warm, d.ttft_seconds, d.unique_bytes) for d in turns]
    assert made["made"] == (told if view == "next-turn" else kvmodel.evaluate(state.scenario).verdict)
    hrefs = [child["href"] for row in blocks for child in row["children"] if isinstance(child, dict) and child["tag"] == "a"]
    assert all(CLIENT.get(href[1:]).status_code == 200 for href in hrefs)
    assert len(hrefs) == 3 * sum(chart.view == view for chart in CHARTS.values())


@pytest.mark.parametrize(
    ("address", "base"),
    [
        ("https://kv.example/", "https://kv.example"),
        ("https://kv.example/critical-length?link=x", "https://kv.example"),
        ("http://host:8501/sub/wire", "http://host:8501/sub"),
        ("http://host/sub/", "http://host/sub"),
    ],
)
def test_routes_lie_below_the_page_not_below_its_view(address, base):
    assert share.base_of(address) == base


def test_a_model_of_ones_own_is_not_offered_as_a_link():
    own = find_model("llama-3-70b").model_copy(update={"id": "your-model"})
    (only,) = share.blocks(State(Scenario(model=own)), "one-request", "")
    assert "stays in this session" in only["children"][0]


def test_the_frame_is_data_and_never_markup():
    assert "<iframe" in json.dumps(share.blocks(State(), "wire", ""))
    assert all(row["tag"] in ("div", "p") for row in share.blocks(State(), "wire", ""))


@pytest.mark.parametrize("preset", registry.presets().values(), ids=lambda p: p.id)
def test_a_preset_is_a_link_that_says_just_what_differs(preset):
    state = from_link(dict(parse_qsl(preset.query)))
    assert state.notes == ()
    assert state.query() == preset.query
    assert preset.view in VIEWS
    assert len(preset.what) < 120


@pytest.mark.parametrize("view", VIEWS)
def test_each_chart_has_its_numbers_in_a_table(view):
    state = from_link({"link": "ethernet-25"})
    blocks = share.numbers(state, view)
    charts = [chart for chart in CHARTS.values() if chart.view == view]
    assert [b["children"][0] for b in blocks[::2]] == [chart.title for chart in charts]
    for chart, region in zip(charts, blocks[1::2], strict=True):
        head, body = region["children"][0]["children"]
        rows = behind(chart.name, state)
        assert len(body["children"]) == len(rows)
        assert [th["children"][0] for th in head["children"][0]["children"]] == [name.replace("_", " ") for name in rows[0]]


def test_cells_are_plain_numbers():
    assert [share._cell(v) for v in (8192, 2684354560.0, 0.0536870912, None, True, "x")] == [
        "8,192",
        "2,684,354,560",
        "0.0536871",
        "–",
        "True",
        "x",
    ]


def test_an_embed_says_what_of_its_address_could_not_be_used_as_the_page_does():
    query = {"link": "<b>100gbe", "prompt_tokens": "8,192", "decode_tp": "4"}
    page = CLIENT.get("/embed/timeline.html", params=query)
    notes = from_link(query).notes
    assert len(notes) == 2
    for note in notes:
        assert f'<p class="kv-notice" role="alert">{html.escape(note)}</p>' in page.text
    assert "<b>100gbe" not in page.text
    assert 'role="alert"' not in CLIENT.get("/embed/timeline.html?decode_tp=4").text


ATTACKS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</script><script>alert(1)</script>",
    "javascript:alert(1)",
    "'+alert(1)+'",
    "<!--<script>",
)


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("name", ["model", "link", "theme", "prompt_tokens", "prefill_seconds", "view", "<script>"])
def test_no_parameter_of_an_embed_becomes_markup(name, attack):
    sound = CLIENT.get("/embed/ratio.html?link=ethernet-25").text
    reply = CLIENT.get("/embed/ratio.html", params={"link": "ethernet-25", name: attack})
    assert attack not in reply.text or "<" not in attack
    assert reply.text.count("<script") == sound.count("<script")
    assert "<img" not in reply.text
    assert not re.search(r"(?:href|src)=.javascript:", reply.text)
    assert not re.search(r"\son\w+=", re.sub(r"<p class=\"kv-notice\".*?</p>", "", reply.text.partition('<script type="application')[0]))
    for kind in ("json", "csv"):
        assert CLIENT.get(f"/files/ratio.{kind}", params={name: attack}).headers["content-type"].split(";")[0] != "text/html"


@pytest.mark.parametrize("attack", [*ATTACKS, "=cmd|' /C calc'!A0", "+1", "-1+cmd", "@SUM(1)", "\t=1"])
def test_a_model_s_own_name_is_text_in_a_page_and_no_formula_in_a_table(attack):
    own = find_model("llama-3-70b").model_copy(update={"name": attack, "short": attack, "id": "own"})
    state = State(Scenario(model=own, link="ethernet-25"))
    page = chart_html(
        find_chart("timeline"), state, theme="light", shared=True, explorer="", command=command_of(find_chart("timeline"), state)
    )
    assert page.count("<script") == 3
    assert "<img" not in page
    for name in ("timeline", "growth", "measured"):
        rows = list(csv.reader(io.StringIO(chart_csv(find_chart(name), state))))
        cells = [cell for row in rows for cell in row if not re.fullmatch(r"-?[\d.]+(e[+-]?\d+)?", cell)]
        assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
