"""How long a report takes to write, beside `asv publish`, and how long it takes to open.

    python benchmarks/versus/publishing.py                        1,000 benchmarks by 1,000 commits, made up
    python benchmarks/versus/publishing.py --commits 200 --benchmarks 100 --asv
    python benchmarks/versus/publishing.py --history FOLDER       a suite with its results, and its repository cloned beside it

The report is written for all commits but the newest one, then with results of a few benchmarks at that one, then of all, then
once more with nothing new. Both tools find the change points of every series. Printed are seconds from start to end, and those
of processors, which tell more where others use the machine too; both programs have their modules compiled before. `--asv`
(with --history always, but for --no-asv) runs `asv publish` on the same files; it always writes everything. Where there
is a Chromium and playwright, the report is opened in it, from its file: until the overview is there, until a benchmark is, and
how long a key in the search takes. All in one run; nothing is asserted.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
MACHINE = {"machine": "box", "arch": "x86_64", "cpu": "Some CPU", "num_cpu": "8", "os": "Linux", "ram": "1"}
COLUMNS = ["result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b", "stats_q_25",
           "stats_q_75", "stats_number", "stats_repeat", "samples", "profile"]  # fmt: skip
ENVIRONMENT = "existing-py3.11"
SECONDS = 86_400


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--history", type=Path, help="folder of an asv.conf.json whose repo is a local clone")
    parser.add_argument("--commits", type=int, default=1000)
    parser.add_argument("--benchmarks", type=int, default=1000)
    parser.add_argument("--asv", action=argparse.BooleanOptionalAction, default=None, help="run asv publish too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="versus-") as temporary:
        folder = Path(temporary) / "suite"
        if given.history:
            shutil.copytree(given.history, folder, ignore=shutil.ignore_patterns(".git", "html", "report", "env"))
        else:
            timed("making the history up", lambda: invent(folder, given.commits, given.benchmarks))
        written(folder, Path(temporary) / "cache")
        if given.history is not None if given.asv is None else given.asv:
            (folder / "home").mkdir()
            (folder / "home" / ".asv-machine.json").write_text(json.dumps({"box": MACHINE, "version": 1}))
            timed("asv publish", lambda: run(folder, "asv", "publish", HOME=str(folder / "home")))
        opened(folder / "report" / "index.html")


# -- writing -------------------------------------------------------------------------------------------------------------


def written(folder: Path, cache: Path) -> None:
    newest, results = latest(folder), folder / json5(folder).get("results_dir", "results")
    aside = folder.parent / "aside"
    files = list(results.glob(f"*/{newest[:8]}-*"))
    for path in files:
        (aside / path.parent.name).mkdir(parents=True, exist_ok=True)
        path.rename(aside / path.parent.name / path.name)
    report = partial(run, folder, "regress", "report", "-q", REGRESS_CACHE_DIR=str(cache))
    run(folder, "regress", "report", "--help")
    timed("regress report, the first time", report)
    for path in files:
        path.write_text(json.dumps(few(json.loads((aside / path.parent.name / path.name).read_text()))))
    timed("regress report, with a few new results", report)
    for path in files:
        (aside / path.parent.name / path.name).replace(path)
    timed("regress report, with one commit more", report)
    timed("regress report, with nothing new", report)
    data = folder / "report" / "data"
    shards = [path.stat().st_size for path in (data / "b").iterdir()]
    index = (data / "index.js").stat().st_size
    print(f"index {index / 1e3:.0f} kB, {len(shards)} benchmarks of {max(shards) / 1e3:.0f} kB at most")


def few(content: dict[str, Any]) -> dict[str, Any]:
    """A file of results with those of one benchmark in twenty, and of one at least."""
    names = list(content["results"])[:: max(1, min(20, len(content["results"])))]
    return {**content, "results": {name: content["results"][name] for name in names}}


def latest(folder: Path) -> str:
    """The newest commit that has results."""
    config = json5(folder)
    repo, results = folder / config["repo"], folder / config.get("results_dir", "results")
    measured = {path.name.partition("-")[0] for path in results.glob("*/*-*.json")}
    listed = subprocess.run(
        ["git", "rev-list", "--topo-order", "HEAD"], cwd=repo, capture_output=True, text=True, check=True
    )
    return next(sha for sha in listed.stdout.split() if sha[:8] in measured)


def json5(folder: Path) -> dict[str, str]:
    import json5 as parser

    return dict(parser.loads((folder / "asv.conf.json").read_text()))


def run(folder: Path, module: str, *words: str, **variables: str) -> None:
    paths = filter(None, (str(ROOT), os.environ.get("PYTHONPATH", "")))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **variables}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # with it, what is not installed is compiled each time
    command = [sys.executable, "-m", module, *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(
            f"{module} {' '.join(words)}: exit code {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        )


def timed(what: str, work: Callable[[], None]) -> None:
    start, before = time.monotonic(), os.times()
    work()
    wall_s, after = time.monotonic() - start, os.times()
    print(f"{what:45} {wall_s:8.2f} s {sum(after[:4]) - sum(before[:4]):8.2f} s of processors", flush=True)


# -- a history that is made up -------------------------------------------------------------------------------------------


def invent(folder: Path, commits: int, benchmarks: int) -> None:
    """A repository, and a result of each benchmark at each commit; every tenth benchmark has a step somewhere."""
    folder.mkdir()
    dice = random.Random(1)
    entries = "".join(_commit(at) for at in range(commits))
    for words, text in (
        (("init", "-q", "-b", "main"), None),
        (("fast-import", "--quiet"), entries),
        (("reset", "-q", "--hard"), None),
    ):
        subprocess.run(["git", *words], cwd=folder, input=text, text=True, check=True)
    listed = subprocess.run(
        ["git", "rev-list", "--reverse", "HEAD"], cwd=folder, capture_output=True, text=True, check=True
    )
    names = [f"module{at % 20}.Suite{at % 7}.time_operation_{at}" for at in range(benchmarks)]
    level = {name: 10 ** dice.uniform(-6, -2) for name in names}
    step = {name: (dice.randrange(commits), dice.choice((0.8, 1.1, 1.25))) for name in names[::10]}
    config = {"version": 1, "project": "made-up", "repo": ".", "branches": ["main"], "environment_type": "existing"}
    results, long_ago = folder / "results", time.time() - SECONDS
    (results / "box").mkdir(parents=True)
    described = {name: {"name": name, "type": "time", "unit": "seconds", "params": [], "param_names": [], "version": "1",
                        "code": "", "timeout": 60.0} for name in names}  # fmt: skip
    (folder / "asv.conf.json").write_text(json.dumps(config))
    (results / "benchmarks.json").write_text(json.dumps({**described, "version": 2}))
    (results / "box" / "machine.json").write_text(json.dumps({**MACHINE, "version": 1}))
    for at, sha in enumerate(listed.stdout.split()):
        rows = {}
        for name in names:
            moved = step[name][1] if name in step and at >= step[name][0] else 1.0
            value = level[name] * moved * (1 + 0.01 * dice.gauss(0, 1))
            rows[name] = [
                [value],
                [],
                "1",
                0,
                0.1,
                [value * 0.98],
                [value * 1.02],
                [value * 0.99],
                [value * 1.01],
                [10],
                [5],
            ]
        date = (1_600_000_000 + at * SECONDS) * 1000
        content = {"commit_hash": sha, "env_name": ENVIRONMENT, "date": date, "params": MACHINE, "python": "3.11",
                   "requirements": {}, "env_vars": {}, "result_columns": COLUMNS, "results": rows, "durations": {},
                   "version": 2}  # fmt: skip
        path = results / "box" / f"{sha[:8]}-{ENVIRONMENT}.json"
        path.write_text(json.dumps(content))
        os.utime(path, (long_ago, long_ago))  # what has changed just now is read again the next time


def _commit(at: int) -> str:
    who, text = f"Ada <ada@example.org> {1_600_000_000 + at * SECONDS} +0000", f"change number {at}"
    head = f"commit refs/heads/main\nauthor {who}\ncommitter {who}\ndata {len(text)}\n{text}\n"
    return f"{head}M 100644 inline code.py\ndata {len(str(at))}\n{at}\n"


# -- opening -------------------------------------------------------------------------------------------------------------


def opened(page_file: Path) -> None:
    """Seconds in a browser: until something can be done, not until it has begun."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        chromium = None
    if chromium is None:
        print("no Chromium to open it in: apt-get install chromium, pip install playwright")
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        start = time.monotonic()
        page.goto(page_file.as_uri())
        page.wait_for_selector("table.rows tbody tr")
        page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        print(f"{'the overview can be used after':45} {time.monotonic() - start:8.2f} s")
        keys = page.evaluate(
            """async () => {
              const box = document.getElementById("search"), spent = [];
              for (const text of ["t", "ti", "tim", "time", "time_", "time_o", "time_op", "time_ope", "time_ope -suite3", ""]) {
                const start = performance.now();
                box.value = text;
                box.dispatchEvent(new Event("input"));
                document.body.getBoundingClientRect();
                spent.push(performance.now() - start);
              }
              return spent.sort((a, b) => a - b);
            }"""
        )
        print(f"{'a key in the search takes':45} {keys[len(keys) // 2]:8.1f} ms, {keys[-1]:.1f} at most")
        name = page.evaluate("regress.index.entries[regress.index.entries.length >> 1].name")
        start = time.monotonic()
        page.evaluate("name => { location.hash = regress.link('benchmark', name); }", name)
        page.wait_for_selector(".plot .u-over")
        page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        print(f"{'a benchmark is there after':45} {time.monotonic() - start:8.2f} s")
        browser.close()


if __name__ == "__main__":
    main()
