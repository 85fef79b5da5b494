"""The page's wiring, without a browser: controls change the scenario, the link and every view."""

import json
from base64 import b64decode
from pathlib import Path
from zlib import decompress

import pytest
from streamlit.testing.v1 import AppTest

from app.catalog import VIEWS
from app.controls import name_of
from app.state import State
from kvmodel import Scenario, __version__
from kvmodel.registry import models

MAIN = str(Path(__file__).parents[2] / "app" / "main.py")


def elements(block):
    for child in block.children.values():
        if hasattr(child, "children"):
            yield from elements(child)
        else:
            yield child


def views(page):
    found = {e.key: json.loads(e.proto.bytes) for e in elements(page.main) if e.type == "bidi_component"}
    for name, slider in found.get("tables", {}).get("sliders", {}).items():
        assert slider["mark"] == found[f"table_{name}"]["mark"]
        slider |= json.loads(decompress(b64decode(found[f"table_{name}"]["packed"])))
    return found


def stills(page):
    return "".join(e.proto.body for e in elements(page.main) if e.type == "html")


def answer(page):
    return views(page)["answer_view"]["say"]


def opened(**query):
    page = AppTest.from_file(MAIN, default_timeout=60)
    for name, value in query.items():
        page.query_params[name] = value
    page.session_state["more_inputs"] = True
    page.run()
    assert not page.exception
    return page


def test_the_page_opens_on_the_published_scenario():
    page = opened()
    assert answer(page).startswith("The handoff adds 53.7\u202fms of 410\u202fms to the first token, 1.02\u202f% of ")
    assert page.select_slider(key="prompt_tokens").value == 8192
    assert views(page)["answer_view"]["url"]["query"] == ""


def test_choosing_a_model_once_changes_the_answer_and_the_link():
    page = opened()
    page.selectbox(key="model").select("qwen3-32b").run()
    assert not page.exception
    assert views(page)["answer_view"]["url"]["query"] == "model=qwen3-32b"
    assert answer(page).startswith("The handoff adds 42.9\u202fms")


def found_by(typed):
    """Models whose label holds the letters of what is typed, in their order: how the picker searches."""

    def holds(label):
        letters = iter(label.lower())
        return all(letter in letters for letter in typed.lower())

    return {model for model in models() if holds(name_of("model", model))}


def test_the_picker_finds_a_model_by_family_name_owner_and_repository():
    for model, spec in models().items():
        repository = next(alias for alias in spec.aliases if "/" in alias)
        for typed in (spec.family, spec.name, repository.partition("/")[0], repository):
            assert model in found_by(typed), (model, typed)
    assert found_by("meta-llama") == {model for model, spec in models().items() if spec.family == "Llama"}
    assert found_by("meta-llama/Meta-Llama-3-70B") == {"llama-3-70b"}
    assert found_by("gpt-oss") == {"gpt-oss-120b", "gpt-oss-20b"}


def test_a_label_begins_with_the_name_and_other_choices_are_just_that():
    assert name_of("model", "llama-3-70b") == "Llama 3 70B · meta-llama/Meta-Llama-3-70B"
    assert name_of("link", "ib-ndr-400") == "InfiniBand NDR 400"
    assert name_of("kv_dtype", "fp8") == "fp8"


def test_views_come_with_their_values_and_one_table_follows_for_all():
    data = views(opened())
    tables = data["tables"]["sliders"]
    assert set(tables) == {"prompt_tokens", "batch"}
    positions = tables["prompt_tokens"]["positions"]
    assert {"128", "8192", "1048576"} <= set(positions)
    index = positions.index("8192")
    for key, view in data.items():
        for name, value in view.get("now", {}).items():
            if name.endswith(".batch"):
                continue
            column = tables["prompt_tokens"]["table"][name]
            assert (column["$same"] if isinstance(column, dict) else column[index]) == value, (key, name)


def test_tables_hold_only_columns_that_a_view_shows():
    data = views(opened())
    shown = {name for view in data.values() for name in view.get("now", {})}
    for slider in data["tables"]["sliders"].values():
        assert set(slider["table"]) <= shown
        assert {len(c) for c in slider["table"].values() if isinstance(c, list)} == {len(slider["positions"])}


@pytest.mark.parametrize(("version", "said"), [("0.0.1", True), (__version__, False), ("x<b>", False), ("", False), ("1" * 99, False)])
def test_a_link_of_another_version_says_so(version, said):
    found = views(opened(v=version, link="ethernet-25"))
    notes = json.dumps(found.get("notices_view", {}).get("items", []))
    assert (f"made with version {version}; this is {__version__}" in notes) == said
    assert said or notes == "[]"


@pytest.mark.parametrize(
    ("link", "given", "said"), [("ethernet-100", {}, True), ("ib-ndr-400", {}, False), ("ethernet-100", {"link_gbytes_per_s": "12"}, False)]
)
def test_the_ideal_engine_says_where_others_reach_far_less_than_the_bandwidth(link, given, said):
    told = json.dumps(views(opened(link=link, **given))["answer_view"]["items"], ensure_ascii=False)
    assert "Ideal engine: bandwidth alone" in told
    assert ("engines reach at most 38.0\u202f%" in told) == said
    assert (", of which " in told) == said


def test_a_deep_link_sets_every_kind_of_control():
    page = opened(
        model="llama-3.1-8b", prompt_tokens="8000", decode_tp="4", link="ethernet-25", overlap="layer", decode_batch="32", lanes="auto"
    )
    assert page.selectbox(key="model").value == "llama-3.1-8b"
    assert page.select_slider(key="prompt_tokens").value == 8000
    assert page.selectbox(key="decode_tp").value == 4
    assert page.text_input(key="text_decode_batch").value == "32"
    assert page.text_input(key="text_lanes").value == "auto"
    query = views(page)["answer_view"]["url"]["query"]
    assert {"model=llama-3.1-8b", "prompt_tokens=8000", "overlap=layer", "lanes=auto", "decode_batch=32"} <= set(query.split("&"))


@pytest.mark.parametrize(("name", "value"), [("prompt_tokens", "12k"), ("model", "llama-9"), ("link", "<img src=x>")])
def test_a_bad_value_in_the_link_is_named_in_a_notice(name, value):
    page = opened(**{name: value, "decode_tp": "4"})
    notice = json.dumps(views(page)["notices_view"]["items"], ensure_ascii=False)
    assert f"{name}={value}" in notice
    assert page.selectbox(key="decode_tp").value == 4
    page.selectbox(key="decode_tp").select(2).run()
    assert "notices_view" not in views(page)


@pytest.mark.parametrize("asked", ["criticallength", "", "<img src=x>", "x" * 5000])
def test_a_view_that_there_is_not_is_named_in_a_notice_and_the_first_one_shown(asked):
    page = opened(view=asked, decode_tp="4")
    (item,) = views(page)["notices_view"]["items"]
    notice = json.dumps(item, ensure_ascii=False)
    assert f"view={asked}"[:40] in notice
    assert "critical-length, next-turn" in notice
    assert "Showing one-request." in notice
    assert len(notice) < 1_000
    assert page.selectbox(key="decode_tp").value == 4


@pytest.mark.parametrize("typed", ["0,8", "1e999", "-1", "eight", "1 000"])
def test_a_typed_number_is_read_strictly_and_never_reinterpreted(typed):
    page = opened()
    page.text_input(key="text_prefill_seconds").input(typed).run()
    assert not page.exception
    assert typed in json.dumps(views(page)["refused_view"]["items"])
    assert views(page)["answer_view"]["url"]["query"] == ""


def test_a_measured_prefill_replaces_the_modelled_one():
    page = opened()
    page.text_input(key="text_prefill_seconds").input("0.4").run()
    assert views(page)["answer_view"]["url"]["query"] == "prefill_seconds=0.4"
    assert views(page)["sum_view"]["now"]["s.prefill"] == "400"


def test_overlap_follows_the_engine_until_it_is_chosen():
    page = opened()
    page.selectbox(key="engine").select("layerwise-push").run()
    assert page.session_state["overlap"] == "layer"
    assert views(page)["answer_view"]["url"]["query"] == "engine=layerwise-push"


def test_an_infeasible_scenario_says_what_would_fit():
    page = opened(model="llama-3.1-405b", prefill_tp="1", decode_tp="1")
    assert "do not fit" in answer(page)
    assert "use TP 8 with PP 2" in answer(page)


def test_packed_rows_are_offered_for_mla_models_only():
    page = opened()
    assert "fp8_ds_mla" not in page.selectbox(key="kv_dtype").options
    page.selectbox(key="model").select("deepseek-v3").run()
    assert "fp8_ds_mla" in page.selectbox(key="kv_dtype").options
    page.selectbox(key="kv_dtype").select("fp8_ds_mla").run()
    page.selectbox(key="model").select("llama-3-70b").run()
    assert not page.exception


def test_texts_of_the_page_are_data_and_never_markup():
    data = views(opened(engine="<script>alert(1)</script>"))["notices_view"]
    assert data["items"][0]["children"] == [data["items"][0]["children"][0]]
    assert "innerHTML" not in (Path(MAIN).parent / "static" / "liveview.js").read_text()


def test_folded_inputs_keep_their_values():
    page = opened(decode_batch="32", engine="vllm-nixl")
    page.session_state["more_inputs"] = False
    page.run()
    assert not page.exception
    assert [box.key for box in page.text_input if box.key.startswith("text_")] == []
    assert set(views(page)["answer_view"]["url"]["query"].split("&")) == {"decode_batch=32", "engine=vllm-nixl"}
    page.session_state["more_inputs"] = True
    page.run()
    assert page.text_input(key="text_decode_batch").value == "32"
    assert page.selectbox(key="engine").value == "vllm-nixl"


def test_how_to_read_the_page_is_said_on_a_first_visit_until_it_is_put_away():
    page = opened()
    assert "<b>Drag Prompt tokens</b>" in stills(page)
    page.button(key="got_it").click().run()
    assert not page.exception
    assert "Drag Prompt tokens" not in stills(page)
    assert "Drag Prompt tokens" not in stills(opened(link="ethernet-25"))


def test_an_infeasible_page_lists_what_would_make_each_side_fit_and_says_whose_times_these_are():
    page = opened(model="llama-3.1-405b", prefill_tp="8", decode_tp="1")
    (box,) = views(page)["refused_view"]["items"]
    said = str(box)
    assert "The times are what it would take if this could run." in said
    assert said.index("What would make prefill fit") < said.index("What would make decode fit")
    assert "TP 16 or more" in said
    assert "every all-reduce crosses the network" in said


@pytest.mark.parametrize("view", ["critical-length", "interconnects", "next-turn", "wire"])
def test_headlines_of_times_say_that_an_infeasible_scenario_is_supposed(view):
    for tp, supposed in ((1, True), (8, False)):
        said = VIEWS[view].at(State(Scenario(prefill_tp=tp))).views["answer_view"]["say"]
        assert said.startswith("If this could run: ") == supposed


def test_the_setup_says_a_prompt_beyond_the_model_s_context_at_each_position():
    page = opened(model="llama-2-7b", prompt_tokens="2048")
    assert views(page)["answer_view"]["now"]["context"] == ""
    slider = views(page)["tables"]["sliders"]["prompt_tokens"]
    column = slider["table"]["context"]
    texts = dict(zip(slider["positions"], column, strict=True))
    assert [p for p in map(int, texts) if texts[str(p)]] == [p for p in map(int, texts) if p > 4096]
    assert texts["8192"] == "beyond its stated context of 4,096"


def test_a_batch_says_whose_time_is_shown_and_that_decode_s_is_another():
    told = json.dumps(views(opened(batch="32", decode_batch="8"))["answer_view"]["items"], ensure_ascii=False)
    assert ", 32 requests prefilled at once, timed by the last; decode batch 8" in told
    assert "prefilled at once" not in json.dumps(views(opened())["answer_view"]["items"])


@pytest.mark.parametrize(
    ("model", "decode_tp", "said"), [("deepseek-v3", "8", True), ("deepseek-v3", "1", False), ("llama-3-70b", "8", False)]
)
def test_the_ideal_engine_says_that_it_sends_a_latent_once(model, decode_tp, said):
    told = json.dumps(views(opened(model=model, decode_tp=decode_tp))["answer_view"]["items"])
    assert ("bandwidth alone, the latent sent once" in told) == said
