"""`regress gate` on small repositories: real git, worktrees and processes, the scripted device."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.commands.test_check import code, document
from tests.commands.test_sweep import filled
from tests.conftest import Project

pytestmark = pytest.mark.usefixtures("dated")

OTHER = "b.cudatime_other"
WORK = "b.cudatime_work"


def released(project: Callable[..., Project], times: list[float], **settings: object) -> Project:
    """A repository with a commit for each time, all of them swept, the first one tagged v1."""
    p, shas = filled(project, times, **settings)
    p.git("tag", "v1", shas[0])
    swept = p.regress("sweep", "ALL", "-q")
    assert swept.code in (0, 1), swept.err
    return p


def test_small_steps_fail_by_drift_where_no_single_check_does(project: Callable[..., Project]) -> None:
    p = released(project, [50e-6 * 1.02**step for step in range(11)])
    assert p.regress("check", "HEAD~1", "HEAD", "-q").code == 0
    result = p.regress("gate", "HEAD~1", "HEAD", "--format", "json", "--output", "text=../seen.txt")
    report = document(result)
    assert (result.code, report["verdict"]) == (1, "FAIL"), result.err
    assert report["counts"] == {"unchanged": 2}
    assert report["drift_since"] == "v1"
    drift = {row["name"]: row for row in report["drift"] if row["metric"] == "gpu_time"}
    assert (drift[WORK]["verdict"], drift[OTHER]["verdict"]) == ("regressed", "unchanged")
    assert drift[WORK]["ratio"] == pytest.approx(1.02**9, rel=0.02)
    text = (p.root.parent / "seen.txt").read_text()
    assert "  drift since v1 " in text
    assert "; 1 of 4 drifted since v1 " in text
    assert f"regress bisect {WORK} {p.git('rev-parse', 'v1')[:8]} {p.git('rev-parse', 'HEAD')[:8]}" in text


@pytest.mark.slow
def test_what_is_open_in_the_history_fails_unless_it_is_measured_not_to_be_there(
    project: Callable[..., Project],
) -> None:
    p = released(project, [50e-6] * 4 + [60e-6] * 4)
    report = document(p.regress("gate", "v1", "HEAD", "--format", "json"))
    (change,) = report["changes"]
    assert (change["name"], [row["subject"] for row in change["blamed"]]) == (WORK, ["commit 4"])
    assert report["counts"] == {"regressed": 1, "unchanged": 1}
    assert report["drift"] == [], "the check has measured against the release itself"

    p.commit({"proj/__init__.py": code(50e-6), "NEWS": "mended"}, "mended, and not swept")
    done = p.regress("gate", "v1", "HEAD", "--format", "json")
    assert (done.code, document(done)["changes"]) == (0, [])


@pytest.mark.slow
def test_what_is_acknowledged_passes_until_its_date_and_up_to_its_level(project: Callable[..., Project]) -> None:
    p = released(project, [50e-6] * 4 + [60e-6] * 4)
    assert p.regress("gate", "v1", "-q").code == 1
    acked = ("ack", WORK, "--reason", "exact for long rows", "--until", "2999-12-31")
    assert p.regress(*acked).code == 0
    p.commit({}, "acknowledge")
    assert p.regress("gate", "v1", "-q").code == 0
    assert p.regress("gate", "HEAD~1", "-q").code == 0, "the drift since v1 is what was accepted"

    file = p.root / "regress-acks.toml"
    file.write_text(file.read_text().replace("2999-12-31", "2020-01-01"))
    expired = p.regress("gate", "v1")
    assert (expired.code, "has expired" in expired.out) == (1, True), expired.out

    p.git("checkout", "-q", file.name)
    p.commit({"proj/__init__.py": code(70e-6)}, "slower still")
    assert p.regress("gate", "v1", "-q").code == 1


def test_of_what_nobody_can_tell_the_drift_is_said(project: Callable[..., Project]) -> None:
    p, shas = filled(project, [50e-6] * 3)
    p.git("tag", "v1", shas[0])
    assert p.regress("sweep", f"{shas[0]}..", "-q").code == 0  # not of the release itself
    result = p.regress("gate", shas[1], shas[2])
    assert result.code == 0, result.out
    assert "warning: drift since v1 is unknown for 4 series: measured differently, or not at both ends" in result.out


def test_the_policy_says_what_a_release_may_lose(project: Callable[..., Project]) -> None:
    p, shas = filled(project, [50e-6, 54e-6], gate_thresholds={r"b\.cudatime_w": {"gpu_time": "10%"}})
    assert p.regress("check", shas[0], shas[1], "-q").code == 1
    report = document(p.regress("gate", shas[0], shas[1], "--format", "json"))
    assert (report["exit_code"], report["counts"]) == (0, {"unchanged": 2})
    assert report["policy"]["gate_thresholds"] == {r"b\.cudatime_w": {"gpu_time": 0.1}}
    assert "no release is tagged before the head, so drift is not judged" in " ".join(report["warnings"])


def test_a_critical_case_has_to_be_shown_not_to_be_slower(project: Callable[..., Project]) -> None:
    p, shas = filled(project, [50e-6, 52.4e-6], critical=[WORK])
    options = ("--rounds", "2", "--format", "json")
    assert p.regress("gate", shas[0], shas[1], *options, "-b", OTHER).code == 0
    report = document(p.regress("gate", shas[0], shas[1], *options))
    critical = {row["name"]: row["critical"] for row in report["benchmarks"] if row["metric"] == "gpu_time"}
    assert critical == {WORK: True, OTHER: False}
    assert (report["exit_code"], report["counts"]) == (4, {"undecided": 1, "unchanged": 1})


def test_a_release_that_the_head_does_not_descend_from(project: Callable[..., Project]) -> None:
    p, shas = filled(project, [50e-6, 50e-6])
    p.git("checkout", "-q", "-b", "side", shas[0])
    p.commit({"NEWS": "aside"}, "aside")
    p.git("tag", "v0.9")
    p.git("checkout", "-q", "main")
    config = p.root / "asv.conf.json"
    config.write_text(config.read_text().replace('"regress": {', '"regress": {"gate_release": "v0.9", ', 1))
    result = p.regress("gate", shas[0], shas[1])
    assert result.code == 2
    assert '"gate_release" is v0.9, which the head does not descend from' in result.err
