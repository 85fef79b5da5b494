"""What stands beside a choice and below a picture: whose own way an overlap is, and the questions that come next."""

from urllib.parse import parse_qs, urlparse

import pytest

from app.catalog import TITLES, VIEWS
from app.markup import html_of
from app.overlap_words import overlap_line
from app.reading import overlaps
from app.state import State
from app.views.onward import NEXT, QUESTIONS, onward_line
from kvmodel import registry
from kvmodel.scenario import Scenario

ENGINES = [engine for engine in registry.engines().values() if engine.id != "ideal"]


@pytest.mark.parametrize("name", registry.engines())
def test_the_line_at_the_overlap_names_every_engine_that_sends_so_and_no_other(name):
    engine = registry.engines()[name]
    for overlap in overlaps(Scenario(engine=name)):
        said = html_of(overlap_line(Scenario(engine=name, overlap=overlap)))
        differs = name != "ideal" and engine.overlap != overlap
        assert (f"{overlap} is a what-if here" in said) == differs
        whose = said.partition("a what-if here")[2] if differs else said
        left = whose
        for other in sorted((e.name for e in ENGINES if e.overlap == overlap), key=len, reverse=True):
            assert other in left
            left = left.replace(other, "", 1)
        assert [e.name for e in ENGINES if e.name in left] == []
        assert len(said) < 260


def test_each_view_has_a_question_and_leads_to_others_with_its_scenario():
    assert set(QUESTIONS) == set(TITLES)
    assert set(NEXT) == set(VIEWS)
    for view, others in NEXT.items():
        assert view not in others
        line = onward_line(State(Scenario(link="ethernet-25", batch=4)), view)
        links = {child["children"][0]: urlparse(child["href"]) for child in line["children"] if child["tag"] == "a"}
        assert {url.path.removeprefix("./") or "one-request" for url in links.values()} == set(others)
        assert set(links) == {QUESTIONS[name] for name in others}
        assert all(parse_qs(url.query) == {"link": ["ethernet-25"], "batch": ["4"]} for url in links.values())
