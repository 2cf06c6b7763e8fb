"""A history to make a report of: a repository of 30 commits and what four machines have recorded of them, with everything that
a page has to tell, and names that try to break out of it."""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

from regress.history import Store, keep_explanation
from regress.model import (
    METRICS,
    Benchmark,
    Case,
    Cause,
    Commit,
    Explained,
    Failure,
    KeptExplanation,
    KernelDiff,
    Machine,
    Protocol,
    Side,
    Verdict,
)
from tests.history.samples import GPU, WALL, benchmark, taken
from tests.report import sample

COMMITS = 30
UNMEASURED = {16, 17, 28, 29}
START, DAY = 1_767_000_000, 86_400
HOSTILE = "Fuse </script><script>window.hacked=1</script> \"quoted\" 'it' \u2028 <!-- <b>&amp;"
SUBJECTS = {0: "Begin", 5: "Long " + "x" * 5000, 18: "alloc: keep a second copy", 22: HOSTILE}
AUTHORS = ("Ada Lovelace", 'Zoë "Z" O\'Hara', "Grüße \u2029 Ünal")
TAGS = {2: "v1.0", 12: "v1.1"}
EVIL = ("'</script><img src=x onerror=window.hacked=1>'", "'\u2028 \"a\" `b` | c'", "'" + "long" * 75 + "'")
SIZES, DTYPES = ("1024", "4096", "16384"), ("'float32'", "'bfloat16'")
GPUS = {
    name: Machine(
        name, {"gpu": gpu, "gpu_uuid": f"GPU-{name}", "driver": driver, "cuda": "13.0", "ram": "135148564480"}
    )
    for name, gpu, driver in (("h100", "H100 80GB", "580"), ("a100", "A100 40GB", "580"), ("l4", "L4", "570"))
}
CPU = Machine("cpu-box", {"cpu": "Some CPU", "ram": "67148564480"})
SOFTMAX, ALLOC, ADD, LAST = "ops.Softmax.cudatime_fwd", "mem.cudatime_alloc", "ops.cudatime_add", "ops.cudatime_last"
NORM, PARSE, NOISY, OOM, ODD = (
    "ops.LayerNorm.cudatime_fwd",
    "cpu.time_parse",
    "cpu.time_noisy",
    "ops.cudatime_oom",
    "cpu.time_odd",
)


class Recorder:
    """What one machine records in one environment."""

    def __init__(self, root: Path, machine: Machine, environment: str) -> None:
        self.store, self.machine, self.environment = Store(root), machine, environment
        self.dice = random.Random(f"{machine.name} {environment}")
        self.benchmarks: dict[str, Benchmark] = {}

    def put(self, commit: Commit, defined: Benchmark, params: Sequence[str], protocol: Protocol, noise: float,
            facts: Mapping[str, Any], failure: Failure | None = None, **metrics: float) -> None:  # fmt: skip
        self.benchmarks[defined.name] = defined
        for order in range(2 if failure is None else 1):
            values = {name: value if name == "peak_memory" else value * (1 + noise * self.dice.gauss(0, 1))
                      for name, value in metrics.items()}  # fmt: skip
            round = taken(defined.name, params, order, protocol=protocol, failure=failure,
                         units={"peak_memory": "B"}, values=values)  # fmt: skip
            self.store.append(
                Side("head", commit, "HEAD", self.environment), self.machine, self.environment, round, facts, defined
            )

    def finish(self, commit: Commit) -> None:
        side = Side("head", commit, "HEAD", self.environment)
        self.store.finish(side, self.machine, self.environment, python="3.12", benchmarks=self.benchmarks)


def create(root: Path) -> Path:
    """The folder of the repository, with results in `history`."""
    root.mkdir(parents=True)
    commits = repository(root)
    with mock.patch("regress.history.disk.locked", return_value=contextlib.nullcontext()):  # nobody else writes there
        record(root, commits)
        explain(root, commits)
    broken = root / "history" / "h100" / f"{commits[3].sha[:8]}-other.json"
    broken.write_text("{ truncated")
    return root


def record(root: Path, commits: Sequence[Commit]) -> None:
    gpus = [Recorder(root / "history", machine, "worktree-py3.12") for machine in GPUS.values()]
    cpus = [Recorder(root / "history", CPU, environment) for environment in ("worktree-py3.11", "worktree-py3.12")]
    for at, commit in enumerate(commits):
        if at in UNMEASURED:
            continue
        for recorder in gpus:
            on_gpu(recorder, at, commit)
        for recorder in cpus:
            on_cpu(recorder, at, commit)
        for recorder in (*gpus, *cpus):
            recorder.finish(commit)
    lost = Commit("ab" * 20, "rebased away", "Ada", START)
    on_cpu(cpus[0], 0, lost)
    cpus[0].finish(lost)


def explain(root: Path, commits: Sequence[Commit]) -> None:
    """One case of the regression of today between the two commits of it, with names that are markup; and a regression of before
    on another machine, between two commits that are farther apart."""
    evil = KernelDiff(None, sample.use(f"k<{HOSTILE}>", 1e-7, operators=(HOSTILE,)), "nothing", "new")
    today = explained(SOFTMAX, (SIZES[1], DTYPES[0]), 24.6e-6, 26.9e-6, f"a fusion was lost: {HOSTILE}", evil)
    before = explained(NORM, (), 66e-6, 74e-6, "softmax::rest was added: 2.00 us a call", evil)
    for base, head, machine, account in ((21, 22, "h100", today), (2, 12, "laptop", before)):
        ends = commits[base].sha, commits[head].sha
        keep_explanation(root / "history", KeptExplanation(*ends, machine, "worktree-py3.12", START, account))


def explained(name: str, params: tuple[str, ...], base: float, head: float, why: str, more: KernelDiff) -> Explained:
    explanation = sample.explanation()
    causes = (Cause("fusion", why, "high"), *explanation.causes[1:])
    explanation = replace(explanation, causes=causes, kernels=(*explanation.kernels, more))
    about = replace(
        sample.compared(Case(name, params), "gpu_time", Verdict.REGRESSED, base, head), metric=METRICS["gpu_time"]
    )
    return replace(sample.explain().explained[0], comparison=about, explanation=explanation)


def on_gpu(recorder: Recorder, at: int, commit: Commit) -> None:
    name = recorder.machine.name
    speed = {"h100": 1.0, "a100": 1.7, "l4": 4.0}[name]
    facts = {"gpu_uuid": f"GPU-{name}", "gpu": GPUS[name].facts["gpu"], "driver": "580"}

    def put(what: str, params: Sequence[str] = (), defined: Benchmark | None = None, **metrics: float) -> None:
        recorder.put(commit, defined or benchmark(what), params, GPU, 0.003, facts, None, **metrics)

    softmax = named(benchmark(SOFTMAX, (SIZES, DTYPES)), "size", "dtype")
    for size in SIZES:
        for dtype in DTYPES:
            base = int(size) * 6e-9 * speed * (1 if dtype == DTYPES[0] else 0.6)
            slower = 1.094 if at >= 22 and name != "l4" else 1.0
            put(SOFTMAX, (size, dtype), softmax, gpu_time=base * slower, host_time=9e-6, peak_memory=int(size) * 1e5)
    put(NORM, gpu_time=66e-6 * speed * (1.12 if 8 <= at < 14 else 1), host_time=11e-6)
    put(ALLOC, gpu_time=20e-6 * speed, peak_memory=512 * 2**20 * (1.25 if at >= 18 else 1))
    put(LAST, gpu_time=40e-6 * speed * (1.2 if at == 27 else 1))
    facts = {**facts, "driver": "570" if at < 10 and name == "h100" else "580"}
    put(ADD, gpu_time=180e-6 * speed)
    if at < 25:
        put(OOM, gpu_time=5e-3)
    else:
        failed = Failure("oom", "out of memory (asked 60 GiB) <b>", "ops.py:7")
        recorder.put(commit, benchmark(OOM), (), GPU, 0.003, facts, failed)


def on_cpu(recorder: Recorder, at: int, commit: Commit) -> None:
    def put(
        what: str, noise: float, value: float, params: Sequence[str] = (), axes: Sequence[Sequence[str]] = ()
    ) -> None:
        defined = benchmark(what, axes, metric="wall_time")
        recorder.put(commit, defined, params, WALL, noise, {}, wall_time=value)

    put(PARSE, 0.004, 1.2e-3 * (0.86 if at >= 20 else 1))
    put(NOISY, 0.25, 3e-3)
    for param in EVIL:
        put(ODD, 0.003, 2e-6, (param,), (EVIL,))


def named(defined: Benchmark, *names: str) -> Benchmark:
    defined.param_names[:] = names
    defined.asv["param_names"] = list(names)
    return defined


def repository(root: Path) -> list[Commit]:
    """A repository of empty commits, made by one command."""
    config = {"version": 1, "project": "tensors", "repo": ".", "branches": ["main"], "results_dir": "history",
              "show_commit_url": "https://example.org/commit/"}  # fmt: skip

    def git(*words: str, text: str | None = None) -> str:
        done = subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True, input=text)
        return done.stdout

    git("init", "-q", "-b", "main")
    git("fast-import", "--quiet", text="".join(map(entry, range(COMMITS))))
    git("reset", "-q", "--hard")
    for at, tag in TAGS.items():
        git("tag", tag, f"HEAD~{COMMITS - 1 - at}")
    (root / "asv.conf.json").write_text(json.dumps(config))
    shas = git("rev-list", "--reverse", "HEAD").split()
    return [Commit(sha, subject(at), AUTHORS[at % 3], START + at * DAY) for at, sha in enumerate(shas)]


def subject(at: int) -> str:
    return SUBJECTS.get(at, f"change {at}")


def entry(at: int) -> str:
    who = f"{AUTHORS[at % 3]} <a@example.org> {START + at * DAY} +0000"
    text = subject(at)
    # Every commit changes a file, or it would be one that there is nothing new to measure in.
    body = f"M 100644 inline code.py\ndata {len(str(at))}\n{at}\n"
    return f"commit refs/heads/main\nauthor {who}\ncommitter {who}\ndata {len(text.encode())}\n{text}\n{body}"
