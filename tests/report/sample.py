"""One rich Report of each command, for the golden files: every verdict, several metrics, failures, hostile text."""

from __future__ import annotations

import dataclasses
import shlex
from typing import Any

from regress.errors import Exit
from regress.model import (
    METRICS,
    Acknowledgement,
    AnchorCheck,
    Bisection,
    Breakage,
    Built,
    Case,
    Cause,
    Changed,
    ChangePoint,
    Check,
    Commit,
    Comparison,
    Contender,
    Contrast,
    Crossover,
    Duration,
    Durations,
    Explained,
    Explanation,
    Failure,
    Fineness,
    Implementations,
    KernelDiff,
    KernelUse,
    Listed,
    Machine,
    Measurement,
    Merged,
    Metric,
    Move,
    Probe,
    ProfiledSide,
    Report,
    Reviewed,
    Samples,
    SelfCheck,
    Setting,
    Shift,
    Side,
    Span,
    Standing,
    Stopped,
    Stretch,
    SuiteProblem,
    Summary,
    Throughput,
    Verdict,
    metric_of,
)

NOW = 1_780_000_000.0

HOSTILE = Case("io.time_load", ("'a\nb\x1b[31mred\x1b[0m'", '"it\'s"', "'</td><script>'", "'../x/y'", "'🚀\u202e'"))
LONG = Case("io.time_load", (f"'{'x' * 296}'",))
WIDE = Case("text.time_トークン化", ("'naïve'",))
SOFTMAX = Case("softmax.CudaTimeSoftmax.cudatime_fwd", ("4096", "'fp16'"))
ATTENTION = Case("attn.cudatime_fwd", ("2048", "'bf16'"))

BASE = Side(
    "base",
    Commit("3f2c1ab0" + "1" * 32, "Split softmax epilogue", "Zoë Bäcker <zoe@example.org>", NOW - 7_300.0),
    "HEAD~1",
    "worktree",
)
HEAD = Side(
    "head",
    Commit("9d41e770" + "2" * 32, 'Fuse max+sum "pass" </script>\x1b[2J-->', "李 雷 <li@example.org>", NOW - 310.0),
    "HEAD",
    "worktree",
)
MACHINE = Machine("gpu-box", {"gpu": "NVIDIA H100 80GB HBM3", "os": "Linux 6.8"})
DEVICE = "H100 80GB HBM3  driver 580.65  CUDA 13.0  torch 2.11  SM clock 1980 MHz"

OOM = Failure("oom", "asked for 60.0 GiB, 12.1 GiB were free", "benchmarks/big.py:17")
THROUGHPUT = Throughput(2.45e12, 5.1e12, 0.874, None)
SAMPLES = Samples(1000, 8, 26.9e-6, 28.3e-6, 41e-6)
BOOM = Failure(
    "error",
    "RuntimeError: shape '[0, 3]'\nis invalid",
    "benchmarks/conv.py:42",
    'Traceback (most recent call last):\n  File "benchmarks/conv.py", line 42, in time_conv\nRuntimeError: \x07shape',
)
HANG = Failure("timeout", "no result after 60 s", "", "last line of the log")
NOT_HERE = Failure("skipped", "NotImplementedError: needs compute capability 9.0")
PROBLEMS = (
    SuiteProblem("benchmarks/broken.py:3", "SyntaxError: invalid syntax", "    def time_x(:\n              ^", True),
    SuiteProblem("benchmarks/base.py: Abstract", "its constructor needs arguments", "", False),
)
RELEASE = Commit("0a1b2c3d" + "5" * 32, "Release 1.4", "Ada Lovelace", NOW - 9e6)


def summary(center: float, spread: float = 0.012, n: int = 5) -> Summary:
    """A summary whose interval is about as wide as such a spread makes it."""
    return Summary(center, center * (1 - spread), center * (1 + spread), 0.95, n, spread)


def exact(center: float) -> Summary:
    return Summary(center, center, center, 0.95, 2, 0.0)


def compared(
    case: Case,
    metric: str | Metric,
    verdict: Verdict,
    base: float | None,
    head: float | None,
    *reasons: str,
    half: float = 0.008,
    p: float | None = 1e-4,
    **more: object,
) -> Comparison:
    """A tested comparison; `half` is the relative half-width of the ratio's interval."""
    what = METRICS[metric] if isinstance(metric, str) else metric
    ratio = head / base if base and head is not None else None
    summarised = exact if what.exact else summary
    values: dict[str, object] = {
        "base": summarised(base) if base is not None else None,
        "head": summarised(head) if head is not None else None,
        "ratio": ratio,
    }
    if ratio is not None and not what.exact:
        values |= {"low": ratio * (1 - half), "high": ratio * (1 + half), "p": p, "p_adjusted": p, "noise": half}
        values |= {"min_detectable": 1.057}
    values |= {"exact": what.exact, "threshold": 0.1 if what.kind == "memory" else 0.05}
    return Comparison(case, what, verdict, reasons, **(values | more))  # type: ignore[arg-type]


def comparisons() -> tuple[Comparison, ...]:
    """Every verdict at least once."""
    rate = metric_of("value", "GFLOP/s")
    score = metric_of("value", "points")
    return (
        compared(SOFTMAX, "gpu_time", Verdict.REGRESSED, 27.42e-6, 30.0e-6, critical=True),
        compared(SOFTMAX, "host_time", Verdict.REGRESSED, 11.0e-6, 15.1e-6, gates=False, threshold=0.2),
        compared(SOFTMAX, "wall_time", Verdict.UNCHANGED, 60e-6, 60.5e-6, p=0.4, gates=False),
        compared(ATTENTION, "peak_memory", Verdict.REGRESSED, 512 * 2.0**20, 640 * 2.0**20),
        compared(ATTENTION, "gpu_time", Verdict.UNCHANGED, 980e-6, 1.015e-3),
        compared(Case("mem.track_rate"), rate, Verdict.REGRESSED, 912.0, 700.0, gates=True),
        compared(Case("cache.peakmem_fill"), "peak_memory", Verdict.REGRESSED, 0.0, 2.0**20, "from zero"),
        compared(HOSTILE, "wall_time", Verdict.REGRESSED, 0.9996e-3, 2.9e-3, "launch-bound: host time moved too"),
        compared(LONG, "wall_time", Verdict.IMPROVED, 1.5, 0.0891),
        compared(WIDE, "wall_time", Verdict.IMPROVED, 3.2e-9, 2.9e-9),
        compared(Case("conv.time_conv", ("3",)), "wall_time", Verdict.FAILED, 1e-3, None, head_failure=BOOM),
        compared(Case("big.time_big"), "gpu_time", Verdict.FAILED, None, None, base_failure=OOM, head_failure=OOM),
        compared(Case("net.time_fetch"), "wall_time", Verdict.FAILED, None, 0.3, "worked on head", base_failure=HANG),
        compared(
            *(Case("topk.cudatime_fwd", ("1 << 20",)), "gpu_time", Verdict.UNDECIDED, 0.4e-3, 0.414e-3),
            *("spread 7 %", "14 more rounds (40 s) would decide"),
            half=0.07,
            p=0.3,
        ),
        compared(Case("once.track_loss"), score, Verdict.UNDECIDED, 3.0, 3.5, "n = 1", p=None, low=None, high=None),
        compared(Case("score.track_points"), score, Verdict.CHANGED, 3.0, -4.5, "better direction unknown"),
        compared(
            Case("v.time_v"), "wall_time", Verdict.INCOMPARABLE, 1.0, 2.0, "number: 1 on base, 10 on head", ratio=None
        ),
        compared(Case("fresh.time_a"), "wall_time", Verdict.NEW, None, 0.5),
        compared(Case("fresh.time_a"), "peak_memory", Verdict.NEW, None, 96.0),
        compared(Case("old.time_b"), "wall_time", Verdict.GONE, 0.25, None),
        compared(Case("h.time_c", ("9.0",)), "gpu_time", Verdict.SKIPPED, None, None, head_failure=NOT_HERE),
        compared(Case("s.time_slower"), "wall_time", Verdict.UNCHANGED, 1.0, 1.03, half=0.004),
        compared(Case("s.mem_larger"), "peak_memory", Verdict.UNCHANGED, 100.0 * 2**20, 104.0 * 2**20),
        compared(Case("s.mem_tiny"), "peak_memory", Verdict.UNCHANGED, 512.0, 1024.0, "under the floor of 64.0 KiB"),
        compared(Case("s.time_same"), "wall_time", Verdict.UNCHANGED, 1.0, 0.999, p=0.8),
    )


def check() -> Report:
    """The report of a check in which everything happened at once."""
    return Report(
        command="check",
        exit_codes=(Exit.REGRESSED, Exit.FAILED),
        state="FAIL",
        base=BASE,
        head=dataclasses.replace(HEAD, dirty=True, revision="working tree"),
        machine=MACHINE,
        device=DEVICE,
        imported={"base": ("lib/__init__.py",), "head": ("lib/__init__.py", "more/__init__.py")},
        plan="21 cases, interleaved, about 3 min",
        comparisons=comparisons(),
        counts={"regressed": 5, "failed": 3, "improved": 2, "unchanged": 4, "undecided": 2, "changed": 1, "new": 1}
        | {"incomparable": 1, "gone": 1, "skipped": 1},
        cases=21,
        geomean=(1.004, 0.9987, 1.0093, 14),
        noise_floor=(0.006, 0.028, "topk.cudatime_fwd(1 << 20)"),
        min_detectable=0.057,
        last_aa=LAST_AA,
        problems=PROBLEMS,
        warnings=("another process computes on the device: python (pid 4711)", "clock\tfell\rby 4 %"),
        suggestions=(
            ("why", f"regress explain {shlex.quote(str(SOFTMAX))} 3f2c1ab0 9d41e770"),
            ("again", "regress check 3f2c1ab0 -b softmax"),
            ("accept", f'regress ack {shlex.quote(str(SOFTMAX))} --reason "…"'),
        ),
        policy={"alpha": 0.05, "confidence": 0.95, "time_threshold": 0.05, "memory_threshold": 0.1},
        recorded="cache: 42 rounds",
        duration_s=171.2,
    )


def passed() -> Report:
    """The report of a comparison in which nothing happened, between two environments."""
    return Report(
        command="compare",
        state="PASS",
        base=dataclasses.replace(BASE, environment="torch-2.10"),
        head=dataclasses.replace(HEAD, environment="torch-2.11"),
        machine=MACHINE,
        comparisons=(compared(SOFTMAX, "gpu_time", Verdict.UNCHANGED, 27.42e-6, 27.4e-6, p=0.7),),
        counts={"unchanged": 1},
        cases=1,
        geomean=(0.9993, 0.99, 1.01, 1),
        policy={"alpha": 0.05, "confidence": 0.95},
        duration_s=0.31,
    )


FUSED = Acknowledgement(
    str(SOFTMAX), "accepted", "max and sum\x1b[2J are one pass", "gpu_time", 1.0942, None, "3f2c1ab0", "v1.6", line=3
)
FIRST_FILL = Acknowledgement("^cache", "accepted", "fills now", "peak_memory", None, 2.0**20, "3f2c1ab0", line=12)
RAGGED = Acknowledgement("topk", "noise", "branches on its data", until="2026-03-31", line=20)
APART = Acknowledgement(
    "conv.time_conv", "quarantine", "no shape fits", until="lifted", link="https://example.org/41", line=26
)


def acknowledged() -> Report:
    """The report of a check in which nothing is wrong but what is acknowledged, of each kind."""
    by_case = {SOFTMAX: FUSED, Case("cache.peakmem_fill"): FIRST_FILL}
    by_name = {"topk.cudatime_fwd": RAGGED, "conv.time_conv": APART}
    entries = [by_case.get(comparison.case) or by_name.get(comparison.case.name) for comparison in comparisons()]
    known = [
        dataclasses.replace(comparison, acknowledged=entry)
        for comparison, entry in zip(comparisons(), entries, strict=True)
        if (entry is not None and entry.metric in ("", comparison.metric.name)) or comparison.case.name.startswith("s.")
    ]
    return dataclasses.replace(
        check(),
        exit_codes=(Exit.PASSED,),
        state="PASS",
        plan="8 cases, interleaved, about 3 min",
        comparisons=tuple(known),
        acknowledgements=(Reviewed(RAGGED, "expired", "2026-03-31 is over", "regress ack --remove topk"),),
        counts={"regressed": 3, "failed": 1, "undecided": 1, "unchanged": 3},
        acknowledged={"regressed": 2, "failed": 1, "undecided": 1},
        cases=8,
        problems=(),
        warnings=(
            "regress-acks.toml:20: topk, noise, has expired: 2026-03-31 is over; fix: regress ack --remove topk",
        ),
        suggestions=(),
    )


def ack() -> Report:
    """The list of acknowledgements."""
    return Report(
        command="ack",
        head=HEAD,
        acknowledgements=(
            Reviewed(FUSED, "active"),
            Reviewed(FIRST_FILL, "unused", "no benchmark matches", 'write "cache.peakmem_fill"'),
            Reviewed(RAGGED, "expired", "2026-03-31 is over", "regress ack --remove topk"),
            Reviewed(APART, "active"),
        ),
        remark="regress-acks.toml: 2 active, 1 expired, 1 unused",
    )


def acknowledged_changes() -> Report:
    """The report of a sweep whose only new regression is acknowledged."""
    known = changed(SOFTMAX, "gpu_time", 27.4e-6, 30.0e-6, HEAD.commit, new=True, acknowledged=FUSED)
    before = changed(ATTENTION, "gpu_time", 1.0e-3, 1.2e-3, BASE.commit, new=False, acknowledged=APART)
    return dataclasses.replace(
        sweep(),
        exit_codes=(Exit.PASSED,),
        state="PASS",
        changes=(before, known),
        breakages=(),
        remark="1 new acknowledged regression (5 of 5 commits measured)",
        problems=(),
        warnings=(),
        suggestions=(),
    )


def together() -> Report:
    """The report of a check whose benchmarks moved in most of their cases."""
    sizes = [f"{2**power}" for power in range(10, 20)]
    softmax = [
        compared(
            *(Case(SOFTMAX.name, (size, "'fp16'")), "gpu_time", Verdict.REGRESSED, 20e-6, 20e-6 * (1.08 + index / 250)),
            *("confirmed", *(["kernel launches 2 -> 3 a call"] if index else [])),
            critical=index < 2,
        )
        for index, size in enumerate(sizes[:8])
    ]
    softmax += [
        compared(Case(SOFTMAX.name, (size, "'fp16'")), "gpu_time", Verdict.UNCHANGED, 1e-3, 1.001e-3, p=0.4)
        for size in sizes[8:]
    ]
    copies = [
        compared(Case("ops.time_copy", (size,)), "wall_time", Verdict.UNCHANGED, 1e-3, 1.02e-3 + index * 1e-6)
        for index, size in enumerate(sizes)
    ]
    mixed = [
        compared(Case("sort.time_mixed", (size,)), "wall_time", verdict, 1.0, head)
        for size, verdict, head in zip(
            sizes, [Verdict.REGRESSED] * 3 + [Verdict.IMPROVED], [1.1, 1.2, 1.3, 0.8], strict=False
        )
    ]
    memory = [
        compared(Case("attn.cudatime_fwd", (size,)), "peak_memory", Verdict.IMPROVED, 2.0**20 * 4, 2.0**20 * 3)
        for size in sizes[:3]
    ]
    return dataclasses.replace(
        check(),
        exit_codes=(Exit.REGRESSED,),
        plan="27 cases, interleaved, about 3 min",
        comparisons=(*softmax, *copies, *mixed, *memory),
        counts={"regressed": 11, "improved": 4, "unchanged": 12},
        cases=27,
        problems=(),
        warnings=(),
        suggestions=(),
    )


def run() -> Report:
    """The report of a run with further metrics, doubts and failures."""
    return Report(
        command="run",
        exit_codes=(Exit.FAILED,),
        head=HEAD,
        machine=MACHINE,
        device=DEVICE,
        plan="6 cases, 5 rounds, about 40 s",
        measurements=(
            Measurement(
                SOFTMAX, METRICS["gpu_time"], summary(27.42e-6, 0.0061), throughput=THROUGHPUT, samples=SAMPLES
            ),
            Measurement(SOFTMAX, METRICS["host_time"], summary(11.0e-6, 0.04), primary=False),
            Measurement(SOFTMAX, METRICS["peak_memory"], exact(512 * 2.0**20), primary=False),
            Measurement(SOFTMAX, METRICS["launches"], exact(3.0), primary=False),
            Measurement(HOSTILE, METRICS["wall_time"], summary(1.2, 0.2), flags=("3 samples invalid", "two modes")),
            Measurement(LONG, METRICS["wall_time"], summary(4e-9, 0.0, 1)),
            Measurement(Case("conv.time_conv", ("3",)), METRICS["wall_time"], None, BOOM),
            Measurement(Case("conv.time_conv", ("3",)), METRICS["peak_memory"], None, BOOM, primary=False),
            Measurement(Case("net.time_fetch"), METRICS["wall_time"], None, HANG),
            Measurement(Case("h.time_c", ("9.0",)), METRICS["gpu_time"], None, NOT_HERE),
        ),
        durations=Durations(
            (Duration(HOSTILE.name, 3, 0.0, 71.25, 0.4, 12.0), Duration("net.time_fetch", 1, 1.5, 0.004, 60.0)),
            5,
            12.5,
            0.75,
        ),
        cases=6,
        problems=PROBLEMS,
        recorded="history/gpu-box/9d41e770-worktree.json",
        duration_s=38.0,
    )


def contender(way: str, *params: str, at: float | None = None, **more: Any) -> Contender:
    return Contender(way, Case("norm.cudatime_fwd", (f"'{way}'", *params)), summary(at) if at else None, **more)


def behind(ratio: float, p: float = 1e-4) -> dict[str, float]:
    return {"ratio": ratio, "low": 0.99 * ratio, "high": 1.01 * ratio, "p_adjusted": p}


def fastest() -> Report:
    """Implementations side by side: with and without a size, apart and not, skipped, failed and not measured."""
    f32, f16 = "'f32'", "'f16'"
    standings = (
        Standing((f32, "256"), (contender("torch", f32, "256", at=12.1e-6, **behind(1.6)),
                                contender("triton\n</td>", f32, "256", at=7.56e-6),
                                contender("cupy", f32, "256", failure=NOT_HERE)), ("triton\n</td>",)),
        Standing((f32, "4096"), (contender("torch", f32, "4096", at=990e-6),
                                 contender("triton\n</td>", f32, "4096", at=1.1e-3, **behind(1.11)),
                                 contender("cupy", f32, "4096", failure=NOT_HERE)), ("torch",)),
        Standing((f16, "256"), (contender("torch", f16, "256", at=9e-6),
                                contender("triton\n</td>", f16, "256", at=9.1e-6, **behind(1.01, 0.6))),
                 ("torch", "triton\n</td>"), ("triton\n</td>: another process computed on the device: 4711, python",)),
        Standing((f16, "4096"), (contender("torch", f16, "4096", at=2e-3),
                                 contender("triton\n</td>", f16, "4096", failure=OOM)), ("torch",)),
    )  # fmt: skip
    triton = "triton\n</td>"
    crossovers = (
        Crossover((f32,), (Stretch("fastest", (triton,), "256", "256"), Stretch("fastest", ("torch",), "4096", "4096")),
                  f"{triton} up to 256, torch from 4096"),
        Crossover((f16,), (Stretch("no difference shown", ("torch", triton), "256", "256"),
                           Stretch("alone", ("torch",), "4096", "4096")),
                  f"no difference shown between torch and {triton} up to 256, only torch from 4096"),
    )  # fmt: skip
    ways = ("torch", "triton\n</td>", "cupy")
    step = (
        contender("fused", at=1e-3),
        contender("foreach", at=1.2e-3, **behind(1.2)),
        contender("loop", failure=BOOM),
    )
    return Report(
        command="fastest",
        head=HEAD,
        machine=MACHINE,
        plan="13 cases, recorded earlier",
        implementations=(
            Implementations("norm.cudatime_fwd", METRICS["gpu_time"], ways, ("dtype", "n"), standings, "n", crossovers),
            Implementations("optim.time_step", METRICS["wall_time"], ("fused", "foreach", "loop"), (),
                            (Standing((), step, ("fused",)),)),
        ),
        cases=13,
        warnings=("the device is scripted",),
    )  # fmt: skip


def changed(
    case: Case, metric: str, before: float, after: float, *commits: Commit, new: bool, **changes: Any
) -> Changed:
    point = ChangePoint(
        first=commits[0].sha,
        blamed=tuple(commit.sha for commit in commits),
        good="0" * 40,
        before=before,
        after=after,
        ratio=after / before,
        low=0.99 * after / before,
        high=1.01 * after / before,
        moved=Verdict.REGRESSED if after > before else Verdict.IMPROVED,
        large=True,
        threshold=0.05,
        state="confirmed",
        way=(),
    )
    point = dataclasses.replace(point, **changes)
    return Changed(case, METRICS[metric], "gpu-box", "worktree-py3.12", "GPU-1", point, commits, new)


BROKEN = Commit("deadbeef" + "3" * 32, "Half a\tchange", "Zoë Bäcker", NOW - 9_000.0)
MERGE = Commit("0a1b2c3d" + "4" * 32, "Merge branch 'fuse' \x1b[2J", "Zoë Bäcker", NOW - 800.0)
SEARCH = Bisection(
    case=SOFTMAX,
    good=BASE.commit,
    bad=HEAD.commit,
    candidates=64,
    change=Contrast(METRICS["gpu_time"], Verdict.REGRESSED, 27.4e-6, 30.0e-6, 1.094, 1.088, 1.101, rounds=6),
    probes=(
        Probe(BASE.commit, "good", 0.999, 0.994, 1.004, 4, 32),
        Probe(BROKEN, "skipped", left=32, reason="head deadbeef does not build: make: exit code 2"),
        Probe(MERGE, "between", 1.04, 1.03, 1.05, 8, 20),
        Probe(HEAD.commit, "bad", 1.095, 1.09, 1.1, 2, 1),
        Probe(BROKEN, "unclear", 1.05, 0.98, 1.12, 40, 1),
    ),
    found=(HEAD.commit,),
    parent=BASE.commit,
    step=Contrast(
        METRICS["gpu_time"], Verdict.REGRESSED, 27.4e-6, 29.9e-6, 1.092, 1.085, 1.1, rounds=6, reasons=("drifting",)
    ),
    confirmed=True,
    confidence=0.9987,
    merges=(MERGE,),
    reasons=("the change came in several steps; this is the largest one found",),
)
"""Down to one commit inside a merge, with a probe of each kind."""


def sweep() -> Report:
    memory = changed(ATTENTION, "peak_memory", 512e6, 640e6, BASE.commit, new=True, low=1.25, high=1.25)
    tentative = changed(WIDE, "wall_time", 2.0e-3, 2.3e-3, HEAD.commit, new=True, state="tentative")
    small = changed(SOFTMAX, "gpu_time", 27.4e-6, 28.2e-6, HEAD.commit, new=True, large=False)
    moved = changed(
        HOSTILE, "gpu_time", 1e-3, 1.2e-3, BASE.commit, new=False, reasons=("0a1b2c3d moved by +19.0 % itself",)
    )
    old = changed(LONG, "gpu_time", 1e-3, 1.2e-3, BASE.commit, new=False, recovered_by=HEAD.commit.sha)
    sizes = [Case("matmul.cudatime_square", (str(size),)) for size in (512, 1024, 2048, 4096)]
    together = [
        changed(case, "gpu_time", 1e-3, 1.08e-3 + 0.01e-3 * at, HEAD.commit, new=True) for at, case in enumerate(sizes)
    ]
    taken = changed(LONG, "gpu_time", 1.2e-3, 1e-3, HEAD.commit, new=True, state="recovered")
    lost = changed(SOFTMAX, "wall_time", 28e-6, 35e-6, HEAD.commit, new=True, state="relapsed", undoes=RELEASE.sha)
    return Report(
        command="sweep",
        exit_codes=(Exit.REGRESSED, Exit.FAILED),
        state="FAIL",
        machine=MACHINE,
        device=DEVICE,
        plan="new commits after 3f2c1ab0: 7 commits to measure, 42 cases, 2 rounds a commit, "
        "3f2c1ab0 measured again beside them",
        changes=(
            changed(SOFTMAX, "gpu_time", 27.4e-6, 30.0e-6, BASE.commit, HEAD.commit, new=True),
            memory,
            *together,
            tentative,
            small,
            moved,
            old,
            taken,
            lost,
        ),
        breakages=(
            *(
                Breakage(case, "gpu-box", "worktree-py3.12", "GPU-1", BOOM, BASE.commit.sha, (HEAD.commit,), new=True)
                for case in sizes[:2]
            ),
            Breakage(WIDE, "gpu-box", "worktree-py3.12", "GPU-1", NOT_HERE, RELEASE.sha, (BASE.commit, HEAD.commit)),
        ),
        anchors=(
            AnchorCheck(RELEASE, HEAD.commit, "v1.4", NOW - 9e6, 40, 0.0123),
            AnchorCheck(
                BASE.commit,
                HEAD.commit,
                "",
                NOW - 3e5,
                42,
                0.19,
                (Move(SOFTMAX, METRICS["gpu_time"], 1.06, 0.002), Move(HOSTILE, METRICS["gpu_time"], 1.19, 1e-5)),
                (1.024, 1.018, 1.031, 42),
                drifted=True,
            ),
            AnchorCheck(RELEASE, BASE.commit, "", None, 0, None),
        ),
        bisected=(
            (SEARCH, "9d41e770 Fuse max+sum pass (李 雷), 99.8 % sure, confirmed"),
            (Bisection(HOSTILE, BASE.commit, HEAD.commit, 3, SEARCH.change), "nothing to bisect: unchanged"),
        ),
        remark="2 cases stopped giving numbers, 2 new regressions, 1 new tentative change, 1 new relapse "
        "(5 of 7 commits measured, 1 failed); 1 regression open; 1 case known without a number",
        cases=42,
        problems=PROBLEMS,
        warnings=("deadbeef was left out: the build failed: exit code 2",),
        suggestions=(("check", "regress check 3f2c1ab0 9d41e770 -b softmax"), ("go on", "regress sweep NEW")),
        recorded="/home/me/project/history",
        duration_s=4321.0,
    )


def shifted() -> Report:
    """A sweep after which six benchmarks of three modules have moved at once, and one of them at another commit as well."""
    names = [f"{module}.cudatime_{word}" for module in ("attn", "conv", "norm") for word in ("fwd", "bwd")]
    together = [
        changed(Case(name), "gpu_time", 1e-3, 1.3e-3 - 0.01e-3 * at, HEAD.commit, new=True)
        for at, name in enumerate(names)
    ]
    lost = changed(Case(names[0]), "gpu_time", 0.8e-3, 1e-3, BASE.commit, new=False, undoes=RELEASE.sha)
    reasons = (
        "6 of them were measured on other machines too and did not move there: was it the machine?",
        "measured differently: driver 570 → 580",
    )
    place = "gpu-box", "worktree-py3.12", "GPU-1"
    return Report(
        command="sweep",
        exit_codes=(Exit.REGRESSED,),
        state="FAIL",
        changes=(*together, lost),
        shifts=(Shift(*place, BASE.commit.sha, (HEAD.commit,), tuple(together), reasons),),
        remark="6 benchmarks moved at once (1 of 1 commit measured); 1 regression open",
        cases=42,
        suggestions=(("check", "regress check 3f2c1ab0 9d41e770 -b attn.cudatime_fwd"),),
    )


def gate() -> Report:
    """The report of a gate that fails in each of its three ways, for cases that have nothing to do with each other."""
    whole = check()
    sizes = [Case("matmul.cudatime_square", (str(size),)) for size in (512, 1024, 2048, 4096)]
    ends = ("as recorded of 1 commit and 3 commits",)
    return dataclasses.replace(
        whole,
        command="gate",
        exit_codes=(Exit.REGRESSED,),
        comparisons=(
            compared(SOFTMAX, "gpu_time", Verdict.REGRESSED, 27.42e-6, 30.0e-6, critical=True),
            compared(Case("s.time_same"), "wall_time", Verdict.UNCHANGED, 1.0, 0.999, p=0.8),
            *(compared(case, "gpu_time", Verdict.UNCHANGED, 1e-3, 1.001e-3, p=0.8) for case in sizes),
        ),
        counts={"regressed": 1, "unchanged": 5},
        cases=6,
        drift=(
            *(compared(case, "gpu_time", Verdict.REGRESSED, 1e-3, 1.21e-3, *ends) for case in sizes),
            compared(Case("s.time_same"), "wall_time", Verdict.UNCHANGED, 1.0, 1.001, *ends, p=0.8),
        ),
        drift_since="v1.4",
        questions=(("side by side", "FAIL"), ("open in the history", "FAIL"), ("drift since v1.4", "FAIL")),
        changes=(changed(HOSTILE, "gpu_time", 1e-3, 1.2e-3, BASE.commit, HEAD.commit, new=True),),
        problems=(),
        warnings=("the drift since v1.4 of 2 series is not known: not measured alike",),
        suggestions=(
            ("again", "regress check 3f2c1ab0 -b softmax"),
            ("bisect", "regress bisect s.time_same v1.4 HEAD"),
        ),
    )


def bisect() -> Report:
    return Report(
        command="bisect",
        state="FOUND",
        base=BASE,
        head=HEAD,
        machine=MACHINE,
        device=DEVICE,
        plan="64 commits: about 6 builds and 40 rounds, about 3 min",
        bisection=SEARCH,
        remark="9d41e770 Fuse max+sum pass (李 雷), 99.8 % sure, confirmed",
        warnings=("the device is scripted: times are simulated, not measured",),
        suggestions=(("again", "regress check 3f2c1ab0 9d41e770 -b softmax"),),
        recorded="/home/me/.cache/regress/project/history",
        duration_s=171.0,
    )


def listing() -> Report:
    return Report(
        command="list",
        listed=(
            Listed(SOFTMAX, "gpu_time", True, ("nightly", "critical"), 1.83),
            Listed(HOSTILE, "wall_time", False, ("a\ttag",), 75.0),
            Listed(LONG, "wall_time", False),
            Listed(WIDE, "peak_rss", False, (), 0.2),
        ),
        cases=4,
    )


def doctor() -> Report:
    return Report(
        command="doctor",
        exit_codes=(Exit.NOTHING,),
        state="NOTHING",
        checks=(
            Check("python", "ok", "3.11.7"),
            Check("SM clock", "warn", "not locked, moves between 345 and 1980 MHz", "sudo nvidia-smi -lgc 1980"),
            Check("device", "fail", "driver 470 is older than CUDA 13.0 needs", "install driver 580 or newer"),
        ),
    )


LAST_AA = SelfCheck(NOW - 3 * 86_400.0, "3f2c1ab0", tuple(f"a.f({n})" for n in range(40)), 0, 2, 38, 0.006, 0.054)


def aa() -> Report:
    """The report of an A/A check with a false alarm, and a case that is not quiet enough."""
    alarm = compared(SOFTMAX, "gpu_time", Verdict.REGRESSED, 27.42e-6, 30.0e-6, "confirmed")
    noisy = compared(
        HOSTILE, "wall_time", Verdict.UNDECIDED, 1.0, 1.01, "about 90 rounds a side would decide", half=0.07
    )
    exact = compared(Case("cache.peakmem_fill"), "peak_memory", Verdict.UNCHANGED, 96.0, 96.0)
    return Report(
        command="doctor",
        exit_codes=(Exit.REGRESSED,),
        state="FAIL",
        head=HEAD,
        machine=MACHINE,
        device=DEVICE,
        plan="3 cases against themselves, interleaved, 4 to 24 rounds a side",
        comparisons=(alarm, noisy, exact),
        counts={"regressed": 1, "undecided": 1, "unchanged": 1},
        cases=3,
        remark="1 false alarm in 3 cases: 1 unchanged (33.3 %), 1 undecided (33.3 %)",
        noise_floor=(0.03, 0.12, str(HOSTILE)),
        min_detectable=0.131,
        aa=SelfCheck(
            NOW, "9d41e770", tuple(str(comparison.case) for comparison in (alarm, noisy, exact)), 1, 1, 1, 0.03, 0.131
        ),
        fineness=(
            Fineness(HOSTILE, METRICS["wall_time"], Verdict.UNDECIDED, 24, 0.07, 0.12, 0.19),
            Fineness(SOFTMAX, METRICS["gpu_time"], Verdict.REGRESSED, 10, 0.009, 0.0104, 0.0612),
            Fineness(exact.case, METRICS["peak_memory"], Verdict.UNCHANGED, 4, None, None, None),
        ),
        options=("--aa",),
        policy={"alpha": 0.05, "confidence": 0.95},
        recorded="/cache/aa.json",
        duration_s=190.0,
    )


def init() -> Report:
    return Report(
        command="init",
        machine=MACHINE,
        device="H100 80GB HBM3",
        checks=(
            Check("a check", "ok", "about 6 min: 143 cases, 5 rounds a side, builds apart"),
            Check("failing", "warn", f"2 cases, the first of them {HOSTILE}: boom", "regress run --quick"),
        ),
        block=("asv.conf.json", '    "regress": {\n        "cuda": ["^ops\\\\."],\n        // \x1b[2J\n    }'),
        counts={"cpu": 90, "trailing": 41, "free": 12},
        cases=143,
        remark="90 CPU · 41 CUDA with a trailing synchronize · 12 without one",
        suggestions=(("next", "regress init --write"), ("then", "regress check")),
        duration_s=90.0,
    )


def build() -> Report:
    return Report(
        command="build",
        exit_codes=(Exit.FAILED,),
        state="FAIL",
        builds=(
            Built(dataclasses.replace(BASE, environment=""), "reused", 75.0, "/cache/builds/base.log"),
            Built(dataclasses.replace(BASE, environment="next"), "built", 3.21, "/cache/builds/base.log"),
            Built(HEAD, "ready"),
            Built(
                HEAD,
                "failed",
                0.5,
                "/cache/builds/head.log",
                f"{HOSTILE} does not build: make: exit code 2",
                "cd /t && make",
            ),
        ),
        remark="1 built, 1 reused, 1 ready, 1 failed",
        duration_s=4.0,
    )


def merge() -> Report:
    return Report(
        command="merge",
        exit_codes=(Exit.FAILED,),
        state="FAIL",
        merged=(
            Merged("shards/1", ("h100",), commits=1, added=480, known=0),
            Merged(f"shards/{HOSTILE}", ("h100", str(HOSTILE)), commits=12, added=3, known=477),
        ),
        remark="2 folders: 483 rounds added, 477 already present",
        warnings=("not merged: shards/1/h100/3f2c1ab9-worktree.json: not JSON; fix: restore it",),
        recorded="/repo/history",
        duration_s=0.4,
    )


def config() -> Report:
    return Report(
        command="config",
        settings=(
            Setting("time_threshold", 0.05, "default"),
            Setting("build", ("make -j 2", "echo 'ü'"), "asv.conf.json"),
            Setting("device", "fake", "--device"),
            Setting("python", "", "default"),
            Setting("time_floor_s", float("inf"), "asv.conf.json"),
        ),
    )


def stopped() -> Report:
    """The report of a check that found nothing to measure."""
    error = Stopped(f"no benchmark matches '{HOSTILE}'", "searched in /repo/benchmarks", "regress list")
    return Report("check", (Exit.NOTHING,), "NOTHING", error=error)


def refused(command: str) -> Report:
    """The report of a command that could not begin: the user's mistake."""
    return Report(
        command, (Exit.ERROR,), "ERROR", error=Stopped("unknown revision 'v9'", "no such tag", "git fetch --tags")
    )


def many(count: int = 5_000) -> Report:
    """The report of a check in which nearly everything got worse, none of it alike."""
    worse = [
        compared(Case(f"m{n}.time_{n}", (f"'|`@me {n}'",)), "wall_time", Verdict.REGRESSED, 1.0, 1.1 + n * 1e-4)
        for n in range(count)
    ]
    failing = [
        compared(
            Case(f"f{n}.time_{n}"),
            "wall_time",
            Verdict.FAILED,
            1.0,
            None,
            head_failure=dataclasses.replace(BOOM, message=f"{n}: {BOOM.message}", detail="x" * 10_000),
        )
        for n in range(count)
    ]
    return dataclasses.replace(
        check(),
        comparisons=(*worse, *failing),
        counts={"regressed": count, "failed": count},
        cases=2 * count,
        warnings=tuple(f"warning {n}" for n in range(100)),
    )


def use(name: str, seconds: float, launches: float = 1.0, **more: Any) -> KernelUse:
    short = name.partition("<")[0].removeprefix("void ")
    return KernelUse(name, launches, seconds, 4e-6, short=short, **{"operators": ("aten::softmax",), **more})


def explanation() -> Explanation:
    """A kernel of each kind, copies, and two causes."""
    shape: dict[str, Any] = {
        "grid": (4096, 1, 1),
        "block": (128, 1, 1),
        "registers": 40,
        "shared_bytes": 1024,
        "occupancy": 0.75,
    }
    slow = {**shape, "block": (64, 1, 1), "registers": 96, "shared_bytes": 49152, "occupancy": 0.25}
    operator: dict[str, Any] = {"shapes": "[4096, 4096]", "dtypes": "c10::Half"}
    kernels = (
        KernelDiff(None, use("void softmax::rest<float, 4>(int)", 2.0e-6, 2.0, **operator), "nothing", "new"),
        KernelDiff(
            use("void softmax::wide<c10::Half>(int)", 20.0e-6, **shape, **operator),
            use("void softmax::narrow\x1b[2J<float>(int)", 21.1e-6, **slow, **operator),
            *("operator", "replaced"),
        ),
        KernelDiff(use("scale", 1.0e-6), use("scale", 0.5e-6), "name", "faster"),
        KernelDiff(use("mask", 4.0e-6), use("mask", 4.02e-6), "name", "same"),
    )
    reset = dataclasses.replace(use("Memset (Device)", 0.4e-6), bytes=4096.0, short="")
    return Explanation(
        base_s=27.5e-6,
        head_s=30.2e-6,
        kernels_s=2.62e-6,
        copies_s=0.4e-6,
        idle_s=-0.3e-6,
        kernels=kernels,
        copies=(KernelDiff(None, reset, "nothing", "new"),),
        syncs=(0.0, 1.0),
        launches=(3.0, 6.0),
        causes=(
            Cause("fusion", "a fusion was lost: softmax::wide became 3 launches a call", "high"),
            Cause("memset", "a memset of 4.00 KiB was added in aten::softmax: 400 ns a call more", "medium"),
        ),
    )


def explain() -> Report:
    """What one case comes from, and a second one that no profile is of."""
    timeline = (Span("host", "aten::softmax", 0.0, 9e-6), Span("kernels", "softmax::wide", 4e-6, 20e-6))
    softmax, other = (dataclasses.replace(comparisons()[at], gates=False) for at in (0, 7))
    return dataclasses.replace(
        check(),
        command="explain",
        exit_codes=(Exit.PASSED,),
        state="",
        head=HEAD,
        plan="1 case, interleaved, 12 rounds a side; 3 profiles a side of 10 calls, in turn",
        comparisons=(softmax,),
        explained=(
            Explained(
                softmax,
                explanation(),
                ProfiledSide((27.4e-6, 27.5e-6, 27.9e-6), ("base-1.json.gz", "base-2.json.gz"), timeline),
                ProfiledSide((30.0e-6, 30.2e-6, 33.0e-6), ("head-1.json.gz",), timeline),
                ("softmax/forward.cu", "softmax/\u202eevil.py"),
                (BASE.commit, HEAD.commit),
                ("the profiler itself took 1.00 us of 30.2 us a call",),
            ),
            Explained(other, None, files=("io.py",), warnings=("no trace was written: out of memory",)),
        ),
        counts={},
        cases=0,
        geomean=None,
        noise_floor=None,
        min_detectable=None,
        last_aa=None,
        problems=(),
        warnings=(),
        suggestions=(("page", "regress explain softmax 3f2c1ab0 9d41e770 --html why.html"),),
        duration_s=0.0,
    )


def check_explained() -> Report:
    """A check that has explained what regressed."""
    first, second = explain().explained
    own = {comparison.case: comparison for comparison in reversed(comparisons())}
    explained = (dataclasses.replace(account, comparison=own[account.case]) for account in (first, second))
    return dataclasses.replace(check(), explained=tuple(explained))
