"""The pinned scenario in every chart that the scenario changes: its marks are its own numbers, to the scale of the present one's."""

import re
from dataclasses import replace
from functools import cache
from urllib.parse import parse_qsl, urlencode

import numpy as np
import pytest

from app.behind import behind
from app.catalog import CHARTS, VIEWS, find_chart
from app.charts.flow import GEOMETRY
from app.charts.interconnects import COLUMNS, HEAD, drawn_links, row_height
from app.charts.pins import points
from app.charts.turn import turn_rows
from app.export.rows import filled
from app.palette import LIGHT
from app.state import State, from_link
from kvmodel import Scenario, evaluate, registry, sweep
from kvmodel.sensitivity import sensitivity

DASHED = ("dash", "dot")


def linked(query):
    return from_link(dict(parse_qsl(query)))


def pinned(this, pin):
    return linked(urlencode({**dict(parse_qsl(this)), "pin": pin}))


@cache
def views_of(view, query):
    return VIEWS[view].at(linked(query)).views


def drawn(name, state, width="wide"):
    chart = find_chart(name)
    view = views_of(chart.view, state.query())[chart.mount]
    return filled(next(item for item in view["items"] if "wide" in item), view, LIGHT, width)


def hollow(figure):
    [bars] = [t for t in figure["data"] if t["type"] == "bar" and t["marker"].get("color") == LIGHT["bg"]]
    return bars


def dashed(figure):
    [line] = [t for t in figure["data"] if t.get("mode") == "lines" and t["line"]["dash"] in DASHED and "pin" in str(t.get("customdata"))]
    return line


def outlines(figure):
    [shape] = [s for s in figure["layout"]["shapes"] if s["line"].get("dash") == "dash" and s["type"] == "path"]
    return shape["path"]


STATE = pinned("link=ethernet-25&overlap=layer", "link=roce-100&overlap=layer&prompt_tokens=20000&kv_dtype=fp8")
PIN = STATE.pin.scenario


@pytest.mark.parametrize("name", [name for name in CHARTS if name != "residuals"])
@pytest.mark.parametrize("width", ["wide", "narrow"])
def test_a_pin_is_drawn_into_every_chart_that_the_scenario_changes_with_few_marks(name, width):
    one, other = drawn(name, STATE, width), drawn(name, STATE.unpinned(), width)
    more = [
        len(a.get(k, ())) - len(b.get(k, ()))
        for a, b, k in ((one, other, "data"), *((one["layout"], other["layout"], k) for k in ("shapes", "annotations")))
    ]
    assert 1 <= sum(more) <= 9
    assert more[0] <= 4
    assert one["layout"]["height"] - other["layout"]["height"] in (0, 18)


def test_a_chart_of_published_rows_alone_says_that_the_pin_has_no_place_in_it():
    items = VIEWS["measured"].at(STATE).views["residual_view"]["items"]
    assert points.RESIDUALS in str(items)
    assert drawn("residuals", STATE) == drawn("residuals", STATE.unpinned())


def test_what_would_change_is_tried_on_the_pinned_scenario_too():
    state = pinned("link=ethernet-25", "prompt_tokens=20000")
    names = [row["change"] for row in behind("levers", state)]
    bars = dict(zip(names, hollow(drawn("levers", state))["x"], strict=True))
    before = evaluate(state.pin.scenario).ttft_seconds
    for name, changes in (
        ("2 lanes", {"lanes": 2}),
        ("Half the prompt", {"prompt_tokens": 10_000}),
        ("Link RoCE 100", {"link": "roce-100"}),
    ):
        assert bars[name] == pytest.approx(evaluate(state.pin.scenario.with_changes(**changes)).ttft_seconds - before, rel=1e-3)
    low, high = drawn("levers", state)["layout"]["xaxis"]["range"]
    assert low <= min(bars.values()) <= max(bars.values()) <= high


def test_hollow_bars_reach_from_half_to_twice_of_each_input_of_the_pinned_scenario():
    figure = drawn("tornado", STATE)
    bars, turned = hollow(figure), {one.field: one for one in sensitivity(PIN)}
    order = [row["input"] for row in behind("tornado", STATE)]
    lengths = [
        max(0.0, *one) - min(0.0, *one) for one in ((float(turned[n].half_seconds[0]), float(turned[n].twice_seconds[0])) for n in order)
    ]
    scale = max(bars["x"]) / max(lengths)
    assert bars["x"] == pytest.approx([scale * v for v in lengths], abs=1)
    own = figure["data"][0]
    mine = {one.field: one for one in sensitivity(STATE.scenario)}
    assert max(own["x"]) == pytest.approx(scale * max(float(one.twice_seconds[0]) for one in mine.values()), rel=0.01)


def test_lines_of_the_pinned_scenario_are_its_own():
    line = dashed(drawn("pipelining", STATE))
    assert line["y"][line["x"].index(8192)] == pytest.approx(evaluate(PIN.with_changes(prompt_tokens=8192)).gap_seconds, rel=1e-3)
    shared = dashed(drawn("congestion", STATE))
    rows = behind("congestion", STATE.swapped())
    assert shared["y"] == pytest.approx([row["seconds"] for row in rows], rel=1e-3)
    for figure, curve in ((drawn("pipelining", STATE), line), (drawn("congestion", STATE), shared)):
        low, high = figure["layout"]["yaxis"]["range"]
        assert 10**low <= min(v for v in curve["y"] if v) <= max(v for v in curve["y"] if v) <= 10**high
        assert "pin" in [text.strip("\u2002") for t in figure["data"] if t.get("mode") == "text" for text in t["text"]]


def test_layers_of_the_pin_stand_to_the_scale_of_those_of_now():
    state = pinned("", "model=llama-3.1-8b&prompt_tokens=32768")
    figure = drawn("layers", state)
    stairs = figure["data"][-1]
    assert len(stairs["x"]) == 33
    assert stairs["y"][0] == pytest.approx(32_768 * 4_096, rel=1e-3)  # K and V of 8 heads of 128 in 2 bytes
    assert figure["layout"]["yaxis"]["range"][1] >= max(stairs["y"])
    assert "pinned, dashed: 134" in figure["layout"]["annotations"][0]["text"]


def test_stairs_pass_where_the_pinned_handoff_takes_a_decode_step():
    links, corners = drawn_links(STATE.scenario), re.findall(r"([\d.]+),([\d.]+)", outlines(drawn("interconnects", STATE)))
    for row, link in enumerate(links):
        found = sweep(PIN.with_changes(link=link.id), batch=np.array(COLUMNS["w"]))
        passed = int((np.asarray(found.transfer.seconds) < np.asarray(found.decode.step_seconds)).sum())
        (left, top), (right, bottom) = ((float(x), float(y)) for x, y in corners[2 * row : 2 * row + 2])
        assert left == right == passed
        assert (top, bottom) == pytest.approx((HEAD + row_height("w") * row, HEAD + row_height("w") * (row + 1)), abs=0.1)
    assert "pin" not in str([t["text"] for t in drawn("interconnects", STATE)["data"] if t.get("mode") == "text"])


def test_arrows_of_a_pinned_turn_are_to_the_scale_of_those_of_now():
    state = pinned("", "kv_dtype=fp8")
    recompute = outlines(drawn("flow", state)).split("Z")[0]
    (_, first), *_, (_, last) = [(float(x), float(y)) for x, y in re.findall(r"([\d.]+),([\d.]+)", recompute)]
    assert abs(first - last) == pytest.approx(GEOMETRY["w"].most / 2 ** (1 / 3), abs=0.2)  # half the bytes of the widest arrow
    assert outlines(drawn("flow", pinned("", "defaults"))) == "M0,0Z"
    [row] = turn_rows(state.pin, "delta_tokens", (2000,))
    texts = drawn("flow", state)["data"][0]["text"]
    assert "pin 5.24\u202fGB" in texts
    assert row.by_key["recompute", True].unique_bytes == 32_000 * 163_840


def test_what_crosses_of_the_pinned_layer_is_outlined_at_one_scale():
    state = pinned("prompt_tokens=8192", "prompt_tokens=4096")
    figure = drawn("matrices", state)
    wire, pin = (
        next(t for t in figure["data"] if t.get("mode") == "lines" and key(t))
        for key in (lambda t: t.get("fillcolor") == LIGHT["wire"], lambda t: t["line"].get("dash") == "dash")
    )
    tall = [max(y for y in t["y"][:5] if y is not None) - min(y for y in t["y"][:5] if y is not None) for t in (wire, pin)]
    assert tall[1] == pytest.approx(tall[0] / 2, abs=0.2)
    assert sorted({x for x in pin["x"] if x is not None}) == sorted({x for x in wire["x"][: len(pin["x"])] if x is not None})


def test_rings_under_the_roofline_are_the_pinned_layer():
    state = pinned("", "model=llama-3.1-8b&prefill_accelerator=b200-sxm&prompt_tokens=100000&decode_batch=256")
    figure = drawn("roofline", state)
    [rings] = [t for t in figure["data"] if t["type"] == "scatter" and t.get("marker", {}).get("symbol") == "circle-open"]
    rows = behind("roofline", state.swapped())
    assert rings["x"] == pytest.approx([row["flop_per_byte"] for row in rows], rel=1e-3)
    assert rings["y"] == pytest.approx([row["flop_per_s_at_most"] / 1e12 for row in rows], rel=1e-3)
    for axis, values in (("xaxis", rings["x"]), ("yaxis", rings["y"])):
        low, high = figure["layout"][axis]["range"]
        assert 10**low < min(values) < max(values) < 10**high
    roof = figure["data"][-2]
    assert (roof["line"]["dash"], max(v for v in roof["y"] if v)) == ("dot", max(rings["y"]))


def test_the_pin_is_a_ring_among_measurements_and_says_whose_rows_are_shown():
    other, state = evaluate(PIN), replace(STATE, scenario=Scenario(link="ib-ndr-400"))
    figure = drawn("measured", state)
    ring = figure["data"][-1]
    assert (ring["x"], ring["y"]) == ([other.kv.wire_bytes], [other.transfer.seconds])
    assert 10 ** figure["layout"]["xaxis"]["range"][0] < other.kv.wire_bytes < 10 ** figure["layout"]["xaxis"]["range"][1]
    said = str(VIEWS["measured"].at(state).views["measured_view"]["items"])
    pin, own = (registry.links()[one.scenario.link].name for one in (state.pin, state))
    assert f"over {pin}; the rows shown are those near {own}." in said


def test_both_first_tokens_are_bars_to_one_scale_named_after_what_differs():
    now = VIEWS["one-request"].at(pinned("link=ethernet-25", "batch=2&kv_dtype=fp8&decode_tp=4")).views["pinned_view"]["now"]
    assert now["pin.bar.was.name"] == "Pinned: batch 2, KV dtype fp8 and 2 more"
    now = VIEWS["one-request"].at(STATE).views["pinned_view"]["now"]
    assert (now["pin.bar.was.name"], now["pin.bar.now.name"]) == (
        "Pinned: 20,000 tokens, KV dtype fp8 and 1 more",
        "Now: 8,192 tokens, KV dtype bf16 and 1 more",
    )
    was, this = ([float(now[f"pin.bar.{side}.{i}"][6:-1]) for i in range(4)] for side in ("was", "now"))
    other, own = evaluate(PIN), evaluate(STATE.scenario)
    assert sum(was) / sum(this) == pytest.approx(other.ttft_seconds / own.ttft_seconds, rel=1e-3)
    assert this[1] / sum(this) == pytest.approx(own.transfer.exposed_seconds / own.ttft_seconds, rel=1e-3)
    assert max(sum(was), sum(this)) == pytest.approx(82, abs=0.05)
    same = VIEWS["next-turn"].at(State().pinned()).views["pinned_view"]["now"]
    assert (same["pin.bar.was.name"], same["pin.bar.was.0"], same["pin.bar.was.text"]) == (
        "Pinned",
        same["pin.bar.now.0"],
        same["pin.bar.now.text"],
    )
