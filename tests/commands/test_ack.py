"""`regress ack`, and what check, compare and sweep make of it: real git, worktrees and processes, the scripted device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from regress import acks
from regress.commands.ack import ack_all_open
from regress.model import Acknowledgement
from regress.session import Request
from tests.commands.test_check import OTHER, SUITE, code, document
from tests.commands.test_sweep import filled
from tests.conftest import Project, Result
from tests.pages.made import Made, noisy

pytestmark = pytest.mark.usefixtures("dated")

FILE = "regress-acks.toml"
WORK = "b.cudatime_work"


def entries(p: Project) -> tuple[Acknowledgement, ...]:
    return acks.read(p.root / FILE)


def acked(p: Project, *words: str) -> Result:
    result = p.regress("ack", WORK, "--reason", "exact for long rows", *words)
    assert result.code == 0, result.err
    return result


@pytest.fixture
def slower(project: Callable[..., Project]) -> Project:
    """Two commits; the second makes `work` 20 % slower."""
    p = project()
    p.commit({"proj/__init__.py": code(50e-6), "benchmarks/b.py": SUITE})
    p.commit({"proj/__init__.py": code(60e-6)})
    return p


def test_an_accepted_regression_passes_until_it_gets_worse(slower: Project) -> None:
    p, base, head = slower, slower.git("rev-parse", "HEAD~1"), slower.git("rev-parse", "HEAD")
    first = p.regress("check")
    assert first.code == 1
    assert f'\naccept regress ack {WORK} --metric gpu_time --reason "…"\n' in first.out
    done = acked(p, "--link", "https://example.org/412")
    assert f"added to {FILE}: commit it with the change" in done.out
    assert f"git add {FILE}" in done.out
    (entry,) = entries(p)
    assert entry.level == pytest.approx(1.2, rel=0.02)
    assert replace(entry, level=None) == Acknowledgement(
        WORK,
        "accepted",
        "exact for long rows",
        "gpu_time",
        since=base[:12],
        seen=head[:12],
        until="next tag",
        link="https://example.org/412",
    )
    again = p.regress("check", "--output", "json=../seen.json")  # the file makes no working tree dirty
    assert again.code == 0, again.out
    assert "PASS  2 cases: 1 regressed (acknowledged), 1 unchanged" in again.out
    assert "until the next tag: exact for long rows" in again.out
    assert "accept " not in again.out
    p.commit({"proj/__init__.py": code(72e-6)})
    assert p.regress("check").code == 1, "the base has what was accepted, and this is on top"
    result = p.regress("check", base)
    assert (result.code, "above what is accepted, +" in result.out) == (1, True)


@pytest.mark.slow
def test_what_is_slower_and_uses_more_memory_is_accepted_in_one_call(project: Callable[..., Project]) -> None:
    p = project()
    work = "import regress_scripted as d\ndef work():\n    d.kernel('w', {}e-6)\n    return d.alloc({} << 20)\n" + OTHER
    p.commit({"proj/__init__.py": work.format(50, 8), "benchmarks/b.py": SUITE})
    p.commit({"proj/__init__.py": work.format(60, 16)})
    assert p.regress("check").code == 1
    acked(p)
    assert {entry.metric: entry.level for entry in entries(p)} == {
        "peak_memory": 2.0,
        "gpu_time": pytest.approx(1.2, rel=0.02),
    }
    assert p.regress("check").code == 0
    assert p.regress("ack", WORK, "--reason", "again").code == 2
    acked(p, "--replace")
    assert len(entries(p)) == 2


def test_a_comparison_of_what_is_recorded_heeds_it_too(slower: Project) -> None:
    p = slower
    assert p.regress("check", "--record").code == 1
    assert p.regress("compare", "HEAD~1", "HEAD").code == 1
    acked(p)
    report = document(p.regress("compare", "HEAD~1", "HEAD", "--format", "json"))
    assert (report["exit_code"], report["counts"], report["acknowledged"]) == (
        0,
        {"regressed": 1, "unchanged": 1},
        {"regressed": 1},
    )
    known = [row["acknowledged"] for row in report["benchmarks"] if row["acknowledged"]]
    assert [row["reason"] for row in known] == ["exact for long rows"]


@pytest.mark.slow
def test_an_expired_and_an_unused_entry_are_told_of_where_everything_was_measured(slower: Project) -> None:
    p = slower
    assert p.regress("check").code == 1
    acked(p, "--until", "v1")
    assert p.regress("ack", "b.cudatime_other", "--kind", "noise", "--reason", "branches").code == 0
    p.commit({"benchmarks/b.py": SUITE.replace("cudatime_other", "cudatime_rest")})
    p.git("tag", "v1", "HEAD~1")
    everything = p.regress("check", "v1~1", "HEAD")
    assert everything.code == 1
    lines = [line for line in everything.out.splitlines() if FILE in line]
    assert len(lines) == 2
    assert f"{FILE}:3: {WORK}, accepted, has expired: v1 is there; fix: regress ack --remove {WORK}" in lines[0]
    assert "b.cudatime_other, noise, is unused: no benchmark matches" in lines[1]
    assert "no longer accepted: v1 is there" in everything.out
    assert FILE not in p.regress("check", "v1~1", "HEAD", "-b", "cudatime_rest").out
    listed = document(p.regress("ack", "--list", "--format", "json"))["acknowledgements"]
    assert [(row["benchmark"], row["state"]) for row in listed[:1]] == [(WORK, "expired")]


@pytest.mark.slow
def test_an_entry_is_replaced_and_removed_only_when_asked(slower: Project) -> None:
    p = slower
    assert p.regress("check").code == 1
    acked(p)
    text = (p.root / FILE).read_text()
    (p.root / FILE).write_text(text.replace("[[ack]]", "# asked for by the users\n[[ack]]"))
    twice = p.regress("ack", WORK, "--reason", "again")
    assert twice.code == 2
    assert f"{FILE}:4 has {WORK} already: accepted until the next tag: exact for long rows" in twice.err
    assert "--replace" in twice.err
    assert p.regress("ack", WORK, "--reason", "again", "--replace", "--until", "v9").code == 0
    assert [(entry.reason, entry.until) for entry in entries(p)] == [("again", "v9")]
    assert "# asked for by the users\n[[ack]]" in (p.root / FILE).read_text()
    wrong = p.regress("ack", "--remove", "b.cudatime_wrok")
    assert (wrong.code, f"regress ack --remove {WORK}" in wrong.err) == (2, True)
    assert p.regress("ack", "--remove", WORK).code == 0
    assert "[[ack]]" not in (p.root / FILE).read_text()
    assert "nothing is acknowledged" in p.regress("ack", "--list").out


@pytest.mark.slow
def test_a_second_accepted_change_is_one_level_with_the_first(slower: Project) -> None:
    p, base = slower, slower.git("rev-parse", "HEAD~1")
    assert p.regress("check").code == 1
    acked(p, "--until", "lifted")
    p.commit({}, "accepted")
    p.commit({"proj/__init__.py": code(72e-6)})
    assert p.regress("check").code == 1
    acked(p, "--replace", "--until", "lifted")
    assert entries(p)[0].level == pytest.approx(1.44, rel=0.03)
    assert entries(p)[0].since == base[:12]
    assert p.regress("check").code == 0
    assert p.regress("check", base).code == 0


REFUSED: list[tuple[list[str], str, str]] = [
    (["b.cudatime_wrok", "--reason", "x"], "no benchmark b.cudatime_wrok", WORK),
    (["elsewhere", "--reason", "x"], "no benchmark elsewhere is known here", "regress check -b elsewhere"),
    ([WORK, "--reason", "x", "--until", "2020-01-01"], "is over already", "later"),
    ([WORK, "--reason", "x", "--until", "some day"], "is neither a tag nor a date", "--until v1.6"),
    (["b.cudatime_other", "--reason", "x"], "b.cudatime_other has not regressed", "--level +9% --since REV"),
    ([WORK, "--reason", "x", "--metric", "peak_memory"], "has not regressed in peak_memory", "regress check -b"),
    ([WORK, "--reason", "x", "--metric", "gpu_tme"], "gpu_tme", "gpu_time"),
    ([WORK], "--reason", "--help"),
    ([WORK, "--reason", " "], "--reason", "--help"),
    (["--list", WORK], "--list", "--help"),
    ([WORK, "--kind", "noise", "--level", "+9%", "--reason", "x"], "--level", "--help"),
    (["--remove", WORK, "--reason", "x"], "--reason", "--help"),
    (["--remove", "elsewhere"], "has no entry for elsewhere", "regress ack --list"),
    (["--remove", WORK, "--until", "v2"], "--until", "--help"),
    (["--list", "--kind", "noise"], "--kind", "--help"),
]
"""Words after `regress ack`; what the error says, and its fix."""


def test_what_cannot_be_acknowledged_is_refused(slower: Project) -> None:
    assert slower.regress("check").code == 1
    for words, what, fix in REFUSED:
        result = slower.regress("ack", *words)
        assert result.code == 2, words
        assert what in result.err
        assert fix in result.err.partition("fix:")[2]
        assert not (slower.root / FILE).exists()


def test_where_nothing_was_measured_nothing_is_known(slower: Project) -> None:
    result = slower.regress("ack", WORK, "--reason", "x")
    assert (result.code, "no benchmark is known here" in result.err) == (2, True)


def test_a_broken_file_is_an_error_before_anything_is_measured(slower: Project) -> None:
    slower.write({FILE: "[[ack]]\nbenchmark = 1\n"})
    result = slower.regress("check")
    assert (result.code, result.out) == (2, "")
    assert f"error: {FILE}:1 has" in result.err


def test_a_level_may_be_named_for_what_another_machine_has_measured(slower: Project) -> None:
    p = slower
    assert p.regress("check", "--rounds", "2", "-b", "other").code in (0, 1)
    base = p.git("rev-parse", "HEAD~1")
    named = ["b.cudatime_other", "--level", "+25%", "--since", "HEAD~1", "--metric", "gpu_time", "--reason", "x"]
    assert p.regress("ack", *named).code == 0
    (entry,) = entries(p)
    assert (entry.level, entry.since) == (1.25, base[:12])


def test_quarantine_lets_failures_pass_and_lasts_until_it_is_lifted(project: Callable[..., Project]) -> None:
    p = project()
    p.commit({"proj/__init__.py": code(), "benchmarks/b.py": SUITE})
    p.commit({"proj/__init__.py": code() + "def work(): raise RuntimeError('boom')\n"})
    assert p.regress("check").code == 3
    acked(p, "--kind", "quarantine")
    assert entries(p)[0].until == "lifted"
    result = p.regress("check")
    assert result.code == 0, result.out
    assert "until it is lifted: exact for long rows, RuntimeError: boom" in result.out


@pytest.mark.slow
def test_three_reversed_verdicts_suggest_quarantine(slower: Project) -> None:
    """Code that takes as long as a file outside the repository says: the same commits, another verdict each time."""
    p = slower
    state = p.root.parent / "seconds"
    slow = f"from pathlib import Path\n{code()}def work(): d.kernel('k', float(Path({str(state)!r}).read_text()))\n"
    p.commit({"proj/__init__.py": slow.replace("float(", "50e-6 or float(")})
    p.commit({"proj/__init__.py": slow})
    for at, seconds in enumerate((60e-6, 50e-6, 60e-6, 50e-6)):
        state.write_text(str(seconds))
        result = p.regress("check", "-b", WORK)
        assert result.code == (1 if seconds > 55e-6 else 0), result.out
        assert ("contradicted" in result.out) is (at == 3)
    assert f'fix: regress ack {WORK} --kind quarantine --reason "…"' in result.out
    acked(p, "--kind", "quarantine")
    assert "contradicted" not in p.regress("check", "-b", WORK).out


def test_a_sweep_fails_for_nothing_that_is_acknowledged(project: Callable[..., Project]) -> None:
    p, shas = filled(project, [50e-6] * 4 + [60e-6] * 5)
    assert p.regress("sweep", f"{shas[0]}..{shas[3]}").code == 0
    named = ["--level", "+20%", "--since", shas[3], "--metric", "gpu_time"]
    acked(p, *named)
    p.git("add", "-A")
    p.git("commit", "-qm", "the results, and what is accepted")
    result = p.regress("sweep", f"{shas[3]}..{shas[8]}", "--format", "json")
    report = document(result)
    assert (result.code, report["remark"]) == (0, "1 new acknowledged regression (5 of 5 commits measured)"), report
    (change,) = report["changes"]
    assert (change["first"], change["acknowledged"]["reason"]) == (shas[4], "exact for long rows")


@pytest.mark.slow
def test_what_is_open_in_the_history_can_be_accepted_without_a_check(project: Callable[..., Project]) -> None:
    p, shas = filled(project, [50e-6] * 4 + [60e-6] * 5)
    assert p.regress("sweep", f"{shas[0]}..").code == 1
    acked(p)
    (entry,) = entries(p)
    assert (entry.since, entry.seen, entry.metric) == (shas[3][:12], shas[4][:12], "gpu_time")
    assert entry.level == pytest.approx(1.2, rel=0.02)
    seen = p.regress("sweep", f"{shas[0]}..", "--retry", "-v", "--format", "json")
    assert seen.code == 0


@pytest.mark.slow
def test_all_that_is_open_is_known_and_what_comes_later_alarms(project: Callable[..., Project]) -> None:
    p = project()
    p.commit({"proj/__init__.py": code(50e-6), "benchmarks/b.py": SUITE})
    for at, seconds in enumerate([50e-6] * 3 + [60e-6] * 4):
        p.commit({"proj/__init__.py": code(seconds), "NEWS": str(at)})
    assert p.regress("sweep", "ALL", "-q").code == 1
    done = p.regress("ack", "--all-open", "--reason", "before we looked")
    assert (done.code, done.err) == (0, "")
    assert "1 regression up to " in done.out
    (entry,) = entries(p)
    assert (entry.pattern, entry.kind, entry.until) == (".", "known", "lifted")
    for at in range(3):
        p.commit({"proj/__init__.py": code(80e-6), "NEWS": f"later {at}"})
    result = p.regress("sweep", "--format", "json")
    old, new = sorted(document(result)["changes"], key=lambda change: bool(change["new"]))
    assert (result.code, old["acknowledged"]["kind"], new["new"], new["acknowledged"]) == (1, "known", True, None)
    assert p.regress("check", "HEAD~3", "-q").code == 1, "it is about the history alone"
    again = p.regress("ack", "--all-open", "--reason", "seen too")
    assert again.code == 0
    assert [entry.reason for entry in entries(p)] == ["seen too"], "one entry, moved on"
    assert p.regress("ack", "--all-open", "--reason", "x").code == 2


def test_all_that_is_open_is_counted_as_in_the_report(tmp_path: Path) -> None:
    """An event is one, on however many machines."""
    made = Made(tmp_path / "p", 24)
    for machine in ("a", "b", "c"):
        made.record({name: noisy((12, 1e-3), (12, 1.2e-3)) for name in ("x.time_f", "y.time_g")}, machine=machine)
    assert len(made.index().open) == 2
    assert ack_all_open(Request(made.root), "before we looked").remark.startswith("2 regressions up to ")


def test_what_is_open_at_commits_that_change_nothing_is_what_the_report_shows(tmp_path: Path) -> None:
    """Merges that are like one of their parents, or commits of a list of versions: asv has measured them."""
    made = Made(tmp_path / "p", 24).record({"x.time_f": noisy((12, 1e-3), (12, 1.2e-3))})
    assert len(made.index().open) == 1
    report = ack_all_open(Request(made.root), "before we looked")
    assert report.remark.startswith(f"1 regression up to {made.shas[12][:8]} known")
    assert made.index().open == ()
