from __future__ import annotations

import dataclasses
import gzip
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regress.history import sidecar
from regress.history.results_file import FormatError
from regress.history.sidecar import Header, parse, round_lines, suite_lines
from regress.model import Benchmark, Ends, Failure, Measured, Protocol, Round

from .samples import SHA, benchmark, taken

HEADER = Header(SHA, 1_700_000_000.0, "gpu-box", "worktree")

numbers = st.floats() | st.integers(-(2**60), 2**60)
texts = st.text(max_size=20)
measured = st.builds(
    Measured,
    numbers,
    st.lists(st.floats(1e-9, 1), max_size=4),
    unit=st.sampled_from(["s", "B", "items/s"]),
    invalid=st.integers(0, 3),
    exact=st.booleans(),
)
rounds = st.builds(
    Round,
    name=texts,
    params=st.lists(texts, max_size=3),
    side=st.sampled_from(["base", "head"]),
    order=st.integers(0, 99),
    process=st.integers(0, 99999),
    started_at=st.floats(0, 2e9),
    duration_s=st.integers(0, 999).map(float),
    protocol=st.none() | st.builds(Protocol, texts, calls=st.integers(1, 999), setup_each=st.booleans()),
    values=st.dictionaries(texts, measured, max_size=3),
    failure=st.none() | st.builds(Failure, st.sampled_from(["error", "oom", "skipped"]), texts, texts, texts),
    facts=st.dictionaries(texts, st.integers(-(2**63), 2**64 - 1) | texts | st.lists(st.booleans()), max_size=3),
    flags=st.lists(texts, max_size=2),
)


def recorded(*taken: Round, facts: Mapping[str, object] | None = None, of: Benchmark | None = None) -> bytes:
    data, known = b"", set[str]()
    for round in taken:
        lines, new = round_lines(HEADER, dataclasses.replace(round, run="run-1"), facts or {}, of, known)
        data, known = data + lines, known | new
    return data


def same(round: Round, expected: Round) -> bool:
    """Equal but for the samples, of which a sidecar keeps the ends alone; NaN equals itself here."""

    def bare(taken: Round) -> Round:
        values = {key: dataclasses.replace(value, samples=[], ends=None) for key, value in taken.values.items()}
        return dataclasses.replace(taken, values=values, run="run-1")

    return repr(bare(round)) == repr(bare(expected)) and not any(value.samples for value in round.values.values())


@given(
    st.lists(rounds, max_size=5, unique_by=lambda taken: (taken.name, tuple(taken.params), taken.order, taken.process))
)
def test_rounds_come_back_as_they_were_but_for_their_samples(expected: list[Round]) -> None:
    content = parse(recorded(*expected))
    assert content.unreadable == ()
    assert len(content.kept) == len(expected)
    assert all(same(kept.round, round) for kept, round in zip(content.kept, expected, strict=True))


def test_of_the_samples_of_a_time_the_ends_are_kept() -> None:
    samples = [1e-6 * at for at in range(1, 101)]
    values = {
        "gpu_time": Measured(5e-5, samples),
        "peak_memory": Measured(1.0, [1.0, 2.0], "B"),
        "launches": Measured(3.0, [3.0], "count", exact=True),
    }
    (kept,) = parse(recorded(Round("f", [], "head", 0, values=values))).kept
    assert kept.round.values["gpu_time"].ends == Ends(100, 1e-6, 9.5e-5, 1e-4)
    assert [kept.round.values[name].ends for name in ("peak_memory", "launches")] == [None, None]


@pytest.mark.parametrize("ends", ["[1, 2]", "3", '["x", 1, 1]'])
def test_ends_that_are_none_make_a_line_unreadable(ends: str) -> None:
    data = recorded(Round("f", [], "head", 0, values={"gpu_time": Measured(1.0, [1.0, 1.0])}))
    content = parse(re.sub(rb'"ends": ?\[1.0, ?1.0, ?1.0\]', b'"ends": ' + ends.encode(), data))
    assert (content.kept, len(content.unreadable)) == ((), 1)


@given(st.lists(rounds, min_size=1, max_size=3))
def test_every_line_is_strict_json(taken: list[Round]) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    for line in recorded(*taken).splitlines():
        json.loads(line, parse_constant=refuse)


def test_what_rounds_share_is_written_once_and_comes_back_on_each() -> None:
    facts = {"driver": "580", "torch": "2.11"}
    data = recorded(
        *(taken("a.cudatime_f", order=order, gpu_time=1.0) for order in range(20)), facts=facts, of=benchmark()
    )
    assert data.count(b'"is":"protocol"') == data.count(b'"is":"process"') == data.count(b'"is":"benchmark"') == 1
    content = parse(data)
    assert [kept.round.facts for kept in content.kept] == [facts] * 20
    assert {kept.version for kept in content.kept} == {"v1"}
    assert len(data) / 20 < 500, "small enough to commit"


def test_a_round_line_says_how_many_samples_there_were_and_how_they_spread() -> None:
    line = json.loads(recorded(taken("f", gpu_time=2.0)).splitlines()[-1])
    logs = [math.log(2.0), math.log(2.0), math.log(2.04)]
    mean = sum(logs) / 3
    spread = math.sqrt(sum((value - mean) ** 2 for value in logs) / 2)
    assert line["values"]["gpu_time"]["n"] == 3
    assert line["values"]["gpu_time"]["spread"] == pytest.approx(spread, rel=0.01)
    assert "samples" not in json.dumps(line)


def test_samples_without_logarithms_have_no_spread() -> None:
    line = json.loads(recorded(taken("f", value=-1.0)).splitlines()[-1])
    assert "spread" not in line["values"]["value"]


def test_a_long_failure_keeps_its_end_here_and_all_of_it_in_the_raw_line() -> None:
    detail = "start" + "x" * 10_000 + "end"
    failed = taken("f", failure=Failure("error", "boom", "a.py:3", detail))
    kept = parse(recorded(failed)).kept[0].round.failure
    assert kept is not None
    assert (kept.message, kept.where, len(kept.detail)) == ("boom", "a.py:3", sidecar.DETAIL_CHARACTERS)
    assert kept.detail.endswith("xend")
    assert json.loads(sidecar.raw_line(failed))["failure"]["detail"] == detail


def test_the_raw_line_has_every_sample() -> None:
    line = json.loads(gzip.decompress(gzip.compress(sidecar.raw_line(taken("f", ["1"], 3, gpu_time=2.0)))))
    assert (line["name"], line["params"], line["order"]) == ("f", ["1"], 3)
    assert line["samples"] == {"gpu_time": [2.0, 2.0, 2.04]}


# -- whole and torn lines ------------------------------------------------------------------------------------------------


@given(st.data())
def test_a_file_cut_anywhere_gives_the_rounds_before_the_cut(data: st.DataObject) -> None:
    whole = recorded(*(taken("f", order=order, gpu_time=1.0) for order in range(4)))
    cut = data.draw(st.integers(0, len(whole)))
    content = parse(whole[:cut])
    lines = whole[:cut].split(b"\n")
    complete = sum(b'"is":"round"' in line and line.endswith(b"}}}") for line in lines)
    assert [kept.round.order for kept in content.kept] == list(range(complete))
    assert content.unreadable == ()


def test_a_torn_line_in_the_middle_is_named_and_costs_nothing_else() -> None:
    first, second = recorded(taken("f", order=0)), recorded(taken("f", order=1))
    content = parse(first + b'{"is":"round","na\n' + second)
    assert [kept.round.order for kept in content.kept] == [0, 1]
    assert content.unreadable == (first.count(b"\n") + 1,)


@pytest.mark.parametrize("line", [b"<<<<<<< HEAD", b"[]", b"5", b"null", b'{"a": 1}', b'{"is": "round"}', b"\xff"])
def test_what_is_no_line_is_named(line: bytes) -> None:
    content = parse(line + b"\n" + recorded(taken("f")))
    assert content.unreadable == (1,)
    assert len(content.kept) == 1


@pytest.mark.parametrize(
    ("was", "now", "rounds"),
    [
        (b'"order":0', b'"order":"first"', 0),
        (b'"value":1.0', b'"value":null', 0),
        (b'"samples_min":20', b'"samples_min":[]', 0),
        (b'"timeout_s":null', b'"timeout_s":"long"', 1),  # of the benchmark: the rounds are as good without it
        (b'"declared":{}', b'"declared":[]', 1),
    ],
)
def test_a_line_with_a_value_of_another_kind_is_none(was: bytes, now: bytes, rounds: int) -> None:
    whole = recorded(taken("f", gpu_time=1.0), of=benchmark("f"))
    assert was in whole
    content = parse(whole.replace(was, now))
    assert len(content.unreadable) == (2 if b"samples_min" in was else 1), "a protocol takes its round with it"
    assert len(content.kept) == rounds


@pytest.mark.parametrize("value", [b"null", b"[]", b"{}", b"7"])
def test_a_run_or_a_benchmark_without_a_name_costs_no_round(value: bytes) -> None:
    whole = recorded(taken("f", gpu_time=1.0), of=benchmark("f"))
    (run, of) = (part for part in re.findall(rb'"(?:run|benchmark)":"[^"]*"', whole) if b"is" not in part)
    for part in (run, of):
        (kept,) = parse(whole.replace(part, part.partition(b":")[0] + b":" + value)).kept
        assert isinstance(kept.round.run, str)


def test_numbers_that_json_lacks_come_back_wherever_they_are() -> None:
    expected = dataclasses.replace(
        benchmark("f", repeat=[1, math.inf, 2.0], threshold=-math.inf),
        timeout_s=math.inf,
        setup_cache_timeout_s=math.inf,
    )
    (kept,) = parse(recorded(taken("f", value=math.inf), of=expected)).kept
    assert kept.benchmark == dataclasses.replace(expected, asv={})
    assert kept.round.values["value"].value == math.inf


def test_what_is_declared_as_no_number_is_like_itself() -> None:
    of = benchmark("f", processes=math.nan)
    one, other = parse(recorded(taken("f", order=0), taken("f", order=1), of=of)).kept
    assert one.sampling == other.sampling != {}


def test_a_round_whose_shared_line_is_gone_is_no_round() -> None:
    data = b"\n".join(
        line for line in recorded(taken("f", gpu_time=1.0)).split(b"\n") if b'"is":"protocol"' not in line
    )
    assert parse(data).kept == ()
    assert len(parse(data).unreadable) == 1


def test_lines_and_keys_of_a_later_version_are_passed_over() -> None:
    data = recorded(taken("f")).replace(b'"order":0', b'"order":0,"mood":"good"') + b'{"is":"weather","rain":1}\n'
    content = parse(data)
    assert content.unreadable == ()
    assert content.kept[0].round.name == "f"


def test_a_newer_format_is_refused() -> None:
    with pytest.raises(FormatError, match="newer"):
        parse(recorded(taken("f")).replace(b'"format":1', b'"format":2'))


# -- which benchmark a round was of --------------------------------------------------------------------------------------


def test_a_suite_line_gives_the_rounds_of_its_runs_their_version() -> None:
    rounds = recorded(taken("ops.cudatime_add", gpu_time=1.0))
    known = parse(rounds).ids
    lines, _ = suite_lines(HEADER, ["run-1"], [benchmark(version="v7")], known)
    others, _ = suite_lines(HEADER, ["run-2"], [benchmark(version="v8")], known)
    assert [kept.version for kept in parse(rounds).kept] == [""]
    assert [kept.version for kept in parse(rounds + lines + others).kept] == ["v7"]


def test_a_benchmark_comes_back_without_the_code_that_asv_keeps() -> None:
    expected = benchmark(params=[["1", "2"]], number=5, threshold=0.1)
    (kept,) = parse(recorded(taken(expected.name, ["1"]), of=expected)).kept
    assert kept.benchmark == dataclasses.replace(expected, asv={})
    assert kept.sampling == {"number": 5}


def test_the_header_is_found_without_reading_the_rest(tmp_path: Path) -> None:
    data = recorded(taken("f"))
    assert sidecar.parse_header(data) == HEADER
    assert sidecar.parse_header(b'{"is":"side\n' + data) == HEADER
    assert sidecar.parse_header(b"") is None


def test_a_round_whose_line_stands_there_twice_counts_once_and_the_second_one_is_named() -> None:
    data = recorded(*(taken("f", order=order, started_at=1.0 + order, gpu_time=1.0) for order in range(3)))
    assert [kept.round.order for kept in parse(data + data).kept] == [0, 1, 2]
    assert len(parse(data + data).doubled) == 3
    assert parse(data).doubled == ()
    once = parse(data + data.replace(b"\n", b"\r\n"))
    assert (len(once.kept), len(once.doubled)) == (3, 3), "the ends of its lines do not make it another round"


def test_two_rounds_with_the_same_value_are_two_rounds() -> None:
    content = parse(recorded(*(taken("f", started_at=at, gpu_time=1.0) for at in (1.0, 2.0))))
    assert (len(content.kept), content.doubled) == (2, ())


@pytest.mark.parametrize("line", [b"[1]", b"7", b'"is"', b'{"is":"round","values":7}', b'{"is":"suite","benchmarks":[]}',
                                  b'{"is":"sidecar","format":"1"}', b'{"is":"benchmark","id":[]}', b"[" * 100_000])  # fmt: skip
def test_a_line_of_another_shape_is_unreadable_and_costs_no_other(line: bytes) -> None:
    data = recorded(taken("f", gpu_time=1.0))
    content = parse(line + b"\n" + data)
    assert (content.unreadable, len(content.kept)) == ((1,), 1)


@pytest.mark.parametrize("field", ["started_at", "duration_s", "order", "process"])
@pytest.mark.parametrize("value", [b"1e400", b"1" + b"0" * 400, b'"Infinity"'])
def test_a_round_at_no_time_or_in_no_order_is_unreadable(field: str, value: bytes) -> None:
    good, key = recorded(taken("f", gpu_time=1.0)), b'"%b":' % field.encode()
    data = re.sub(key + rb"[0-9.]+", key + value, good)
    content = parse(data)
    assert (content.kept, len(content.unreadable)) == ((), 1)
