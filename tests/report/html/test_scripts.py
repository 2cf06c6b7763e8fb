"""The pure parts of the scripts, run in the browser: numbers as text, searching, sorting, exporting, links."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from regress import units

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

NUMBERS = [0, 1, 0.5, 9.994, 9.996, 27.44, 99.95, 999.4, 999.6, 1024, 1234567, 1e-9, 3.2e-7, 2.74e-5, 0.00123, 0.0099996, 1.5,
           59.9, 2**20, 640 * 2**20, 5 * 2**30, 1e18, -3.2e-5, -512, 999999.4, 999999.6, -2.5e6, 1.979e15]  # fmt: skip
RATIOS = [1, 1.0004, 1.0006, 1.094, 0.5, 1.9994, 1.9996, 3.74, 9.99, 10, 123.4, 2.5e6, 0.0001, -20000]
AGES = [0, 30, 59.4, 59.6, 3569, 3571, 7200, 170_000, 172_000, 864_000, 2_000_000, 9_000_000, 90_000_000, -300]


@pytest.fixture
def run(visit: Callable[..., Page]) -> Callable[[str, Any], Any]:
    """Runs an expression on a page, or calls a function with the argument."""
    return visit().evaluate


def test_numbers_are_written_as_the_command_line_writes_them(run: Callable[[str, Any], Any]) -> None:
    for unit in ("s", "seconds", "B", "bytes", "count", "GB/s", "FLOP/s", "toString"):
        theirs = run("([all, unit]) => all.map(each => regress.text.value(each, unit))", [NUMBERS, unit])
        assert theirs == [units.format_value(number, unit) for number in NUMBERS], unit
    changes = run("all => all.map(each => regress.text.change(each))", RATIOS)
    assert changes == [units.format_change(ratio) for ratio in RATIOS]
    shares = [0, 0.00004, 0.006, 0.05, 0.0995, 0.123, 0.5, 0.994]
    assert run("all => all.map(regress.text.percent)", shares) == [units.format_percent(share) for share in shares]
    assert run("all => all.map(regress.text.ago)", AGES) == [units.format_ago(age) for age in AGES]
    nothing = run("[regress.text.value(null, 's'), regress.text.change(null), regress.text.percent(null)]", None)
    assert nothing == ["-"] * 3


def test_an_axis_tells_its_labels_apart(run: Callable[[str, Any], Any]) -> None:
    assert run("regress.text.axis([1.95e-6, 1.975e-6, 2e-6, 2.025e-6], 's')", None) == [
        "1.950 us", "1.975 us", "2.000 us", "2.025 us"]  # fmt: skip
    assert run("regress.text.axis([0, 2**29, 2**30], 'B')", None) == ["0.0 GiB", "0.5 GiB", "1.0 GiB"]


def test_an_interval_has_the_digits_that_its_width_is_worth(run: Callable[[str, Any], Any]) -> None:
    assert run("regress.text.span(4.9963e-3, 5.0379e-3, 's')", None) == ["4.996 ms", "5.038 ms"]
    assert run("regress.text.span(1.2e-3, 3.4e-3, 's')", None) == ["1.2 ms", "3.4 ms"]
    assert run("regress.text.span(96, 128, 'B')", None) == ["96 B", "128 B"]
    assert run("regress.text.span(2e-6, 2e-6, 's')", None) == ["2.0 us", "2.0 us"]


def test_what_a_search_finds(run: Callable[[str, Any], Any]) -> None:
    wanted = {
        "softmax": True, "SoftMax fwd": True, "softmax -bfloat16": False, "-nothing": True, '"fwd(1024"': True,
        '-"fwd(1024"': False, '"fwd 1024"': False, "": True, "-": True, '"open': False, "  softmax  ": True,
    }  # fmt: skip
    matches = run(
        "queries => queries.map(each => regress.search.matcher(each)('ops.softmax.fwd(1024, bfloat16) gpu time'))",
        [*wanted],
    )
    assert dict(zip(wanted, matches, strict=True)) == wanted


def test_what_is_sorted(run: Callable[[str, Any], Any]) -> None:
    order = "([all, down]) => regress.search.sorted(all, each => each, down)"
    assert run(order, [[10, 9, None, -1.5, 2e-9], False]) == [-1.5, 2e-9, 9, 10, None]
    assert run(order, [[10, 9, None, -1.5], True]) == [10, 9, -1.5, None]
    assert run(order, [["f10", "f9", "", "F2"], False]) == ["F2", "f9", "f10", ""]


def test_what_is_exported_cannot_break_out(run: Callable[[str, Any], Any]) -> None:
    table = {"heads": ["name", "value"], "rows": [["=cmd()", -1.5], ['a "b", c', None], ["<b>|x|\u2028\n", 2e-6]]}
    csv = run("table => regress.exports.csv(table)", table)
    assert csv == 'name,value\r\n\'=cmd(),-1.5\r\n"a ""b"", c",\r\n"<b>|x|\u2028\n",0.000002\r\n'
    markdown = run("table => regress.exports.markdown(table)", table).splitlines()
    assert markdown[-1] == "| \\<b\\>\\|x\\|  | 0.000002 |"
    assert len(markdown) == 5


def test_a_link_gives_back_what_was_put_into_it(run: Callable[[str, Any], Any]) -> None:
    name, query = "a/b?c=#%é\u2028", {"c": "'x, y' & \"z\"", "z": "a..b", "off": ""}
    link = run("([name, query]) => regress.link('benchmark', name, query)", [name, query])
    parsed = run(
        "link => (found => [found.page, found.name, Object.fromEntries(found.query)])(regress.parse(link))", link
    )
    assert parsed == ["benchmark", name, {"c": query["c"], "z": "a..b"}]
    assert run("regress.parse('#/b/%E0%A4%A').name", None) == "%E0%A4%A"


@pytest.mark.parametrize("word", ["plain.name", "a b", "it's", '"double"', "f(1, 'x')", "$HOME `x`", ""])
def test_a_shell_takes_a_command_apart_again(run: Callable[[str, Any], Any], word: str) -> None:
    assert shlex.split(run("word => regress.text.quoted(word)", word)) == [word]


def test_which_parameter_is_the_size_and_which_the_line(run: Callable[[str, Any], Any]) -> None:
    def axes(names: list[str], *cases: list[str]) -> Any:
        return run("([cases, names]) => regress.axes(cases, names)", [list(cases), names])

    cases = [[size, dtype, mode] for size in ("1024", "2048", "4096") for dtype in ("'f32'", "'bf16'") for mode in "ab"]
    assert axes(["n", "dtype", "mode"], *cases) == {"size": 0, "line": 1, "rest": [2]}
    assert axes(["shape"], ["(32, 32)"], ["(128, 128)"]) == {"size": 0, "line": None, "rest": []}
    assert axes(["n"], ["'64k'"], ["'1M'"]) == {"size": 0, "line": None, "rest": []}
    assert axes(["kind"], ["'a'"], ["'b'"]) is None
