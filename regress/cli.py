"""The command line: the commands with their options and help, and how the program begins and ends. Only this module and
invocation.py, which is around every command, print or exit.

Nothing heavy is imported here: each command imports what it needs when it is called.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import click

from regress import __version__
from regress.errors import RegressError
from regress.invocation import finish, invoked, publish, publish_explained, publish_profile, say, write_table
from regress.options import (
    Duration,
    Level,
    budgeting,
    deciding,
    holding,
    measuring,
    output,
    placing,
    selecting,
    stack,
    stepping,
    suite,
    tagging,
    thresholds,
    where,
)

USAGE = 2
INTERRUPTED = 130

EXAMPLES = """
\b
Examples:
  regress demo d && cd d && regress check HEAD~1    see it work
  regress check                                     this branch against where it left main
  regress check v1.4 v1.5 -b softmax                two releases, the benchmarks that match
  regress run                                       measure and record this commit
"""


@click.group(epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="regress")
def regress() -> None:
    """Performance regression tracking for CUDA code, on ordinary asv suites.

    Times CUDA operations with device events, tells with Welch tests what became more than 5 % slower or takes more than 10 %
    more memory, and keeps the history in asv's files.
    """


@regress.command()
@click.argument("base", required=False)
@click.argument("head", required=False)
@stack(where, selecting, tagging)
@click.option("--affected", is_flag=True, help="Benchmarks whose `covers`, or whose own file, match the changed files.")
@stack(suite, measuring, deciding, stepping, output)
@click.option("--explain", is_flag=True, help="Profile what regressed on both sides: which kernels did it.")
@click.option("--record", is_flag=True, help="Keep the results in results_dir, not only in the cache.")
@click.option("--base-env", metavar="NAME", default="", help="Environment of BASE, of those in the configuration.")
@click.option("--head-env", metavar="NAME", default="", help="Environment of HEAD; without BASE both are one commit.")
def check(
    base: str | None,
    head: str | None,
    rounds: int | None,
    budget: float | None,
    explain: bool,
    record: bool,
    base_env: str,
    head_env: str,
    **options: Any,
) -> None:
    """Measure BASE and HEAD side by side and judge HEAD.

    BASE: with uncommitted changes HEAD, on a branch the merge base with the default branch, else HEAD~1. HEAD: the working
    tree.

    \b
    Examples:
      regress check                     this branch, or what is not committed
      regress check HEAD~1 --budget 2m  the last commit, in two minutes
      regress check v1.4 --prove        before a release: everything has to be shown not to be slower

    \b
    Exit codes:
      0  nothing regressed
      1  something regressed
      2  usage, configuration, or unknown revision
      3  something fails on HEAD that worked on BASE
      4  undecided, with --strict or --prove or for a critical benchmark
      5  nothing could be measured or compared
    """
    with invoked(options) as (request, progress):
        from regress.commands.check import check as command
        from regress.commands.explaining import regressions

        environments = base_env, head_env
        wanted = request({"check_rounds": rounds, "budget_s": budget})
        choose = regressions if explain else None
        report = command(wanted, base, head, progress, environments=environments, record=record, choose=choose)
    finish(report, options)


@regress.command()
@click.argument("case")
@click.argument("base")
@click.argument("head", required=False)
@stack(where, suite, placing, holding, deciding, stepping, output)
@click.option("--base-env", metavar="NAME", default="", help="Environment of BASE, of those in the configuration.")
@click.option("--head-env", metavar="NAME", default="", help="Environment of HEAD.")
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write the page too.")
def explain(
    case: str,
    base: str,
    head: str | None,
    rounds: int | None,
    budget: float | None,
    base_env: str,
    head_env: str,
    html: Path | None,
    **options: Any,
) -> None:
    """Which kernels made CASE slower on HEAD, or faster?

    First it is measured again, without a profiler: what does not reproduce is not explained. Then both sides are profiled in
    turn, and the difference is laid out: kernels, copies, idle time; which kernels are new, gone, replaced or slower; and what
    it most likely comes from. CASE is a name or a regular expression; of several cases, the one that changed most.

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
        report = command(wanted, case, base, head, progress, environments=(base_env, head_env))
        if html is not None:
            publish_explained(report, html)
    finish(report, options)


@regress.command()
@click.argument("revision", required=False, metavar="[REV]")
@stack(where, selecting, tagging, suite, measuring, output)
@click.option("--rounds", type=click.IntRange(min=2), help="Rounds a case [5].")
@click.option("--env", "environment", metavar="NAME", default="", help="Environment, of those in the configuration.")
def run(revision: str | None, rounds: int | None, environment: str, **options: Any) -> None:
    """Measure one side, print it, and record it in results_dir.

    REV: any commit; without it the working tree, which is recorded only when nothing is changed in it.

    \b
    Examples:
      regress run                    this commit
      regress run v1.4 -b softmax    a release, the benchmarks that match

    \b
    Exit codes:
      0  measured
      2  usage, configuration, or unknown revision
      3  something failed, the rest is measured
      5  nothing could be measured
    """
    with invoked(options) as (request, progress):
        from regress.commands.run import run as command

        report = command(request({"run_rounds": rounds}), revision, progress, environment)
    finish(report, options)


@regress.command()
@click.argument("base")
@click.argument("head", required=False)
@stack(where, selecting, tagging, suite, measuring, deciding, stepping, output)
@click.option("--record", is_flag=True, help="Keep the results in results_dir, not only in the cache.")
@click.option("--base-env", metavar="NAME", default="", help="Environment of BASE, e.g. one with the released wheel.")
@click.option("--head-env", metavar="NAME", default="", help="Environment of HEAD.")
def gate(
    base: str,
    head: str | None,
    rounds: int | None,
    budget: float | None,
    record: bool,
    base_env: str,
    head_env: str,
    **options: Any,
) -> None:
    """May HEAD be released, after BASE?

    Measures both side by side, as `check` does, and asks the recorded history of this machine: what all steps since the last
    release add up to, and which regressions between BASE and HEAD are open. `gate_thresholds`, `critical` and `gate_release`
    in the configuration are the policy; what is acknowledged fails nothing.

    \b
    Examples:
      regress gate v1.4                              the working tree
      regress gate v1.4 v1.5-rc1 --output markdown=gate.md
      regress gate v1.4 --base-env released --prove  against the wheel; all has to be shown not to be slower

    \b
    Exit codes:
      0  may be released
      1  regressed, drifted, or open in the history
      2  usage, configuration, or unknown revision
      3  something fails on HEAD that worked on BASE
      4  undecided, with --strict or --prove or for a critical benchmark
      5  nothing could be measured or compared
    """
    with invoked(options) as (request, progress):
        from regress.commands.gate import gate as command

        wanted = request({"check_rounds": rounds, "budget_s": budget})
        report = command(wanted, base, head, progress, environments=(base_env, head_env), record=record)
    finish(report, options)


@regress.command()
@click.argument("commits", required=False, default="NEW", metavar="[COMMITS]")
@stack(where, selecting, tagging, measuring, output)
@click.option("--since", metavar="REV|DATE", help="Only that commit and what comes after it, or what is not older.")
@click.option("--steps", type=click.IntRange(min=1), help="So many of them, evenly spread [all].")
@click.option(
    "--first-parent", "only", flag_value="first-parent", help="What was merged counts as one, with its merge."
)
@click.option("--merges", "only", flag_value="merges", help="Merges only.")
@click.option("--rounds", type=click.IntRange(min=2), help="Rounds a case and commit [2].")
@click.option(
    "--budget", type=Duration(), metavar="TIME", help="Begin nothing that would end later: 90m, 5h [no bound]."
)
@click.option("--env", "environment", metavar="NAME", default="", help="Environment, of those in the configuration.")
@click.option("--retry", is_flag=True, help="Also what did not build, or failed, in an earlier sweep.")
def sweep(
    commits: str,
    since: str | None,
    steps: int | None,
    only: str | None,
    rounds: int | None,
    budget: float | None,
    environment: str,
    retry: bool,
    **options: Any,
) -> None:
    """Measure many commits, record them, and say what changed among them and since when.

    COMMITS: a range (v1.4..main), one commit, or
    NEW       what came after the newest measured commit (the default)
    ALL       all commits of "branches" in asv.conf.json
    TAGS      tagged commits
    EXISTING  commits that have results: for benchmarks that are new

    What is measured already is not measured again, so a sweep that was stopped goes on where it was. The range is covered
    coarsely at first, and more finely where something changed. Where commits are new, the last measured head and the last
    release are measured again beside them: a machine that has become slower is told from code that has.

    \b
    Examples:
      regress sweep --budget 5h                 every night
      regress sweep v1.0..main --steps 30       a first overview
      regress sweep v1.4..v1.5 -b softmax       when did that happen?

    \b
    Exit codes:
      0  measured, or nothing to measure
      1  a regression is new
      2  usage, configuration, or unknown revision
      3  a commit could not be built or measured, the others are
      5  nothing could be measured
    """
    with invoked(options) as (request, progress):
        from regress.commands.sweep import sweep as command

        report = command(
            request({"sweep_rounds": rounds}),
            commits,
            progress,
            since=since,
            steps=steps or 0,
            only=only or "",
            environment=environment,
            budget_s=budget or float("inf"),
            retry=retry,
        )
    finish(report, options)


@regress.command()
@click.argument("case")
@click.argument("good")
@click.argument("bad")
@click.option("--metric", metavar="NAME", default="", help="What to look at [what gates and is worst].")
@click.option("--restart", is_flag=True, help="Forget what an interrupted bisection has measured.")
@click.option("--env", "environment", metavar="NAME", default="", help="Environment, of those in the configuration.")
@stack(where, suite, placing, holding)
@click.option("--budget", type=Duration(), metavar="TIME", help="Measure no longer than that [no bound].")
@output
def bisect(
    case: str,
    good: str,
    bad: str,
    metric: str,
    restart: bool,
    environment: str,
    budget: float | None,
    **options: Any,
) -> None:
    """Find the commit that made CASE slower, faster, hungrier or fail, after GOOD and up to BAD.

    CASE: a name, or a pattern that matches one case. Each commit that is measured is measured in turn with GOOD, until the odds
    say on which side of the change it is; what was found is measured against its parent once more. Commits that do not build
    are passed over, and a merge is looked into. A bisection that was interrupted goes on when it is started again.

    \b
    Examples:
      regress bisect 'softmax.cudatime_fwd(4096)' v1.4 main
      regress bisect Attention v1.4 main --metric peak_memory

    \b
    Exit codes:
      0  found and confirmed
      2  usage, configuration, unknown revision, or BAD does not come after GOOD
      3  BAD does not build
      4  not down to one commit, or not confirmed
      5  GOOD and BAD do not differ, or nothing could be measured
    """
    with invoked(options) as (request, progress):
        from regress.commands.bisect import bisect as command

        report = command(
            request({}),
            case,
            good,
            bad,
            progress,
            metric=metric,
            environment=environment,
            budget_s=budget or float("inf"),
            restart=restart,
        )
    finish(report, options)


@regress.command()
@click.argument("base")
@click.argument("head")
@stack(where, selecting, deciding, output)
@click.option("--machine", metavar="NAME", help="Whose results [this machine's].")
@click.option("--environment", metavar="NAME", help="Which environment's results, where there are several.")
def compare(base: str, head: str, environment: str | None, **options: Any) -> None:
    """The verdicts of check from recorded results, measuring nothing.

    \b
    Example:
      regress run v1.4 && regress run v1.5 && regress compare v1.4 v1.5

    Exit codes are those of check; 5 where one of the two has no results on this machine.
    """
    with invoked(options) as (request, _):
        from regress.commands.compare import compare_recorded

        report = compare_recorded(request({}), base, head, environment)
    finish(report, options)


@regress.command()
@click.argument("directory", type=click.Path(path_type=Path), default=".", metavar="[DIR]")
@stack(where, placing, output)
@click.option("--write", is_flag=True, help='Add the block to an asv.conf.json that has no key "regress".')
def init(directory: Path, write: bool, **options: Any) -> None:
    """Set a repository up, or look an existing asv suite over.

    Where there is none it writes an asv.conf.json, a suite that runs and lines of .gitignore; a file that is there is never
    overwritten. An existing suite is measured once: which cases are CPU, which CUDA, and which of those belong under the
    device protocol. The block for asv.conf.json is printed; --write adds it and keeps everything else as it is.

    \b
    Examples:
      regress init                       here
      regress init mylib --write         another folder's suite, and its asv.conf.json

    \b
    Exit codes:
      0  set up, or looked over
      2  usage, configuration, or no git repository
      3  a benchmark file cannot be imported
      5  nothing of the suite can be measured
    """
    with invoked(options) as (request, progress):
        from regress.commands.init import init as command

        report = command(request({}), directory, progress, write=write)
    finish(report, options)


@regress.command()
@click.argument("revisions", nargs=-1, required=True, metavar="REV...")
@stack(where, output)
@click.option("--env", "environments", metavar="NAME", multiple=True, help="Environment to build in; repeatable.")
def build(revisions: tuple[str, ...], environments: tuple[str, ...], **options: Any) -> None:
    """Build commits without measuring; a later check or run finds them built.

    \b
    Examples:
      regress build v1.4 v1.5
      git rev-list v1.4..main | xargs regress build

    \b
    Exit codes:
      0  all are built
      2  usage, configuration, or unknown revision
      3  a commit does not build; the others are
      5  no interpreter, or no wheel
    """
    with invoked(options) as (request, progress):
        from regress.commands.build import build as command

        report = command(request({}), revisions, progress, environments)
    finish(report, options)


@regress.command()
@click.argument("folders", nargs=-1, required=True, metavar="DIR...", type=click.Path(path_type=Path))
@stack(where, output)
@click.option("--into", type=click.Path(path_type=Path), metavar="DIR", help="In place of results_dir.")
def merge(folders: tuple[Path, ...], into: Path | None, **options: Any) -> None:
    """Take the results of other folders into results_dir: of shards of a run, or of other machines.

    Rounds of one commit on one machine in one environment become one result; what is there already is not taken twice, so a
    merge can be run again. What was measured on different machines stands side by side.

    \b
    Example:
      regress merge shards/*

    \b
    Exit codes:
      0  merged
      2  usage, configuration, or results that would be mixed with others: nothing is written
      3  some files could not be read, the rest is merged
    """
    with invoked(options) as (request, progress):
        from regress.commands.merge import merge as command

        report = command(request({}), folders, progress, into)
    finish(report, options)


@regress.command()
@click.argument("case", required=False)
@stack(where)
@click.option(
    "--kind",
    type=click.Choice(["accepted", "noise", "quarantine"]),
    default="accepted",
    show_default=True,
    help="Worse up to a level; listed but proof of nothing; or measured and listed apart.",
)
@click.option("--reason", metavar="TEXT", help="Why it is no alarm.")
@click.option(
    "--until",
    metavar="TAG|DATE",
    default="",
    help='Or "lifted": until it is removed [the next tag; of quarantine: lifted].',
)
@click.option("--metric", metavar="NAME", default="", help="Of that metric alone [accepted: of what has regressed].")
@click.option("--link", metavar="URL", default="", help="Where more is said about it.")
@click.option("--level", type=Level(), metavar="+9%", help="What is accepted, against --since [as last checked].")
@click.option("--since", metavar="REV", default="", help="A commit before the change.")
@click.option("--replace", is_flag=True, help="In place of the entry that is there.")
@click.option("--remove", is_flag=True, help="Take the entry of CASE out of the file.")
@click.option("--list", "list_", is_flag=True, help="The entries: active, expired or unused.")
@stack(output)
def ack(case: str | None, reason: str | None, remove: bool, list_: bool, **options: Any) -> None:
    """Acknowledge that CASE is worse: it is listed, and fails nothing.

    CASE is a benchmark or case, or a regular expression. The entry stands in regress-acks.toml, with its reason and an end;
    commit it with the change that it is about. Accepted is what the last check here has measured: above it alarms again.

    \b
    Examples:
      regress ack 'softmax.cudatime_fwd(4096, fp16)' --reason "one pass now, exact for long rows"
      regress ack io.time_load --kind quarantine --reason "waits for the disk" --link https://example.org/41
      regress ack --list

    \b
    Exit codes:
      0  written, removed or listed
      2  usage, an unknown benchmark, or no level to accept
    """
    context = click.get_current_context()
    if list_ == (case is not None) or (list_ and remove):
        raise click.UsageError("name one CASE, or --list alone", context)
    if (reason is None) == (case is not None and not remove) or (reason is not None and not reason.strip()):
        raise click.UsageError("--reason says why CASE is no alarm, and goes with that only", context)
    if options["level"] is not None and options["kind"] != "accepted":
        raise click.UsageError("--level goes with --kind accepted", context)
    given = {name: options.pop(name) for name in ("kind", "until", "metric", "link", "level", "since", "replace")}
    with invoked(options) as (request, _):
        from regress.commands.ack import Wanted, listed
        from regress.commands.ack import ack as command
        from regress.commands.ack import remove as take_out

        if case is None:
            report = listed(request({}))
        elif remove:
            report = take_out(request({}), case, given["metric"])
        else:
            report = command(request({}), Wanted(case, reason=reason or "", **given))
    finish(report, options)


@regress.command()
@stack(where, selecting)
@click.option("--csv", "file", metavar="[FILE]", is_flag=False, flag_value="-", required=True, help="As CSV [stdout].")
@click.option("--since", metavar="REV|DATE", help="Only commits that are not older.")
@click.option("--machine", metavar="NAME", help="Results of that machine alone.")
@click.option("--environment", metavar="NAME", help="Results in that environment alone.")
def export(file: str, since: str | None, machine: str | None, environment: str | None, **options: Any) -> None:
    """Write recorded results as a table.

    A row for each commit, machine, environment, device, case and metric: value and interval in base units (seconds, bytes),
    over n rounds; or how it failed.

    \b
    Examples:
      regress export --csv > all.csv
      regress export --csv softmax.csv -b softmax --since v1.4

    \b
    Exit codes:
      0  written
      2  usage or configuration
      5  nothing is recorded, or nothing matches
    """
    shown = file == "-" and sys.stdout is not None and sys.stdout.isatty()
    with invoked({**options, "quiet": shown}) as (request, progress):
        from regress.commands.export import export as command

        write_table(command(request({}), progress, machine, environment, since), file)


@regress.command()
@stack(where)
@click.option("--open", "open_", is_flag=True, help="Open it in the browser.")
@click.option("--since", metavar="REV|DATE", help="Begin with that commit, or at that date [all that is recorded].")
@click.option(
    "--single-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Everything in one file, to send or to attach [the folder report/].",
)
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def report(open_: bool, since: str | None, single_file: Path | None, **options: Any) -> None:
    """Write the history as pages that open from a file: what is worse, since when, whose commit, how sure.

    Into the folder report/, or what "report_dir" says. Only what has changed is made again. It needs no server and no network.

    \b
    Examples:
      regress report --open
      regress report --since v1.4 --single-file history.html

    \b
    Exit codes:
      0  written
      2  usage, configuration, or a folder that is not a report's
      5  nothing is recorded of this branch
    """
    with invoked(options) as (request, progress):
        from regress.commands.report import report as command

        site, folder = command(request({}), progress, since, regress.commands)
        page = publish(site, folder, single_file, progress)
    if open_:
        click.launch(page.resolve().as_uri())


@regress.command()
@click.argument("words", nargs=-1, required=True, metavar="CASE [REV] | SCRIPT [-- ARGUMENT...] | EXPORT...")
@stack(where, placing, holding, deciding, output)
@click.option("--calls", type=click.IntRange(min=1), default=20, show_default=True, help="Calls of a case, at most.")
@click.option("--env", "environment", metavar="NAME", default="", help="Environment, of those in the configuration.")
@click.option(
    "--against",
    metavar="CASE|EXPORT",
    multiple=True,
    help="What the case is held against: the raw operation below a wrapper. Or exports of the base, each a round; repeatable.",
)
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write an export's page.")
@click.option("--record", metavar="REV", help="Record the exports as results of that commit.")
def profile(
    words: tuple[str, ...],
    calls: int,
    environment: str,
    against: tuple[str, ...],
    html: Path | None,
    record: str | None,
    **options: Any,
) -> None:
    """Profile a case or a script with torch.profiler in a process of its own, or show what GPUProfiler exported.

    CASE: name of a benchmark or case, or a regular expression; of a benchmark with a parameter `component` the components are
    shown as parts of the whole. REV: any commit; without it the working tree. The Chrome traces are kept.

    SCRIPT: a Python file, run as a whole; what it prints goes to stderr.

    EXPORT: a JSON file of regress.profiler.GPUProfiler. Entries of one run are alike, so a run is one round, however many
    entries it has: give several exports a side for verdicts.

    \b
    Examples:
      regress profile softmax.Softmax.cudatime_forward
      regress profile attention.Components HEAD~1
      regress profile "layers.Norm.cudatime_ours" --against "layers.Norm.cudatime_torch"
      regress profile train.py -- --steps 10
      regress profile run.json --html run.html
      regress profile new-1.json new-2.json new-3.json --against old-1.json --against old-2.json --against old-3.json
      regress profile run.json --record HEAD

    \b
    Exit codes:
      0  profiled, shown, or nothing regressed
      1  something regressed
      2  usage, configuration, an unknown revision, or a file that is no export
      3  a case fails, the rest is profiled
      4  undecided, with --strict
      5  nothing could be profiled or compared
    """
    if against and record:
        raise click.UsageError("--record goes without --against", click.get_current_context())
    with invoked(options) as (request, progress):
        from regress.commands.profile import is_export
        from regress.commands.profile import profile as command
        from regress.commands.profiled import profile_cases
        from regress.commands.script import is_script, profile_script

        if is_script(words):
            report = profile_script(request({}), words)
        elif is_export(words, record):
            report = command(request({}), words, against, record)
        else:
            options["patterns"] = words[:1]
            report = profile_cases(request({}), words[1:], progress, calls, environment, against)
        if html is not None:
            publish_profile(report, html)
    finish(report, options)


@regress.command()
@click.argument("case", metavar="CASE")
@click.argument("revision", nargs=-1, metavar="[REV]")
@stack(where, placing)
@click.option("--calls", type=click.IntRange(min=1), default=1, show_default=True, help="Calls after the warm-up.")
@click.option("--env", "environment", metavar="NAME", default="", help="Environment, of those in the configuration.")
def once(case: str, revision: tuple[str, ...], calls: int, environment: str, **options: Any) -> None:
    """Set one case up, warm it up and call it in this process, for nsys, ncu, compute-sanitizer or a debugger.

    The calls lie between cudaProfilerStart and cudaProfilerStop, each in an NVTX range `regress.call`. The process becomes the
    one that runs the case: what the case prints is printed, and of regress one line on stderr.

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
        from regress.commands.once import once as command

        program = command(request({}), revision, progress, calls, environment)
    sys.stdout.flush()
    os.execve(program.words[0], program.words, dict(program.variables))


@regress.command("list")
@stack(where, selecting, tagging, placing, output)
def list_(**options: Any) -> None:
    """The cases of the suite, with metric, tags, and what a round of each took.

    \b
    Example:
      regress list -q -b softmax    names alone
    """
    with invoked(options) as (request, progress):
        from regress.commands.list import list_cases

        report = list_cases(request({}), progress)
    finish(report, options)


@regress.command()
@stack(where, placing, thresholds, output)
def config(**options: Any) -> None:
    """Effective settings, and where each came from: default, asv.conf.json or the command line.

    \b
    Example:
      regress config --time-threshold 3%
    """
    with invoked(options) as (request, _):
        from regress.commands.config import show_config

        report = show_config(request({}))
    finish(report, options)


@regress.command()
@stack(where, placing, output)
@click.option("--aa", is_flag=True, help="Measure HEAD, or the working tree, against itself.")
@stack(selecting, tagging, budgeting, holding)
def doctor(aa: bool, budget: float | None, **options: Any) -> None:
    """Is this machine fit to measure? With --aa: how well does it measure?

    --aa is a check in which no change is possible. It gives its false alarms, what it could not decide, and of each case the
    noise and the smallest regression that could be confirmed. Later checks on the device show what it came to.

    \b
    Examples:
      regress doctor
      regress doctor --aa --budget 5m

    \b
    Exit codes:
      0  fit, perhaps with warnings; with --aa no false alarm
      1  with --aa: a false alarm
      5  unfit; with --aa nothing could be measured
    """
    about_aa = ("patterns", "tags", "lock_clocks", "wait_lock")
    if not aa and (budget is not None or any(options[name] for name in about_aa)):
        raise click.UsageError(
            "-b, --tag, --budget, --lock-clocks and --wait-lock go with --aa", click.get_current_context()
        )
    with invoked(options) as (request, progress):
        from regress.commands.doctor import check_itself
        from regress.commands.doctor import doctor as look

        report = check_itself(request({"budget_s": budget}), progress) if aa else look(request({}), progress)
    finish(report, options)


@regress.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--commits", type=int, default=12, show_default=True, help="How many commits the repository gets.")
@click.option("--scripted/--cuda", default=None, help="Scripted device or real CUDA [whether there is a GPU].")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def demo(directory: Path, commits: int, scripted: bool | None, **options: Any) -> None:
    """Make a small git repository with planted regressions in DIRECTORY.

    A torch library of a dozen commits; some make it slower, hungrier or synchronous. On a machine without a GPU it runs on a
    scripted device, whose times are stated by the code, not measured.

    \b
    Example:
      regress demo d && cd d && regress check HEAD~1
    """
    with invoked(options):
        from regress.commands.demo import create

        made = create(directory, commits, scripted)
    device = (
        "a scripted device: its times are stated by the code, not measured"
        if made.scripted
        else "the GPU of this machine"
    )
    click.echo(f"{made.commits} commits in {made.directory}, for {device}")
    click.echo(f"what is planted where: {made.directory}/README.md")
    click.echo(f"try   {made.next_command}")


# -- the program ---------------------------------------------------------------------------------------------------------


def _hold_standard_streams() -> None:
    """Open those that are closed, or else a pipe to a worker gets the number of one, and is lost when the worker starts."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)


def main() -> None:
    """Run the command line and exit.

    Not with click's own endings: after Ctrl-C it would exit with 1, which means "regressed" here.
    """
    _hold_standard_streams()
    signal.signal(
        signal.SIGTERM, signal.default_int_handler
    )  # being told to end keeps what was measured, as Ctrl-C does
    try:
        code = regress(prog_name="regress", standalone_mode=False)
    except click.UsageError as error:
        if error.ctx is None or isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
            error.show()
        else:
            say(RegressError(error.format_message(), fix=f"{error.ctx.command_path} --help"), {})
        code = USAGE
    except click.Abort:
        click.echo("interrupted", err=True)
        code = INTERRUPTED
    sys.exit(code)
