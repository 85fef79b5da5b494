"""Charts of an agent's turn as values."""

import math

import pytest

from app.charts import flow, turn, turn_bars
from app.charts.spec import fill
from app.over import token_positions
from app.palette import LIGHT
from app.state import State
from kvmodel import Scenario, Turn

TURN = Turn(history_tokens=30_000, delta_tokens=2_000, generated_tokens=500)


def turn_rows(**fields):
    state = State(Scenario(**fields), TURN)
    values = token_positions(TURN.delta_tokens)
    return values, turn.turn_rows(state, "delta_tokens", values)


def test_edges_are_as_wide_as_their_bytes():
    values, rows = turn_rows()
    row = rows[values.index(2_000)]
    geometry = flow.GEOMETRY["w"]
    largest = row.by_key["recompute", True].wire_bytes
    wide = flow._arrow(geometry, 0, "prefill", "decode", 1.0)
    assert arrow_width(wide) == pytest.approx(flow.MAX_EDGE, abs=0.2)
    pulled = next(e.bytes for e in row.by_key["pull-back", True].edges if e.source == "prefill")
    thin = flow._arrow(geometry, 1, "prefill", "decode", pulled / largest)
    assert arrow_width(thin) == pytest.approx(max(flow.MIN_EDGE, pulled / largest * flow.MAX_EDGE), abs=0.2)


def arrow_width(path):
    points = [tuple(map(float, p.split(","))) for p in path.strip("MZ").split("L")]
    return math.dist(points[0], points[-1])


def test_flow_pictures_say_what_moves_and_what_stays():
    values, rows = turn_rows()
    table = turn.turn_table(rows) | flow.flow_table(rows)
    figure = fill(flow.flow_figure().wide, table, values.index(2_000), LIGHT)
    texts = figure["data"][0]["text"]
    assert "<b>10.5\u202fGB</b>" in texts
    assert texts.count("<b>819\u202fMB</b>") == 2
    assert "<b>0\u202fB</b>" in texts
    assert "idle" in texts


def test_a_long_turn_wakes_the_prefill_side_of_sticky_routing():
    values, rows = turn_rows()
    table = flow.flow_table(rows)
    index = values.index(65_536)
    assert table["f3.prefill"][index] == "prefills 65,536"
    assert len(arrows(table["w.edges"][index])) == len(arrows(table["w.edges"][values.index(1024)])) + 2


def arrows(path):
    return [part for part in path.split("M") if part]


def test_bars_of_a_turn_stack_to_its_first_token():
    values, rows = turn_rows(engine="vllm-nixl")
    table, i = turn_bars.bars_table(rows), values.index(2_000)
    longest = max(rows[i].by_key[key].ttft_seconds for key in turn.BARS)
    for prefix, panels in turn_bars.PANELS.items():
        for k, key in enumerate(turn.BARS):
            one = {name: table[f"{prefix}.{name}"][i][k] for name in ("prefill", "wait", "wait_base", "step", "step_base", "end")}
            assert one["wait_base"] == panels.time[0] + one["prefill"]
            assert one["step_base"] == one["wait_base"] + one["wait"]
            assert one["end"] == pytest.approx(one["step_base"] + one["step"], abs=1)
            share = rows[i].by_key[key].ttft_seconds / longest
            assert one["end"] - panels.time[0] == pytest.approx(share * panels.time[1] / panels.room, abs=1)


def test_bars_of_a_turn_are_as_long_as_their_bytes_and_stay_in_their_panel():
    values, rows = turn_rows()
    table, i = turn_bars.bars_table(rows), values.index(2_000)
    moved = [rows[i].by_key[key].unique_bytes for key in turn.BARS]
    for prefix, panels in turn_bars.PANELS.items():
        figure = fill(turn_bars.bars_figure().wide if prefix == "w" else turn_bars.bars_figure().narrow, table, i, LIGHT)
        bars = figure["data"][0]
        orange = [x for x, fill_colour in zip(bars["x"], bars["marker"]["color"], strict=True) if fill_colour == LIGHT["wire"]]
        assert orange == pytest.approx([max(orange) * b / max(moved) for b in moved], abs=1)
        assert max(b + x for b, x in zip(bars["base"], bars["x"], strict=True)) < turn_bars.SCALE
        assert len(set(bars["y"])) == len(turn.BARS) * (1 if panels.tops[0] == panels.tops[1] else 2)


def test_the_turn_answers_with_a_design_and_what_it_saves():
    values, rows = turn_rows()
    table, i = turn.turn_table(rows), values.index(2_000)
    assert table["answer.text"][i].startswith(
        "Keep the history where it is: pull back in 157\u202fms; sticky is 26.6\u202fms sooner but stalls"
    )
    assert "pulling back what is new cuts 10.5\u202fGB to 819\u202fMB" in table["stall"][i]


@pytest.mark.parametrize("fields", [{}, {"link": "ethernet-25"}, {"decode_accelerator": "h20"}, {"link": "wan-100", "engine": "vllm-nixl"}])
def test_sticky_is_weighed_by_what_it_saves_against_what_its_neighbours_lose(fields):
    rows = turn_rows(**fields)[1]
    weighed = 0
    for row, text in zip(rows, turn.turn_table(rows)["answer.text"], strict=True):
        sticky = row.by_key["sticky", True]
        others = [row.by_key[key, True].ttft_seconds for key in ("pull-back", "pool")]
        assert len(text.removeprefix("If this could run: ")) <= 125
        if sticky.stall_seconds and "all four designs" not in text:
            weighed += 1
            assert ("Stay with the holder" in text) == (min(others) - sticky.ttft_seconds >= sticky.stall_seconds)
        else:
            assert "neighbour" not in text
    assert weighed > 10


def said(history, delta, **fields):
    state = State(Scenario(**fields), Turn(history_tokens=history, delta_tokens=delta))
    [row] = turn.turn_rows(state, "delta_tokens", (delta,))
    table = turn.turn_table([row])
    return table["answer.text"][0], table["stall"][0]


def test_a_turn_with_nothing_to_keep_does_not_claim_to_save():
    answer, _ = said(128, 2_000)
    assert "cuts" not in answer
    answer, why = said(128, 524_288)
    assert "within" in answer
    assert "of each other; and move alike" in answer
    assert "of the prompt are new" in why


def test_sticky_routing_says_which_of_its_limits_a_turn_passes():
    assert "76.9\u202f% of the prompt are new" in said(600, 2_000)[1]
    assert "4,096 tokens are new" in said(30_000, 4_096)[1]
    assert "waits" in said(30_000, 2_000)[1]
