"""The command line: parse, call a command, render, exit. The only module that prints or exits.

Nothing heavy is imported here: each command imports what it needs when it is called.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from regress import __version__
from regress.errors import RegressError
from regress.options import deciding, measuring, output, placing, selecting, stack, tagging, thresholds, where

if TYPE_CHECKING:
    from regress.commands.session import Request
    from regress.model import Report
    from regress.report.progress import Progress
    from regress.report.style import Style

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
@stack(measuring, deciding, output)
@click.option("--rounds", type=click.IntRange(min=2), help="Rounds a side [5].")
@click.option("--record", is_flag=True, help="Keep the results in results_dir, not only in the cache.")
@click.option("--base-env", metavar="NAME", default="", help="Environment of BASE, of those in the configuration.")
@click.option("--head-env", metavar="NAME", default="", help="Environment of HEAD; without BASE both are one commit.")
def check(
    base: str | None,
    head: str | None,
    rounds: int | None,
    record: bool,
    base_env: str,
    head_env: str,
    **options: Any,
) -> None:
    """Measure BASE and HEAD side by side and judge HEAD.

    BASE: with uncommitted changes HEAD, on a branch the merge base with the default branch, else HEAD~1. HEAD: the working
    tree.

    \b
    Exit codes:
      0  nothing regressed
      1  something regressed
      2  usage, configuration, or unknown revision
      3  something fails on HEAD that worked on BASE
      4  undecided, with --strict or for a critical benchmark
      5  nothing could be measured or compared
    """
    with _command(options) as (request, progress):
        from regress.commands.check import check as command

        environments = base_env, head_env
        wanted = request({"check_rounds": rounds})
        report = command(wanted, base, head, progress, environments=environments, record=record)
    _finish(report, options)


@regress.command()
@click.argument("revision", required=False, metavar="[REV]")
@stack(where, selecting, tagging, measuring, output)
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
    with _command(options) as (request, progress):
        from regress.commands.run import run as command

        report = command(request({"run_rounds": rounds}), revision, progress, environment)
    _finish(report, options)


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
    with _command(options) as (request, _):
        from regress.commands.compare import compare_recorded

        report = compare_recorded(request({}), base, head, environment)
    _finish(report, options)


@regress.command("list")
@stack(where, selecting, tagging, placing, output)
def list_(**options: Any) -> None:
    """The cases of the suite, with metric, tags, and what a round of each took.

    \b
    Example:
      regress list -q -b softmax    names alone
    """
    with _command(options) as (request, progress):
        from regress.commands.list import list_cases

        report = list_cases(request({}), progress)
    _finish(report, options)


@regress.command()
@stack(where, placing, thresholds, output)
def config(**options: Any) -> None:
    """Effective settings, and where each came from: default, asv.conf.json or the command line.

    \b
    Example:
      regress config --time-threshold 3%
    """
    with _command(options) as (request, _):
        from regress.commands.config import show_config

        report = show_config(request({}))
    _finish(report, options)


@regress.command()
@stack(where, placing, output)
def doctor(**options: Any) -> None:
    """Is this machine fit to measure?

    \b
    Exit codes:
      0  yes, perhaps with warnings
      5  no
    """
    with _command(options) as (request, progress):
        from regress.commands.doctor import doctor as command

        report = command(request({}), progress)
    _finish(report, options)


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
    with _command(options):
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


# -- around every command ------------------------------------------------------------------------------------------------


class InternalError(RegressError):
    """A fault of ours. Python would exit with 1, which means "regressed" here."""

    exit_code = 5


@contextlib.contextmanager
def _command(options: dict[str, Any]) -> Iterator[tuple[Callable[[dict[str, Any]], Request], Progress]]:
    """Turns options into a Request, and errors into words and exit codes."""
    from regress.report.progress import Progress

    with _errors(options), Progress(sys.stderr, quiet=bool(options.get("quiet"))) as progress:
        yield (lambda more: _request(options, more)), progress


@contextlib.contextmanager
def _errors(options: dict[str, Any]) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if options.get("debug"):
            import traceback  # late: --help has no use for it

            traceback.print_exc()
        known = _explained(error, options)
        _say(known, options)
        sys.exit(known.exit_code)


def _explained(error: Exception, options: dict[str, Any]) -> RegressError:
    """The error in words for the user."""
    if isinstance(error, RegressError):
        return error
    if isinstance(error, re.error) and error.pattern in options.get("patterns", ()):
        what = f"{error.pattern!r} is neither the name of a benchmark nor a regular expression"
        return RegressError(what, why=str(error), fix="regress list")
    fix = "report the traceback above" if options.get("debug") else "run it again with --debug and report the traceback"
    return InternalError(f"an internal error: {type(error).__name__}: {error}", fix=fix)


def _say(error: RegressError, options: dict[str, Any]) -> None:
    from regress.report.terminal import render_error

    style = _style(options, sys.stderr)
    click.echo(render_error(error, style), err=True, nl=False, color=style.color)


def _request(options: dict[str, Any], more: dict[str, Any]) -> Request:
    from regress.commands.session import Request

    named = {name: options.get(name) for name in ("device", "machine", "time_threshold", "memory_threshold")}
    overrides = {name: value for name, value in {**named, **more}.items() if value is not None}
    return Request(
        start=Path.cwd(),
        config_file=options.get("config_file"),
        patterns=tuple(options.get("patterns", ())),
        tags=tuple(options.get("tags", ())),
        affected=bool(options.get("affected")),
        overrides=overrides,
        quick=bool(options.get("quick")),
        strict=bool(options.get("strict", False)),
        lock_clocks=bool(options.get("lock_clocks")),
        wait_lock=bool(options.get("wait_lock")),
    )


def _style(options: dict[str, Any], stream: TextIO | None) -> Style:
    """How to print on the stream; None is a file, or a stream that was closed before we were started."""
    from regress.report.style import Style

    terminal = stream is not None and stream.isatty()
    wanted = options.get("color", "auto")
    color = wanted == "always" or (wanted == "auto" and terminal and not os.environ.get("NO_COLOR"))
    return Style(
        color=color and stream is not None,
        verbose=bool(options.get("verbose")),
        quiet=bool(options.get("quiet")),
        width=_columns(stream) if stream is not None and terminal else None,
        now=time.time(),
    )


def _columns(terminal: TextIO) -> int | None:
    """Its width; None where the terminal does not know it."""
    return os.get_terminal_size(terminal.fileno()).columns or None


def _finish(report: Report, options: dict[str, Any]) -> None:
    """Print the report, write the files, and exit. What cannot be delivered must not look like a verdict."""
    from regress.report import render

    with _errors(options):
        style, plain = _style(options, sys.stdout), _style(options, None)
        failed = _printed(render(report, style, options.get("form", "text")), style.color)
        for form, file in options.get("outputs", ()):
            try:
                file.write_text(render(report, plain, form), encoding="utf-8")
            except OSError as error:
                failed = failed or _undelivered(f"cannot write {file}", error)
        if failed is not None:
            raise failed
    sys.exit(report.exit_code)


def _printed(text: str, color: bool) -> RegressError | None:
    """Print it; what is wrong, if it cannot be printed. A reader who has seen enough, such as head, is no error."""
    try:
        click.echo(text, nl=False, color=color)
    except OSError as error:
        # Python flushes again at exit; what is left in the buffer would fail once more and change the exit code to 120.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return None if isinstance(error, BrokenPipeError) else _undelivered("cannot print the report", error)
    return None


def _undelivered(what: str, error: OSError) -> RegressError:
    return RegressError(
        what, why=error.strerror or str(error), fix="--output FORMAT=FILE with a file that can be written"
    )


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
            _say(RegressError(error.format_message(), fix=f"{error.ctx.command_path} --help"), {})
        code = USAGE
    except click.Abort:
        click.echo("interrupted", err=True)
        code = INTERRUPTED
    sys.exit(code)
