"""The roofline as values: points under the roofs that the time model has, names inside the plot."""

import math
import re
from itertools import pairwise

import pytest

from app.charts import layer_runs, layer_tables, roofline, roofs
from app.charts.scale import text_width
from app.charts.spec import fill
from app.palette import LIGHT
from kvmodel.display import bytes_text, digits, flop_text
from tests.app.test_matrices_charts import main_of, over
from tests.strategies import MODELS


def test_points_lie_on_the_roof_and_equal_the_table():
    o = over(decode_accelerator="b200-sxm", decode_batch=8)
    index = main_of(o)
    table = roofline.roofline_table(o, index)
    figure = fill(roofline.roofline_figure(o, index).wide, table, o.at, LIGHT)
    points = figure["data"][-3]
    runs = layer_runs.runs_of(o, index)
    for k, run in enumerate(runs):
        gpu = run.place.accelerator
        assert points["y"][k] == pytest.approx(min(gpu.peak_bf16, points["x"][k] * gpu.hbm_bandwidth) / 1e12, rel=2e-3)
        assert table[f"t.{k}.each"][o.at] == digits(points["x"][k])
        assert table[f"t.{k}.each"][o.at] in table["r.text"][o.at][k]
        flop, moved = float(run.layer.flop[o.at]), float(run.layer.bytes[o.at])
        assert (table[f"t.{k}.flop"][o.at], table[f"t.{k}.bytes"][o.at]) == (flop_text(flop), bytes_text(moved))
        assert points["x"][k] == pytest.approx(flop / moved, rel=1e-3)
    assert [table[f"t.{k}.bound"][o.at] for k in range(3)] == ["compute", "HBM", "HBM"]
    assert [table[f"t.{k}.rows"][o.at] for k in range(3)] == ["8,192", "1", "8"]
    assert points["marker"]["color"] == [LIGHT["prefill"], LIGHT["decode"], LIGHT["decode"]]


def ridges(**fields):
    """(roofs drawn as (dash, peak in TFLOP/s), names of the ridges with their colours, lines of the title)."""
    o = over(**fields)
    figure = fill(roofline.roofline_figure(o, main_of(o)).wide, roofline.roofline_table(o, main_of(o)), o.at, LIGHT)
    roofs = [(trace["line"]["dash"], trace["y"][-1]) for trace in figure["data"][:-3]]
    (title,), words = figure["layout"]["annotations"], figure["data"][-1]
    said = zip(words["text"], words["textfont"]["color"], strict=True)
    names = [(text, tone) for text, tone in said if re.fullmatch(r"(\w+ )?(ridge|attention) [\d,.]+", text)]
    return roofs, names, title["text"].split("<br>")


def test_one_roof_for_one_accelerator_and_a_ridge_for_each():
    muted, prefill, decode = LIGHT["muted"], LIGHT["prefill_text"], LIGHT["decode_text"]
    assert ridges() == ([("solid", 989.4)], [("ridge 295", muted)], ["TFLOP/s per H100 SXM, bf16 dense"])
    roofs, names, title = ridges(decode_accelerator="b200-sxm")
    assert roofs == [("solid", 989.4), ("solid", 2250.0)]
    assert names == [("prefill ridge 295", prefill), ("decode ridge 281", decode)]
    assert title == ["TFLOP/s per H100 SXM and B200 SXM, bf16 dense"]


def test_attention_of_an_fp8_model_has_the_roof_of_bf16():
    # H100: 1,979 TFLOP/s in FP8 and 989 in BF16 over 3.35 TB/s
    roofs, names, title = ridges(model="deepseek-v3")
    assert roofs == [("solid", 1979.0), ("dash", 989.4)]
    assert [text for text, _ in names] == ["ridge 591", "attention 295"]
    assert title == ["TFLOP/s per H100 SXM, fp8 dense", "dashed: bf16, in which attention runs"]
    roofs, names, _ = ridges(model="deepseek-v3", decode_accelerator="a100-sxm")  # no FP8: BF16 for both
    assert roofs == [("solid", 1979.0), ("dash", 989.4), ("solid", 312.0)]
    assert [text for text, _ in names] == ["prefill ridge 591", "prefill attention 295", "decode ridge 153"]


def test_a_layer_of_two_formats_lies_between_their_roofs_the_lower_the_more_attention_it_has():
    o = over(model="deepseek-v3", prompt_tokens=131_072)
    prefill = layer_runs.runs_of(o, main_of(o))[0]
    peaks = [float(v) / 1e12 for v in prefill.layer.peak]
    assert peaks == sorted(peaks, reverse=True)
    assert 989 < peaks[-1] < peaks[0] < 1979
    # by hand at 131,072 tokens: 2 x 585.3 M active parameters a token in FP8, 2 x 128 x 320 FLOP a causal pair in BF16
    dense, attention = 131_072 * 2 * 585.3e6, 2 * 128 * 320 * 131_072 * 131_073 / 2
    by_hand = (dense + attention) / (dense / 1979e12 + attention / 989e12) / 1e12
    assert peaks[o.at] == pytest.approx(by_hand, rel=2e-3)
    said = roofline.roofline_table(o, main_of(o))["r.hover"][o.at][0]
    assert f"attention in bf16, the rest in fp8: {digits(peaks[o.at])} at peak" in said
    table = layer_tables.operations_table(o, main_of(o))
    formats = {name: table[f"Prefill.{k}.format"][0] for k, name in enumerate(operations(o, "Prefill"))}
    assert {name for name, format_ in formats.items() if format_ == "bf16"} == {"attention scores", "attention values"}


def operations(o, phase):
    """Names of the operations of a table."""
    block = layer_tables.operations_block(o, main_of(o), phase)
    return [row["children"][0]["children"][0] for row in block["children"][0]["children"][1]["children"]][:-2]


@pytest.mark.parametrize("model", ["llama-3-70b", "deepseek-v3", "gpt-oss-120b"])
@pytest.mark.parametrize("prefill", ["h20", "h100-sxm", "b300-sxm"])
@pytest.mark.parametrize("decode", ["a100-sxm", "h200-sxm", "mi355x"])
def test_names_of_ridges_stand_inside_the_plot_and_apart_from_the_points_names(model, prefill, decode):
    for dtype in ("auto", "nvfp4"):
        o = over(model=model, prefill_accelerator=prefill, decode_accelerator=decode, weight_dtype=dtype)
        index = main_of(o)
        bounds, runs, table = roofline.bounds_of(o, index), layer_runs.runs_of(o, index), roofline.roofline_table(o, index)
        start, rows = roofs.foot(runs, bounds)
        names = [roof.name for roof in roofs.roofs_shown(runs)]
        assert start >= 0
        assert all(start + text_width(name, 12) <= roofs.PLOT[0] + 0.01 for name in names)
        assert len(names) == rows
        for left, top, texts in zip(*(table[f"r.{part}"] for part in ("left", "top", "text")), strict=True):
            for k, text in enumerate(texts):
                right = left[k] * roofs.PLOT[0] + 0.92 * max(text_width(part, 12) for part in text.split("<br>"))
                beside = right <= start + 0.5
                assert beside or top[k] * roofs.PLOT[1] - roofline.LINE >= roofs.ROW * rows - 0.5


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("batch", [1, 2, 256])
def test_labels_of_points_keep_apart_and_points_inside_the_axes(model, batch):
    o = over(model=model, decode_batch=batch)
    table = roofline.roofline_table(o, main_of(o))
    (left, right), (low, high) = roofline.bounds_of(o, main_of(o))
    for i in range(len(o.values)):
        tops = sorted(v * roofs.PLOT[1] for v in table["r.top"][i])
        assert all(b - a >= roofline.APART - 1 for a, b in pairwise(tops))
        assert all(0 <= v <= 1 for v in (*table["r.left"][i], *table["r.top"][i]))
        assert all(left < math.log10(v) < right for v in (*table["r.x"][i], *table["r.left_at"][i]))
        assert all(low < math.log10(v) < high for v in table["r.top_at"][i])
        assert all(low < math.log10(v) < high for v in table["r.y"][i])
