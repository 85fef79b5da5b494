"""The rows of class defaults and refusals."""

from __future__ import annotations

from collections import Counter

from kvmodel.config.families import UNKNOWN, Family, families, family_of
from kvmodel.config.refusals import Refusal
from kvmodel.config.spellings import CANONICAL, SPELLINGS
from kvmodel.registry import data_folder, read_rows

ROWS = read_rows(data_folder() / "config_defaults.toml", "family", Family)
REFUSALS = read_rows(data_folder() / "config_refusals.toml", "refusal", Refusal)


def test_a_model_type_is_read_or_refused_by_one_row() -> None:
    named = [name for row in ROWS for name in (row.id, *row.same_as)] + [name for row in REFUSALS for name in row.model_types]
    assert [name for name, count in Counter(named).items() if count > 1] == []


def test_every_row_links_to_the_class_it_was_read_from() -> None:
    assert all(row.source.startswith("https://") for row in (*ROWS, *REFUSALS))


def test_defaults_stand_under_their_usual_key() -> None:
    assert [(row.id, key) for row in ROWS for key in row.defaults if key in CANONICAL] == []


def test_a_spelling_stands_for_one_field() -> None:
    spelled = Counter(other for others in SPELLINGS.values() for other in others)
    assert [name for name, count in spelled.items() if count > 1] == []
    assert not set(SPELLINGS) & set(CANONICAL)


def test_a_text_model_is_read_as_its_family() -> None:
    assert family_of("gemma3").id == family_of("gemma3_text").id == "gemma3_text"
    assert family_of("qwen3_text").id == "qwen3"
    assert family_of("newcomer") is UNKNOWN
    assert len(families()) >= 120
