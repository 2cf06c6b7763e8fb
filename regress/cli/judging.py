"""Judging: two commits, a release, which of many did it, and which of several implementations is the fastest."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource

from regress.cli.invocation import finish, invoked
from regress.cli.options import (
    Duration,
    Level,
    deciding,
    holding,
    measuring,
    output,
    placing,
    recorded,
    selecting,
    stack,
    stepping,
    suite,
    tagging,
    where,
)
from regress.cli.program import regress


@regress.command()
@click.argument("base", required=False)
@click.argument("head", required=False)
@stack(selecting, tagging, where)
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
      4  most is undecided or was not reached in time; undecided or without a number, with --prove or for a critical
         benchmark; with --strict undecided
      5  nothing could be measured or compared
    """
    with invoked(options) as (request, progress):
        from regress.commands.check import check as command
        from regress.session.explanation import regressions

        environments = base_env, head_env
        wanted = request({"check_rounds": rounds, "budget_s": budget})
        choose = regressions if explain else None
        report = command(wanted, base, head, progress, environments=environments, record=record, choose=choose)
    finish(report, options)


@regress.command()
@click.argument("base")
@click.argument("head", required=False)
@stack(selecting, tagging, where, suite, measuring, deciding, stepping, output)
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
      4  most is undecided or was not reached in time; undecided or without a number, with --prove or for a critical
         benchmark; with --strict undecided
      5  nothing could be measured or compared
    """
    with invoked(options) as (request, progress):
        from regress.commands.gate import gate as command

        wanted = request({"check_rounds": rounds, "budget_s": budget})
        report = command(wanted, base, head, progress, environments=(base_env, head_env), record=record)
    finish(report, options)


@regress.command(short_help="Find the commit that made CASE slower or fail, or use more memory.")
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
    """Find the commit after GOOD, up to BAD, that made CASE slower or faster, fail, or use more memory.

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
@stack(selecting, where, deciding, recorded)
@click.option("--base-machine", metavar="NAME", help="Whose results of BASE, to compare two machines.")
@click.option("--head-machine", metavar="NAME", help="Whose results of HEAD.")
@click.option("--base-env", metavar="NAME", help="Which environment's results of BASE, to compare two environments.")
@click.option("--head-env", metavar="NAME", help="Which environment's results of HEAD.")
@output
def compare(
    base: str,
    head: str,
    environment: str | None,
    base_machine: str | None,
    head_machine: str | None,
    base_env: str | None,
    head_env: str | None,
    **options: Any,
) -> None:
    """The verdicts of check from recorded results, measuring nothing.

    Two machines or environments are compared on request. What differs between them has changed: no commit made it better or
    worse, and the exit code is 0.

    BASE and HEAD may also be what other suites have written: a file of one run, a folder of such files (results/), or a pattern
    ('new-*.json'), each file a round. With one file a side nothing is claimed.

    \b
    Examples:
      regress run v1.4 && regress run v1.5 && regress compare v1.4 v1.5
      regress compare v1.5 v1.5 --head-machine gpu-2      this machine and gpu-2, at one commit
      regress compare old/ new/                           files of Google Benchmark, nvbench, pytest-benchmark, hyperfine

    Exit codes are those of check; 5 where one of the two has no results on its machine.
    """
    with invoked(options) as (request, _):
        from regress.commands.compare import From, compare_recorded
        from regress.commands.documents import are_documents, compare_documents

        if are_documents(base, head):
            report = compare_documents(request({}), base, head)
        else:
            sources = From(base_machine, base_env), From(head_machine, head_env)
            report = compare_recorded(request({}), base, head, environment, sources)
    finish(report, options)


@regress.command(short_help="Which implementation is the fastest at each size.")
@click.argument("revision", required=False, metavar="[REV]")
@stack(selecting, where, recorded, output)
def fastest(revision: str | None, environment: str | None, **options: Any) -> None:
    """Which implementation is the fastest at each size, from recorded results.

    Of benchmarks with a parameter named `implementation`. REV: any commit with results; without it the newest one. What is not
    told apart by a Welch test is not called the fastest.

    \b
    Example:
      regress run -b softmax && regress fastest -b softmax

    \b
    Exit codes:
      0  shown
      2  usage, configuration, or unknown revision
      5  nothing is recorded, or nothing has several implementations
    """
    with invoked(options) as (request, _):
        from regress.commands.fastest import fastest as command

        report = command(request({}), revision, environment)
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
@click.option(
    "--all-open", is_flag=True, help="What is open in the recorded history is known; what comes later is news."
)
@stack(output)
def ack(case: str | None, reason: str | None, remove: bool, list_: bool, all_open: bool, **options: Any) -> None:
    """Acknowledge that CASE is worse: it is listed, and fails nothing.

    CASE is a benchmark or case, or a regular expression. The entry stands in regress-acks.toml, with its reason and an end;
    commit it with the change that it is about. Accepted is what the last check here has measured: above it alarms again.

    \b
    Examples:
      regress ack 'softmax.cudatime_fwd(4096, fp16)' --reason "one pass now, exact for long rows"
      regress ack io.time_load --kind quarantine --reason "waits for the disk" --link https://example.org/41
      regress ack --all-open --reason "before we looked"
      regress ack --list

    \b
    Exit codes:
      0  written, removed or listed
      2  usage, an unknown benchmark, or no level to accept
    """
    context = click.get_current_context()
    if [list_, all_open, case is not None].count(True) != 1 or (remove and case is None):
        raise click.UsageError("name one CASE, or --list or --all-open alone", context)
    about_entry = ("reason", "kind", "until", "metric", "link", "level", "since", "replace")
    said = [name for name in about_entry if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    kept = {"metric"} if remove else {"reason", "link"} if all_open else set() if list_ else set(about_entry)
    idle = [name for name in said if name not in kept]
    if idle:
        raise click.UsageError(f"--{idle[0]} goes with a CASE that is acknowledged", context)
    if not (list_ or remove) and not (reason or "").strip():
        raise click.UsageError("--reason is missing: it says why it is no alarm", context)
    if options["level"] is not None and options["kind"] != "accepted":
        raise click.UsageError("--level goes with --kind accepted", context)
    given = {name: options.pop(name) for name in ("kind", "until", "metric", "link", "level", "since", "replace")}
    with invoked(options) as (request, _):
        from regress.commands.ack import Wanted, ack_all_open, listed
        from regress.commands.ack import ack as command
        from regress.commands.ack import remove as take_out

        if all_open:
            report = ack_all_open(request({}), reason or "", given["link"])
        elif case is None:
            report = listed(request({}))
        elif remove:
            report = take_out(request({}), case, given["metric"])
        else:
            report = command(request({}), Wanted(case, reason=reason or "", **given))
    finish(report, options)
