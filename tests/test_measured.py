"""Published measurements as rows: sourced, dated, in units, and the same numbers as the published table."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from kvmodel import KvModelError
from kvmodel.records.measurement import Measurement
from kvmodel.registry import engines, links, measurement_rows, measurements, transports, validated
from tests.published_rows import read_table

ROWS = list(measurements().values())
ROW = {
    "id": "series/row",
    "source": "https://example.org/page",
    "checked": date(2026, 11, 29),
    "category": "link_bw",
    "confidence": "high",
    "seconds": "5 ms",
}


def test_every_row_names_its_page_and_a_day() -> None:
    for row in ROWS:
        assert row.source.startswith("https://"), row.id
        assert " " not in row.source, row.id
        assert date(2026, 1, 1) < row.checked, row.id


def test_rows_of_a_series_share_its_page_and_have_names_of_their_own() -> None:
    by_series: dict[str, set[str]] = {}
    for row in ROWS:
        by_series.setdefault(row.series, set()).add(row.source)
    assert all(len(sources) == 1 for sources in by_series.values())
    assert list(by_series) == sorted(by_series)


def test_links_engines_and_transports_that_rows_name_exist() -> None:
    for row in ROWS:
        assert row.near is None or row.near in links(), row.id
        assert row.engine is None or row.engine in engines(), row.id
        assert row.transport is None or row.transport in transports(), row.id


def test_a_row_with_bytes_and_a_time_is_predicted_by_a_transport() -> None:
    assert [row.id for row in ROWS if row.time and row.transport is None] == []


def test_a_prompt_of_the_h800_table_weighs_what_its_model_says() -> None:
    # Qwen3-8B: 36 layers x 2 x 8 heads x 128 x 2 B = 147,456 B a token; above 4k the table's GB are GiB
    row = measurements()["mooncake-vllm-h800/32768 tokens"]
    assert row.bytes == 32_768 * 147_456
    assert row.rate == pytest.approx(152.66e9, rel=1e-4)
    assert row.ideal_seconds == pytest.approx(24.16e-3, rel=1e-3)


def test_messages_times_their_size_are_the_bytes() -> None:
    both = [row for row in ROWS if row.bytes and row.messages and row.message_bytes]
    assert len(both) >= 50
    for row in both:
        assert row.messages * row.message_bytes == row.bytes, row.id  # type: ignore[operator]


def test_no_rate_passes_the_nominal_one() -> None:
    assert [row.id for row in ROWS if row.rate and row.nominal and row.rate > row.nominal] == []


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"seconds": 0.005}, "expected a quantity in s"),
        ({"seconds": "5 GB"}, "expected a quantity in s"),
        ({"bytes": "5 ms"}, "expected a quantity in B"),
        ({"source": "a page"}, "source"),
        ({"checked": None}, "checked"),
        ({"category": "hearsay"}, "category"),
        ({"confidence": "perhaps"}, "confidence"),
        ({"seconds": None}, "states neither seconds"),
        ({"nominal": "50 GB/s"}, "nominal and nominal_source"),
        ({"speed": "50 GB/s"}, "speed"),
    ],
)
def test_a_row_without_unit_page_day_or_number_is_refused(changes: dict[str, object], says: str) -> None:
    validated("rows.toml", [ROW], Measurement)
    with pytest.raises(KvModelError, match=says):
        validated("rows.toml", [{**ROW, **changes}], Measurement)


def test_a_row_takes_what_its_series_says_unless_it_says_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "measurements.toml"
    path.write_text('[[series]]\nid = "s"\nnics = 8\nrows = [{at = "a"}, {at = "b", nics = 1}]\n', encoding="utf-8")
    assert list(measurement_rows(path)) == [{"id": "s/a", "nics": 8}, {"id": "s/b", "nics": 1}]


def test_overlap_and_knee_of_kvwire_are_there() -> None:
    assert measurements()["kvwire-overlap/equal times"].speed_up == 1.92
    knee = measurements()["kvwire-knee/knee"]
    assert (knee.message_bytes, knee.share_of_ceiling) == (12_288, 0.95)


def same(a: Measurement, b: Measurement) -> bool:
    """Whether two rows state the same time, or the same rate as far as it is printed, of the same bytes."""
    if a.bytes and b.bytes and a.bytes != b.bytes:
        return False
    times = a.seconds and b.seconds and a.seconds == pytest.approx(b.seconds, rel=1e-3)
    return bool(times or (a.rate and b.rate and a.rate == pytest.approx(b.rate, rel=0.02)))


def test_every_row_of_the_published_table_is_here(shared: Path) -> None:
    table = read_table(shared / "measured" / "measurements.csv")
    assert [row.id for row in table if not any(same(row, ours) for ours in ROWS)] == []
