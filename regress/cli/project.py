"""The project, its suite, and this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from regress.cli.invocation import finish, invoked
from regress.cli.options import (
    DurationType,
    budgeting,
    holding,
    output,
    placing,
    selecting,
    stack,
    tagging,
    thresholds,
    where,
)
from regress.cli.program import regress


@regress.command()
@click.argument("directory", type=click.Path(path_type=Path), default=".", metavar="[DIR]")
@click.option("--write", is_flag=True, help='Add the block to an asv.conf.json that has no key "regress".')
@click.option("--budget", type=DurationType(), metavar="TIME", help="Try cases for this long [60s].")
@stack(selecting, placing, output, where)
def init(directory: Path, budget: float | None, write: bool, **options: Any) -> None:
    """Set up a repository, or examine an existing asv suite.

    Writes an asv.conf.json, a working suite and lines of .gitignore where they are missing; it never overwrites a file. In an
    existing suite it tries as many cases as the budget allows, and finds out which use the CPU, which use CUDA, and which of
    those to time on the device. It prints the block for asv.conf.json; --write adds it and keeps the rest.

    \b
    Examples:
      regress init                       here
      regress init mylib --write         another folder's suite, and its asv.conf.json
      regress init --budget 10m          all of a large suite

    \b
    Exit codes:
      0  set up, or examined
      2  usage, configuration, or no git repository
      3  a benchmark file cannot be imported
      5  no case of the suite can be measured
    """
    with invoked(options) as (request, progress):
        from regress.commands.init import BUDGET_S
        from regress.commands.init import init as command

        report = command(request({}), directory, progress, write=write, budget_s=budget or BUDGET_S)
    finish(report, options)


@regress.command(short_help="Build commits without measuring; a later check reuses the builds.")
@click.argument("revisions", nargs=-1, required=True, metavar="REV...")
@click.option("--env", "environments", metavar="NAME", multiple=True, help="Environment to build in; repeatable.")
@click.option("--cache-dir", hidden=True, help="Where a sweep on a node keeps its builds.")
@stack(output, where)
def build(revisions: tuple[str, ...], environments: tuple[str, ...], cache_dir: str | None, **options: Any) -> None:
    """Build commits without measuring; a later check or run reuses the builds.

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

        report = command(request({"cache_dir": cache_dir}), revisions, progress, environments)
    finish(report, options)


@regress.command("list", short_help="List the cases of the suite, with metric, tags and cost.")
@stack(selecting, tagging, placing, output, where)
def list_(**options: Any) -> None:
    """List the cases of the suite, with metric, tags, and the time of a round.

    \b
    Example:
      regress list -q -b softmax    only names

    \b
    Exit codes:
      0  listed
      2  usage or configuration
      3  a benchmark file cannot be imported
      5  there is no benchmark, or no benchmark matches
    """
    with invoked(options) as (request, progress):
        from regress.commands.list import list_cases

        report = list_cases(request({}), progress)
    finish(report, options)


@regress.command(short_help="Show every setting and where it comes from.")
@stack(thresholds, placing, output, where)
def config(**options: Any) -> None:
    """Show every setting and where it comes from: default, asv.conf.json or the command line.

    \b
    Example:
      regress config --time-threshold 3%
    """
    with invoked(options) as (request, _):
        from regress.commands.config import show_config

        report = show_config(request({}))
    finish(report, options)


@regress.command(short_help="Is this machine fit to measure? With --aa: how well?")
@click.option("--aa", is_flag=True, help="Measure HEAD, or the working tree, against itself.")
@stack(budgeting, selecting, tagging, placing, holding, output, where)
def doctor(aa: bool, budget: float | None, **options: Any) -> None:
    """Is this machine fit to measure? With --aa: how well does it measure?

    --aa checks a commit against itself, so no change is possible. It reports false alarms, undecided cases, and for each case
    the noise and the smallest regression that could be confirmed. Later checks on this device show the result.

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
            "-b, --tag, --budget, --lock-clocks and --wait-lock need --aa", click.get_current_context()
        )
    with invoked(options) as (request, progress):
        from regress.commands.doctor import check_itself
        from regress.commands.doctor import doctor as look

        report = check_itself(request({"budget_s": budget}), progress) if aa else look(request({}), progress)
    finish(report, options)


@regress.command(short_help="Make a small git repository with planted regressions.")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--commits", type=int, default=12, show_default=True, help="Number of commits.")
@click.option("--scripted/--cuda", default=None, help="Scripted device or real CUDA [CUDA if there is a GPU].")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def demo(directory: Path, commits: int, scripted: bool | None, **options: Any) -> None:
    """Make a small git repository with planted regressions in DIRECTORY.

    A torch library with a dozen commits; some make it slower or synchronous. On a machine without a GPU it runs on a
    scripted device: the code states the times instead of measuring them.

    \b
    Example:
      regress demo d && cd d && regress check HEAD~1
    """
    with invoked(options):
        from regress.commands.demo import create

        made = create(directory, commits, scripted)
    device = "a scripted device: its times are simulated, not measured" if made.scripted else "the GPU of this machine"
    click.echo(f"{made.commits} commits in {made.directory}, for {device}")
    click.echo(f"planted changes: {made.directory}/README.md")
    click.echo(f"try   {made.next_command}")
