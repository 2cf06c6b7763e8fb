"""Numbers as text: examples for each form, and laws for every float."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regress import units

AWKWARD = [None, 0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, -5e-324, 1.7e308, -1.7e308]
LAWS = settings(deadline=None, derandomize=True, database=None)
maybe = st.none() | st.floats()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (27.42e-6, "27.4 us"),
        (0.9996e-3, "1.00 ms"),
        (0.9994e-3, "999 us"),
        (1.0, "1.00 s"),
        (1234.0, "1234 s"),
        (9.996e-6, "10.0 us"),
        (99.96e-9, "100 ns"),
        (-1.5e-3, "-1.50 ms"),
        (2e-10, "0.200 ns"),
        (2e-14, "2.00e-05 ns"),
        (3e9, "3,000,000,000 s"),
        (3e15, "3.00e+15 s"),
        (0.0, "0 s"),
        (None, "-"),
        (math.nan, "nan s"),
        (math.inf, "inf s"),
    ],
)
def test_a_time_is_scaled_to_three_digits(seconds: float | None, text: str) -> None:
    assert units.format_time(seconds) == text


@pytest.mark.parametrize(
    ("limit", "unit", "text"),
    [
        (2e-6, "s", "2 us"),
        (2e-7, "s", "200 ns"),
        (2.5e-3, "s", "2.5 ms"),
        (64 * 1024.0, "B", "64 KiB"),
        (1.5, "points", "1.5 points"),
        (1.0, "", "1"),
        (2e-14, "s", "2.00e-05 ns"),
    ],
)
def test_a_chosen_limit_has_no_zeros_that_say_nothing(limit: float, unit: str, text: str) -> None:
    assert units.format_limit(limit, unit) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0.0, "0 B"),
        (96.0, "96 B"),
        (96.5, "96.5 B"),
        (1023.0, "1023 B"),
        (1024.0, "1.00 KiB"),
        (1023.9 * 1024, "1.00 MiB"),
        (512 * 2.0**20, "512 MiB"),
        (1010 * 2.0**20, "1010 MiB"),
        (60 * 2.0**30, "60.0 GiB"),
        (-(2.0**41), "-2.00 TiB"),
    ],
)
def test_a_size_is_scaled_in_binary_units(size: float, text: str) -> None:
    assert units.format_bytes(size) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (3.0, "count", "3"),
        (1234567.0, "count", "1,234,567"),
        (1234567.8, "points", "1,234,568 points"),
        (999999.5, "points", "1,000,000 points"),
        (-2.5e6, "points", "-2,500,000 points"),
        (1.979e15, "FLOP/s", "1979 TFLOP/s"),
        (980e6, "Hz", "980 MHz"),
        (4.8e12, "B/s", "4.80 TB/s"),
        (2.5, "count", "2.50"),
        (5000.0, "unit", "5000"),
        (912.04, "GFLOP/s", "912 GFLOP/s"),
        (3.0, "GFLOP/s", "3.00 GFLOP/s"),
        (0.0, "points", "0 points"),
        (7.0, "", "7"),
        (0.25, "seconds", "250 ms"),
        (2048.0, "bytes", "2.00 KiB"),
        (12.0, "ms", "12.0 ms"),
    ],
)
def test_a_tracked_unit_stays_as_declared(value: float, unit: str, text: str) -> None:
    assert units.format_value(value, unit) == text


@pytest.mark.parametrize(
    ("first", "second", "unit", "texts"),
    [
        (27.42e-6, 30.0e-6, "s", ("27.4 us", "30.0 us")),
        (980e-6, 1.015e-3, "s", ("980 us", "1015 us")),
        (1.02e-3, 980e-6, "s", ("1.02 ms", "0.980 ms")),
        (1e-6, 1.0, "s", ("0.00100 ms", "1000 ms")),
        (0.0, 2.0**20, "B", ("0 MiB", "1.00 MiB")),
        (512.0, 1024.0, "B", ("512 B", "1024 B")),
        (None, 0.3, "s", ("-", "300 ms")),
        (math.nan, 0.3, "s", ("nan ms", "300 ms")),
        (None, None, "s", ("-", "-")),
        (0.0, 0.0, "B", ("0 B", "0 B")),
    ],
)
def test_a_pair_has_one_scale(first: float | None, second: float | None, unit: str, texts: tuple[str, str]) -> None:
    assert units.format_pair(first, second, unit) == texts


@pytest.mark.parametrize(
    ("center", "low", "high", "unit", "text"),
    [
        (27.42e-6, 27.2e-6, 27.6e-6, "s", "27.4 ± 0.2 us"),
        (27.42e-6, 26.9e-6, 27.5e-6, "s", "27.4 ± 0.5 us"),
        (27.42e-6, 27.39e-6, 27.45e-6, "s", "27.4 ± 0.03 us"),
        (512 * 2.0**20, 512 * 2.0**20, 512 * 2.0**20, "B", "512 MiB"),
        (4.0, 3.0, 5.0, "count", "4.00 ± 1.00"),
        (1.0, None, None, "s", "1.00 s"),
        (1.0, math.nan, math.inf, "s", "1.00 s"),
        (1e9, 0.9e9, 1.1e9, "points", "1,000,000,000 ± 100,000,000 points"),
        (None, 1.0, 2.0, "s", "-"),
    ],
)
def test_an_estimate_has_the_longer_arm_of_its_interval(
    center: float | None, low: float | None, high: float | None, unit: str, text: str
) -> None:
    assert units.format_estimate(center, low, high, unit) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (1.094, "+9.4 %"),
        (0.5, "-50.0 %"),
        (1.0, "0.0 %"),
        (1.0004, "0.0 %"),
        (0.9996, "0.0 %"),
        (2.904, "+190 %"),
        (1.9996, "+100 %"),
        (12.34, "x12.3"),
        (2.5e6, "x2,500,000"),
        (0.0, "-100 %"),
        (math.inf, "from zero"),
        (math.nan, "-"),
        (None, "-"),
        (-1.5, "-250 %"),
    ],
)
def test_a_ratio_is_a_change(ratio: float | None, text: str) -> None:
    assert units.format_change(ratio) == text


def test_an_interval_of_ratios() -> None:
    assert units.format_interval(1.088, 1.101) == "+8.8 … +10.1"
    assert units.format_interval(0.9999, 2.5) == "0.0 … +150"
    assert units.format_interval(9.5, 12.0) == "+850 … +1100"
    assert units.format_interval(141.79, 161.86) == "x142 … x162", "as the change between them is told"
    assert units.format_interval(None, 1.1) == units.format_interval(1.0, math.nan) == "-"


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.05, "5 %"),
        (0.006, "0.6 %"),
        (0.0153, "1.5 %"),
        (0.1234, "12.3 %"),
        (10.0, "1000 %"),
        (9.996, "1000 %"),
        (1e8, "over 10000 %"),
        (math.inf, "over 10000 %"),
        (0.0, "0 %"),
        (None, "-"),
        (math.nan, "-"),
    ],
)
def test_a_share(share: float | None, text: str) -> None:
    assert units.format_percent(share) == text


@pytest.mark.parametrize(
    ("seconds", "exact", "rough"),
    [
        (0.0, "0.0 s", "0 s"),
        (0.31, "0.3 s", "0 s"),
        (9.96, "10 s", "10 s"),
        (40.2, "40 s", "40 s"),
        (59.6, "1:00", "1 min"),
        (171.2, "2:51", "3 min"),
        (3599.9, "1:00:00", "60 min"),
        (3771.0, "1:02:51", "63 min"),
        (9000.0, "2:30:00", "2.5 h"),
        (300_000.0, "83:20:00", "3 days"),
        (math.nan, "-", "-"),
        (None, "-", "-"),
    ],
)
def test_a_duration(seconds: float | None, exact: str, rough: str) -> None:
    assert units.format_duration(seconds) == exact
    assert units.format_duration(seconds, rough=True) == rough


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s ago"),
        (59.6, "1 min ago"),
        (310.0, "5 min ago"),
        (7300.0, "2 h ago"),
        (47.6 * 3600, "2 days ago"),
        (15 * 86400.0, "2 weeks ago"),
        (70 * 86400.0, "2 months ago"),
        (3 * 31557600.0, "3 years ago"),
        (-310.0, "in 5 min"),
        (math.inf, "-"),
        (None, "-"),
    ],
)
def test_an_age(seconds: float | None, text: str) -> None:
    assert units.format_ago(seconds) == text


@pytest.mark.parametrize("value", AWKWARD)
def test_no_number_raises(value: float | None) -> None:
    for unit in ("s", "B", "count", "points", ""):
        assert units.format_value(value, unit)
        for other in AWKWARD:
            assert all(units.format_pair(value, other, unit))
            assert units.format_estimate(value, other, value, unit)
            assert units.format_estimate(1.0, other, value, unit)
    for function in (units.format_change, units.format_percent, units.format_duration, units.format_ago):
        assert function(value)


@LAWS
@given(st.floats(1e-12, 1e8), st.sampled_from(["s", "B", "points"]))
def test_a_printed_value_is_within_half_of_its_third_digit(value: float, unit: str) -> None:
    factors = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}
    number, name = units.format_value(value, unit).split(" ")
    assert float(number.replace(",", "")) * factors.get(name, 1.0) == pytest.approx(value, rel=0.00501)


@LAWS
@given(st.floats(1e-9, 1e3), st.floats(1e-9, 1e3), st.sampled_from(["s", "B"]))
def test_both_numbers_of_a_pair_have_the_same_unit(first: float, second: float, unit: str) -> None:
    texts = units.format_pair(first, second, unit)
    assert texts[0].split(" ")[1] == texts[1].split(" ")[1]
    assert units.format_pair(second, first, unit) == (texts[1], texts[0])


@LAWS
@given(maybe, maybe, maybe, st.text(max_size=5))
def test_the_terminal_shows_ascii_units(center: float | None, low: float | None, high: float | None, unit: str) -> None:
    texts = [*units.format_pair(low, high, "s"), units.format_estimate(center, low, high, "s").replace("±", "")]
    assert all(re.fullmatch(r"[ -~]+", text) for text in texts)
    assert units.format_estimate(center, low, high, unit) is not None
    assert units.format_interval(low, high)


@pytest.mark.parametrize(
    ("parts", "whole", "shown"),
    [
        ((9.94e-6, -1e-9, 0.052e-6, 0.0), 1e-5, ["+9.9 us", "0.0 us", "+0.1 us", "0.0 us", "+10.0 us"]),
        ((1.4e-6, 1.4e-6, 0.0), 2.8e-6, ["+1.40 us", "+1.40 us", "0.00 us", "+2.80 us"]),
        ((0.0,), 0.0, ["0 s", "0 s"]),
    ],
)
def test_a_sum_is_in_one_scale(parts: tuple[float, ...], whole: float, shown: list[str]) -> None:
    assert units.format_sum(parts, whole, unit="s") == shown


@given(st.lists(st.floats(-1e-3, 1e-3), min_size=2, max_size=5))
def test_the_printed_parts_add_up(parts: list[float]) -> None:
    *texts, whole = (text.split()[0] for text in units.format_sum(parts, math.fsum(parts), unit="s"))
    assert math.fsum(map(float, texts)) == pytest.approx(float(whole), rel=1e-9, abs=1e-9)
