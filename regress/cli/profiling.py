"""Where the time goes."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from regress.cli.invocation import finish, invoked, publish_explained, publish_profile
from regress.cli.options import (
    deciding,
    environment_option,
    environments,
    holding,
    html_option,
    output,
    placing,
    record_option,
    stack,
    stepping,
    suite,
    thresholds,
    where,
)
from regress.cli.program import regress


@regress.command()
@click.argument("case")
@click.argument("base")
@click.argument("head", required=False)
@stack(html_option, stepping, thresholds, placing, holding, suite, environments, record_option, output, where)
def explain(
    case: str,
    base: str,
    head: str | None,
    rounds: int | None,
    budget: float | None,
    record: bool,
    base_env: str,
    head_env: str,
    html: Path | None,
    **options: Any,
) -> None:
    """Find the kernels that made CASE slower or faster on HEAD.

    Measures the case again without a profiler; a difference that does not reproduce is not explained. Then it profiles both
    sides in turn and splits the difference into kernels, copies and idle time, with the kernels that are new, gone, replaced
    or slower, and the most likely cause. `regress report` shows it at the change. CASE is a name or a regular expression; of
    several cases, the one that changed most is explained.

    \b
    Examples:
      regress explain 'softmax.cudatime_fwd(4096, fp16)' v1.4 v1.5
      regress explain softmax HEAD~1                    the working tree

    \b
    Exit codes:
      0  explained
      2  usage, configuration, or unknown revision
      3  it fails on HEAD
      5  it does not reproduce, or could not be measured or profiled
    """
    with invoked(options) as (request, progress):
        from regress.commands.explain import explain as command

        wanted = request({"check_rounds": rounds, "budget_s": budget})
        report = command(wanted, case, base, head, progress, environments=(base_env, head_env), record=record)
        if html is not None:
            publish_explained(report, html)
    finish(report, options)


@regress.command(short_help="Profile a case or a script, or show what a profiler exported.")
@click.argument("words", nargs=-1, required=True, metavar="CASE [REV] | SCRIPT [-- ARGUMENT...] | EXPORT...")
@click.option("--calls", type=click.IntRange(min=1), metavar="N", help="Maximum calls of a case [20; with --ncu 1].")
@click.option(
    "--ncu", is_flag=True, help="Measure each kernel of CASE under Nsight Compute: occupancy, throughput, hit rates."
)
@click.option(
    "--against",
    metavar="CASE|EXPORT",
    multiple=True,
    help="Case to compare with, such as the operation below a wrapper; or exports of the base, each a round (repeatable).",
)
@html_option
@click.option("--record", metavar="REV", help="Record the exports as results of that commit.")
@stack(deciding, placing, holding, environment_option, output, where)
def profile(
    words: tuple[str, ...],
    calls: int | None,
    ncu: bool,
    environment: str,
    against: tuple[str, ...],
    html: Path | None,
    record: str | None,
    **options: Any,
) -> None:
    """Profile a case or a script in a new process, or show what a profiler exported.

    CASE is the name of a benchmark or case, or a regular expression; it runs under torch.profiler. If the benchmark has a
    parameter `component`, the components are shown as parts of the whole. REV is any commit, by default the working tree. The
    Chrome traces are kept.

    With --ncu, CASE runs under Nsight Compute instead, which measures every kernel of a call alone, with its counters and what
    limits it. The report and its CSV are kept.

    SCRIPT is a Python file, run as a whole; its output goes to stderr.

    EXPORT is a JSON file of regress.profiler.GPUProfiler; one run counts as one round, however many entries it has, so give
    several exports a side for verdicts. It can also be the SQLite export of Nsight Systems, the CSV of `nsys stats`, or the CSV
    of Nsight Compute. The content tells which.

    \b
    Examples:
      regress profile softmax.Softmax.cudatime_forward
      regress profile attention.Components HEAD~1
      regress profile "layers.Norm.cudatime_ours" --against "layers.Norm.cudatime_torch"
      regress profile softmax.Softmax.cudatime_forward --ncu
      regress profile train.py -- --steps 10
      regress profile run.json --html run.html
      regress profile new-1.json new-2.json new-3.json --against old-1.json --against old-2.json --against old-3.json
      regress profile run.json --record HEAD
      regress profile recorded-by-nsys.sqlite
      regress profile printed-by-ncu.csv --html kernels.html

    \b
    Exit codes:
      0  profiled, shown, or nothing regressed
      1  something regressed
      2  usage, configuration, an unknown revision, or a file that is not an export
      3  a case fails; the rest is profiled
      4  undecided, with --strict
      5  nothing could be profiled or compared: no device, no match, no ncu, or it may not read the counters
    """
    if against and record:
        raise click.UsageError("--record and --against cannot be combined", click.get_current_context())
    if ncu and (against or record):
        raise click.UsageError(
            f"--ncu cannot be combined with {'--against' if against else '--record'}", click.get_current_context()
        )
    with invoked(options) as (request, progress):
        from regress.commands.profile import profile as command
        from regress.commands.profile import subject_of

        subject = subject_of(words, ncu=ncu, record=record)
        if subject in ("case", "ncu"):
            options["patterns"] = words[:1]
        report = command(
            request({}),
            subject,
            words,
            progress,
            calls=calls,
            environment=environment,
            against=against,
            record=record,
        )
        if html is not None:
            publish_profile(report, html)
    finish(report, options)


@regress.command(short_help="Call one case in this process, for nsys, ncu or a debugger.")
@click.argument("case", metavar="CASE")
@click.argument("revision", nargs=-1, metavar="[REV]")
@click.option(
    "--calls", type=click.IntRange(min=1), metavar="N", default=1, show_default=True, help="Calls after the warm-up."
)
@stack(placing, environment_option, where)
def once(case: str, revision: tuple[str, ...], calls: int, environment: str, **options: Any) -> None:
    """Set up one case, warm it up and call it in this process, for nsys, ncu, compute-sanitizer or a debugger.

    The calls are between cudaProfilerStart and cudaProfilerStop, each in an NVTX range `regress.call`. The process becomes the
    one that runs the case: its output is printed, and one line of regress on stderr.

    \b
    Examples:
      nsys profile -c cudaProfilerApi regress once softmax.Softmax.cudatime_forward --calls 20
      ncu --profile-from-start off --target-processes all regress once 'ops.Linear.cudatime_forward(2048)'
      compute-sanitizer --target-processes all regress once 'ops.Linear.cudatime_forward(2048)' HEAD~1

    \b
    Exit codes:
      0  called
      2  usage, configuration, an unknown revision, or several cases match
      3  the case fails
      5  no case matches, or it cannot be run here
    """
    options["patterns"], options["quiet"] = (case,), True
    with invoked(options) as (request, progress):
        from regress.commands.profile.once import once as command

        program = command(request({}), revision, progress, calls, environment)
    sys.stdout.flush()
    os.execve(program.words[0], program.words, dict(program.variables))
