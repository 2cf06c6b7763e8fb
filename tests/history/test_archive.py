"""All that is recorded below a folder, and the index that keeps it."""

from __future__ import annotations

import json
import math
import multiprocessing
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from regress.history import Archive, Store, index, index_files, sources
from regress.history.sidecar import ENDING
from regress.history.sources import State
from regress.model import Failure

from .samples import ENV, OTHER_SHA, SHA, benchmark, fill, side, taken, write_asv_file

ADD, MUL = "ops.cudatime_add", "ops.cudatime_mul"
ROW = {"result": [0.5], "params": [], "version": "w"}


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of tests are young: here that does not matter."""
    monkeypatch.setattr(index, "SETTLED_NS", 0)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sources that are read, as they are."""
    lines: list[str] = []

    def noted(state: State, facts: Any) -> sources.Content:
        lines.append(state.stem)
        return sources.read_source(state, facts)

    monkeypatch.setattr(index_files, "read_source", noted)
    return lines


def archive(tmp_path: Path, **options: Any) -> Archive:
    return Archive(tmp_path / "results", tmp_path / "cache", ("driver",), **options)


def told(opened: Archive) -> dict[str, list[tuple[str, str, Any]]]:
    """What an archive says: by benchmark, the commit, environment and values of what is recorded."""
    return {
        name: sorted(
            (recorded.commit_sha, recorded.environment, [one.values for one in recorded.as_rounds().rounds])
            for _, recorded in opened.recorded(name)
        )
        for name in opened.names()
    }


def three(tmp_path: Path) -> list[str]:
    """Three sources, with our rounds, with a row of asv, and with both; their stems."""
    root = tmp_path / "results"
    fill(root, [taken(ADD, gpu_time=1.0), taken(MUL, gpu_time=2.0)], [benchmark(), benchmark(MUL)])
    write_asv_file(root, {"x.time_f": ROW}, sha=OTHER_SHA)
    write_asv_file(root, {"x.time_f": ROW}, env="other")
    fill(root, [taken(ADD, gpu_time=3.0)], [benchmark()], env="other")
    return [f"{SHA[:8]}-other", f"{SHA[:8]}-{ENV}", f"{OTHER_SHA[:8]}-{ENV}"]


def test_what_has_not_changed_is_not_read_again(tmp_path: Path, read: list[str]) -> None:
    stems = three(tmp_path)
    first = archive(tmp_path)
    assert sorted(read) == stems
    again = archive(tmp_path)
    assert sorted(read) == stems
    assert told(again) == told(first)
    assert sorted(told(first)) == [ADD, MUL, "x.time_f"]
    assert [(sha, env) for sha, env, _ in told(first)["x.time_f"]] == [(SHA, "other"), (OTHER_SHA, ENV)]


@pytest.mark.parametrize("change", ["sidecar", "file", "gone", "new"])
def test_only_what_has_changed_is_read_again(tmp_path: Path, read: list[str], change: str) -> None:
    stems = three(tmp_path)
    archive(tmp_path)
    read.clear()
    root = tmp_path / "results"
    changed = stems[0]
    if change == "sidecar":
        with open(root / "gpu-box" / (changed + ENDING), "ab") as file:
            file.write(b"torn")
    elif change == "file":
        write_asv_file(root, {"x.time_f": {**ROW, "result": [7.0]}, "x.time_g": ROW}, env="other")
    elif change == "gone":
        (root / "gpu-box" / f"{changed}.json").unlink()
    else:
        write_asv_file(root, {"x.time_f": ROW}, env="new")
        changed = f"{SHA[:8]}-new"
    after = archive(tmp_path)
    assert read == [changed]
    fresh = Archive(root, tmp_path / "other cache", ("driver",))
    assert told(after) == told(fresh)
    assert {name: after.sources_of(name) for name in after.names()} == {n: fresh.sources_of(n) for n in fresh.names()}


def test_what_is_gone_is_no_longer_there(tmp_path: Path) -> None:
    three(tmp_path)
    archive(tmp_path)
    for path in (tmp_path / "results" / "gpu-box").glob(f"{SHA[:8]}-{ENV}*"):
        path.unlink()
    assert sorted(archive(tmp_path).names()) == [ADD, "x.time_f"]


def test_a_file_that_was_just_written_is_read_once_more(
    tmp_path: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within the grain of the file system's clock, it could change again unseen."""
    monkeypatch.setattr(index, "SETTLED_NS", 10**12)
    three(tmp_path)
    archive(tmp_path)
    archive(tmp_path)
    assert len(read) == 6


def test_an_archive_that_is_gone_has_left_no_file_open(tmp_path: Path) -> None:
    three(tmp_path)
    opened = archive(tmp_path)
    (database,) = opened._index._databases
    del opened
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        database.execute("SELECT 1")


def edit(path: Path, script: str) -> None:
    """Change the index behind its back."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript(script)


def test_an_index_that_turns_out_to_be_broken_is_made_anew_too(tmp_path: Path) -> None:
    """What was lost with the power, say: its tables are there, and what they hold is not."""
    three(tmp_path)
    expected = told(archive(tmp_path))
    (path,) = (tmp_path / "cache").iterdir()
    for column in ("sources", "data"):
        edit(path, f"UPDATE rows SET {column} = x'00'; UPDATE rounds SET {column} = x'00'")
        opened = archive(tmp_path)
        assert told(opened) == expected
        assert told(archive(tmp_path)) == expected


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b"this is no database, and too long to be taken for an empty one" * 99),
        lambda path: path.write_bytes(path.read_bytes()[:5000]),
        lambda path: path.write_bytes(b""),
        lambda path: edit(path, "DROP TABLE rows"),
        lambda path: edit(path, "UPDATE sources SET about = x'00'"),
    ],
)
def test_a_broken_index_is_made_anew(tmp_path: Path, read: list[str], damage: Any) -> None:
    stems = three(tmp_path)
    expected = told(archive(tmp_path))
    (path,) = (tmp_path / "cache").iterdir()
    damage(path)
    assert told(archive(tmp_path)) == expected
    read.clear()
    assert told(archive(tmp_path)) == expected
    assert read == []
    assert [file.name for file in (tmp_path / "cache").iterdir()] == [path.name]
    assert len(stems) == 3


def test_another_format_or_other_facts_have_an_index_of_their_own(
    tmp_path: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    three(tmp_path)
    archive(tmp_path)
    (_, first), *_ = archive(tmp_path).recorded(MUL)
    assert first.rounds[0].facts == {"driver": "580"}
    (_, other), *_ = Archive(tmp_path / "results", tmp_path / "cache", ()).recorded(MUL)
    assert other.rounds[0].facts == {}
    monkeypatch.setattr(index, "FORMAT", index.FORMAT + 1)
    read.clear()
    archive(tmp_path)
    assert len(read) == 3


def test_without_a_place_for_it_everything_is_read_all_the_same(tmp_path: Path) -> None:
    three(tmp_path)
    expected = told(archive(tmp_path))
    (tmp_path / "no folder").write_text("")
    assert told(Archive(tmp_path / "results", tmp_path / "no folder", ("driver",))) == expected


def test_an_index_that_another_process_writes_to_is_used_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "WAIT_S", 0.05)
    three(tmp_path)
    archive(tmp_path)
    (path,) = (tmp_path / "cache").iterdir()
    write_asv_file(tmp_path / "results", {"x.time_new": ROW}, env="new")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        for lock in ("IMMEDIATE", "EXCLUSIVE"):
            other.execute(f"BEGIN {lock}")
            assert sorted(archive(tmp_path).names()) == [ADD, MUL, "x.time_f", "x.time_new"]
            other.execute("ROLLBACK")
    assert path.exists(), "a lock is no damage"


def test_what_another_process_adds_is_not_there_for_who_has_looked_before(tmp_path: Path) -> None:
    three(tmp_path)
    archive(tmp_path)
    before = archive(tmp_path)
    write_asv_file(tmp_path / "results", {"x.time_new": ROW}, env="new")
    assert "x.time_new" in archive(tmp_path).names()
    assert sorted(before.names()) == [ADD, MUL, "x.time_f"]


def test_what_is_no_longer_so_does_not_pile_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: list[str]
) -> None:
    three(tmp_path)
    archive(tmp_path)
    (path,) = (tmp_path / "cache").iterdir()
    with closing(sqlite3.connect(path)) as database, database:
        old = sources.Source("sha", 0.0, "env", ".json", [], {})
        about = msgspec.msgpack.encode(dict.fromkeys(range(400), old))
        database.execute("INSERT INTO sources VALUES (?)", (about,))
    read.clear()
    archive(tmp_path)
    archive(tmp_path)
    assert len(read) == 3
    with closing(sqlite3.connect(path)) as database, database:
        assert len(database.execute("SELECT about FROM sources").fetchall()) == 1


# -- several processes ---------------------------------------------------------------------------------------------------


def forked(work: Callable[[], object]) -> str:
    """What a forked process has to say."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def tell() -> None:
        try:
            sender.send(repr(work()))
        except Exception as error:
            sender.send(repr(error))

    child = context.Process(target=tell)
    child.start()
    child.join(120)
    return str(receiver.recv())


def test_a_forked_process_reads_what_the_other_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    three(tmp_path)
    archive(tmp_path)
    monkeypatch.setattr(index, "SETTLED_NS", 10**18)  # what is new stays in memory
    write_asv_file(tmp_path / "results", {"x.time_new": ROW}, env="new")
    reading = archive(tmp_path)
    told_here = told(reading)
    opened = list(reading._index._databases)
    assert forked(lambda: told(reading)) == repr(told_here)
    assert forked(lambda: [database in opened for database in reading._index._databases]) == "[True, True]", (
        "nothing was read yet"
    )
    assert (
        forked(lambda: (told(reading), [database in opened for database in reading._index._databases])[1])
        == "[False, True]"
    )
    assert told(reading) == told_here
    assert [database in opened for database in reading._index._databases] == [True, True]


def test_a_forked_process_takes_no_other_index_and_leaves_it_alone(tmp_path: Path) -> None:
    three(tmp_path)
    opened = archive(tmp_path)
    names = opened.names()
    (path,) = (tmp_path / "cache").iterdir()
    other = path.with_suffix(".other")
    other.write_bytes(path.read_bytes())
    other.replace(path)
    assert "rebuilt" in forked(lambda: opened.recorded(ADD))
    path.unlink()
    assert "Error" in forked(lambda: opened.recorded(ADD))
    assert not path.exists(), "an empty one would cost the next command all there is"
    path.write_bytes(b"no database")
    assert "Error" in forked(lambda: opened.recorded(ADD))
    assert path.read_bytes() == b"no database"
    assert sorted(name for name in names if opened.recorded(name)) == [ADD, MUL, "x.time_f"]


def test_an_index_that_another_process_removes_while_it_is_opened_is_read_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it does where the index is mostly about files that have changed."""
    three(tmp_path)
    known = told(archive(tmp_path))
    (path,) = (tmp_path / "cache").iterdir()
    connect = sqlite3.connect

    def beaten(*names: Any, **options: Any) -> sqlite3.Connection:
        database: sqlite3.Connection = connect(*names, **options)
        path.unlink()
        return database

    monkeypatch.setattr(sqlite3, "connect", beaten)
    assert told(archive(tmp_path)) == known


def test_two_processes_of_one_number_make_the_index_as_others_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In two containers that share a cache: one makes it while the other does."""
    three(tmp_path)
    read_into, begun = index_files.read_into, list[Archive]()

    def both(*given: Any) -> Any:
        monkeypatch.setattr(index_files, "read_into", read_into)
        begun.append(archive(tmp_path))
        return read_into(*given)

    monkeypatch.setattr(index_files, "read_into", both)
    assert told(archive(tmp_path)) == told(begun[0])
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".sqlite"]


PROCESS = """
import sys
from pathlib import Path
from regress.history import Archive, index, index_files
index.SETTLED_NS = 0
index_files.SHARED_BYTES = int(sys.argv[2])
root = Path(sys.argv[1])
asked = []
found = Archive(root / "results", root / "cache", ("driver",), lambda done, of: asked.append(of))
print("read" if asked else "known", sorted((name, len(found.recorded(name))) for name in found.names()))
"""


def process(tmp_path: Path, shared: int, code: str = PROCESS) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", code, str(tmp_path), str(shared)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


EXPECTED = f"{[(ADD, 2), (MUL, 1), ('x.time_f', 2)]}\n"


def test_two_processes_share_the_reading_of_a_long_history(tmp_path: Path) -> None:
    three(tmp_path)
    assert process(tmp_path, 1).communicate()[0] == "read " + EXPECTED
    assert len(list((tmp_path / "cache").iterdir())) == 2
    assert process(tmp_path, 1).communicate()[0] == "known " + EXPECTED


def test_what_the_helper_did_not_come_to_read_is_read_without_it(tmp_path: Path) -> None:
    three(tmp_path)
    dies = PROCESS.replace("root = ", "me = __import__('os').getpid()\nreal = index_files.read_source\n"
                           "def dies(*given):\n    import os\n    if os.getpid() != me: os.kill(os.getpid(), 9)\n"
                           "    return real(*given)\nindex_files.read_source = dies\nroot = ", 1)  # fmt: skip
    assert process(tmp_path, 1, dies).communicate()[0] == "read " + EXPECTED
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".sqlite"]
    assert process(tmp_path, 1).communicate()[0] == "known " + EXPECTED


@pytest.mark.parametrize("shared", [1, 10**9])
def test_processes_that_come_at_once_all_get_everything(tmp_path: Path, shared: int) -> None:
    three(tmp_path)
    for new in ("", "new"):
        if new:
            write_asv_file(tmp_path / "results", {MUL: ROW}, sha="1" * 40, env=new)
        running = [process(tmp_path, shared) for _ in range(4)]
        answers = {process.communicate()[0].partition(" ")[2] for process in running}
        assert answers == {EXPECTED if not new else EXPECTED.replace(f"('{MUL}', 1)", f"('{MUL}', 2)")}
    assert not list((tmp_path / "cache").glob("*.tmp"))


# -- every file is read or named -----------------------------------------------------------------------------------------


def test_every_file_is_read_or_named_and_the_rest_is_used(tmp_path: Path) -> None:
    root = tmp_path / "results"
    box = root / "gpu-box"
    good = write_asv_file(
        root, {"x.time_f": {**ROW, "result": [math.nan, math.inf, None], "params": [["1", "2", "3"]]}}
    )
    text = good.read_text()
    write_asv_file(root, {"x.time_f": ROW}, env="columns", columns=("version", "samples", "params", "result"))
    first = {key: value for key, value in json.loads(text).items() if key not in ("result_columns", "env_name")}
    first |= {"version": 1, "results": {"x.time_f": 1.5}, "requirements": {}}
    (box / f"{SHA[:8]}-first.json").write_text(json.dumps(first))
    (box / "renamed by hand.json").write_text(text.replace(ENV, "by hand"))
    rows = {"x.time_f": [[2.0], []], "x.time_g": "no row", "x.time_h": 7}
    (box / f"{SHA[:8]}-rows.json").write_text(json.dumps({**json.loads(text), "env_name": "rows", "results": rows}))
    (box / f"{SHA[:8]}-result.json").write_text(text.replace("[NaN, Infinity, null]", "5").replace(ENV, "result"))
    (box / f"{SHA[:8]}-truncated.json").write_text(text[:200])
    (box / f"{SHA[:8]}-conflict.json").write_text("<<<<<<< HEAD\n" + text)
    (box / f"{SHA[:8]}-newer.json").write_text(text.replace('"version": 2', '"version": 3'))
    (box / f"{SHA[:8]}-machine.json").write_text(text.replace('"machine": "gpu-box"', '"machine": "other"'))
    (box / f"{SHA[:8]}-folder.json").mkdir()
    (root / f"{SHA[:8]}-lost.json").write_text(text)
    (box / "deeper").mkdir()
    (box / "deeper" / "x.json").write_text(text)
    (box / "notes.txt").write_text("no results")
    for _ in range(2):  # the second time, much of it comes from the index
        opened = archive(tmp_path)
        environments = sorted(recorded.environment for _, recorded in opened.recorded("x.time_f"))
        assert environments == ["by hand", "columns", "py3.11", "result", "rows", ENV]
        assert {file.path.name: file.why.split(":")[0] for file in opened.skipped} == {
            f"{SHA[:8]}-rows.json": "2 parts of it are malformed, the first is the row of x.time_g; the others are used",
            f"{SHA[:8]}-truncated.json": "not JSON",
            f"{SHA[:8]}-conflict.json": "not JSON",
            f"{SHA[:8]}-newer.json": "format version 3 is newer than 2",
            f"{SHA[:8]}-machine.json": "it is of machine 'other', and its folder is of 'gpu-box'",
            f"{SHA[:8]}-folder.json": "it is a folder; not a file",
            f"{SHA[:8]}-lost.json": "it is in no folder of a machine",
            "deeper": "no machine.json says of which machine its results are",
        }
        assert all(file.fix for file in opened.skipped)


def test_what_is_malformed_for_a_comparison_is_so_for_a_history(tmp_path: Path) -> None:
    good = write_asv_file(tmp_path / "results", dict.fromkeys("abcd", ROW))
    content = json.loads(good.read_text())
    rows = {"a": [[1.5], [], 7, "noon", []], "b": [[2.5], 5], "c": [[3.5], [], "w", 1000], "d": [[{}], []]}
    good.write_text(json.dumps({**content, "results": rows}))
    opened = archive(tmp_path)
    told = {}
    for name in opened.names():
        ((_, recorded),) = opened.recorded(name)
        (table,) = recorded.asv
        (results,) = table.columns["value"].results
        told[name] = (list(results), [failure.kind for _, _, failure in table.failures()])
    assert told == {"c": ([3.5], []), "d": ([{}], ["error"])}
    loaded = Store(tmp_path / "results").load(SHA)
    assert {round.name for round in loaded.recorded[0].rounds} == {"c", "d"}
    words = "2 parts of it are malformed, the first is the row of a; the others are used"
    assert [file.why for file in opened.skipped] == [file.why for file in loaded.skipped] == [words]


@pytest.mark.parametrize("number", ["1e400", "-1" + "0" * 400, "18446744073709551616"])
def test_a_number_that_no_float_holds_is_as_far_as_floats_reach_and_costs_nothing_else(
    tmp_path: Path, number: str
) -> None:
    path = write_asv_file(tmp_path / "results", {"x.time_f": ROW, "x.time_g": ROW})
    path.write_text(path.read_text().replace("0.5", number, 1))
    opened = archive(tmp_path)
    assert opened.skipped == ()
    values = {name: one.columns["wall_time"].results[0][0] for name in opened.names()
              for _, recorded in opened.recorded(name) for one in recorded.asv}  # fmt: skip
    assert values == {"x.time_f": float(number), "x.time_g": 0.5}


@pytest.mark.parametrize("word", [rb'["\udce9"]', rb'["caf\ud83d"]', b'["\xff"]'])
def test_half_a_character_costs_no_other_benchmark(tmp_path: Path, word: bytes) -> None:
    path = write_asv_file(tmp_path / "results", {"x.time_f": {**ROW, "params": [["@"]]}, "x.time_g": ROW})
    other = write_asv_file(tmp_path / "results", {"x.time_g": ROW}, sha=OTHER_SHA)
    path.write_bytes(path.read_bytes().replace(b'["@"]', word))
    opened = archive(tmp_path)
    ((sources, _),) = opened.recorded("x.time_g")
    assert len(sources) + len(opened.skipped) == 2
    assert json.loads(other.read_text())["commit_hash"] in {place.commit_sha for place in opened.places.values()}
    json.dumps([told(opened), [file.why for file in opened.skipped]], default=str).encode()


@pytest.mark.parametrize("damage", ["UPDATE sources SET about = 'text'", "UPDATE rows SET sources = 'x', data = x'ff'",
                                    "UPDATE rows SET data = 7", "UPDATE names SET name = x'ff'"])  # fmt: skip
def test_an_index_that_is_damaged_is_made_anew(tmp_path: Path, damage: str) -> None:
    write_asv_file(tmp_path / "results", {"x.time_f": ROW})
    expected = told(archive(tmp_path))
    (path,) = (tmp_path / "cache").iterdir()
    edit(path, damage)
    assert told(archive(tmp_path)) == expected


def test_of_rows_with_very_many_samples_only_what_is_needed_is_kept(tmp_path: Path) -> None:
    long = {**ROW, "started_at": 1000, "stats_ci_99_a": [0.4], "stats_ci_99_b": [0.6], "samples": [[0.5] * 50_000]}
    write_asv_file(tmp_path / "results", {"x.time_f": long})
    for _ in range(2):
        ((_, recorded),) = archive(tmp_path).recorded("x.time_f")
        (table,) = recorded.asv
        _, *columns, _, _ = table.columns["wall_time"]
        assert (columns, table.started_at) == ([[[0.5]], [[0.4]], [[0.6]]], [1.0])
    (path,) = (tmp_path / "cache").iterdir()
    assert path.stat().st_size < 250_000


def test_two_files_of_one_commit_machine_and_environment_are_merged_and_said(tmp_path: Path) -> None:
    root = tmp_path / "results"
    older = {"x.time_f": {**ROW, "started_at": 1000}, "x.time_g": {**ROW, "started_at": 1000}}
    path = write_asv_file(root, older)
    path.rename(path.with_name("zzz.json"))
    write_asv_file(root, {"x.time_f": {**ROW, "result": [9.0], "started_at": 2000}})
    opened = archive(tmp_path)
    values = [recorded.asv[0].columns["wall_time"].results for _, recorded in opened.recorded("x.time_f")]
    assert values == [[[0.5]], [[9.0]]], "what was measured last stands last"
    assert len(opened.recorded("x.time_g")) == 1
    (said,) = opened.skipped
    assert (said.path.name, "what was measured later counts" in said.why) == ("zzz.json", True)


def test_a_sidecar_of_another_commit_with_the_same_digits_is_named(tmp_path: Path) -> None:
    root = tmp_path / "results"
    write_asv_file(root, {"x.time_f": ROW}, sha=SHA[:8] + "f" * 32)
    other = write_asv_file(tmp_path / "other", {"x.time_f": ROW})
    fill(tmp_path / "ours", [taken(ADD, gpu_time=1.0)], [benchmark()])
    sidecar = next((tmp_path / "ours" / "gpu-box").glob(f"*{ENDING}"))
    sidecar.rename(root / "gpu-box" / sidecar.name)
    opened = archive(tmp_path)
    assert (set(opened.names()), [file.path.name for file in opened.skipped]) == ({ADD}, [other.name])


def test_further_metrics_are_of_their_benchmark_also_without_the_sidecar(tmp_path: Path) -> None:
    root = tmp_path / "results"
    fill(root, [taken(ADD, gpu_time=1.0, host_time=2.0)], [benchmark()])
    next((root / "gpu-box").glob(f"*{ENDING}")).unlink()
    lookalike = {"x.track_f": ROW, "x.track_f.track_g": ROW}
    write_asv_file(root, lookalike, sha=OTHER_SHA)
    opened = archive(tmp_path)
    assert set(opened.names()) == {ADD, "x.track_f", "x.track_f.track_g"}
    ((_, recorded),) = opened.recorded(ADD)
    assert {metric: column.results for metric, column in recorded.asv[0].columns.items()} == {
        "gpu_time": [[1.0]],
        "host_time": [[2.0]],
    }


def test_old_names_are_those_that_the_sidecars_and_asvs_list_declare(tmp_path: Path) -> None:
    root = tmp_path / "results"
    fill(root, [taken(ADD, gpu_time=1.0)], [benchmark(was=["ops.cudatime_plus"])])
    entries = {**benchmark("x.time_f").asv, "was": "x.time_g"}
    (root / "benchmarks.json").write_text(json.dumps({"x.time_f": entries, "version": 2}))
    opened = archive(tmp_path)
    assert [opened.was(name) for name in (ADD, "x.time_f", MUL)] == [("ops.cudatime_plus",), ("x.time_g",), ()]


def test_details_that_a_history_does_not_need_are_not_kept(tmp_path: Path) -> None:
    failure = Failure("error", "ValueError", "ops.py:3", "a long traceback")
    fill(tmp_path / "results", [taken(ADD, failure=failure)], [benchmark()], of=side())
    ((_, recorded),) = archive(tmp_path).recorded(ADD)
    assert recorded.rounds[0].failure == Failure("error", "ValueError", "ops.py:3", "")


def test_progress_goes_to_the_end_and_only_where_something_is_read(tmp_path: Path) -> None:
    three(tmp_path)
    calls: list[tuple[int, int]] = []
    archive(tmp_path, progress=lambda done, total: calls.append((done, total)))
    assert len(calls) == 3
    assert calls == sorted(calls)
    assert calls[-1][0] == calls[-1][1] > 0
    calls.clear()
    archive(tmp_path, progress=lambda done, total: calls.append((done, total)))
    assert calls == []
