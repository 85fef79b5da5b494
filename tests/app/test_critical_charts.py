"""Charts and table of critical lengths as values."""

import numpy as np
import pytest

from app.catalog import VIEWS
from app.charts import critical, links, ratio
from app.charts.hiding import Reach, names_text
from app.charts.spec import fill, used
from app.over import token_positions
from app.palette import LIGHT
from app.state import State
from app.views import critical_length
from kvmodel import evaluate, registry
from kvmodel.display import time_text
from tests.app.test_charts import over


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
    block = links.hides_block(o.scenario, rows)
    assert "Hides layer by layer" in str(block)
    assert block["children"][0]["children"][1]["children"] == ["NDR 400: every prompt"]


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


def test_every_link_is_named_by_a_line_that_is_pointed_at():
    o, rows, own, table = critical_view()
    figure = critical.critical_figure(own, table, links.drawn_links(o.scenario, rows), None, rows)
    for layout in (figure.wide, figure.narrow):
        told = "".join(t["hovertemplate"] for t in layout["data"] if "name" in t)
        assert all(row.name in told or row.short in told for row in rows if row.id != own.id)
    page = str(VIEWS["critical-length"].at(State()).views["critical_view"]["items"])
    assert critical_length.UNNAMED in page


def test_the_ratio_is_flat_until_attention_outgrows_the_bytes():
    o, _, _, table = critical_view(model="llama-3.1-8b", prefill_tp=1, decode_tp=1)
    values = dict(zip(table["c.tokens"], table["r.ratio"], strict=True))
    assert values[4096] == pytest.approx(values[2048], rel=0.15)
    assert values[1_048_576] < values[8192] / 3
    assert ratio.ratio_text(table).startswith("The ratio rises from ")
    assert ratio.ratio_text({"c.tokens": [128, 256], "r.ratio": [0.5, 0.5]}) == "The ratio is flat: no prompt has it above 50.0\u202f%."
    assert "falls from 50.0" in ratio.ratio_text({"c.tokens": [128, 256], "r.ratio": [0.5, 0.1]})
    assert fill(ratio.ratio_figure(table).wide, table, o.at, LIGHT)["data"][0]["y"] == table["r.ratio"]


def test_links_are_listed_by_what_a_reader_compares_with_the_chosen_one_bold():
    # 2.5 us a message on NVLink against 0.29 us: with block after block a link of half the bandwidth comes first
    o, rows, _, table = critical_view(engine="vllm-nixl", link="nvlink-4", lanes="auto")
    seconds = {row.id: table[f"c.{row.id}"][o.at] for row in rows}
    block = links.links_block(o.scenario, rows, seconds)
    body = block["children"][0]["children"][1]["children"]
    listed = [next(row for row in rows if row.name == line["children"][0]["children"][0]) for line in body]
    critical = [row.critical or np.inf for row in listed]
    assert critical == sorted(critical, reverse=True)
    assert [row.bandwidth for row in listed] != sorted((row.bandwidth for row in rows), reverse=True)
    assert [row["class"] for row in body].count("kv-chosen") == 1
    assert used(block) == {f"c.text.{row.id}" for row in rows}
    names = [row.name for row in rows if row.id.endswith("-100")]
    assert names == ["RoCE 100 (RDMA)", "WAN 100 (between sites)", "Ethernet 100 (kernel TCP)"]


@pytest.mark.parametrize(
    ("spans", "words"),
    [
        ((), "no prompt"),
        (((1, 1_048_576),), "every prompt"),
        (((1, 832),), "up to 832"),
        (((1, 92), (51_779, 1_048_576)), "up to 92 and from 51,800"),
    ],
)
def test_what_can_hide_is_said_in_a_few_words(spans, words):
    assert links.hidden_text([links.Interval(*span) for span in spans]) == words


def test_the_links_that_hide_this_prompt_are_named_as_their_bound_says():
    o, rows, _, table = critical_view(prompt_tokens=32_768)
    said = table["c.hiding"][o.at]
    assert said.startswith("Layer by layer, prefill hides a prompt of 32,768 tokens between nodes on XDR 800")
    for row in rows:
        if registry.links()[row.id].scope != "same-node":
            reach = 0.38 if row.id == "ethernet-100" else None  # of kernel TCP
            bound = evaluate(o.scenario.with_changes(link=row.id, overlap="layer", achieved=reach)).bound
            assert (f" {row.short}," in said.replace(".", ",")) == (bound == "hidden"), row.id
    assert names_text(Reach((), "", 13, whole=True), 8) == "Layer by layer, prefill hides a prompt of 8 tokens between nodes on no link."
