"""Charts as values: what each figure draws for scenarios whose answer is known."""

from urllib.parse import parse_qsl

import pytest

from app.charts import levers, request
from app.charts.scale import plain_time, round_ticks, text_width
from app.over import evaluate_over, token_positions
from app.state import from_link
from app.views import one_request
from kvmodel import Scenario, evaluate
from kvmodel.display import time_text


def over(**fields):
    scenario = Scenario(**fields)
    return evaluate_over(scenario, "prompt_tokens", token_positions(scenario.prompt_tokens))


def test_levers_are_signed_changes_of_the_first_token():
    o = over(prefill_seconds=0.4, decode_step_seconds=0.02)
    table = levers.levers_table(o, [lever.name for lever in levers.ranked(o.scenario)])
    names, x = table["l.names"][o.at], dict(zip(table["l.names"][o.at], table["l.x"][o.at], strict=True))
    assert len(names) == levers.COUNT
    assert x["Prefill twice as fast"] == pytest.approx(-0.2, rel=1e-3)
    assert x["All 8 lanes"] == pytest.approx(-0.0536870912 * 7 / 8, rel=1e-3)
    assert x["FP8 KV"] == pytest.approx(-0.0536870912 / 2, rel=1e-3)
    assert x["Layer by layer"] == pytest.approx(-0.0536870912 * 79 / 80, rel=1e-3)
    assert sorted(map(abs, table["l.x"][o.at]), reverse=True) == list(map(abs, table["l.x"][o.at]))


@pytest.mark.parametrize("query", ["", "link=ethernet-25&engine=vllm-nixl&history_tokens=5000", "kv_dtype=fp8&overlap=layer&pin=defaults"])
def test_applying_a_lever_moves_the_first_token_by_what_its_bar_says(query):
    state = from_link(dict(parse_qsl(query)))
    view = one_request.picture(state).views["levers_view"]
    bars = view["items"][1]["wide"]["data"][0]
    links = [child for child in view["items"][-1]["children"] if isinstance(child, dict) and child["tag"] == "a"]
    addresses = [address for _, address in bars["customdata"]]
    assert [link["href"] for link in links] == addresses
    assert [link["children"][0] for link in links] == view["now"]["l.names"]
    base = evaluate(state.scenario).ttft_seconds
    for address, change in zip(addresses, view["now"]["l.x"], strict=True):
        applied = from_link(dict(parse_qsl(address[1:])))
        assert applied.notes == ()
        assert applied.turn == state.turn
        assert applied.pin == state.pin if state.pin else applied.pin == state.pinned().pin
        assert evaluate(applied.scenario).ttft_seconds - base == pytest.approx(change, rel=2e-3, abs=1e-4 * base)


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


@pytest.mark.parametrize(
    "fields",
    [
        {"link": "ethernet-100", "engine": "vllm-nixl", "prefill_seconds": 0.347, "decode_step_seconds": 0.00977},
        {"prefill_seconds": 30.0, "decode_step_seconds": 0.00977},
        {"prefill_seconds": 0.4, "decode_step_seconds": 0.02},
        {"prompt_tokens": 128},
    ],
)
def test_a_reader_can_add_up_the_sum(fields):
    table = request.sum_table(over(**fields))
    at = over(**fields).at
    terms = [float(table[f"s.{name}"][at].replace(",", "")) for name in ("prefill", "exposed", "fixed", "step")]
    total, unit = float(table["s.ttft"][at].replace(",", "")), table["s.unit"][at]
    digit = 0.1 if unit == "s" else 1.0 if total >= 100 else 0.1  # of the total's last place
    assert abs(sum(terms) - total) <= 1.5 * digit
    assert all(len(table[f"s.{name}"][at].partition(".")[2]) <= 3 for name in ("prefill", "exposed", "fixed", "step"))
