"""Charts of the wire's view as values: what overlap saves, what sharing costs, what failures cost."""

import math
import re
from itertools import pairwise

import pytest

from app.charts import congestion, groups, pipelining, where
from app.charts.scale import spread
from app.charts.spec import fill, used
from app.over import evaluate_over, token_positions
from app.palette import DARK, LIGHT
from app.reading import overlaps
from app.state import State
from kvmodel import Scenario, evaluate
from kvmodel.display import share_text, time_text
from kvmodel.traffic import Traffic

OFFERED = ("serial", "chunk", "layer", "layer-group", "layer-both")


def lengths(**fields):
    scenario = Scenario(**fields)
    over = evaluate_over(scenario, "prompt_tokens", token_positions(scenario.prompt_tokens))
    return over, pipelining.pipelining_table(over, overlaps(scenario))


def shared(name="in_flight", values=(1, 8, 64), scenario=None, **traffic):
    return congestion.shared_table(congestion.shared_rows(State(scenario or Scenario(), traffic=Traffic(**traffic)), name, values))


def test_each_overlap_has_its_line_and_yours_the_colour_of_what_is_exposed():
    over, table = lengths(engine="vllm-nixl")
    figure = fill(pipelining.pipelining_figure(table, OFFERED, "serial").wide, table, over.at, LIGHT)
    lines = [trace for trace in figure["data"] if trace.get("mode") == "lines"]
    assert [trace["line"]["color"] for trace in lines].count(LIGHT["exposed"]) == 1
    for overlap in OFFERED:
        gap = evaluate(Scenario(engine="vllm-nixl", overlap=overlap)).gap_seconds
        assert table[f"p.{overlap}"][over.at] == pytest.approx(gap, rel=1e-3)


def test_every_line_has_its_name_and_no_two_names_meet():
    for fields in ({}, {"engine": "vllm-nixl", "overlap": "layer-both"}, {"engine": "layerwise-push", "link": "ethernet-25"}):
        over, table = lengths(**fields)
        figure = fill(pipelining.pipelining_figure(table, OFFERED, over.plan.overlap).wide, table, over.at, LIGHT)
        names = next(t for t in figure["data"] if t.get("mode") == "text")
        assert {text.strip("\u2002</b>") for text in names["text"]} == {o for o in OFFERED if any(table[f"p.{o}"])}
        per_pixel = (figure["layout"]["yaxis"]["range"][1] - figure["layout"]["yaxis"]["range"][0]) / 248
        heights = sorted(math.log10(y) / per_pixel for y in names["y"])
        assert all(b - a >= pipelining.LABEL_GAP * 0.999 for a, b in pairwise(heights))


def test_lines_of_one_colour_are_told_apart_and_each_name_is_joined_to_its_line():
    over, table = lengths(engine="vllm-nixl")
    for drawn in (spec := pipelining.pipelining_figure(table, OFFERED, "serial")).wide, spec.narrow:
        figure = fill(drawn, table, over.at, LIGHT)
        *curves, leaders = (t for t in figure["data"] if t.get("mode") == "lines")
        assert len({t["line"]["dash"] for t in curves if t["line"]["color"] == LIGHT["other"]}) == 4
        names = next(t for t in figure["data"] if t.get("mode") == "text")
        assert max(names["x"]) <= 10 ** figure["layout"]["xaxis"]["range"][1]  # Plotly leaves out what is beyond
        assert (leaders["x"][1::3], leaders["y"][1::3]) == (names["x"], names["y"])
        drawn_ends = {name.strip("</b>"): leaders["y"][3 * i] for i, name in enumerate(names["text"])}
        assert drawn_ends == pytest.approx({o: table[f"p.{o}"][-1] for o in OFFERED}, rel=1e-6)


def test_a_line_that_is_zero_everywhere_is_said_and_not_drawn():
    over, table = lengths(link="nvlink-5")
    none = [o for o in OFFERED if not any(table[f"p.{o}"])]
    assert none
    figure = fill(pipelining.pipelining_figure(table, OFFERED, "serial").wide, table, over.at, LIGHT)
    assert sum(t.get("mode") == "lines" for t in figure["data"]) == len(OFFERED) - len(none) + 1
    said = pipelining.undrawn_text(table, OFFERED)
    assert said.startswith("Not drawn, because decode waits 0\u202fs at every length: ")
    assert all(pipelining.NAMES[o] in said for o in none)
    assert pipelining.undrawn_text(table, ["serial"]) == ""


def test_names_that_meet_share_their_middle():
    assert spread([10.0, 9.5, 2.0], 2.0) == [10.75, 8.75, 2.0]
    assert spread([5.0, 5.0, 4.9], 1.0) == pytest.approx([5.966667, 4.966667, 3.966667], abs=1e-5)


def test_the_sentence_compares_with_sending_at_the_end():
    over, table = lengths(link="ethernet-25", overlap="layer")
    serial, layer = (evaluate(Scenario(link="ethernet-25", overlap=o)).gap_seconds for o in ("serial", "layer"))
    assert f"waits {time_text(layer)} in place of {time_text(serial)}" in table["p.sentence"][over.at]
    over, table = lengths(decode_held_tokens=8192)
    assert table["p.sentence"][over.at] == "Nothing moves, so there is nothing to hide."
    assert table["p.serial"][over.at] is None


def test_prefill_that_makes_the_first_token_offers_no_start_on_both_sides():
    over, table = lengths(engine="splitwise")
    assert "p.layer-both" not in table
    narrow = fill(pipelining.pipelining_figure(table, OFFERED[:4], "layer").narrow, table, over.at, DARK)
    assert [n["text"] for n in narrow["layout"]["annotations"] if n.get("text", "").startswith("<b>you: ")] == [table["p.short"][over.at]]


def test_the_curve_starts_at_a_handoff_alone_and_climbs_with_the_number():
    table = shared(scenario=Scenario(engine="vllm-nixl"))
    alone = table["g.alone"][0][0]
    curve = table["g.curve"][0]
    assert curve[0] == alone
    assert curve == sorted(curve)
    knee = 10 ** table["g.knee_x"][0]
    assert [value == alone for value in curve] == [n <= knee for n in congestion.NUMBERS]
    assert [10**x for x in table["g.x"]] == pytest.approx([1, 8, 64], rel=1e-3)


def test_the_point_that_is_you_lies_on_the_curve():
    table = shared(values=congestion.NUMBERS)
    for i in range(len(congestion.NUMBERS)):
        assert 10 ** table["g.y"][i] == pytest.approx(table["g.curve"][i][i], rel=1e-3)


def test_the_line_below_the_answer_says_what_handoffs_in_flight_make_of_it():
    table = shared(values=(1, 8, 64))
    eight, many = (n * evaluate(Scenario()).gap_seconds for n in (8, 64))  # the links are busy all of a handoff
    assert table["g.second"] == [
        f"That is alone: with 8 in flight each would be on the links for {time_text(eight)}.",
        f"That is alone: with 8 in flight each is on the links for {time_text(eight)}.",
        f"That is alone: with 64 in flight each is on the links for {time_text(many)}.",
    ]


def test_what_fills_first_is_said_beside_the_room_that_decode_has():
    said = shared()["g.room_sentence"][0]
    assert "the links are full with 1.00 in flight, so they do not wait for memory first" in said
    less = shared(scenario=Scenario(engine="vllm-nixl", handoff_seconds=2.0), decode_pool_gbytes=8.0)["g.room_sentence"][0]
    assert re.search(r"room for 23 .* beyond [\d.]+ a second they wait for memory", less)


def test_a_wall_stands_where_decode_has_no_more_room():
    table = shared(decode_pool_gbytes=8.0)
    assert table["g.room_at"][0] == 23
    assert "room for 23 arriving caches" in table["g.room_sentence"][0]
    none = shared(scenario=Scenario(decode_tp=1))
    assert none["g.room_sentence"][0].startswith("Decode has no room")
    assert none["g.room_at"][0] < 1e-6


def test_the_sentence_says_how_many_prefill_instances_fill_the_links():
    said = shared(senders=9)["g.sentence"][0]
    fill_up = evaluate(Scenario()).prefill.seconds / 0.05368709
    assert f"{fill_up:.2f} prefill instances" in said
    assert said.endswith("fall behind.")
    replicas = Scenario(model="deepseek-v3", engine="vllm-mooncake", fragmentation=1.0, lanes="auto", decode_attention_dp=8)
    said = shared(scenario=replicas)["g.sentence"][0]  # one rank of prefill posts all of a latent; decode has eight lanes
    assert "posting and copies of the sending side" in said
    busy = 61 * 512 * 1.8e-6 / evaluate(replicas).prefill.seconds
    assert f"with yours, what fills first is busy {share_text(busy)} of the time" in said
    assert shared(scenario=Scenario(decode_held_tokens=8192))["g.sentence"][0].startswith("Nothing moves")


def test_the_table_of_failures_has_each_way_of_recovering():
    table = shared(detection_seconds=1.0)
    texts = {
        at["$at"]
        for row in congestion.failure_block()["children"][0]["children"][1]["children"]
        for cell in row["children"][1:]
        for at in cell["children"]
    }
    assert texts == {f"g.{key}.{name}" for key, _ in congestion.FAILURE_ROWS for name in congestion.RECOVERIES}
    assert table["g.wait.retry"][0] == time_text(evaluate(Scenario()).ttft_seconds)
    assert table["g.resent.resume"][0].startswith("0")
    assert used(congestion.failure_block()) <= set(table)


def test_every_placeholder_of_the_figures_has_its_column():
    _, table = lengths()
    assert used(pipelining.pipelining_figure(table, OFFERED, "serial").item()) <= set(table)
    assert used(congestion.congestion_figure().item()) <= set(shared())


def test_the_prompt_moves_curve_and_failures():
    table = shared("prompt_tokens", (1024, 8192))
    assert table["g.curve"][1][0] == pytest.approx(8 * table["g.curve"][0][0], rel=1e-3)
    assert table["g.wait.retry"][0] != table["g.wait.retry"][1]
    assert all(math.isfinite(v) for v in table["g.y"])


def waited(**fields):
    scenario = Scenario(**fields)
    over = evaluate_over(scenario, "prompt_tokens", token_positions(scenario.prompt_tokens))
    return over, where.where_table(over, where.rows_of(over.scenario))


@pytest.mark.parametrize(
    "fields", [{}, {"engine": "vllm-nixl"}, {"engine": "layerwise-push"}, {"engine": "vllm-nixl", "overlap": "layer", "decode_tp": 16}]
)
def test_bars_of_the_wait_begin_where_the_last_ended_and_add_up(fields):
    over, table = waited(**fields)
    figure = fill(where.where_figure(over.scenario).wide, table, over.at, LIGHT)
    bars = [trace for trace in figure["data"] if trace["type"] == "bar" and trace["marker"]["color"] != LIGHT["other"]]
    found = sorted(bar for trace in bars for bar in zip(trace["y"], trace["base"], trace["x"], strict=True))
    assert [y for y, *_ in found] == list(range(len(table["k.text"][over.at])))
    *terms, total = [(base, x, text) for (_, base, x), text in zip(found, table["k.text"][over.at], strict=True)]
    reached = 0.0
    for base, length, text in terms:
        back = text.strip().startswith("−")
        assert (base + length if back else base) == pytest.approx(reached, rel=2e-3, abs=1e-9)
        reached = base if back else base + length
    assert total[1] == pytest.approx(over.rows[over.at].gap_seconds, rel=1e-3)
    assert reached == pytest.approx(total[1], rel=2e-2, abs=1e-6)
    assert len(figure["layout"]["yaxis"]["ticktext"]) == len(found) + 1


def test_the_ideal_engine_stands_beside_with_the_same_overlap():
    over, table = waited(engine="layerwise-push")
    assert table["k.ideal"][over.at][0] == pytest.approx(evaluate(Scenario(overlap="layer")).gap_seconds, rel=1e-3)
    _, table = waited(engine="vllm-nixl", message_seconds=1e-3)
    assert table["k.ideal"][over.at][0] == pytest.approx(evaluate(Scenario()).gap_seconds, rel=1e-3)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "Decode waits 53.7\u202fms for the bytes at nominal bandwidth and for nothing else."),
        ({"engine": "vllm-nixl"}, "53.7\u202fms are bytes at nominal bandwidth; posting messages adds"),
        ({"decode_held_tokens": 8192}, "Nothing moves: decode waits 0"),
        ({"decode_held_tokens": 8192, "engine": "vllm-nixl"}, "Nothing moves, yet decode waits"),
        ({"overlap": "layer"}, "hide behind prefill; decode waits"),
    ],
)
def test_the_answer_says_what_is_bytes_and_what_adds_most(fields, said):
    over, table = waited(**fields)
    assert said in table["answer.text"][over.at]
    assert len(table["answer.text"][over.at]) <= 125


def test_rows_of_the_wait_stay_while_the_prompt_is_dragged():
    over, table = waited(engine="splitwise")
    lengths = {len(column[i]) for column in (table["k.base"], table["k.length"], table["k.text"]) for i in range(len(over.values))}
    assert lengths == {len(where.rows_of(over.scenario)) + 1}


def test_groups_of_layers_are_said_with_the_best_size():
    scenario = Scenario(engine="vllm-nixl", message_seconds=2e-5, posting_threads=1, fragmentation=1.0, overlap="layer")
    said = groups.groups_table(evaluate_over(scenario, "prompt_tokens", (8192,)))["p.groups"][0]
    assert said.startswith("Of layers that cross together, single ones expose least")
    assert "with blocks that hold all layers groups of" in said
    assert groups.groups_table(evaluate_over(Scenario(decode_held_tokens=8192), "prompt_tokens", (8192,)))["p.groups"][0].startswith(
        "Nothing"
    )
