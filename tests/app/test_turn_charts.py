"""Charts of an agent's turn as values."""

import json
import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.charts import flow, turn, turn_bars
from app.charts.spec import fill
from app.over import token_positions
from app.palette import LIGHT
from app.site.data import still
from app.state import State
from app.views import next_turn
from kvmodel import Scenario, Turn
from tests.strategies import scenarios

TURN = Turn(history_tokens=30_000, delta_tokens=2_000, generated_tokens=500)


def turn_rows(**fields):
    state = State(Scenario(**fields), TURN)
    values = token_positions(TURN.delta_tokens)
    return values, turn.turn_rows(state, "delta_tokens", values)


def test_edges_of_eight_times_the_bytes_are_twice_as_wide_and_small_ones_differ():
    values, rows = turn_rows()
    row = rows[values.index(2_000)]
    geometry = flow.GEOMETRY["w"]
    largest = row.by_key["recompute", True].wire_bytes
    wide = flow._arrow(geometry, 0, "prefill", "decode", 1.0)
    assert arrow_width(wide) == pytest.approx(geometry.most, abs=0.2)
    pulled = next(e.bytes for e in row.by_key["pull-back", True].edges if e.source == "prefill")
    thin = flow._arrow(geometry, 1, "prefill", "decode", pulled / largest)
    assert arrow_width(thin) == pytest.approx((pulled / largest) ** (1 / 3) * geometry.most, abs=0.2)
    assert flow.edge_width(geometry, 1 / 8) == pytest.approx(geometry.most / 2)
    state = State(Scenario(model="qwen3-235b-a22b"), Turn(history_tokens=150_000, delta_tokens=900, generated_tokens=250))
    [row] = turn.turn_rows(state, "delta_tokens", (900,))
    moved = sorted({e.bytes for key in turn.DRAWN for e in row.by_key[key].edges if e.bytes})
    for one in flow.GEOMETRY.values():
        widths = [flow.edge_width(one, b / flow.largest_edge(row)) for b in moved]
        assert all(b / a >= 1.2 for a, b in pairwise(widths))
        assert flow.MIN_EDGE < widths[0] < widths[-1] == one.most


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


@pytest.mark.parametrize(
    ("fields", "answer", "note"),
    [
        (
            {},
            "Pull back: 157~ms to the first token and nobody stalls; sticky is 26.6~ms sooner but would stall any neighbour 131~ms.",
            "in a larger one each neighbour would wait 131~ms.",
        ),
        (
            {"decode_batch": 32},
            "Prefill keeps the history and pulls back 500 tokens: 173~ms; sticky is 42.5~ms sooner but stalls 31 neighbours 131~ms each.",
            "Each of the 31 neighbours decoded beside it waits 131~ms.",
        ),
        (
            {"link": "ethernet-25", "decode_batch": 3},
            "Stay with the holder: sticky moves 0~B and saves 274~ms on pull back; 2 neighbours lose 131~ms each.",
            "pull back cuts 10.5~GB to 819~MB",
        ),
        (
            {"turn": TURN.model_copy(update={"delta_tokens": 4_000})},
            "Prefill keeps the history: pull back cuts 11.1~GB to 1.47~GB, the first token from 1.90~s to 0.288~s; sticky hands over too.",
            "4,000 tokens are new",
        ),
    ],
)  # fmt: skip
def test_the_turn_answers_with_a_design_what_moves_where_and_who_is_decoded_beside_it(fields, answer, note):
    asked = fields.pop("turn", TURN)
    [row] = turn.turn_rows(State(Scenario(**fields), asked), "delta_tokens", (asked.delta_tokens,))
    table = turn.turn_table([row]) | turn_bars.bars_table([row])
    assert table["answer.text"][0] == answer.replace("~", "\u202f")
    assert note.replace("~", "\u202f") in table["stall"][0]
    assert any("stalls its neighbours" in text for text in table["t.ttft_text"][0]) is ("decode_batch" in fields)


@pytest.mark.parametrize("batch", [1, 2, 8, 256])
@pytest.mark.parametrize("fields", [{}, {"link": "ethernet-25"}, {"decode_accelerator": "h20"}, {"link": "wan-100", "engine": "vllm-nixl"}])
def test_sticky_is_weighed_by_what_it_saves_against_what_its_neighbours_lose(fields, batch):
    rows = turn_rows(**fields, decode_batch=batch)[1]
    weighed = 0
    for row, text in zip(rows, turn.turn_table(rows)["answer.text"], strict=True):
        sticky = row.by_key["sticky", True]
        others = [row.by_key[key, True].ttft_seconds for key in ("pull-back", "pool")]
        assert len(text.removeprefix("If this could run: ")) <= 125
        if sticky.stall_seconds and "all four designs" not in text:
            weighed += 1
            saved = min(others) - sticky.ttft_seconds
            for_sticky = saved > 0 and saved >= (batch - 1) * sticky.stall_seconds
            tipped = batch == 1 and 0 < saved < sticky.stall_seconds
            assert ("Stay with the holder" in text) == (for_sticky and not tipped)
            assert ("but would stall any neighbour" in text) == tipped
            assert ("nobody" in text) <= (batch == 1)
        else:
            assert "neighbour" not in text
    assert weighed > 10


@pytest.mark.parametrize(
    ("history", "generated", "born", "held"),
    [
        (30_000, 500, "500 of the history generated on decode", ", the rest still on prefill (assumed)"),
        (30_000, 0, "none of the history generated on decode", ", all of it still on prefill (assumed)"),
        (30_000, 40_000, "all of the history generated on decode", ""),
    ],
)
def test_the_setup_says_what_prefill_is_taken_to_hold_and_opens_its_inputs(history, generated, born, held):
    state = State(Scenario(decode_batch=8), Turn(history_tokens=history, generated_tokens=generated))
    view = next_turn.picture(state).views["answer_view"]
    assert (view["now"]["born"], view["now"]["held"]) == (born, held)
    asks = "pulls back the whole history" if generated > history else "pulls back 500" if generated else "ships what is new"
    assert asks in view["say"]
    line = next(child for child in view["items"][1]["children"] if "kv-said-line" in child["class"])
    opens = {child["data-open"]: child["children"] for child in line["children"] if "data-open" in child}
    assert list(opens) == ["text_generated_tokens", "text_decode_batch"]
    assert opens["text_decode_batch"] == ["7 requests decoded beside it"]
    copied = json.dumps(still(view["items"]))
    assert "7 requests decoded beside it" in copied
    assert "data-open" not in copied


@pytest.mark.parametrize(("model", "times"), [("qwen3-235b-a22b", 2), ("llama-3-70b", 1), ("deepseek-v3", 8)])
def test_copies_on_the_arrows_are_explained(model, times):
    """Four KV heads on eight ranks are held twice, a latent row by each of eight, eight heads once."""
    state = State(Scenario(model=model, engine="vllm-nixl"), TURN)
    [row] = turn.turn_rows(state, "delta_tokens", (TURN.delta_tokens,))
    said = turn.turn_table([row])["copies"][0]
    assert (f"the arrows carry it {times} times" in said) if times > 1 else said == ""


@given(scenarios(longest=4096), st.integers(0, 200_000), st.integers(1, 4_000), st.integers(0, 200_000))
@settings(max_examples=25)
def test_every_answer_on_a_turn_is_short(scenario, history, delta, generated):
    state = State(scenario, Turn(history_tokens=history, delta_tokens=delta, generated_tokens=generated))
    text = turn.turn_table(turn.turn_rows(state, "delta_tokens", (delta,)))["answer.text"][0]
    assert len(text.removeprefix("If this could run: ")) <= 125, text


def said(history, delta, **fields):
    state = State(Scenario(**fields), Turn(history_tokens=history, delta_tokens=delta))
    [row] = turn.turn_rows(state, "delta_tokens", (delta,))
    table = turn.turn_table([row])
    return table["answer.text"][0], table["stall"][0]


def test_arrows_say_how_often_each_byte_crosses_where_ranks_hold_copies_of_heads():
    state = State(
        Scenario(model="qwen3-235b-a22b"), Turn(history_tokens=150_000, delta_tokens=900, generated_tokens=250)
    )  # 4 KV heads, TP 8
    row = turn.turn_rows(state, "delta_tokens", (900,))[0]
    table = {name: column[0] for name, column in flow.flow_table([row]).items()}
    assert [table[f"f{i}.e0"] for i in (0, 1)] == ["2×29.1\u202fGB", "2×173\u202fMB"]
    assert [table[f"f2.e{i}"].rpartition("\u2009")[2] for i in range(4)] == [
        "173\u202fMB",
        "2×48.1\u202fMB",
        "48.1\u202fMB",
        "2×173\u202fMB",
    ]
    plain = flow.flow_table([turn.turn_rows(State(Scenario(), Turn()), "delta_tokens", (2000,))[0]])
    assert not any("×" in str(column[0]) for name, column in plain.items() if ".e" in name)


def test_a_turn_too_long_for_decode_says_what_the_limit_is():
    _, note = said(30_000, 4_000)
    assert "because 4,000 tokens are new, not under 2,048 (“Local prefill below” under More inputs)" in note
    _, note = said(500, 1_500)
    assert "because 75.0\u202f% of the prompt are new, not under 70.0\u202f%" in note


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
    assert "would wait" in said(30_000, 2_000)[1]


def test_an_engine_that_resends_says_so_and_cuts_no_bytes():
    state = State(Scenario(engine="sglang-mooncake"))
    table = turn.turn_table(turn.turn_rows(state, "delta_tokens", (2000,)))
    assert table["copies"][0].startswith("SGLang Mooncake sends decode the whole prompt, also what it holds.")
    assert "Against recomputing all, pull back cuts the first token from " in table["stall"][0]
    own = turn.turn_table(turn.turn_rows(State(Scenario()), "delta_tokens", (2000,)))
    assert own["copies"] == [""]
    assert "pull back cuts 10.5\u202fGB to 819\u202fMB and the first token from " in own["stall"][0]
