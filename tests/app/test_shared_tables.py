"""Tables are made once for all scenarios that differ in the slider alone: what they hold does not depend on where it stands."""

from urllib.parse import parse_qsl

import pytest

from app import over
from app.catalog import VIEWS
from app.over import positions_of
from app.state import State, from_link

LINKS = (
    "overlap=layer&link=ethernet-25&prompt_tokens=512",
    "model=gemma-3-27b&engine=vllm-nixl&decode_held_tokens=3000&batch=4",
    "model=deepseek-v3&overlap=layer-group&link=ib-ndr-400&pin=link%3Dethernet-25%26batch%3D2&history_tokens=90000",
)


def fresh(state: State, view: str, name: str, values: tuple[int, ...], form: object) -> dict[str, list[object]]:
    over.over_values.cache_clear()
    return VIEWS[view].tables(state, name, values, form)


@pytest.mark.parametrize("query", LINKS)
@pytest.mark.parametrize("view", VIEWS)
def test_a_table_is_the_same_from_wherever_its_slider_stands(view: str, query: str) -> None:
    state = from_link(dict(parse_qsl(query)))
    assert not state.notes
    for name in VIEWS[view].sliders:
        values = positions_of(name, state.value(name))
        form = VIEWS[view].form(state)
        here = fresh(state, view, name, values, form)
        assert here == VIEWS[view].tables(state, name, values)
        for value in (values[-1], values[len(values) // 3]):
            assert fresh(state.moved(name, value), view, name, values, form) == here
