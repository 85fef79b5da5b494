"""Records: frozen, nothing unknown, quantities with units, layers in their order."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from pydantic import ValidationError

from kvmodel import Accelerator, Engine, Link, ModelSpec, Scenario
from kvmodel import registry as data
from kvmodel.records.base import Record, Sourced
from kvmodel.records.derates import Derates
from kvmodel.turn import Turn

SOURCED = {"source": "a page", "checked": "2026-11-29"}
FULL = {"kind": "full", "q_heads": 8, "kv_heads": 8, "k_dim": 64, "v_dim": 64}


def model(**changes: Any) -> ModelSpec:
    fields = {"id": "m", "name": "M", "family": "f", "hidden": 512, "vocab": 1000, **SOURCED}
    return ModelSpec.model_validate({**fields, "groups": [{"count": 4, "attention": FULL}], **changes})


def link(**changes: Any) -> Link:
    row = data.links()["ib-ndr-400"].model_dump(mode="json")
    return Link.model_validate({**row, "bandwidth": "400 Gb/s", "latency": "11 us", "message_seconds": "0.29 us", **changes})


def every_record() -> list[type[Record]]:
    found, todo = [], [Record]
    while todo:
        for kind in todo.pop().__subclasses__():
            found.append(kind)
            todo.append(kind)
    return found


@pytest.mark.parametrize("record", [Accelerator, Derates, Engine, Link, ModelSpec, Scenario, Turn])
def test_every_field_of_a_record_says_what_it_is(record: type[Record]) -> None:
    silent = [name for name, field in record.model_fields.items() if not field.description]
    assert silent in ([], ["name"])  # an engine's name says itself, as a link's does not


def test_every_record_is_frozen_and_refuses_unknown_fields() -> None:
    assert len(every_record()) > 15
    for record in every_record():
        assert record.model_config["frozen"] is True
        assert record.model_config["extra"] == "forbid"


def test_a_row_cannot_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        data.links()["ib-ndr-400"].bandwidth = 1.0  # type: ignore[misc]


@pytest.mark.parametrize("missing", ["source", "checked"])
def test_a_row_without_its_source_or_date_is_refused(missing: str) -> None:
    with pytest.raises(ValidationError, match=missing):
        model(**{missing: None})
    assert issubclass(Link, Sourced)


@pytest.mark.parametrize("value", ["400", 400, 4e11, "400 GB", "-1 GB/s", "0 GB/s", True])
def test_a_bandwidth_without_its_unit_or_below_zero_is_refused(value: object) -> None:
    with pytest.raises(ValidationError, match="bandwidth"):
        link(bandwidth=value)


def test_quantities_arrive_in_base_units() -> None:
    row = link(bandwidth="400 Gb/s", latency="11 us")
    assert row.bandwidth == 50e9
    assert row.latency == pytest.approx(11e-6)


@pytest.mark.parametrize(
    ("field", "value"), [("achieved", 0.0), ("achieved", 1.01), ("scope", "rack"), ("achieved_source", ""), ("speed", 1)]
)
def test_a_link_with_a_field_out_of_range_or_unknown_is_refused(field: str, value: object) -> None:
    with pytest.raises(ValidationError, match=field):
        link(**{field: value})


def group(name: str, count: int, **attention: Any) -> dict[str, Any]:
    return {"name": name, "count": count, "attention": {**FULL, **attention}}


def test_groups_without_an_order_follow_one_another() -> None:
    assert model(groups=[group("a", 2), group("b", 3)]).sequence == (0, 0, 1, 1, 1)


def test_an_order_repeats_until_all_layers_are_placed() -> None:
    spec = model(groups=[group("local", 5), group("global", 2)], order=["local*2", "global"])
    assert spec.sequence == (0, 0, 1, 0, 0, 1, 0)
    assert spec.layers == 7


@pytest.mark.parametrize(
    ("groups", "order", "words"),
    [
        ([group("a", 2), group("b", 2)], ["a", "c"], "'c'"),
        ([group("a", 2), group("b", 2)], ["a", "a", "b"], "places 3 of 2 'a' layers"),
        ([group("a", 2), group("a", 2)], [], "names of their own"),
        ([], [], "at least 1"),
        ([group("a", 0)], [], "greater than or equal to 1"),
    ],
)
def test_layers_that_do_not_add_up_are_refused(groups: list[dict[str, Any]], order: list[str], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        model(groups=groups, order=order)


def test_an_attention_kind_takes_its_own_fields_only() -> None:
    with pytest.raises(ValidationError, match="window"):
        model(groups=[group("a", 2, window=4)])
    with pytest.raises(ValidationError, match="kind"):
        model(groups=[group("a", 2, kind="quadratic")])


def test_equal_models_are_one_key() -> None:
    assert hash(model()) == hash(model())
    assert {model(): 1}[model()] == 1
    assert model() != model(hidden=1024)


def test_the_public_records_have_docstrings() -> None:
    assert all(inspect.getdoc(record) for record in every_record() if not record.__name__.startswith("_"))
