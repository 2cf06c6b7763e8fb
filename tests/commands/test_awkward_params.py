"""A parameter that no one would choose, the whole way: measured, recorded, compared, printed, and named again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from regress.history import Store
from tests.conftest import Project

CODE = "import regress_scripted as d\ndef work(raw): d.kernel('k', {seconds} + raw * {more})\n"
AWKWARD = "x" * 250 + "\n/\\\"'`$HOME\t\x1b[31m</script>|%s{}\u202e\u2603\U0001f600,) "
SUITE = f"""
import proj
class Raw:
    def __repr__(self): return {AWKWARD!r}
class Suite:
    params = [[{AWKWARD!r}, Raw()]]
    param_names = ["text"]
    def cudatime_work(self, text): proj.work(not isinstance(text, str))
"""
PARAMS = [repr(AWKWARD), AWKWARD]
"""asv names a parameter by its repr, which escapes what is in a string, and not what an object makes of itself."""


def test_an_awkward_parameter_is_one_row_everywhere_and_whole_inside(tmp_path: Path) -> None:
    p = Project(tmp_path / "p", {"run_rounds": 2, "check_rounds": 2, "machine": "box"})
    shas = []
    for seconds, more in ((50e-6, 0), (70e-6, 10e-6)):
        code = CODE.format(seconds=seconds, more=more)
        shas.append(p.commit({"proj/__init__.py": code, "benchmarks/b.py": SUITE}))
        assert p.regress("run", "-q").code == 0
    stems = {path.name.split(".")[0] for path in (p.root / "history" / "box").iterdir() if path.name[0] != "."}
    assert {stem[:8] for stem in stems} == {shas[0][:8], shas[1][:8], "machine"}
    (recorded,) = Store(p.root / "history").load(shas[1]).recorded
    assert {tuple(round.params) for round in recorded.rounds} == {(text,) for text in PARAMS}

    assert p.regress("check", *shas, "--record", "-q").code == 1
    compared = p.regress("compare", *shas, "--output", f"json={tmp_path / 'seen.json'}")
    assert compared.code == 1, compared.err
    rows = [line for line in compared.out.splitlines() if line.startswith("+ b.Suite.cudatime_work(")]
    assert len(rows) == 2
    assert all(line.isprintable() for line in compared.out.splitlines())
    report = json.loads((tmp_path / "seen.json").read_text())
    timed = [row for row in report["benchmarks"] if row["metric"] == "gpu_time"]
    assert [(row["params"], row["verdict"]) for row in timed] == [([text], "regressed") for text in PARAMS]

    # What is printed to be run again selects that very case: the worst, which is the one that nothing has escaped.
    (again,) = [line for line in compared.out.splitlines() if line.startswith("again ")]
    command = again.removeprefix("again ").replace("regress", f"{sys.executable} -m regress", 1)
    done = subprocess.run(
        ["bash", "-c", f"{command} --format json"], cwd=p.root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert {tuple(row["params"]) for row in json.loads(done.stdout)["benchmarks"]} == {(AWKWARD,)}
