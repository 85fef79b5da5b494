"""A pinned scenario: in the address, on the page, in charts and files, on the command line."""

import json
from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import given, settings
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from app.ahead import ahead
from app.catalog import CHARTS, VIEWS, find_chart
from app.charts import turn_bars
from app.cli import main
from app.compare_command import MAX_QUERY
from app.export.command import command_of
from app.export.page import chart_data
from app.export.rows import filled
from app.files import ROUTES
from app.palette import LIGHT
from app.state import State, from_link
from app.views import share
from kvmodel import Scenario, Turn, agent_turn, evaluate, find_model
from kvmodel.display import time_text
from tests.app.test_page import answer, opened, views
from tests.app.test_weighs import CONFIG, view
from tests.strategies import scenarios

CLIENT = TestClient(Starlette(routes=ROUTES))


def linked(query):
    return from_link(dict(parse_qsl(query)))


def pinned(this="", pin="defaults"):
    return linked(urlencode({**dict(parse_qsl(this)), "pin": pin}))


@given(scenarios(), scenarios())
@settings(max_examples=12)
def test_both_scenarios_survive_the_link_and_a_swap_exchanges_them(a, b):
    state = State(a, Turn(delta_tokens=7), pin=State(b))
    back = linked(state.query())
    assert back == state
    assert back.swapped().scenario == b
    assert back.swapped().pin == state.pinned().pin
    assert back.swapped().swapped() == state
    assert linked(back.unpinned().query()) == State(a, Turn(delta_tokens=7))
    assert len(state.pin.query()) <= MAX_QUERY


def test_the_pin_is_what_differs_from_the_defaults():
    assert State().pinned().query() == "pin=defaults"
    assert pinned("batch=4", "link=ethernet-25&kv_dtype=fp8").query() == "batch=4&pin=kv_dtype%3Dfp8%26link%3Dethernet-25"


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("<script>alert(1)</script>", "pin=<script>alert(1)</script>. Allowed: inputs of a scenario"),
        ("", "pin=. Allowed: inputs of a scenario"),
        ("x" * 5000, "pin=" + "x" * 37 + "…. 5,000 characters; allowed: up to 2,000. Nothing is pinned."),
        ("pin=" + "pin%3D" * 20, "Nothing is pinned."),
        ("utm=1", "Nothing is pinned."),
    ],
)
def test_a_pin_that_cannot_be_used_is_named_and_costs_no_other_input(text, note):
    state = from_link({"pin": text, "decode_tp": "4"})
    assert (state.pin, state.scenario) == (None, Scenario(decode_tp=4))
    assert len(state.notes) == 1
    assert note in state.notes[0]
    assert len(state.notes[0]) < 200


def test_a_bad_value_in_a_pin_falls_back_and_is_named():
    state = from_link({"pin": "prompt_tokens=12k&link=wan-100&model=" + "y" * 300})
    assert state.pin == State(Scenario(link="wan-100"))
    assert ["In the pin, the address asked for" in note for note in state.notes] == [True, True]
    assert "prompt_tokens=12k" in state.notes[0]


def test_a_configuration_of_ones_own_is_pinned_in_the_session_alone():
    own = find_model("llama-3-70b").model_copy(update={"id": "own", "name": "Your model"})
    state = State(Scenario(link="wan-100"), pin=State(Scenario(model=own)))
    assert state.query() == "link=wan-100"
    said = json.dumps(VIEWS["one-request"].at(state).views["pinned_view"], ensure_ascii=False)
    assert "stays in this session" in said
    assert "Model Llama 3 70B" not in said
    shared = json.dumps(share.blocks(state, "one-request", "http://h"))
    assert "stays in this session" in shared
    assert "--against" not in shared


def test_applying_a_lever_compares_with_what_was_and_never_carries_a_configuration_of_ones_own():
    view = VIEWS["one-request"].at(State()).views["levers_view"]
    link = next(child for child in view["items"][-1]["children"] if isinstance(child, dict) and child["children"] == ["FP8 KV"])
    assert (link["href"], link["title"]) == ("?kv_dtype=fp8&pin=defaults", "Applies it; what was is pinned to compare")
    said = VIEWS["one-request"].at(linked(link["href"][1:])).views["pinned_view"]["now"]
    assert "".join(part[0] for part in said["pin.sentence"]).startswith("KV dtype fp8 in place of bf16: 2.00× fewer bytes cross")
    assert said["pin.bar.was.text"] != said["pin.bar.now.text"]
    assert said["pin.change memory.decode.batch_fits"].endswith("×")
    assert "Only this one is in FP8. Lossy" in json.dumps(VIEWS["one-request"].at(linked(link["href"][1:])).views["pinned_view"]["items"])
    own = State(Scenario(model=find_model("llama-3-70b").model_copy(update={"id": "own", "name": "Your model"})))
    assert own.applied(model="llama-3.1-8b").query() == "model=llama-3.1-8b"
    assert State(pin=own).applied(batch=2).query() == "batch=2&pin=defaults"  # a link cannot carry the pin, so what was is pinned


def test_ones_own_model_can_be_pinned_left_and_swapped_back():
    page = AppTest.from_function(view, default_timeout=60).run()
    page.text_area(key="own_text").input(json.dumps(CONFIG)).run()
    own = answer(page)
    page.button(key="do_pin").click().run()
    page.selectbox(key="model").select("llama-3-70b").run()
    assert "Model Llama 3 70B in place of Your model" in json.dumps(views(page)["pinned_view"]["now"], ensure_ascii=False)
    assert views(page)["answer_view"]["url"]["query"] == ""
    page.button(key="do_swap").click().run()
    assert not page.exception
    assert answer(page) == own
    assert page.selectbox(key="model").value.name == "Your model"
    assert "stays in this session" in json.dumps(views(page)["pinned_view"]["items"])


def test_the_page_pins_swaps_and_unpins():
    page = opened(link="ethernet-25", prompt_tokens="5000")
    before = answer(page)
    assert "pinned_view" not in views(page)
    page.button(key="do_pin").click().run()
    page.selectbox(key="kv_dtype").select("fp8").run()
    assert not page.exception
    shown = views(page)
    assert shown["answer_view"]["url"]["query"] == (
        "prompt_tokens=5000&kv_dtype=fp8&link=ethernet-25&pin=prompt_tokens%3D5000%26link%3Dethernet-25"
    )
    said = "".join(text for text, _ in shown["pinned_view"]["now"]["pin.sentence"])
    assert said.startswith("KV dtype fp8 in place of bf16: 2.00× fewer bytes cross, and the first token comes 262\u202fms sooner")
    assert shown["pinned_view"]["now"]["pin.differs"] == "Differs in: KV dtype (bf16 → fp8)."
    assert before in json.dumps(shown["pinned_view"]["items"], ensure_ascii=False)
    page.button(key="do_swap").click().run()
    assert (page.selectbox(key="kv_dtype").value, page.select_slider(key="prompt_tokens").value) == ("auto", 5000)
    assert answer(page) == before
    page.selectbox(key="link").select("ib-ndr-400").run()
    assert views(page)["answer_view"]["url"]["query"] == "prompt_tokens=5000&pin=prompt_tokens%3D5000%26kv_dtype%3Dfp8%26link%3Dethernet-25"
    page.button(key="do_unpin").click().run()
    assert not page.exception
    assert views(page)["answer_view"]["url"]["query"] == "prompt_tokens=5000"
    assert "pinned_view" not in views(page)


def test_a_swap_brings_overlap_and_a_prompt_between_the_sliders_positions():
    page = opened(pin="prompt_tokens=5000&overlap=layer&decode_batch=32")
    page.button(key="do_swap").click().run()
    assert not page.exception
    assert page.select_slider(key="prompt_tokens").value == 5000
    assert page.session_state["overlap"] == "layer"
    page.selectbox(key="decode_tp").select(4).run()
    assert views(page)["answer_view"]["url"]["query"] == "prompt_tokens=5000&decode_tp=4&overlap=layer&decode_batch=32&pin=defaults"


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_moves_by_tables_that_hold_all_it_says_of_the_pin(view):
    state = pinned("model=gpt-oss-120b&link=roce-100", "batch=4&prompt_tokens=100")
    board = VIEWS[view].at(state)
    assert board.views["pinned_view"]["now"]["pin.differs"].startswith("Differs in: Model (Llama 3 70B → GPT-OSS 120B)")
    for chart in (chart for chart in CHARTS.values() if chart.view == view):
        data = chart_data(chart, state)
        if data["tables"]:
            [table] = data["tables"].values()
            assert set(data["chart"]["now"]) | set(data["pinned"]["now"]) <= set(table["table"])
    assert json.loads(ahead(view, state.query(), "link", "Ethernet 25"))["views"]["pinned_view"]["now"]["pin.sentence"]


def drawn(name, state):
    chart = find_chart(name)
    view = VIEWS[chart.view].at(state).views[chart.mount]
    return filled(next(item for item in view["items"] if "wide" in item), view, LIGHT)


def hollow(figure):
    return [t for t in figure["data"] if t["type"] == "bar" and t["marker"].get("color") == LIGHT["bg"]]


def test_the_timeline_draws_the_pinned_spans_to_its_own_scale():
    state = pinned("link=ethernet-25&overlap=layer", "overlap=layer")
    figure = drawn("timeline", state)
    [ghost] = hollow(figure)
    this, other = evaluate(state.scenario), evaluate(state.pin.scenario)
    reach = 1.045 * this.ttft_seconds / 60_000
    assert ghost["x"][0] * reach == pytest.approx(other.prefill.seconds, rel=1e-3)
    assert ghost["base"][3] * reach == pytest.approx(other.prefill.seconds + other.transfer.exposed_seconds, rel=1e-3)
    words = [text for t in figure["data"] if t.get("mode") == "text" for text in t["text"]]
    assert f"\u2002pinned, hollow: first token {time_text(other.ttft_seconds)}\u2002" in words
    assert len(hollow(drawn("timeline", state.unpinned()))) == 0


def test_curves_of_the_pin_are_dashed_and_have_their_word():
    state = pinned("link=ethernet-25", "model=llama-3.1-8b")
    for name, word in (("critical", "pin"), ("ratio", "pin"), ("growth", "pin, on average")):
        figure = drawn(name, state)
        assert word in [note["text"] for note in figure["layout"]["annotations"]], name
        dashed = [
            t for t in figure["data"] if t.get("mode") == "lines" and t["line"]["color"] == LIGHT["muted"] and t["line"]["dash"] == "dash"
        ]
        assert len(dashed) == 1, name
        low, high = figure["layout"]["yaxis"]["range"]
        assert 10**low <= min(dashed[0]["y"]), name
        assert max(dashed[0]["y"]) <= 10**high, name
        if name == "critical":
            at = dashed[0]["x"].index(8192)
            assert dashed[0]["y"][at] == pytest.approx(evaluate(Scenario(model="llama-3.1-8b")).transfer.seconds, rel=1e-3)
            assert {"pin: prefill", "pin: decode step"} <= {note["text"] for note in figure["layout"]["annotations"]}


@pytest.mark.parametrize("tokens", [128, 1_048_576])
def test_marks_at_either_end_of_the_prompt_axis_stand_on_it(tokens):
    for name in ("critical", "ratio", "growth"):
        layout = drawn(name, State(Scenario(prompt_tokens=tokens)))["layout"]
        low, high = layout["xaxis"]["range"]
        places = [note["x"] for note in layout["annotations"] if note.get("xref") == "x"]
        assert all(low <= x <= high for x in places), name


def test_bars_of_the_pin_stand_hollow_below_those_of_now():
    state = pinned("", "link=ethernet-25&engine=vllm-nixl")
    [below] = hollow(drawn("turn-bars", state))
    assert len(below["x"]) == len(below["y"]) == 10
    assert max(below["x"][:5]) < turn_bars.PANELS["w"].time[1]
    assert max(below["x"][5:]) < turn_bars.PANELS["w"].bytes[1]
    figure = drawn("where", state)
    [ghost] = hollow(figure)
    assert ghost["x"][-1] == pytest.approx(evaluate(state.pin.scenario).gap_seconds, rel=1e-3)
    assert figure["layout"]["xaxis"]["range"][1] > ghost["x"][-1]
    assert "Posting messages" in figure["layout"]["yaxis"]["ticktext"]


def test_files_frames_and_commands_keep_the_pin(tmp_path, capsys):
    state = pinned("link=ethernet-25", "kv_dtype=fp8&batch=2")
    page = CLIENT.get(f"/embed/timeline.html?{state.query()}").text
    assert 'data-place="pinned"' in page
    assert "pin=batch%3D2%26kv_dtype%3Dfp8" in page
    kept = CLIENT.get(f"/files/timeline.json?{state.query()}").json()
    assert kept["pinned"]["kv_dtype"] == "fp8"
    later = evaluate(state.scenario).ttft_seconds - evaluate(state.pin.scenario).ttft_seconds
    assert kept["difference"].startswith(f"Batch, KV dtype and link differ: the first token comes {time_text(later)} later")
    command = command_of(find_chart("timeline"), state)
    assert command == "kv-handoff chart timeline --link ethernet-25 --against 'batch=2&kv_dtype=fp8'"
    assert main(["chart", "timeline", "--link", "ethernet-25", "--against", "batch=2&kv_dtype=fp8", "--out", str(tmp_path / "t.json")]) == 0
    made = json.loads((tmp_path / "t.json").read_text())
    assert (made["pinned"], made["difference"], made["command"]) == (kept["pinned"], kept["difference"], kept["command"])
    printed = share.python_of(state.scenario, state.pin.scenario)
    exec(compile(printed, "lines", "exec"), {})
    assert capsys.readouterr().out.strip().endswith(made["difference"])


def test_the_line_of_a_turn_prints_its_designs(capsys):
    state = State(Scenario(link="ethernet-25"), Turn(delta_tokens=4_000))
    exec(compile(share.turn_python(state), "lines", "exec"), {})
    found = agent_turn(state.scenario, state.turn).designs
    assert capsys.readouterr().out.strip() == str([(d.id, d.warm, d.ttft_seconds, d.unique_bytes) for d in found])


def test_hostile_text_in_a_pin_reaches_no_page():
    page = CLIENT.get("/embed/ratio.html", params={"pin": "link=<img src=x onerror=alert(1)>&batch=2"}).text
    assert "<img" not in page
    assert "pin=batch%3D2" in page


def test_the_command_line_compares(capsys):
    assert main(["evaluate", "--kv-dtype", "fp8", "--against", "http://h/?link=ib-ndr-400"]) == 0
    printed = capsys.readouterr().out
    assert "KV dtype fp8 in place of bf16: 2.00× fewer bytes cross" in printed
    assert "Pinned: The handoff adds 53.7\u202fms" in printed
    assert "Requests that fit on decode" in printed
    assert printed.rstrip().splitlines()[-1].startswith("Only this one is in FP8. Lossy")
    assert main(["evaluate", "--kv-dtype", "fp8", "--against", "defaults", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["compare"]
    assert found["inputs"] == [{"name": "kv_dtype", "pinned": "bf16", "this": "fp8"}]
    assert main(["turn", "--link", "ethernet-25", "--against", "delta_tokens=4000", "--json"]) == 0
    turned = json.loads(capsys.readouterr().out)["compare"]
    assert [change["name"] for change in turned["inputs"]] == ["link", "delta_tokens"]
    assert [(d["id"], d["warm"]) for d in turned["designs"]][2] == ("pool", False)
    assert main(["turn", "--link", "ethernet-25", "--against", "defaults"]) == 0
    assert "pool (cold), time to first token" in capsys.readouterr().out
    assert {"name": "kv.wire_bytes", "pinned": 2684354560, "this": 1342177280, "difference": -1342177280, "ratio": 0.5} in found["figures"]


@pytest.mark.parametrize(
    ("query", "words"), [("", "allowed: inputs"), ("lnik=x", "nearest: link"), ("batch=1e3", "batch"), ("x" * 3000, "up to 2,000")]
)
def test_a_query_that_cannot_be_used_is_refused_in_a_line(query, words, capsys):
    assert main(["evaluate", "--against", query]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
