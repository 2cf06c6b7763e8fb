"""`regress export`: what is recorded, as a table that any other program reads."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from regress.commands.export import COLUMNS, export
from regress.history import Store
from regress.model import Failure, Machine
from regress.session import Request
from regress.stats.summary import summarize
from tests.conftest import Project, Result
from tests.history.samples import BOX, ENV, OTHER_SHA, SHA, benchmark, fill, side, taken, write_asv_file

ADD, SUM, OLD = "ops.cudatime_add", "ops.cudatime_sum", "ops.time_old"
METRICS = ("gpu_time", "peak_memory")
HOSTILE = "'a\nb, \"c\" é'"


@pytest.fixture
def recorded(project: Callable[..., Project]) -> Project:
    """A history: two cases at two commits, one of which failed once; an older result of asv's; another machine."""
    p = project()
    root = p.root / "history"
    suite = [benchmark(ADD, [["8", HOSTILE]]), benchmark(SUM)]
    oom = Failure("oom", "out of memory")
    older = [taken(ADD, [size], n, gpu_time=1.0 + n, peak_memory=64.0) for n in range(3) for size in ("8", HOSTILE)]
    newer = [taken(ADD, ["8"], n, gpu_time=2.0 + n, peak_memory=64.0) for n in range(3)]
    fill(root, [*older, taken(SUM, gpu_time=7.0)], suite, of=side(date=1_700_000_000))
    fill(root, [*newer, taken(ADD, [HOSTILE], failure=oom)], suite, of=side(OTHER_SHA, date=1_800_000_000))
    row = {"result": [0.5], "params": [], "version": "v1", "stats_ci_99_a": [0.4], "stats_ci_99_b": [0.6]}
    write_asv_file(root, {OLD: row}, sha="0" * 40, env="virtualenv-py3.12")
    store, other = Store(root), Machine("other-box", BOX.facts)
    store.append(side(), other, ENV, taken(SUM, gpu_time=8.0), benchmark=benchmark(SUM))
    return p


def table(result: Result) -> list[dict[str, str]]:
    assert result.code == 0, result.err
    return list(csv.DictReader(io.StringIO(result.out, newline="")))


def exported(p: Project, *arguments: str) -> list[dict[str, str]]:
    return table(p.regress("export", "--csv", *arguments))


def test_every_result_is_a_row(recorded: Project) -> None:
    rows = exported(recorded)
    keys = ("sha", "machine", "environment", "case", "metric")
    assert sorted(tuple(row[key] for key in keys) for row in rows) == sorted(
        [
            *((sha, "gpu-box", ENV, f"{ADD}(8)", metric) for sha in (SHA, OTHER_SHA) for metric in METRICS),
            *((sha, "gpu-box", ENV, f"{ADD}({HOSTILE})", metric) for sha in (SHA, OTHER_SHA) for metric in METRICS),
            (SHA, "gpu-box", ENV, SUM, "gpu_time"),
            (SHA, "other-box", ENV, SUM, "gpu_time"),
            ("0" * 40, "gpu-box", "virtualenv-py3.12", OLD, "wall_time"),
        ]
    )


def test_a_row_says_how_it_was_and_how_sure_that_is(recorded: Project) -> None:
    rows = {(row["sha"], row["case"], row["metric"]): row for row in exported(recorded, "--machine", "gpu-box")}
    ours = rows[SHA, f"{ADD}(8)", "gpu_time"]
    summary = summarize([1.0, 2.0, 3.0])
    assert [float(ours[key]) for key in ("value", "low", "high")] == [summary.center, summary.low, summary.high]
    assert [ours[key] for key in ("date", "benchmark", "unit", "confidence", "n", "failure")] == [
        "2023-11-14T22:13:20Z", ADD, "s", "0.95", "3", "",
    ]  # fmt: skip
    asvs = rows["0" * 40, OLD, "wall_time"]
    assert [asvs[key] for key in ("value", "low", "high", "confidence", "n")] == ["0.5", "0.4", "0.6", "0.99", "1"]
    once = rows[SHA, SUM, "gpu_time"]
    assert [once[key] for key in ("value", "low", "high", "confidence", "n")] == ["7.0", "", "", "", "1"]
    failed = rows[OTHER_SHA, f"{ADD}({HOSTILE})", "gpu_time"]
    assert [failed[key] for key in ("value", "low", "high", "confidence", "n", "failure")] == [
        "",
        "",
        "",
        "",
        "0",
        "oom",
    ]


def test_it_is_csv_of_rfc_4180(recorded: Project, tmp_path: Path) -> None:
    file = tmp_path / "all.csv"
    done = recorded.regress("export", "--csv", str(file))
    assert (done.code, done.out) == (0, "")
    data = file.read_bytes().decode()
    heading, _, rest = data.partition("\r\n")
    assert heading == ",".join(COLUMNS)
    assert rest.endswith("\r\n")
    assert "\n" not in rest.replace("\r\n", "").replace(HOSTILE.replace('"', '""'), "")
    assert {len(row) for row in csv.reader(io.StringIO(data, newline=""))} == {len(COLUMNS)}
    piped = subprocess.run(
        [sys.executable, "-m", "regress", "export", "--csv"],
        cwd=recorded.root, env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(__file__).parents[2]), "LC_ALL": "C"},
        capture_output=True, check=False,
    )  # fmt: skip
    assert piped.stdout.decode() == data, "whatever the locale"


@pytest.mark.parametrize(
    ("pattern", "cases"),
    [
        (SUM, {SUM}),
        ("ops.cudatime_add(8)", {f"{ADD}(8)"}),
        ("cudatime_.*", {f"{ADD}(8)", f"{ADD}({HOSTILE})", SUM}),
        (r"add\(8|old", {f"{ADD}(8)", OLD}),
    ],
)
def test_patterns_select_as_they_do_elsewhere(recorded: Project, pattern: str, cases: set[str]) -> None:
    assert {row["case"] for row in exported(recorded, "-b", pattern)} == cases


def test_a_part_of_the_history(recorded: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {row["sha"] for row in exported(recorded, "--since", "2025-01-01")} == {OTHER_SHA}
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2025-06-01T00:00:00Z")
    recorded.commit({}, "between")
    assert {row["sha"] for row in exported(recorded, "--since", "HEAD")} == {OTHER_SHA}
    assert recorded.regress("export", "--csv", "--since", "nowhere").code == 2
    assert {row["machine"] for row in exported(recorded, "--machine", "other-box")} == {"other-box"}
    assert {row["case"] for row in exported(recorded, "--environment", "virtualenv-py3.12")} == {OLD}


@pytest.mark.parametrize("arguments", [("-b", "nowhere"), ("--since", "2100-01-01"), ("--machine", "nobody")])
def test_where_there_is_nothing_it_says_so(recorded: Project, arguments: tuple[str, ...]) -> None:
    done = recorded.regress("export", "--csv", *arguments)
    assert (done.code, done.out) == (5, "")
    assert "error:" in done.err
    assert "fix:" in done.err


def test_a_file_that_cannot_be_written_is_an_error(recorded: Project) -> None:
    done = recorded.regress("export", "--csv", "nowhere/all.csv")
    assert done.code == 2
    assert (
        done.err.splitlines()[0] == "error: Invalid value for '--csv': the folder of 'nowhere/all.csv' does not exist"
    )


def test_a_file_of_results_that_cannot_be_read_is_named(recorded: Project) -> None:
    broken = recorded.root / "history" / "gpu-box" / f"{'1' * 8}-{ENV}.json"
    broken.write_text("{")
    done = recorded.regress("export", "--csv")
    assert len(table(done)) == 11
    assert f"warning: {broken}: not JSON" in done.err


def test_a_reader_who_has_seen_enough_is_no_error(recorded: Project) -> None:
    root = recorded.root / "history"
    names = [f"ops.cudatime_{n}" for n in range(300)]
    fill(root, [taken(name, gpu_time=1.0, host_time=2.0) for name in names], [benchmark(name) for name in names])
    command = f"set -o pipefail; {sys.executable} -m regress export --csv | head -n 1"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=recorded.root, env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, ",".join(COLUMNS) + "\n")
    assert "error" not in done.stderr


class Reached:
    """Which benchmarks were done with, of those that a watcher is told of."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def start(self, total: int, title: str) -> None: ...

    def note(self, text: str) -> None: ...

    def advance(self, text: str, steps: int = 1) -> None:
        self.names.append(text)


def test_rows_come_as_benchmarks_are_read(recorded: Project) -> None:
    reached = Reached()
    rows = export(Request(start=recorded.root), reached)
    assert next(rows) == COLUMNS
    assert next(rows)[COLUMNS.index("benchmark")] == ADD
    assert reached.names == []
    assert len(list(rows)) == 10
    assert reached.names == [ADD, SUM, OLD]
