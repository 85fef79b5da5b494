"""Charts as values: what each figure draws for scenarios whose answer is known."""

import numpy as np
import pytest

from app.charts import critical, levers, links, ratio, request
from app.charts.scale import plain_time, round_ticks, text_width
from app.charts.spec import fill, used
from app.over import evaluate_over, token_positions
from app.palette import LIGHT
from app.state import State
from app.views import critical_length
from kvmodel import Scenario, evaluate
from kvmodel.display import time_text


def over(**fields):
    scenario = Scenario(**fields)
    return evaluate_over(scenario, "prompt_tokens", token_positions(scenario.prompt_tokens))


def critical_view(**fields):
    o = over(**fields)
    rows = links.link_rows(links.without_prompt(o.scenario))
    own = next(row for row in rows if row.id == o.scenario.link)
    return o, rows, own, critical.critical_table(o, rows)


def test_the_critical_length_is_where_the_chosen_line_meets_the_decode_step():
    o, _, own, table = critical_view(link="ethernet-100", decode_step_seconds=0.030)
    assert own.critical == 1145
    at_critical = np.interp(own.critical, table["c.tokens"], table["c.ethernet-100"])
    assert at_critical == pytest.approx(0.030, rel=2e-3)
    assert "1,150 tokens" in table["answer.text"][o.at]


def test_a_faster_link_that_takes_longer_says_why():
    # 2.5 us a message on NVLink against 0.29 us: 27,443 messages of a rank
    o, rows, _, table = critical_view(engine="vllm-nixl", link="nvlink-4", lanes="auto")
    said = table["c.odd"][o.at]
    assert said.startswith("NVLink 4 has more bandwidth than")
    assert f"posting its messages takes {time_text(80 * 512 * 0.67 * 2.5e-6)} against {time_text(80 * 512 * 0.67 * 0.29e-6)}." in said
    assert "c.odd" in str(views_of_links(o.scenario, rows))
    assert set(critical_view()[3]["c.odd"]) == {""}  # by bandwidth alone the faster link is never longer


def views_of_links(scenario, rows):
    return critical_length.picture(State(scenario), token_positions(scenario.prompt_tokens)).views


def test_the_table_of_links_says_which_overlap_hides():
    o, rows, *_ = critical_view()
    assert "Hides layer by layer" in str(links.links_block(o.scenario, rows))


def test_the_chosen_link_is_wide_orange_and_the_others_thin_grey():
    o, rows, own, table = critical_view()
    figure = fill(critical.critical_figure(own, table, links.drawn_links(o.scenario, rows)).wide, table, o.at, LIGHT)
    lines = {t["name"]: t["line"] for t in figure["data"] if t.get("name")}
    assert lines["NDR 400"]["width"] == 3.5
    assert lines["NDR 400"]["color"] == LIGHT["wire"]
    assert {line["width"] for name, line in lines.items() if name not in ("NDR 400", "one decode step")} == {1.25}


def test_you_stand_on_the_chosen_curve():
    o, _, _, table = critical_view()
    assert table["c.you"] == table["c.ib-ndr-400"]
    assert 10 ** table["c.you_y"][o.at] == pytest.approx(0.0536870912, rel=1e-3)
    assert "2,684" not in table["c.you_text"][o.at]
    assert "8,192 tokens, 53.7\u202fms" in table["c.you_text"][o.at]


def test_labels_at_the_lines_ends_keep_fourteen_pixels():
    o, rows, own, table = critical_view()
    kept = critical.end_labels(own, links.drawn_links(o.scenario, rows), {r.id: table[f"c.{r.id}"][-1] for r in rows}, 8 / 408)
    heights = sorted(y / (8 / 408) for _, y in kept)
    assert own in [row for row, _ in kept]
    assert min(np.diff(heights)) >= critical.LABEL_GAP


def test_the_ratio_is_flat_until_attention_outgrows_the_bytes():
    o, _, _, table = critical_view(model="llama-3.1-8b", prefill_tp=1, decode_tp=1)
    values = dict(zip(table["c.tokens"], table["r.ratio"], strict=True))
    assert values[4096] == pytest.approx(values[2048], rel=0.15)
    assert values[1_048_576] < values[8192] / 3
    assert fill(ratio.ratio_figure(table).wide, table, o.at, LIGHT)["data"][0]["y"] == table["r.ratio"]


def test_links_are_listed_fastest_first_with_the_chosen_one_bold():
    o, rows, _, table = critical_view()
    block = links.links_block(o.scenario, rows)
    body = block["children"][0]["children"][1]["children"]
    assert [row["class"] for row in body].count("kv-chosen") == 1
    assert [r.bandwidth for r in rows] == sorted((r.bandwidth for r in rows), reverse=True)
    assert used(block) == {f"c.text.{row.id}" for row in rows}
    assert table["c.text.ethernet-100"][o.at] == "215\u202fms"


@pytest.mark.parametrize(
    ("spans", "words"),
    [((), "never"), (((1, 1_048_576),), "always"), (((1, 832),), "up to 832"), (((1, 92), (51_779, 1_048_576)), "up to 92, from 51,800")],
)
def test_what_can_hide_is_said_in_a_few_words(spans, words):
    assert links.hidden_text([links.Interval(*span) for span in spans]) == words


def test_levers_are_signed_changes_of_the_first_token():
    o = over(prefill_seconds=0.4, decode_step_seconds=0.02)
    table = levers.levers_table(o)
    names, x = table["l.names"][o.at], dict(zip(table["l.names"][o.at], table["l.x"][o.at], strict=True))
    assert len(names) == levers.COUNT
    assert x["Prefill twice as fast"] == pytest.approx(-0.2, rel=1e-3)
    assert x["2 lanes"] == pytest.approx(-0.0536870912 / 2, rel=1e-3)
    assert x["FP8 KV"] == pytest.approx(-0.0536870912 / 2, rel=1e-3)
    assert x["Layer by layer"] == pytest.approx(-0.0536870912 * 79 / 80, rel=1e-3)
    assert sorted(map(abs, table["l.x"][o.at]), reverse=True) == list(map(abs, table["l.x"][o.at]))


def test_bar_labels_have_room_beyond_their_bars():
    for x in ([-3.0, -1.0], [1.0, 4.0], [-2.0, 2.0], [0.0, 0.0]):
        low, high = levers.room_for_labels(x, 0.2)
        assert low <= min(0.0, *x)
        assert high >= max(0.0, *x)
        for end, edge in ((min(x), low), (max(x), high)):
            assert end == 0 or abs(edge - end) >= 0.19 * (high - low)


def test_the_sum_adds_up_to_the_first_token():
    o = over(engine="vllm-nixl")
    table = request.sum_table(o)
    for i in (0, o.at, -1):
        parts = [float(table[f"s.{name}"][i].replace(",", "")) for name in ("prefill", "exposed", "fixed", "step")]
        total = float(table["s.ttft"][i].replace(",", ""))
        assert sum(parts) == pytest.approx(total, rel=0.01)


def test_prefill_released_tokens_leave_the_gap_out_of_the_sum():
    o = over(engine="splitwise")
    labels = str(request.sum_block(o))
    assert "exposed transfer" not in labels
    assert "prefill" in labels


def test_answers_at_every_position_are_those_of_evaluate():
    o = over(overlap="layer", link="ethernet-25")
    table = request.answer_table(o)
    for i in (0, 20, o.at, 70):
        expected = evaluate(o.scenario.with_changes(prompt_tokens=o.values[i]))
        assert table["answer.text"][i] == expected.verdict


@pytest.mark.parametrize(("high", "most"), [(0.419, 9), (3.3e-4, 5), (1234.0, 6), (1.0, 9)])
def test_round_ticks_are_few_and_round(high, most):
    ticks = round_ticks(high, most)
    step = ticks[0]
    assert 2 <= len(ticks) <= most
    assert float(f"{step:.1g}") == pytest.approx(step)
    assert all(0 < t <= high * (1 + 1e-9) for t in ticks)


def test_ticks_show_as_many_digits_as_tell_them_apart():
    assert plain_time(0.05, 0.05) == "50\u202fms"
    assert plain_time(0.0025, 0.0005) == "2.5\u202fms"
    assert plain_time(2.0, 1.0) == "2\u202fs"


def test_text_width_ignores_markup():
    assert text_width("<b>abc</b>") == text_width("abc")


def test_the_wire_formula_names_what_it_adds_to_bytes_over_bandwidth():
    plain = request.behind_table(over())["b.wire"]
    assert not any("messages" in text for text in plain)
    o = over(engine="nvlink-cuda-ipc", prompt_tokens=32_768)
    e = o.rows[o.at]
    text = request.behind_table(o)["b.wire"][o.at]
    added = e.transfer.seconds - e.kv.wire_bytes / e.transfer.bandwidth_bytes_per_s
    assert f"+ {time_text(added)} for messages, copies and latency" in text


@pytest.mark.parametrize(
    ("fields", "shown"), [({}, False), ({"engine": "vllm-nixl"}, True), ({"handshake_seconds": 2.0, "contact": "first"}, True)]
)
def test_the_sum_has_a_fixed_term_wherever_something_is_fixed(fields, shown):
    o = over(**fields)
    assert ("fixed handoff" in str(request.sum_block(o))) is shown
    assert (o.rows[o.at].gap_seconds - o.rows[o.at].transfer.exposed_seconds > 0) is shown
