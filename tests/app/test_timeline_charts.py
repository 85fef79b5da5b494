"""The timeline as values: every bar to scale, the hidden and the exposed apart, and what it says."""

import numpy as np
import pytest

from app.charts import request, strips, timeline
from app.charts.spec import fill
from app.over import evaluate_over, token_positions
from app.palette import DARK, LIGHT
from kvmodel import Scenario, evaluate
from kvmodel.display import time_text

BASIC = {"scatter", "bar"}


def over(**fields):
    scenario = Scenario(**fields)
    return evaluate_over(scenario, "prompt_tokens", token_positions(scenario.prompt_tokens))


def drawn(o, *, magnified=False, index=None):
    table = request.answer_table(o) | timeline.timeline_table(request.moments(o), magnified=magnified)
    return fill(
        timeline.timeline_figure(magnified=magnified, both=o.plan.overlap == "layer-both").wide,
        table,
        o.at if index is None else index,
        LIGHT,
    )


def blocks(figure, row):
    """(base, length, colour, hatching) of the single bars of a row that are seen, the exposed ones last."""
    plain, exposed = figure["data"][:2]
    every = [
        *zip(plain["y"], plain["base"], plain["x"], plain["marker"]["color"], [""] * len(plain["y"]), strict=True),
        *((*bar, exposed["marker"]["color"], hatch) for *bar, hatch in _hatched(exposed)),
    ]
    return [rest for y, *rest in every if y == row and rest[2] != LIGHT["clear"]]


def _hatched(bars):
    return zip(bars["y"], bars["base"], bars["x"], bars["marker"]["pattern"]["shape"], strict=True)


def cuts(figure, row):
    """Where a row's bar is cut: the path goes through each place once, after it has begun at the first."""
    path = next(t for t in figure["data"] if t.get("mode") == "lines" and t["line"]["shape"] == "hv" and np.mean(t["y"][:2]) == row)
    first, *rest = path["x"] or [None]
    assert rest[:1] in ([], [first])
    return rest


def hidden_cells(figure):
    """(left edges, lengths) of the boxes of the wire's path."""
    wire = next(t for t in figure["data"] if t.get("fill") == "toself" and np.mean(t["y"][:2]) == 179)
    x, y = wire["x"], wire["y"]
    low, high = x[0:-1:2], x[1::2]
    assert len(y) >= len(x)
    assert {y[0], y[2]} == {188}
    assert {y[1], y[3]} == {170}
    return low, [b - a for a, b in zip(low, high, strict=True)]


def test_layers_of_prefill_fill_its_lane_to_scale():
    o = over(overlap="layer", prefill_seconds=0.4)
    figure, reach = drawn(o), 1.045 * o.rows[o.at].ttft_seconds
    [[base, length, fill_colour, _]] = blocks(figure, 133)
    assert (base, fill_colour) == (0, LIGHT["prefill"])
    assert length == pytest.approx(0.4 / reach * strips.SCALE, abs=1)
    assert np.allclose(cuts(figure, 133), length * np.arange(1, 80) / 80, atol=1)


def test_hidden_layers_leave_one_exposed_cell():
    o = over(overlap="layer", prefill_seconds=0.4)
    figure, e = drawn(o), o.rows[o.at]
    x = e.transfer.seconds / 80 / (1.045 * e.ttft_seconds) * strips.SCALE
    base, length = hidden_cells(figure)
    assert len(base) == 79
    assert np.allclose(length, x, atol=1.5)
    fixed, late = blocks(figure, 179)
    assert late[1] == pytest.approx(x, abs=1.5)
    assert late[2] == LIGHT["exposed"]
    assert fixed[1:3] == [0, LIGHT["other"]]
    assert cuts(figure, 179) == []


def test_serial_exposes_every_cell_after_prefill():
    figure = drawn(over(prefill_seconds=0.4))
    assert hidden_cells(figure) == ([], [])
    assert cuts(figure, 179) == []  # 80 layers in 120 pixels
    assert len(cuts(drawn(over(prefill_seconds=0.4, link="ethernet-25")), 179)) == 79


def test_exposed_is_hatched_wherever_it_is_wide_enough_to_see():
    assert blocks(drawn(over(link="ethernet-10")), 179)[-1][3] == "/"
    assert blocks(drawn(over(overlap="layer")), 179)[-1][3] == ""


def test_the_magnifier_appears_only_below_three_per_cent_of_the_first_token():
    assert timeline.is_small(evaluate(Scenario(overlap="layer")))
    assert not timeline.is_small(evaluate(Scenario()))
    assert not timeline.is_small(evaluate(Scenario(decode_held_tokens=8192)))


def test_the_magnifier_draws_the_last_layer_as_wide_as_its_time():
    o = over(overlap="layer", prefill_seconds=0.4)
    figure = drawn(o, magnified=True)
    parts = [part for part in blocks(figure, 343) if part[1]]
    words = figure["data"][-1]
    assert "layer 80" in [text for text, y in zip(words["text"], words["y"], strict=True) if y == 343]
    x, widths = o.rows[o.at].transfer.seconds / 80, [length for _, length, *_ in parts]
    late = blocks(figure, 377)[-1][1]
    assert late / widths[-1] == pytest.approx(x / (0.4 / 80), rel=0.02)


def test_texts_of_the_timeline_carry_the_published_numbers():
    texts = [t for trace in drawn(over(prefill_seconds=0.4))["data"] if trace.get("mode") == "text" for t in trace["text"]]
    assert any("80 layers, 5.00\u202fms each = 400\u202fms" in t for t in texts)
    assert any("33.6\u202fMB a layer, 0.671\u202fms each = 53.7\u202fms" in t for t in texts)


@pytest.mark.parametrize("model", ["llama-3-70b", "gpt-oss-120b", "deepseek-v3", "qwen3-next-80b-a3b", "gemma-3-27b", "nemotron-3-super"])
@pytest.mark.parametrize("overlap", ["serial", "chunk", "layer", "layer-group", "layer-both"])
def test_every_position_of_every_kind_of_model_can_be_drawn(model, overlap):
    o = over(model=model, overlap=overlap)
    table = request.answer_table(o) | timeline.timeline_table(request.moments(o), magnified=True)
    figure = timeline.timeline_figure(magnified=True, both=overlap == "layer-both")
    for index in (0, o.at, len(o.values) - 1):
        for spec in (figure.wide, figure.narrow):
            filled = fill(spec, table, index, DARK)
            assert {t["type"] for t in filled["data"]} <= BASIC
            assert filled["layout"]["height"] == 478


def test_groups_of_layers_are_drawn_and_their_size_is_said():
    o = over(overlap="layer-group", group_layers=8, prefill_seconds=0.4)
    figure = drawn(o)
    assert len(cuts(figure, 133)) == 9
    assert len(hidden_cells(figure)[0]) == 9
    texts = [t for trace in figure["data"] if trace.get("mode") == "text" for t in trace["text"]]
    assert any("10 layer groups of 8, 40.0\u202fms each = 400\u202fms" in t for t in texts)
    best = drawn(over(overlap="layer-group", engine="vllm-nixl", cross_layer="yes", message_seconds=2e-5, fragmentation=1.0))
    texts = [t for trace in best["data"] if trace.get("mode") == "text" for t in trace["text"]]
    assert any("20 layer groups of 4" in t for t in texts)


def test_decode_waits_for_each_layer_where_it_runs_layer_by_layer():
    # a layer takes 33.6 ms over 1 GB/s and decode 0.25 ms: each waits for its cache
    o = over(overlap="layer-both", link_gbytes_per_s=1.0, prefill_seconds=0.4, decode_step_seconds=0.02)
    figure, unit = drawn(o), strips.SCALE / (1.045 * o.rows[o.at].ttft_seconds)
    earlier = next(t for t in figure["data"] if t.get("fill") == "toself" and np.mean(t["y"][:2]) == 221)
    arrivals = 0.005 + 0.033554432 * np.arange(1, 81)
    kept = arrivals[arrivals > 0.4]
    assert np.allclose(np.asarray(earlier["x"])[2:-1:2], kept[:-1] * unit, atol=1)
    last = blocks(figure, 221)[0]
    assert last[0] == pytest.approx(kept[-1] * unit, abs=1)
    assert (last[0] + last[1]) / unit == pytest.approx(o.rows[o.at].ttft_seconds, rel=1e-4)


def test_more_than_160_parts_are_drawn_in_groups_and_said_so():
    o = over(overlap="chunk", chunk_tokens=128, prompt_tokens=131_072)
    texts = [t for trace in drawn(o)["data"] if trace.get("mode") == "text" for t in trace["text"]]
    assert any("1,024 chunks" in t and "drawn in" in t for t in texts)


SHORT_DECODES = [{"output_tokens": 1}, {"output_tokens": 2}, {"prompt_tokens": 1_048_576}, {"batch": 256, "prompt_tokens": 131_072}]


@pytest.mark.parametrize("fields", SHORT_DECODES)
def test_the_upper_strip_is_the_request_to_scale_and_says_its_decode_time(fields):
    o = over(**fields)
    e = o.rows[o.at]
    figure = drawn(o)
    start = (e.prefill.seconds + e.gap_seconds) / e.request_seconds
    decode = next(b for b in blocks(figure, 33) if b[2] == LIGHT["decode"])
    assert decode[0] + decode[1] == strips.SCALE
    assert decode[0] == pytest.approx(start * strips.SCALE, abs=2)
    texts = " ".join(t for trace in figure["data"] if trace.get("mode") == "text" for t in trace["text"])
    assert time_text(e.request_seconds - e.prefill.seconds - e.gap_seconds) in texts


def test_fixed_handoff_time_is_drawn_and_in_the_sum():
    o = over(engine="vllm-nixl")
    fixed = next(b for b in blocks(drawn(o), 179) if b[2] == LIGHT["other"])
    assert fixed[1] == pytest.approx(0.007 / (1.045 * o.rows[o.at].ttft_seconds) * strips.SCALE, abs=2)
    assert "kv-swatch-other" in str(request.sum_block(o))


def test_parts_that_are_not_alike_are_said_to_be_so_on_average():
    o = evaluate_over(Scenario(overlap="chunk", link="ethernet-100"), "prompt_tokens", (8_192, 7_000))  # chunks of 2,048
    table = timeline.timeline_table(request.moments(o), magnified=False)
    whole, odd = table["w.wire"]
    assert "671\u202fMB a chunk, 53.7\u202fms each = 215\u202fms" in whole
    assert "573\u202fMB a chunk on average, 45.9\u202fms each, 184\u202fms in all" in odd
    assert ["on average" in text for text in table["t.wire_says"]] == [False, True]


@pytest.mark.parametrize(("overlap", "shown"), [("layer-both", False), ("layer", True)])
def test_what_crosses_after_prefill_is_drawn_as_exposed_only_where_decode_waits_for_it(overlap, shown):
    o = over(overlap=overlap)
    table = timeline.timeline_table(request.moments(o), magnified=False)
    assert (float(o.rows[o.at].transfer.exposed_seconds) > 0) == shown
    assert (table["t.late_bar"][o.at][0] > 0) == shown
    drawn_to, ready = int(np.asarray(table["t.wire_bar"][o.at]).sum()), table["t.ready"][o.at]
    assert (drawn_to > ready + 2) != shown  # the last layer crosses while decode computes on the first
