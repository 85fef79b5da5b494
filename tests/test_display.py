"""Numbers as people read them: three significant digits, halves up, SI units."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel import display
from kvmodel.display import MINUS, NARROW_SPACE

UNIT_SECONDS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}
UNIT_BYTES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "PB": 10**15}


def number_and_unit(text: str) -> tuple[float, str]:
    number, unit = text.split(NARROW_SPACE)
    return float(number.replace(",", "").replace(MINUS, "-")), unit


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3.125, "3.13"), (0.0625, "0.0625"), (0.06255, "0.0626"), (20, "20.0"), (1, "1.00"), (999.4, "999"), (999.5, "1,000"),
        (12_345, "12,300"),
        (1_234_500, "1,230,000"), (0, "0"), (-0.5, "−0.500"), (2.685, "2.69"), (9.995, "10.0"),
    ],
)  # fmt: skip
def test_three_significant_digits_halves_up_trailing_zeros_kept(value: float, text: str) -> None:
    assert display.digits(value) == text


def test_what_never_ends_is_infinite() -> None:
    assert display.digits(float("inf")) == "∞"


@given(st.floats(1e-9, 1e15))
def test_a_number_is_shown_within_half_a_unit_of_its_third_digit(value: float) -> None:
    shown = float(display.digits(value).replace(",", ""))
    assert shown == pytest.approx(value, rel=5.001e-3)
    assert len(display.digits(value).replace(",", "").replace(".", "").strip("0")) <= 3


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"), (1, "1.00 s"), (10.5, "10.5 s"), (0.9995, "1.00 s"), (0.9994, "999 ms"), (0.0536870912, "53.7 ms"),
        (0.000671, "0.671 ms"),
        (0.0001, "0.100 ms"), (0.00009, "90.0 µs"), (3e-7, "0.300 µs"), (-0.0536870912, "−53.7 ms"),
    ],
)  # fmt: skip
def test_time_is_in_seconds_from_one_and_milliseconds_from_a_tenth(seconds: float, text: str) -> None:
    assert display.time_text(seconds) == text.replace(" ", NARROW_SPACE)


@given(st.floats(1e-8, 1e6))
def test_a_time_reads_back_within_its_digits(seconds: float) -> None:
    number, unit = number_and_unit(display.time_text(seconds))
    assert number * UNIT_SECONDS[unit] == pytest.approx(seconds, rel=5.001e-3)


def test_numbers_read_together_share_the_unit_of_the_largest() -> None:
    assert display.shared_time_unit(0.2, 0.0537)[0] == "ms"
    assert display.shared_time_unit(10.4, 0.0537, 0.4)[0] == "ms"  # within 1,000 of each other, so none shrinks to 0.05 s
    assert display.shared_time_unit(10.4, 2.0)[0] == "s"
    assert display.shared_time_unit(0.0)[0] == "s"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"), (352, "352 B"), (999, "999 B"), (1000, "1.00 kB"), (327_680, "328 kB"), (2_684_354_560, "2.68 GB"),
        (999_500, "1.00 MB"), (1.41e11, "141 GB"),
    ],
)  # fmt: skip
def test_bytes_are_si(count: float, text: str) -> None:
    assert display.bytes_text(count) == text.replace(" ", NARROW_SPACE)


@given(st.floats(1000, 1e18))
def test_bytes_read_back_within_their_digits(count: float) -> None:
    number, unit = number_and_unit(display.bytes_text(count))
    assert number * UNIT_BYTES[unit] == pytest.approx(count, rel=5.001e-3)


def test_gib_stands_beside_gb_and_each_label_matches_its_divisor() -> None:
    # 10 x 2^30 bytes: 7.4 % apart (alvarobartt/hf-mem#33, pytorch/torchtune#1348)
    assert display.bytes_both_text(10_737_418_240) == "10.7 GB (10.0 GiB)".replace(" G", NARROW_SPACE + "G")
    assert display.bytes_both_text(327_680) == f"328{NARROW_SPACE}kB (320{NARROW_SPACE}KiB)"
    assert display.bytes_both_text(12) == f"12{NARROW_SPACE}B"


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0 %"), (0.00512, "0.512 %"), (0.988, "98.8 %"), (0.0016, "0.160 %"), (0.00004, "<0.01 %"), (0.0001, "0.0100 %"),
        (1, "100 %"), (2.5, "250 %"),
    ],
)  # fmt: skip
def test_shares_are_per_cent(share: float, text: str) -> None:
    assert display.share_text(share) == text.replace(" ", NARROW_SPACE)


def test_rates_flop_and_exact_bytes() -> None:
    assert display.rate_text(50e9) == f"50.0{NARROW_SPACE}GB/s"
    assert display.flop_text(1.6e13) == f"16.0{NARROW_SPACE}TFLOP"
    assert display.exact_bytes_text(327_680.0) == f"327,680{NARROW_SPACE}B"


@pytest.mark.parametrize(("tokens", "text"), [(1143.7, "1,140"), (999.4, "999"), (3052, "3,050"), (12, "12")])
def test_computed_tokens_have_three_digits_and_are_whole_below_a_thousand(tokens: float, text: str) -> None:
    assert display.tokens_text(tokens) == text


def test_exact_counts_stay_exact() -> None:
    assert display.count_text(8192) == "8,192"
    assert display.count_text(1_048_576) == "1,048,576"


@pytest.mark.parametrize(("tokens", "text"), [(128, "128"), (512, "512"), (1024, "1k"), (8192, "8k"), (131_072, "128k"), (1_048_576, "1M")])
def test_ticks_count_in_1024s(tokens: int, text: str) -> None:
    assert display.tick_text(tokens) == text


@given(st.floats(0, 1e15))
def test_a_number_and_its_unit_never_break_apart(value: float) -> None:
    for text in (display.time_text(value), display.bytes_text(value), display.flop_text(value), display.share_text(value)):
        assert re.fullmatch(rf"[<\d.,]+{NARROW_SPACE}\S+", text)
