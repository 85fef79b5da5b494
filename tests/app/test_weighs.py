"""What a handoff weighs: curves, layers, ranks, and a configuration of the reader's own."""

import json

import pytest
from streamlit.testing.v1 import AppTest

from app import own_config
from app.charts import models, weighs
from app.charts.spec import fill
from app.over import evaluate_over, token_positions
from app.palette import LIGHT
from app.state import State
from app.views.weighs import every_model
from kvmodel import BadConfigError, Scenario, evaluate, parse_model_config, registry
from tests.app.test_page import views
from tests.configs import QWEN3

CONFIG = QWEN3 | {"intermediate_size": 9728, "vocab_size": 151936}


def over(**fields):
    scenario = Scenario(**fields)
    return evaluate_over(scenario, "prompt_tokens", token_positions(scenario.prompt_tokens))


def test_windows_make_the_average_fall_to_the_next_tokens_bytes():
    o = over(model="gpt-oss-120b")
    table = weighs.weighs_table(o)
    assert table["w.average"][0] > table["w.average"][o.at] > table["w.average"][-1]
    assert table["w.marginal"][o.at] == 36_860
    assert table["w.average"][-1] == pytest.approx(36_864, rel=1e-3)
    assert (
        table["answer.text"][o.at]
        == "A prompt of 8,192 tokens weighs 307\u202fMB: 37.4\u202fkB a token on average, 36.9\u202fkB for the next."
    )


def test_plain_models_weigh_the_same_for_each_token():
    o = over()
    assert weighs.weighs_table(o)["answer.text"][o.at] == "A prompt of 8,192 tokens weighs 2.68\u202fGB: 327,680\u202fB for each token."


def test_layers_are_drawn_in_order_and_add_up_to_the_prompt():
    o = over(model="gemma-3-27b")
    table = weighs.weighs_table(o)
    figure = fill(weighs.layers_figure(o.plan).wide, table, o.at, LIGHT)
    bars = figure["data"][0]
    assert len(bars["x"]) == 62
    assert sum(bars["y"]) == pytest.approx(o.rows[o.at].kv.prompt_bytes, rel=1e-3)
    assert bars["text"][5].startswith("K and V of all tokens")
    assert bars["text"][0].startswith("K and V of the last 1,024 tokens")


def test_the_rank_map_names_senders_and_receivers():
    block = json.dumps(weighs.ranks_block(over(decode_tp=4).plan))
    assert "head 1 to rank 0" in block
    mla = json.dumps(weighs.ranks_block(over(model="deepseek-v3", engine="vllm-nixl").plan))
    assert "every decode rank reads a copy" in mla


def cells(item):
    """Texts of a block: of each paragraph, and of each row of each table."""
    if not isinstance(item, dict):
        return []
    if item["tag"] in ("p", "tr"):
        return [[c["children"][0] for c in item["children"]] if item["tag"] == "tr" else item["children"][0]]
    return [text for child in item["children"] for text in cells(child)]


def rank_map(**fields):
    return cells(weighs.ranks_block(over(**fields).plan))


def test_without_replicas_and_stages_the_rank_map_is_heads_alone():
    assert rank_map(prefill_tp=2, decode_tp=1) == [
        ["Rank", "Prefill holds", "Sends", "Decode holds"],
        ["0", "heads 0\u20133", "heads 0\u20133 to rank 0", "heads 0\u20137"],
        ["1", "heads 4\u20137", "heads 4\u20137 to rank 0", ""],
    ]


def test_a_rank_of_its_own_replica_holds_all_heads_of_its_requests():
    said = rank_map(prefill_tp=8, prefill_attention_dp=2, decode_tp=4, decode_attention_dp=4)
    assert said[0] == "Prefill: 2 attention replicas of 4 ranks (0\u20133, 4\u20137); a request is on one of them, with all its heads."
    assert said[1] == "Decode: 4 attention replicas of one rank, and each rank holds all heads of its own requests."
    assert said[3:] == [
        ["Rank", "Prefill holds", "Sends", "Decode holds"],
        ["0", "heads 0\u20131", "heads 0\u20131 to rank 0", "heads 0\u20137"],
        *([str(r), f"heads {2 * r}\u2013{2 * r + 1}", f"heads {2 * r}\u2013{2 * r + 1} to rank 0", ""] for r in (1, 2, 3)),
    ]


def test_stages_say_which_layers_they_hold_and_to_whom_they_send():
    said = rank_map(prefill_tp=1, prefill_pp=2, decode_tp=2)
    assert said[:3] == [
        ["Layers", "Prefill holds and sends", "Decode holds"],
        ["1\u201340", "stage 1, rank 0", "stage 1, ranks 0\u20131"],
        ["41\u201380", "stage 2, rank 1", "stage 1, ranks 0\u20131"],
    ]
    uneven = rank_map(prefill_tp=4, prefill_pp=2, decode_tp=4, decode_pp=3)
    assert [row[0] for row in uneven[1:5]] == ["1\u201327", "28\u201340", "41\u201353", "54\u201380"]
    assert uneven[3][1:] == ["stage 2, ranks 4\u20137", "stage 2, ranks 4\u20137"]


def test_a_latent_is_whole_on_each_rank_of_each_stage_for_its_own_requests():
    said = rank_map(model="deepseek-v3", engine="sglang-mooncake", decode_tp=16, decode_attention_dp=16, decode_pp=2)
    assert said[0].startswith("Decode: 16 attention replicas of one rank")
    assert said[2] == ["1\u201330", "stage 1, ranks 0\u20137", "stage 1, ranks 0\u201315"]
    assert said[-1].startswith("Each rank holds the whole latent row of every token of its own requests")


def test_a_long_rank_map_counts_what_it_leaves_out():
    said = rank_map(prefill_tp=64, decode_tp=64, decode_attention_dp=8, decode_pp=40)
    assert said[0].startswith("Decode: 8 attention replicas of 8 ranks (0\u20137, 8\u201315, …, 56\u201363)")
    assert ["and 24 more", "", ""] in said
    assert ["and 48 more", "", "", ""] in said


@pytest.mark.parametrize(
    "model",
    ["nemotron-3-super", "qwen3-next-80b-a3b", "llama-4-scout", "deepseek-v3.2", "deepseek-v4-flash", "gemma-3n-e4b", "jamba-1.5-mini"],
)
def test_every_kind_of_layer_has_words(model):
    o = over(model=model)
    assert len(json.dumps(weighs.groups_block(o.plan))) > 100
    assert weighs.ranks_block(o.plan)


def test_merged_rows_say_how_many_tokens_share_one_and_what_waits_to_be_merged():
    block = json.dumps(weighs.groups_block(over(model="deepseek-v4-flash").plan))
    assert '"rows of the last 128 tokens"' in block
    assert '"rows of the last 128 tokens, one row for every 4 with an indexer"' in block
    assert "81,920" in block  # 8 tokens of 2 x (512 + 128) elements, a key and a weight in FP32 each


def view():
    from app.views import weighs as shown

    shown.show()


def opened():
    page = AppTest.from_function(view, default_timeout=60).run()
    assert not page.exception
    return page


def test_a_pasted_configuration_becomes_the_model():
    page = opened()
    page.text_area(key="own_text").input(json.dumps(CONFIG)).run()
    assert not page.exception
    assert "Your model, KV in bf16" in json.dumps(views(page)["answer_view"]["items"])
    assert "147,456\u202fB for each token" in views(page)["answer_view"]["say"]
    assert views(page)["answer_view"]["url"]["query"] == ""


def test_an_edited_field_changes_the_bytes():
    first = parse_model_config(CONFIG)
    row = [field.name for field in first.fields].index("num_key_value_heads")
    edits = own_config.edits_of(first, {row: {"Value": "4"}})
    assert edits == {"num_key_value_heads": 4}
    assert over(model=own_config.edited(json.dumps(CONFIG), edits).model).plan.cache.bytes_per_token == 73_728
    with pytest.raises(BadConfigError, match="num_attention_heads"):
        own_config.edited(json.dumps(CONFIG), {"num_attention_heads": "many"})


@pytest.mark.parametrize(
    ("text", "words"),
    [('{"a": <b>}', "line 1, column 7"), ("[1, 2]", "object"), ("<html>", "HTML"), ('{"model_type": "t5"}', "t5"), ("{" * 5000, "JSON")],
)
def test_a_configuration_that_cannot_be_read_is_an_error_with_its_reason(text, words):
    page = opened()
    page.text_area(key="own_text").input(text).run()
    assert not page.exception
    assert words in json.dumps(views(page)["own_error_view"]["items"])
    assert "stays as it was" in json.dumps(views(page)["own_error_view"]["items"])
    assert "Llama 3 70B" in json.dumps(views(page)["answer_view"]["items"])


def test_a_configuration_of_ones_own_stays_out_of_the_link():
    spec = parse_model_config(CONFIG).model
    assert State(Scenario(model=spec, batch=2)).query() == "batch=2"


def test_one_can_leave_ones_own_model_and_come_back():
    page = opened()
    page.text_area(key="own_text").input(json.dumps(CONFIG)).run()
    assert "own_notes" in views(page)
    page.selectbox(key="model").select("llama-3-70b").run()
    assert "327,680" in views(page)["answer_view"]["say"]
    assert "own_notes" not in views(page)
    assert page.selectbox(key="model").options[0] == "Your model"
    page.selectbox(key="model").select_index(0).run()
    assert not page.exception
    assert "147,456" in views(page)["answer_view"]["say"]


def test_an_error_goes_with_the_text_that_made_it():
    page = opened()
    page.text_area(key="own_text").input("{broken").run()
    assert "own_error_view" in views(page)
    page.text_area(key="own_text").input("").run()
    assert "own_error_view" not in views(page)


def shown_of_two():
    import streamlit as st

    from app.views import one_request, weighs

    (one_request if st.session_state.get("elsewhere") else weighs).show()


def test_a_pasted_text_is_still_there_after_a_look_at_another_view():
    page = AppTest.from_function(shown_of_two, default_timeout=60).run()
    page.text_area(key="own_text").input(json.dumps(CONFIG)).run()
    page.session_state["elsewhere"] = True
    page.run()
    page.session_state["elsewhere"] = False
    page.run()
    assert not page.exception
    assert page.text_area(key="own_text").value == json.dumps(CONFIG)
    assert "147,456" in views(page)["answer_view"]["say"]
    page.text_area(key="own_text").input(json.dumps(CONFIG | {"num_hidden_layers": 18})).run()
    assert "73,728" in views(page)["answer_view"]["say"]


def test_what_was_changed_is_told_from_what_was_stated_and_what_was_assumed():
    first = parse_model_config(CONFIG)
    edits = {"num_key_value_heads": 4, "sliding_window": 512, "num_hidden_layers": 36, "rope_scaling": None}
    assert own_config.changes_text(first, edits) == [
        "Changed: num_key_value_heads is 4; the file says 8.",
        "Changed: sliding_window is 512; 4096 was assumed.",
        "Changed: rope_scaling is null.",
    ]


def test_rows_follow_an_edit_but_for_the_value_that_was_typed():
    config = {k: v for k, v in CONFIG.items() if k != "head_dim"} | {"model_type": "llama"}
    base, edits = parse_model_config(config), {"num_attention_heads": 16}
    now = own_config.edited(json.dumps(config), edits)
    rows = {row["At"]: row for row in own_config.field_rows(base, now, edits, {})}
    assert (rows["head_dim"]["Value"], rows["head_dim"]["From"]) == ("160", "worked out from other fields")
    assert rows["num_attention_heads"]["Value"] == "32"
    again = {row["At"]: row for row in own_config.field_rows(now, now, edits, edits)}
    assert (again["num_attention_heads"]["Value"], again["num_attention_heads"]["From"]) == ("16", "changed by you")


def test_a_value_in_the_table_reads_back_as_it_was():
    for field in parse_model_config(CONFIG).fields:
        assert own_config._value(own_config._shown(field.value)) == field.value


def test_a_layout_that_engines_refuse_is_said_beside_the_rank_map():
    page = opened()
    page.text_area(key="own_text").input(json.dumps({**CONFIG, "num_attention_heads": 24, "num_key_value_heads": 6})).run()
    assert "Engines refuse this layout: 6 KV heads" in json.dumps(views(page)["refused_view"]["items"])


def test_every_model_is_in_the_table_with_its_exact_bytes_and_a_link():
    """Llama 3 70B 8k: 8,192 × 327,680 B = 2.68 GB (DESIGN's golden figure); DeepSeek-V3: 8,192 × 70,272 B = 576 MB."""
    rows = {row[0]: row for row in models.weights_of_models("auto")}
    assert set(rows) == set(registry.models())
    assert rows["llama-3-70b"][3][1] == 2_684_354_560
    assert rows["deepseek-v3"][3][1] == 8192 * 70_272
    assert rows["gemma-3-27b"][2] == "windows 52, full attention 10"
    for model in ("llama-3-8b", "gpt-oss-120b", "nemotron-3-super", "deepseek-v3.2"):
        for (tokens, _), held in zip(models.LENGTHS, rows[model][3], strict=True):
            assert held == evaluate(Scenario(model=model, prompt_tokens=tokens)).kv.prompt_bytes
    assert [row[3][1] for row in models.weights_of_models("auto")] == sorted(row[3][1] for row in rows.values())


def test_a_models_link_keeps_the_rest_of_the_scenario_and_the_chosen_one_is_marked():
    text = json.dumps(models.models_block(Scenario(link="ethernet-25"), "link=ethernet-25", "Applies it"))
    assert '"href": "?model=deepseek-v3&link=ethernet-25"' in text
    assert text.count("kv-chosen") == 1
    linked = json.dumps(every_model(State(Scenario(link="ethernet-25"))))
    assert '"href": "?model=deepseek-v3&link=ethernet-25&pin=link%3Dethernet-25"' in linked


def test_a_dtype_that_only_latents_have_leaves_the_other_models_out():
    latent = {spec.id for spec in registry.models().values() if any(g.attention.kind in ("mla", "compressed") for g in spec.groups)}
    assert {row[0] for row in models.weights_of_models("fp8_ds_mla")} == latent
    assert "deepseek-v3" in latent
    assert "llama-3-70b" not in latent
