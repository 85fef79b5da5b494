"""Quantities as text: every prefix, and nothing of another dimension."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel import BadQuantityError, parse_quantity

SI = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
IEC = {"Ki": 1024, "Mi": 1024**2, "Gi": 1024**3, "Ti": 1024**4}
DIMENSIONS = ("B", "B/s", "s", "FLOP", "FLOP/s", "parameters", "1")


@pytest.mark.parametrize(("prefix", "factor"), SI.items())
def test_si_prefixes_are_powers_of_a_thousand(prefix: str, factor: int) -> None:
    assert parse_quantity(f"3 {prefix}B", "B") == 3 * factor
    assert parse_quantity(f"3 {prefix}B/s", "B/s") == 3 * factor
    assert parse_quantity(f"8 {prefix}b", "B") == factor
    assert parse_quantity(f"8 {prefix}b/s", "B/s") == factor
    assert parse_quantity(f"3 {prefix}FLOP", "FLOP") == 3 * factor
    assert parse_quantity(f"3 {prefix}FLOP/s", "FLOP/s") == 3 * factor


@pytest.mark.parametrize(("prefix", "factor"), IEC.items())
def test_binary_prefixes_are_powers_of_1024_and_count_bytes_only(prefix: str, factor: int) -> None:
    assert parse_quantity(f"3 {prefix}B", "B") == 3 * factor
    assert parse_quantity(f"3 {prefix}B/s", "B/s") == 3 * factor
    for text, unit in ((f"3 {prefix}FLOP", "FLOP"), (f"3 {prefix}b", "B"), (f"3 {prefix}s", "s")):
        with pytest.raises(BadQuantityError):
            parse_quantity(text, unit)


@pytest.mark.parametrize(("text", "seconds"), [("5 s", 5), ("5 ms", 5e-3), ("5 us", 5e-6), ("5 µs", 5e-6), ("5 ns", 5e-9)])
def test_seconds(text: str, seconds: float) -> None:
    assert parse_quantity(text, "s") == pytest.approx(seconds, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("70.6 B", "parameters", 70.6e9),
        ("1 T", "parameters", 1e12),
        ("137 M", "parameters", 137e6),
        ("73 %", "1", 0.73),
        ("0.73", "1", 0.73),
    ],
)
def test_counts_and_shares(text: str, unit: str, value: float) -> None:
    assert parse_quantity(text, unit) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize("text", ["400 Gb/s", "400Gb/s", "50 GB/s", "50GB/s", "0.4 Tb/s", " 50  GB/s ", "5e10 B/s"])
def test_a_link_of_400_gigabits_carries_5_gb_in_a_tenth_of_a_second(text: str) -> None:
    # bits and bytes differ by 8: pytorch/torchcomms#140, NVIDIA/nccl-tests#361
    assert 5_000_000_000 / parse_quantity(text, "B/s") == pytest.approx(0.1, rel=1e-12)


def test_gb_and_gib_keep_apart() -> None:
    # 10 x 2^30 bytes are 10 GiB and 10.737 GB (redhat-performance/configiq#112)
    assert parse_quantity("10 GiB", "B") == 10_737_418_240
    assert parse_quantity("10.73741824 GB", "B") == pytest.approx(10_737_418_240, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("400", "B/s"), ("80", "B"), ("5", "s"), ("989", "FLOP/s"), ("70", "parameters"),
        ("80 GB", "B/s"), ("50 GB/s", "B"), ("5 ms", "B"), ("80 gb", "B"), ("80 KB", "B"), ("80 GBs", "B"),
        ("8,192 B", "B"), ("0,8 s", "s"), ("1_000 B", "B"), ("NaN B", "B"), ("inf B", "B"), ("", "B"), ("GB", "B"), ("3 3 GB", "B"),
        ("٣ GB", "B"),
    ],
)  # fmt: skip
def test_a_bare_number_another_dimension_or_no_number_is_refused(text: str, unit: str) -> None:
    with pytest.raises(BadQuantityError, match=f"expected a quantity in {re.escape(unit)}, such as .*, got {re.escape(repr(text))}"):
        parse_quantity(text, unit)


def test_a_number_that_is_no_text_is_refused() -> None:
    with pytest.raises(BadQuantityError):
        parse_quantity(400, "B/s")  # type: ignore[arg-type]


@pytest.mark.parametrize("unit", DIMENSIONS)
def test_the_example_of_a_refusal_is_accepted(unit: str) -> None:
    with pytest.raises(BadQuantityError) as refused:
        parse_quantity("nonsense", unit)
    example = re.search(r"such as '([^']+)'", str(refused.value))
    assert example is not None
    assert parse_quantity(example[1], unit) != 0


@given(st.text(max_size=20), st.sampled_from(DIMENSIONS))
def test_any_text_is_read_or_refused_by_name(text: str, unit: str) -> None:
    try:
        read = parse_quantity(text, unit)
    except BadQuantityError as error:
        read, refusal = None, str(error)
    assert repr(text) in refusal if read is None else isinstance(read, float)


@given(st.floats(0, 1e15), st.sampled_from(sorted({**SI, **IEC})))
def test_a_quantity_survives_being_written(value: float, prefix: str) -> None:
    assert parse_quantity(f"{value!r} {prefix}B", "B") == value * {**SI, **IEC}[prefix]


@pytest.mark.parametrize("text", ["400 Gb/s", "400Gbps", "400 Gbit/s", "50 GB/s", "50GB/s", "0.4 Tb/s"])
def test_a_link_is_read_as_people_write_it(text: str) -> None:
    assert parse_quantity(text, "B/s") == 50e9


def test_a_link_without_a_unit_is_refused() -> None:
    with pytest.raises(BadQuantityError, match="B/s"):
        parse_quantity("400", "B/s")
