"""The measured view as values: every published transfer, the model's curves and what is left between them."""

import math
from itertools import pairwise

import pytest

from app.charts import measured, measured_rows
from app.charts.scale import text_width
from app.charts.spec import fill, used
from app.over import evaluate_over
from app.palette import LIGHT
from app.seen import Seen
from app.state import State, from_link
from app.views.measured import picture, reach_of
from kvmodel import BadScenarioError, Scenario, registry
from kvmodel.display import time_text
from kvmodel.transport import predicted_seconds

SHOWN = measured.kept("roce-200", "all")


def drawn(shown=SHOWN, **fields):
    scenario = Scenario(**fields)
    table = measured.you_table(evaluate_over(scenario, "prompt_tokens", (scenario.prompt_tokens,)))
    return fill(measured.measured_figure(shown, reach_of(scenario)).wide, table, 0, LIGHT), table


def marks(figure):
    return [(x, y) for t in figure["data"] if t.get("mode") == "markers" and "customdata" in t for x, y in zip(t["x"], t["y"], strict=True)]


def test_every_row_with_bytes_a_time_and_a_transport_is_a_point():
    rows = [r for r in registry.measurements().values() if r.transport and r.bytes and r.time]
    assert len(measured.points()) == len(rows) > 150
    for p in measured.points():
        assert p.modelled == predicted_seconds(p.row, p.transport)


def test_points_stand_where_they_were_published_and_lead_to_their_page():
    figure, _ = drawn()
    for mark, p in zip(sorted(marks(figure)), sorted(SHOWN, key=lambda p: p.bytes), strict=True):
        assert mark == pytest.approx((p.bytes, p.seconds), rel=1e-3)
    links = [data[1] for t in figure["data"] if "customdata" in t for data in t["customdata"]]
    assert len(links) == len(SHOWN)
    assert all(link.startswith("https://") for link in links)


def test_curves_pass_where_the_model_puts_the_points():
    figure, _ = drawn()
    line = next(t for t in figure["data"] if t.get("mode") == "lines")
    for p in SHOWN:
        near = min(range(len(line["x"])), key=lambda i: abs(math.log(line["x"][i] / p.bytes)))
        assert line["y"][near] == pytest.approx(p.modelled, rel=0.35)


@pytest.mark.parametrize("shown", [SHOWN, measured.kept("ib-ndr-400", "all"), measured.points()])
def test_names_of_curves_stand_apart_before_every_line_and_mark(shown):
    figure = measured.measured_figure(shown, reach_of(Scenario()))
    for layout, narrow in ((figure.wide, False), (figure.narrow, True)):
        names = next(t for t in layout["data"] if t.get("mode") == "text")
        first = min(x for t in layout["data"] if t.get("mode") in ("lines", "markers") for x in t["x"])
        low, high = layout["layout"]["xaxis"]["range"]
        pixels = (math.log10(first) - low) / (high - low) * measured.NARROWEST[narrow]
        assert {*names["x"]} == {first}
        assert pixels > max(text_width(text, 12 if narrow else 13) for text in names["text"])
        per_pixel = (layout["layout"]["yaxis"]["range"][1] - layout["layout"]["yaxis"]["range"][0]) / 368
        assert all(math.log10(a / b) >= 0.999 * measured.ROW * per_pixel for a, b in pairwise(names["y"]))
        key = layout["layout"]["annotations"][-1]["text"]
        assert all(measured.SHORT.get(p.transport.id, p.transport.id) in key for p in shown)


def test_you_stand_at_your_bytes_and_time():
    figure, table = drawn()
    assert 10 ** table["m.x"][0] == pytest.approx(2_684_354_560, rel=1e-3)
    assert 10 ** table["m.y"][0] == pytest.approx(0.0537, rel=1e-2)
    (x0, x1), (y0, y1) = figure["layout"]["xaxis"]["range"], figure["layout"]["yaxis"]["range"]
    assert x0 < table["m.x"][0] < x1
    assert y0 < table["m.y"][0] < y1
    assert drawn(decode_held_tokens=8192)[1]["m.text"] == [""]


def test_residuals_are_measured_over_modelled_and_ideal_lies_above_one():
    figure = fill(measured.residual_figure(SHOWN).wide, {}, 0, LIGHT)
    assert sorted(y for _, y in marks(figure)) == pytest.approx(sorted(p.ratio for p in SHOWN), rel=1e-3)
    assert all(y > 1 for y in figure["data"][0]["y"])


def test_the_sentence_counts_what_is_close():
    close = sum(abs(p.modelled / p.seconds - 1) <= 0.25 for p in SHOWN)
    said = "".join(text for text, _ in measured.sentence(SHOWN, "near here"))
    assert said.startswith(f"The model is within 25\u202f% of {close} of {len(SHOWN)} published transfers near here")
    assert "times too fast" in said
    assert measured.sentence([], "near here")[0][0].startswith("No published transfer")


def test_the_table_lists_the_worst_first_with_a_link():
    body = measured_rows.rows_block(SHOWN)["children"][0]["children"][1]["children"]
    assert len(body) == len(SHOWN)
    worst = max(SHOWN, key=lambda p: abs(math.log(p.ratio)))
    assert body[0]["children"][0]["children"][0]["href"] == worst.row.source
    assert body[0]["children"][2]["children"] == [time_text(worst.seconds)]


@pytest.mark.parametrize(("asked", "link", "count"), [("yours", "roce-200", 9), ("all", "roce-200", 160), ("yours", "wan-100", 160)])
def test_the_filter_follows_the_link_and_shows_all_where_nothing_was_measured(asked, link, count):
    board = picture(State(Scenario(link=link), seen=Seen(measured_link=asked)))
    body = board.views["rows_view"]["items"][1]["children"][0]["children"][1]["children"]
    assert len(body) == (len(measured.points()) if count == 160 else count)


def test_the_filter_is_in_the_link_and_refuses_what_is_not_there():
    state = from_link({"measured_link": "all", "measured_engine": "vllm-mooncake"})
    assert state.query() == "measured_link=all&measured_engine=vllm-mooncake"
    assert "measured_link" in from_link({"measured_link": "nowhere"}).notes[0]
    with pytest.raises(BadScenarioError, match=r"^measured_engine: got "):
        Seen(measured_engine="none")


def test_every_placeholder_has_its_column():
    _, table = drawn()
    assert used(measured.measured_figure(SHOWN, reach_of(Scenario())).item()) == set(table)


def test_what_is_no_transfer_of_bytes_is_said_beside_the_models_own():
    said = " ".join(item["children"][0] for item in measured_rows.elsewhere_block()["children"])
    assert "kvwire gains 1.92 times" in said
    assert "= 1.92 times" in said
    assert "95.0\u202f% of its ceiling with messages of 12.3\u202fkB" in said
    knee = 0.61e-6 * 0.8 * 50e9
    assert measured_rows._knee("transfer-engine") == pytest.approx(knee, rel=0.05)
