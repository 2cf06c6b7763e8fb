"""Measuring for the history, and what is made of it."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import click

from regress.choices import IMPORTED
from regress.cli.invocation import finish, invoked, publish, write_table
from regress.cli.options import (
    DurationType,
    Moment,
    Target,
    environment_option,
    measuring,
    output,
    selecting,
    stack,
    suite,
    tagging,
    where,
)
from regress.cli.program import regress


@regress.command()
@click.argument("revision", required=False, metavar="[REV]")
@stack(selecting, tagging)
@click.option("--rounds", type=click.IntRange(min=2), metavar="N", help="Rounds a case [5].")
@click.option(
    "--durations",
    type=click.IntRange(min=0),
    is_flag=False,
    flag_value=10,
    metavar="[N]",
    help="Also show the 10 slowest benchmarks, or N; 0 for all.",
)
@stack(measuring, suite, environment_option, output, where)
def run(revision: str | None, rounds: int | None, environment: str, durations: int | None, **options: Any) -> None:
    """Measure one commit, print the results, and record them in results_dir.

    REV is any commit, by default the working tree, which is recorded only if it has no changes.

    \b
    Examples:
      regress run                    this commit
      regress run v1.4 -b softmax    a release, the benchmarks that match
      regress run --durations=20     and where the time goes

    \b
    Exit codes:
      0  measured
      2  usage, configuration, or unknown revision
      3  a benchmark failed; the rest is measured
      5  nothing could be measured
    """
    with invoked(options) as (request, progress):
        from regress.commands.run import run as command

        report = command(request({"run_rounds": rounds}), revision, progress, environment, durations)
    finish(report, options)


@regress.command(short_help="Measure many commits and report what changed, and when.")
@click.argument("commits", nargs=-1, metavar="[COMMITS...]")
@stack(selecting, tagging)
@click.option(
    "--budget", type=DurationType(), metavar="TIME", help="Start nothing that would end after this: 90m, 5h [no limit]."
)
@click.option(
    "--until",
    type=Moment(),
    metavar="TIME",
    help="Start nothing that would end after this time: 06:00, 2026-01-20T06:00.",
)
@click.option("--since", metavar="REV|DATE", help="Only this commit and later, or commits since a date.")
@click.option(
    "--steps", type=click.IntRange(min=1), metavar="N", help="At most this many commits, evenly spread [all]."
)
@click.option(
    "--first-parent", "only", flag_value="first-parent", help="Count a merge and what it merged as one commit."
)
@click.option("--merges", "only", flag_value="merges", help="Merges only.")
@click.option("--rounds", type=click.IntRange(min=2), metavar="N", help="Rounds a case and commit [2].")
@click.option("--bisect", "bisects", is_flag=True, help="Then bisect new changes that several commits may have caused.")
@click.option(
    "--notify-command",
    metavar="CMD",
    help="Command to run if something new is worse or fails; it gets the JSON document on stdin.",
)
@click.option("--retry", is_flag=True, help="Try commits again that did not build, or failed, in an earlier sweep.")
@click.option("--into", type=click.Path(path_type=Path), metavar="DIR", help="Record there instead of in results_dir.")
@measuring
@click.option("--look", type=click.Path(path_type=Path), hidden=True, help="Only look the suite over, into this file.")
@click.option("--no-wait", is_flag=True, help="With --on: submit missing tasks, merge finished ones, judge, and exit.")
@stack(environment_option, output, where)
def sweep(
    commits: tuple[str, ...],
    into: Path | None,
    since: str | None,
    steps: int | None,
    only: str | None,
    rounds: int | None,
    budget: float | None,
    until: float | None,
    environment: str,
    bisects: bool,
    notify_command: str | None,
    retry: bool,
    on: str | None,
    look: Path | None,
    no_wait: bool,
    **options: Any,
) -> None:
    """Measure many commits, record them, and report what changed and when.

    \b
    COMMITS: ranges (v1.4..main) and commits, or one of
      NEW       commits after the newest measured one (the default)
      ALL       all commits of "branches" in asv.conf.json
      TAGS      releases: tags that match "release_tags"
      EXISTING  commits that have results: after you add a benchmark

    Measured commits are not measured again, so a stopped sweep resumes where it was. It covers the range coarsely at first, and
    more finely where something changed. Beside new commits it measures the last head and the last release again, to tell a
    slower machine from slower code.

    \b
    Examples:
      regress sweep --budget 5h                 every night
      regress sweep --budget 5h --bisect        use the rest of the budget to find the exact commits
      regress sweep --notify-command ./tell.sh  run a command if something is new
      regress sweep v1.0..main --steps 30       a first overview
      regress sweep v1.4..v1.5 -b softmax       when did that happen?
      regress sweep v1.4 v1.5 --into shard      two commits, into a folder to merge later
      regress sweep --on h100,a100              on nodes of a cluster

    \b
    Exit codes:
      0  measured, or nothing to measure
      1  a regression is new
      2  usage, configuration, or unknown revision
      3  a case stopped giving numbers, or some commits could not be built or measured
      5  nothing could be measured
    """
    context = click.get_current_context()
    if on and bisects:
        raise click.UsageError("--bisect cannot be combined with --on: regress bisect CASE GOOD BAD --on KIND", context)
    if no_wait and not on:
        raise click.UsageError("--no-wait needs --on", context)
    with invoked({**options, "into": into}) as (request, progress):
        from regress.commands.sweep import sweep as command
        from regress.commands.sweep.choosing import Asked

        asked = Asked(commits or ("NEW",), since, steps or 0, only or "", environment, retry)
        left_s = until - time.time() if until is not None else float("inf")
        wanted = request({"sweep_rounds": rounds, "notify_command": notify_command})
        budget_s = min(budget or float("inf"), left_s)
        if look is not None:
            from regress.commands.sweep.planning import look_over

            look_over(wanted, asked, look, progress)
            return
        if on:
            from regress.commands.sweep.cluster import sweep_on

            report, told = sweep_on(wanted, asked, progress, on, waits=not no_wait, budget_s=budget_s)
        else:
            report, told = command(wanted, asked, progress, budget_s=budget_s, bisects=bisects)
    finish(report, options, told)


@regress.command(hidden=True)
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("kind")
@click.argument("task", type=int)
@click.option("--debug", is_flag=True)
def shard(run: Path, kind: str, task: int, **options: Any) -> None:
    """Measure a task of a run: what `sweep --on` has nodes do."""
    with invoked(options) as (_, progress):
        from regress.commands.shard import shard as command

        command(run, kind, task, progress)


@regress.command(short_help="Take the results of shards or other machines into results_dir.")
@click.argument("folders", nargs=-1, required=True, metavar="DIR...", type=click.Path(path_type=Path))
@click.option("--into", type=click.Path(path_type=Path), metavar="DIR", help="Folder to use instead of results_dir.")
@stack(output, where)
def merge(folders: tuple[Path, ...], into: Path | None, **options: Any) -> None:
    """Take the results of shards or other machines into results_dir.

    Rounds of one commit on one machine in one environment become one result. Results that are already there are skipped, so you
    can run a merge again. Results of different machines are kept apart.

    \b
    Example:
      regress merge shards/*

    \b
    Exit codes:
      0  merged
      1  a regression is new
      2  usage, configuration, or results that would mix with others; nothing is written
      3  a case stopped giving numbers, or some files could not be read; the rest is merged
    """
    with invoked(options) as (request, progress):
        from regress.commands.merge import merge as command

        report, told = command(request({}), folders, progress, into)
    finish(report, options, told)


@regress.command("import", short_help="Record the files of another suite.")
@click.argument("kind", metavar="FORMAT", type=click.Choice(list(IMPORTED)))
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option("--commit", metavar="REV", required=True, help="Commit that was measured.")
@click.option("--machine", metavar="NAME", default="", help="Machine that measured it [this one].")
@click.option("--env", "environment", metavar="NAME", default="", help="Environment name [the format].")
@click.option("--as", "prefix", metavar="NAME", help="Prefix of names [the program that wrote the file].")
@stack(output, where)
def import_(
    kind: str,
    files: tuple[Path, ...],
    commit: str,
    machine: str,
    environment: str,
    prefix: str | None,
    **options: Any,
) -> None:
    """Record the files of another suite in results_dir, each as one run.

    FORMAT is google-benchmark, nvbench, pytest-benchmark, hyperfine or cutlass. Files that are already recorded are skipped. If
    one of them cannot be read, nothing is recorded.

    \b
    Examples:
      regress import google-benchmark run-*.json --commit v1.4
      regress import nvbench axpy.json --commit 3f2c1ab --machine gpu-2 --env cuda-13

    \b
    Exit codes:
      0  recorded, or already recorded
      2  usage, configuration, unknown revision, or a file that cannot be read
    """
    with invoked(options) as (request, _):
        from regress.commands.documents import Recording, import_documents

        report = import_documents(request({}), kind, files, Recording(commit, machine, environment, prefix))
    finish(report, options)


@regress.command()
@click.option(
    "--csv",
    "file",
    type=Target(makes_folder=False),
    metavar="[FILE]",
    is_flag=False,
    flag_value="-",
    required=True,
    help="Write CSV to FILE [stdout].",
)
@selecting
@click.option("--since", metavar="REV|DATE", help="Only commits from this one or date on.")
@click.option("--machine", metavar="NAME", help="Only results of this machine.")
@click.option("--env", "--environment", "environment", metavar="NAME", help="Only results in this environment.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@where
def export(file: Path, since: str | None, machine: str | None, environment: str | None, **options: Any) -> None:
    """Write recorded results as a table.

    One row for each commit, machine, environment, device, case and metric: value and interval in base units (seconds, bytes)
    over n rounds, or the failure.

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
    shown = str(file) == "-" and sys.stdout is not None and sys.stdout.isatty()
    with invoked({**options, "quiet": shown or options["quiet"]}) as (request, progress):
        from regress.commands.export import export as command

        write_table(command(request({}), progress, machine, environment, since), str(file))


@regress.command(short_help="Write the history as pages that open from a file.")
@click.option("--open", "open_", is_flag=True, help="Open it in the browser.")
@click.option("--since", metavar="REV|DATE", help="Start at this commit or date [everything recorded].")
@click.option(
    "--single-file",
    type=Target(),
    metavar="FILE",
    help="Everything in one file, to send or to attach [the folder report/].",
)
@click.option("-q", "--quiet", is_flag=True, help="No progress, and no warning for each folder that was left out.")
@where
def report(open_: bool, since: str | None, single_file: Path | None, **options: Any) -> None:
    """Write the history as pages that open from a file: what is worse, since when, whose commit, how sure.

    The folder is report/, or "report_dir". Only pages that changed are written again. The pages need no server or network.

    \b
    Examples:
      regress report --open
      regress report --since v1.4 --single-file history.html

    \b
    Exit codes:
      0  written
      2  usage, configuration, or a folder that is not a report's
      5  nothing is recorded for this branch
    """
    with invoked(options) as (request, progress):
        from regress.commands.report import report as command

        site, folder = command(request({}), progress, since, regress.commands)
        page = publish(site, folder, single_file, progress, options["quiet"])
    if open_:
        click.launch(page.resolve().as_uri())
