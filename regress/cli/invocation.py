"""Around every command: options become a Request, errors become words and exit codes, and a report is delivered."""

from __future__ import annotations

import contextlib
import csv
import errno
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from regress.errors import Exit, RegressError
from regress.text.wording import counted, quoted, reason

if TYPE_CHECKING:
    from regress.model import Report
    from regress.pages import PageSite
    from regress.report.progress import Progress
    from regress.session import Request
    from regress.text.style import Style

__all__ = ["finish", "invoked", "publish", "publish_explained", "publish_profile", "say", "write_table"]

SUMMARY = "GITHUB_STEP_SUMMARY"
"""Names the file that a step of GitHub Actions adds to the summary of its run; 1 MiB of it are shown, or nothing."""


_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a formula begins with, for one spreadsheet or another."""
WRITABLE = "--output FORMAT=FILE with a file that can be written"
_FULL = (errno.ENOSPC, errno.EDQUOT)
_OPEN = (errno.EMFILE, errno.ENFILE)
_OF_THE_MACHINE = (*_FULL, *_OPEN, errno.EACCES, errno.EPERM, errno.EROFS)
"""What an OSError says that no command has foreseen, and that is no fault of ours."""


class InternalError(RegressError):
    """A fault of ours. Python would exit with 1, which means "regressed" here."""

    exit_code = Exit.NOTHING


class Interrupted(RegressError):
    """Ctrl-C where no command has made a report of it."""

    exit_code = Exit.INTERRUPTED


@contextlib.contextmanager
def invoked(options: dict[str, Any]) -> Iterator[tuple[Callable[[dict[str, Any]], Request], Progress]]:
    """Turns options into a Request, and errors into words and exit codes."""
    from regress.report import load
    from regress.report.progress import Progress

    load({"text", "markdown", *_formats(options)})
    with _errors(options, deliver=True), Progress(sys.stderr, quiet=bool(options.get("quiet"))) as progress:
        if options.get("on"):
            from regress.commands.away import away

            sys.exit(away(_request(options, {}, progress.note), sys.argv[1:], options["on"], "gpus" in options))
        yield (lambda more: _request(options, more, progress.note)), progress


def _formats(options: dict[str, Any]) -> tuple[str, ...]:
    return options.get("form", "text"), *(form for form, _ in options.get("outputs", ()))


@contextlib.contextmanager
def _errors(options: dict[str, Any], *, deliver: bool = False) -> Iterator[None]:
    """Say what is wrong, and exit. `deliver`: files and machines are told too, or what an earlier run wrote would be read."""
    try:
        yield
    except KeyboardInterrupt:
        if deliver:
            _delivered(_stopped(Interrupted("interrupted before there was anything to report")), options, said=True)
        raise
    except Exception as error:
        if options.get("debug"):
            import traceback  # late: --help has no use for it

            traceback.print_exc()
        known = _explained(error, options)
        if deliver and "config_file" in options:
            _say_doubts(options)
        say(known, options)
        failed = _delivered(_stopped(known), options, said=True) if deliver else None
        if failed is not None:
            say(failed, options)
        sys.exit(known.exit_code)


def _say_doubts(options: dict[str, Any]) -> None:
    """Tell the warnings of the configuration, which have no report to be in."""
    from regress.project import doubts_of
    from regress.text.style import visible

    for text in doubts_of(_request(options, {}, lambda _: None)):
        with contextlib.suppress(OSError):  # as for the error below it
            click.echo(f"warning: {visible(text)}", err=True)


def _stopped(error: RegressError) -> Report:
    """The report of a command that found nothing out."""
    from regress.model import Report, Stopped

    command = click.get_current_context().info_name or "regress"
    return Report(command, (error.exit_code,), error.exit_code.word, error=Stopped(error.what, error.why, error.fix))


def _explained(error: Exception, options: dict[str, Any]) -> RegressError:
    """The error in words for the user."""
    if isinstance(error, RegressError):
        return error
    if isinstance(error, re.error) and error.pattern in options.get("patterns", ()):
        what = f"{error.pattern!r} is neither the name of a benchmark nor a regular expression"
        return RegressError(what, why=str(error), fix="regress list")
    if isinstance(error, OSError) and error.errno in _OF_THE_MACHINE:
        return _refused(error)
    fix = "report the traceback above" if options.get("debug") else "run it again with --debug and report the traceback"
    return InternalError(f"an internal error: {type(error).__name__}: {error}", fix=fix)


def _refused(error: OSError) -> RegressError:
    """The error where a folder or disk of this machine does not take what is to be written, or give what is to be read."""
    where, why = error.filename or ".", reason(error)
    if error.errno in _FULL:
        return RegressError("the disk is full", why=why, fix=f"make room: {quoted('df', '-h', where)}")
    if error.errno in _OPEN:
        return RegressError("no more files can be opened", why=why, fix="allow more: ulimit -n 4096")
    return RegressError(f"cannot use {where}", why=why, fix=quoted("ls", "-ld", where))


def say(error: RegressError, options: dict[str, Any]) -> None:
    from regress.report.terminal import render_error

    style = _style(options, sys.stderr)
    with contextlib.suppress(
        OSError
    ):  # nobody can read it, as after a lost terminal; the exit code is right all the same
        click.echo(render_error(error, style), err=True, nl=False, color=style.color)


def _request(options: dict[str, Any], more: dict[str, Any], note: Callable[[str], None]) -> Request:
    from regress.session import Request

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
        own_suite=options.get("suite") == "own",
        strict=bool(options.get("strict", False)),
        prove=bool(options.get("prove", False)),
        lock_clocks=bool(options.get("lock_clocks")),
        wait_lock=bool(options.get("wait_lock")),
        gpus=options.get("gpus") or (),
        into=options.get("into"),
        fetches=not options.get("no_fetch"),
        note=note,
    )


def _style(options: dict[str, Any], stream: TextIO | None) -> Style:
    """How to print on the stream; None is a file, or a stream that was closed before we were started."""
    from regress.text.style import Style, takes_escapes

    terminal = stream is not None and stream.isatty()
    wanted = options.get("color", "auto")
    color = wanted == "always" or (wanted == "auto" and takes_escapes(stream) and not os.environ.get("NO_COLOR"))
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


def finish(report: Report, options: dict[str, Any], told: Callable[[], None] = lambda: None) -> None:
    """Print the report, write the files, and exit. What cannot be delivered must not look like a verdict; `told` is called
    once all of it is."""
    with _errors(options):
        report = _notified(report)
        failed = _delivered(report, options)
        if failed is not None:
            raise failed
        told()
    sys.exit(report.exit_code)


def _notified(report: Report) -> Report:
    """The report, after the command is told that wants to be; with a warning where that failed."""
    if not report.notify:
        return report
    from regress.cli.notification import tell
    from regress.report import render
    from regress.text.style import Style

    wrong = tell(report.notify, render(report, Style(), "json"))
    if not wrong:
        return report
    fix = "try it with the document that --output json=FILE writes"
    return replace(report, warnings=(*report.warnings, f'nobody was notified: "notify_command": {wrong}; fix: {fix}'))


def _delivered(report: Report, options: dict[str, Any], *, said: bool = False) -> RegressError | None:
    """Print it and write the files; what is wrong, if some of it cannot be. `said`: it is in text on stderr already."""
    from regress.report import render

    form, style, plain = options.get("form", "text"), _style(options, sys.stdout), _style(options, None)
    failed = None
    if not said or form != "text":
        failed = _printed(render(report, style, form), style.color)
    files = [(name, file, "w") for name, file in options.get("outputs", ())]
    summary = os.environ.get(SUMMARY)
    if summary and "github" in _formats(options):
        plain = replace(plain, quiet=False)
        files.append(("markdown", Path(summary), "a"))
    for name, file, mode in files:
        text = render(report, plain, name)
        try:
            with open(file, mode, encoding="utf-8") as stream:
                stream.write(text)
        except OSError as error:
            fix = f"correct ${SUMMARY}, which names it" if mode == "a" else WRITABLE
            failed = failed or _undelivered(f"cannot write {file}", error, fix)
    return failed


def write_table(rows: Iterable[Sequence[str]], file: str) -> None:
    """Write the rows as they come, as CSV of RFC 4180 in UTF-8; "-" is stdout. Raises RegressError where they cannot be."""
    try:
        target = 1 if file == "-" else file
        with open(target, "w", encoding="utf-8", errors="backslashreplace", newline="", closefd=file != "-") as table:
            csv.writer(table).writerows(map(_no_formulas, rows))
    except BrokenPipeError:
        return  # a reader who has seen enough
    except OSError as error:
        what = "cannot print the table" if file == "-" else f"cannot write {file}"
        raise RegressError(what, why=reason(error), fix="--csv FILE with a file that can be written") from error


def _no_formulas(row: Sequence[str]) -> list[str]:
    """The row with a quote before text that a spreadsheet would take for a formula, and run."""
    return [f"'{cell}" if cell[:1] in _FORMULA and not _is_number(cell) else cell for cell in row]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def publish(site: PageSite, folder: Path, file: Path | None, progress: Progress, quiet: bool) -> Path:
    """Write the pages into the folder, or all in one file, and say what was done; the page to open."""
    from regress.report.html import write_file, write_folder

    written = write_file(site, file, progress) if file is not None else write_folder(site, folder, progress)
    for path, _, why, fix in () if quiet else written.index.skipped:
        click.echo(f"warning: {path}: {why}; fix: {fix}", err=True)
    counts = f"{counted(written.benchmarks, 'benchmark')}, {counted(len(written.index.commits), 'commit')}"
    near = written.page.is_relative_to(Path.cwd())
    page = written.page.relative_to(Path.cwd()) if near else written.page
    text = f"{page}  ({counts}; {counted(written.changed, 'page')} changed)\n"
    lost = written.index.lost
    if lost.matters:
        newer = f", {lost.newer} of them newer than anything shown" if lost.newer else ""
        text += f"{lost.files} of {counted(lost.of, 'file')} of results are not in it{newer}: they could not be used\n"
    failed = _printed(text, color=False)
    if failed is not None:
        raise failed
    return written.page


def publish_profile(report: Report, file: Path) -> None:
    """Write the page of a profile, and say where it is."""
    from regress.report.html import write_profile

    write_profile(report, file)
    click.echo(f"{file}", err=True)


def publish_explained(report: Report, file: Path) -> None:
    """Write the page of what was explained, if anything was, and say where it is."""
    from regress.report.html import write_explained

    if report.explained:
        write_explained(report, file)
        click.echo(f"{file}", err=True)


def _printed(text: str, color: bool) -> RegressError | None:
    """Print it; what is wrong, if it cannot be printed. A reader who has seen enough, such as head, is no error."""
    try:
        click.echo(text, nl=False, color=color)
    except OSError as error:
        # Python flushes again at exit; what is left in the buffer would fail once more and change the exit code to 120.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return None if isinstance(error, BrokenPipeError) else _undelivered("cannot print the report", error)
    return None


def _undelivered(what: str, error: OSError, fix: str = WRITABLE) -> RegressError:
    return RegressError(what, why=reason(error), fix=fix)
