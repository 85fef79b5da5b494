"""The tornado as values: bars are what inputs move, on one scale, and stay in their panel."""

import pytest

from app.charts import tornado
from app.charts.scale import NARROW, WIDE, text_width
from app.charts.spec import fill
from app.over import evaluate_over
from app.palette import LIGHT
from kvmodel import Scenario
from kvmodel.sensitivity import order_of, sensitivity

CASES = [{}, {"overlap": "layer"}, {"link": "ethernet-10", "engine": "vllm-nixl"}, {"decode_held_tokens": 8192}, {"prompt_tokens": 1}]


@pytest.mark.parametrize("fields", CASES)
@pytest.mark.parametrize("prefix", ["w", "n"])
def test_bars_are_to_scale_and_their_words_fit(fields, prefix):
    scenario = Scenario(**fields)
    order = order_of(scenario)
    table = tornado.tornado_table(scenario, "prompt_tokens", [scenario.prompt_tokens], order)
    layout = tornado.tornado_figure(order)
    figure = fill(layout.wide if prefix == "w" else layout.narrow, table, 0, LIGHT)
    bars, words = figure["data"]
    found = {turned.field: turned for turned in sensitivity(scenario)}
    seconds = [float(getattr(found[name], f"{way}_seconds")[0]) for way in ("half", "twice") for name in order]
    unit = max(bars["x"], key=abs) / max(seconds, key=abs)
    assert bars["x"] == pytest.approx([s * unit for s in seconds], abs=1)
    assert all(0 <= bars["base"] + x <= tornado.SCALE for x in bars["x"])
    spread = [abs(a - b) for a, b in zip(seconds[: len(order)], seconds[len(order) :], strict=True)]
    assert spread == sorted(spread, reverse=True)
    left, pixels, size = (160, WIDE - 160, 13) if prefix == "w" else (0, NARROW, 12)
    for text, x, place in zip(words["text"], words["x"], words["textposition"], strict=True):
        start = left + x / tornado.SCALE * pixels
        wide = text_width(text, size)
        assert start + {"middle left": -wide, "middle center": -wide / 2, "middle right": 0}[place] >= -6
        assert start + {"middle left": 0, "middle center": wide / 2, "middle right": wide}[place] <= left + pixels + 6


@pytest.mark.parametrize("fields", CASES)
def test_the_sentence_names_what_moves_most_and_fits(fields):
    scenario = Scenario(**fields)
    order = order_of(scenario)
    text = tornado.tornado_table(scenario, "prompt_tokens", [scenario.prompt_tokens], order)["answer.text"][0]
    assert text.startswith(f"{tornado.INPUTS[order[0]]} moves the first token most, ")
    assert len(text) <= 125


def test_rows_say_now_half_twice_and_the_flip():
    scenario = Scenario(overlap="layer", prefill_seconds=0.4)
    order = order_of(scenario)
    table = tornado.tornado_table(scenario, "prompt_tokens", [8192], order)
    k = order.index("link_gbytes_per_s")
    assert table["k.now"][0][k] == "50.0\u202fGB/s"
    assert table["k.flip"][0][k] == "link-bound from 6.71\u202fGB/s down"
    assert table["k.flip"][0][order.index("decode_batch")] == "does not flip"


def test_the_verdict_that_flips_is_said_as_it_is_now():
    for fields, said in (
        ({"prefill_seconds": 0.4, "decode_step_seconds": 0.02}, "Now: nothing hides the wire, and the gap is 11.3\u202f% of TTFT."),
        (
            {"overlap": "layer", "prefill_seconds": 0.4, "decode_step_seconds": 0.02},
            "Now: the wire hides, and the gap is 0.160\u202f% of TTFT.",
        ),
        ({"decode_held_tokens": 8192}, "Now: nothing moves, and the gap is 0\u202f% of TTFT."),
    ):
        scenario = Scenario(**fields)
        over = evaluate_over(scenario, "prompt_tokens", (8192,))
        assert tornado.verdict_table(over) == {"k.verdict": [said]}
