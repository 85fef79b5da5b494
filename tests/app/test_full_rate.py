"""Links that are equal under the ideal engine alone: what engines reach of them is said where they stand side by side."""

import json

import pytest

from app.charts.full_rate import full_rate_text, named
from app.charts.links import drawn_links, link_rows
from app.state import State
from app.views import critical_length, interconnects
from kvmodel import Scenario, registry

SAID = (
    "* Ideal has every link at its full rate, whatever carries it. Engines reach at most 97.0\u202f% of RoCE 100 (RDMA), "
    "80.0\u202f% of WAN 100 (between sites) and 38.0\u202f% of Ethernet 100 (kernel TCP)."
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
    links = registry.links()
    assert named(links["ethernet-100"], scenario) == "Ethernet 100 at its full rate"
    assert named(links["ethernet-100"], Scenario(engine="vllm-nixl")) == "Ethernet 100"
    assert named(links["roce-100"], scenario) == "RoCE 100"
