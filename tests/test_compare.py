"""Two scenarios compared: what differs, both ways round, and what the sentence says of the published figures."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvmodel import Scenario, Turn, agent_turn, evaluate, find_model
from kvmodel.changes import changes_between, changes_over, input_text, unset_text
from kvmodel.compare import compare, first_token_terms, fits_text, moved_text
from kvmodel.compare_turns import compare_turns, turn_changes, turn_changes_over
from kvmodel.display import time_text
from kvmodel.plan import plan_of
from kvmodel.verdict import plain
from tests.strategies import scenarios


def said(pinned, this):
    return plain(compare(Scenario(**pinned), Scenario(**this)).sentence)


@given(scenarios())
@settings(max_examples=15)
def test_a_scenario_differs_in_nothing_from_itself(scenario):
    found = compare(scenario, scenario)
    assert found.inputs == ()
    assert {figure.difference for figure in found.figures} == {0.0}
    assert plain(found.sentence) == "Both are the same scenario."


@given(scenarios(), scenarios())
@settings(max_examples=20)
def test_comparing_the_other_way_round_mirrors_everything(a, b):
    there, back = compare(a, b), compare(b, a)
    assert [(c.name, c.pinned, c.this) for c in there.inputs] == [(c.name, c.this, c.pinned) for c in back.inputs]
    for one, other in zip(there.figures, back.figures, strict=True):
        assert one.difference == -other.difference
        if one.ratio and other.ratio:
            assert one.ratio * other.ratio == pytest.approx(1)
        assert one.texts()[:2] == other.texts()[1::-1]
    words, mirrored = plain(there.sentence), plain(back.sentence)
    assert ("sooner" in words) == ("later" in mirrored)
    assert ("fewer bytes" in words) == ("the bytes cross" in mirrored)
    assert there.as_dict()["verdict"] == {"pinned": evaluate(a).verdict, "this": evaluate(b).verdict}


@given(scenarios())
@settings(max_examples=20)
def test_the_terms_of_the_first_token_add_up_to_it(scenario):
    result = evaluate(scenario)
    terms = first_token_terms(plan_of(scenario), result)
    assert sum(seconds for seconds, _ in terms.values()) == pytest.approx(result.ttft_seconds, rel=1e-9)


def test_halving_the_bytes_halves_the_published_transfer_and_the_sentence_says_which_input_did_it():
    found = {figure.name: figure for figure in compare(Scenario(), Scenario(kv_dtype="fp8")).figures}
    assert (found["kv.wire_bytes"].pinned, found["kv.wire_bytes"].this) == (2_684_354_560, 1_342_177_280)
    assert found["transfer.seconds"].texts() == ("53.7\u202fms", "26.8\u202fms", "−26.8\u202fms, 0.500×")
    assert found["prefill.seconds"].texts()[2] == "the same"
    assert said({}, {"kv_dtype": "fp8"}) == (
        "KV dtype fp8 in place of bf16: 2.00× fewer bytes cross, and the first token comes 26.9\u202fms sooner, "
        "nearly all of it exposed transfer, 53.7\u202fms → 26.8\u202fms."
    )


def test_fp8_doubles_what_decode_holds_and_the_sentence_says_so_where_the_first_token_hardly_moves():
    """Room of an H100 beside a rank's weights, over 8,692 tokens of 40,960 B on a rank in BF16 (Llama 3 70B, TP 8), half that in FP8."""
    found = compare(Scenario(), Scenario(kv_dtype="fp8"))
    held = {figure.name: figure for figure in found.figures}
    memory, token = found.pinned.memory.decode, 2 * 80 * 128 * 2
    room = memory.usable_bytes - memory.weights_bytes
    workspace = memory.activation_bytes
    fitting = [int(room // (8_692 * per_token + workspace)) for per_token in (token, token / 2)]
    assert [held["memory.decode.batch_fits"].pinned, held["memory.decode.batch_fits"].this] == fitting
    assert held["memory.decode.batch_fits"].texts() == ("164", "327", "+163, 1.99×")
    assert (
        fits_text(evaluate(Scenario()), evaluate(Scenario(kv_dtype="fp8"))) == "Decode holds 327 requests of this length in place of 164."
    )
    assert fits_text(evaluate(Scenario()), evaluate(Scenario(link="wan-100"))) == ""
    assert held["memory.decode.cache_bytes"].texts() == ("356\u202fMB", "178\u202fMB", "−178\u202fMB, 0.500×")
    assert said({"overlap": "layer"}, {"overlap": "layer", "kv_dtype": "fp8"}) == (
        "KV dtype fp8 in place of bf16: 2.00× fewer bytes cross, the first token hardly moves, and decode holds 327 requests, not 164."
    )


@pytest.mark.parametrize(
    ("pinned", "this", "who"),
    [
        ({}, {"kv_dtype": "fp8"}, "Only this one is in FP8. Lossy. AIME25: 77.3"),
        ({"wire_dtype": "int4"}, {}, "Only the pinned one is in INT4. Lossy, and much in hard tests."),
        ({"kv_dtype": "fp8"}, {"kv_dtype": "fp8", "link": "wan-100"}, ""),
        ({}, {"link": "wan-100"}, ""),
    ],
)
def test_a_comparison_says_what_a_narrow_format_costs_where_one_of_the_two_alone_has_it(pinned, this, who):
    found = compare(Scenario(**pinned), Scenario(**this))
    assert found.accuracy.startswith(who) if who else found.accuracy == ""
    assert compare_turns((Scenario(**pinned), Turn()), (Scenario(**this), Turn())).as_dict()["accuracy"] == found.as_dict()["accuracy"]


@pytest.mark.parametrize(
    ("pinned", "this", "words"),
    [
        (
            {},
            {"lanes": 4},
            "Lanes 4 in place of 1: the first token comes 40.3\u202fms sooner, all of it exposed transfer",
        ),
        ({}, {"prefill_seconds": 0.4}, "Measured prefill, s 0.4 in place of modelled: the first token comes"),
        ({}, {"decode_held_tokens": 8192}, "nothing crosses any more, and the first token comes 53.7\u202fms sooner"),
        ({"decode_held_tokens": 8192}, {}, "2.68\u202fGB cross where nothing did"),
        ({"engine": "distserve"}, {"engine": "distserve", "link": "ethernet-25"}, "at the same time, the second 899\u202fms later"),
        ({}, {"output_tokens": 100}, "the first two tokens come at the same time, the last 3.91\u202fs sooner."),
        ({"prefill_seconds": 9.0}, {"overlap": "layer", "prefill_seconds": 9.0}, "Overlap layer in place of serial"),
        ({}, {"prefill_tp": 4, "decode_tp": 4, "lanes": 4}, "Prefill TP, decode TP and lanes differ: the first token comes"),
        ({}, {"prefill_tp": 4, "decode_tp": 4, "lanes": 4}, ", against exposed transfer, 53.7\u202fms → 13.4\u202fms."),
        ({}, {"model": "llama-3.1-405b", "prefill_tp": 1, "decode_tp": 1}, "This one is infeasible: times are computed all the same."),
        ({}, {"batch": 2, "link": "wan-100", "kv_dtype": "fp8", "decode_batch": 8}, "4 inputs differ: the first token comes"),
    ],
)
def test_the_sentence_names_what_changed_and_which_time_it_moved(pinned, this, words):
    assert words in said(pinned, this)


def test_an_automatic_value_is_what_it_stands_for():
    assert changes_between(Scenario(), Scenario(kv_dtype="bf16", overlap="serial", model="meta-llama/Meta-Llama-3-70B")) == ()
    assert changes_between(Scenario(lanes="auto"), Scenario(lanes=8)) == ()
    assert [c.pinned for c in changes_between(Scenario(lanes="auto"), Scenario(lanes=4))] == ["8"]
    assert input_text(Scenario(), "link") == "NDR 400"
    assert unset_text("latency_seconds") == "the link's"


def test_models_of_ones_own_differ_by_what_they_are():
    own = find_model("llama-3-70b").model_copy(update={"id": "own", "name": "Your model"})
    [change] = changes_between(Scenario(), Scenario(model=own))
    assert (change.name, change.pinned, change.this) == ("model", "Llama 3 70B", "Your model")
    assert changes_between(Scenario(model=own), Scenario(model=own)) == ()


def test_times_far_apart_keep_their_own_units():
    assert moved_text(0.000592, 1.23) == "0.592\u202fms → 1.23\u202fs"
    assert moved_text(0.345, 9.4) == "0.345\u202fs → 9.40\u202fs"
    assert moved_text(0.0, 0.0537) == "0\u202fs → 53.7\u202fms"


@given(scenarios(longest=4096), scenarios(longest=4096), st.sampled_from(["prompt_tokens", "batch"]))
@settings(max_examples=10)
def test_changes_over_a_slider_are_those_at_each_of_its_positions(a, b, name):
    values = (getattr(a, name), 777)
    for value, found in zip(values, changes_over(a, b, name, values), strict=True):
        assert found == changes_between(a, b.with_changes(**{name: value}))


def test_a_turn_is_compared_design_by_design():
    pinned, this = (Scenario(), Turn()), (Scenario(link="ethernet-25", prompt_tokens=512), Turn(delta_tokens=4000))
    found, back = compare_turns(pinned, this), compare_turns(this, pinned)
    assert [c.name for c in found.inputs] == ["link", "delta_tokens"]
    assert plain(compare_turns(pinned, pinned).sentence) == "Both are the same turn."
    before, after = (agent_turn(*asked).designs for asked in (pinned, this))
    assert [(d.unique.pinned, d.ttft.this) for d in found.designs] == [
        (a.unique_bytes, b.ttft_seconds) for a, b in zip(before, after, strict=True)
    ]
    assert [d.ttft.difference for d in found.designs] == [-d.ttft.difference for d in back.designs]
    told = {(d.id, d.warm): [time_text(v) for v in (d.ttft.pinned, d.ttft.this, d.ttft.difference)] for d in found.designs}
    kept, anew = told["pull-back", True], told["recompute", True]
    assert f"later, {kept[0]} → {kept[1]}; with all of it computed anew, {anew[2]} later." in plain(found.sentence)
    assert "sooner" in plain(back.sentence)
    assert turn_changes_over(pinned, this, "delta_tokens", (2000, 4000)) == [
        turn_changes(pinned, (this[0], Turn(delta_tokens=n))) for n in (2000, 4000)
    ]
