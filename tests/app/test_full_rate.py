"""Links that are equal under the ideal engine alone: what engines reach of them is said where they stand side by side."""

import json

import pytest

from app.charts.full_rate import as_reached, full_rate_text
from app.charts.interconnects import COLUMNS, EXPOSED, interconnects_table
from app.charts.interconnects import drawn_links as drawn_rows
from app.charts.links import drawn_links, link_rows
from app.state import State
from app.views import critical_length, interconnects
from kvmodel import Scenario, evaluate, registry

SAID = (
    "* Ideal has every link at its full rate, whatever carries it. Engines reach at most 97.0\u202f% of RoCE 100 (RDMA), "
    "80.0\u202f% of WAN 100 (between sites) and 38.0\u202f% of Ethernet 100 (kernel TCP); what hides on Ethernet 100 is told at that rate."
)


@pytest.mark.parametrize(("engine", "said"), [("ideal", SAID), ("vllm-nixl", "")])
def test_equal_rows_are_explained_beside_the_ideal_engine_alone(engine, said):
    state = State(Scenario(engine=engine))
    assert full_rate_text(state.scenario) == said
    for board in (interconnects.picture(state), critical_length.picture(state, (8192, 16_384))):
        text = json.dumps([view["items"] for view in board.views.values()], ensure_ascii=False)
        assert ("has every link at its full rate" in text) == bool(said)


def test_of_links_of_one_rate_the_one_that_reaches_it_gives_its_name():
    scenario = Scenario()
    assert "RoCE 100" in [row.short for row in drawn_links(scenario, link_rows(scenario))]
    mine = scenario.with_changes(link="ethernet-100")
    assert "Ethernet 100" in [row.short for row in drawn_links(mine, link_rows(mine))]


def test_what_hides_is_told_at_a_rate_that_something_drives():
    """32k of Llama 3 70B: 10.7 GB in 0.859 s at 12.5 GB/s, in 2.26 s at 38 % of it, beside 1.6 s of prefill."""
    own = Scenario(link="ethernet-100", prompt_tokens=32_768, overlap="layer")
    reached = as_reached(own)
    assert reached.achieved == registry.links()["ethernet-100"].achieved
    assert (evaluate(own).bound, evaluate(reached).bound) == ("hidden", "link")
    for other in (own.with_changes(engine="vllm-nixl"), own.with_changes(link="roce-100"), own.with_changes(achieved=0.9)):
        assert as_reached(other) == other
    assert as_reached(own.with_changes(link_gbytes_per_s=12.0)).link_gbytes_per_s == 12.0


@pytest.mark.parametrize("link", ["ib-ndr-400", "ethernet-100", "roce-100", "wan-100"])
def test_ticks_and_the_answer_say_the_same_of_every_nic_whichever_is_chosen(link):
    scenario = Scenario(link=link, prompt_tokens=32_768)
    table = interconnects_table(scenario, "prompt_tokens", (32_768,))
    assert "prefill hides 32,768 tokens on RoCE 100 or faster" in table["answer.text"][0]
    says = {row.id: table["i.says"][0][k * len(COLUMNS["w"])] for k, row in enumerate(drawn_rows(scenario))}
    assert all((EXPOSED in said) == (name in ("ethernet-100", "ethernet-25", "ethernet-10")) for name, said in says.items())
    assert link in says
    if link == "ethernet-100":
        assert says[link].endswith("at what engines reach")
