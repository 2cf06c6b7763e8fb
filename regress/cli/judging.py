"""Judging: two commits, a release, which of many did it, and which of several implementations is the fastest."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource

from regress.cli.invocation import finish, invoked
from regress.cli.options import (
    DurationType,
    LevelType,
    deciding,
    environment_option,
    environments,
    holding,
    measuring,
    output,
    placing,
    proving,
    record_option,
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
@stack(selecting, tagging)
@click.option("--affected", is_flag=True, help="Only benchmarks whose `covers` or own file match the changed files.")
@stepping
@click.option("--explain", is_flag=True, help="Profile regressions on both sides to find the kernels responsible.")
@stack(proving, deciding, measuring, suite, environments, record_option, output, where)
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

    BASE defaults to HEAD if there are uncommitted changes, on a branch to the merge base with the default branch, otherwise to
    HEAD~1; with another --head-env, to the commit of HEAD. HEAD defaults to the working tree.

    \b
    Examples:
      regress check                     this branch, or uncommitted changes
      regress check HEAD~1 --budget 2m  the last commit, in two minutes
      regress check v1.4 --prove        before a release: require proof that nothing is slower

    \b
    Exit codes:
      0  nothing regressed
      1  something regressed
      2  usage, configuration, or unknown revision
      3  something fails on HEAD that worked on BASE
      4  most cases are undecided or were not reached in time; or, with --prove and for critical benchmarks, any is
         undecided or without a number; or, with --strict, any is undecided
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
@stack(selecting, tagging, stepping, proving, deciding, measuring, suite, environments, record_option, output, where)
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
    """Decide whether HEAD may be released after BASE.

    Measures both side by side, as `check` does, and reads the recorded history of this machine: what all steps since the last
    release add up to, and which regressions between BASE and HEAD are open. `gate_thresholds`, `critical` and `gate_release`
    in the configuration are the policy; acknowledged changes fail nothing.

    \b
    Examples:
      regress gate v1.4                              the working tree
      regress gate v1.4 v1.5-rc1 --output markdown=gate.md
      regress gate v1.4 --base-env released --prove  against the wheel; require proof that nothing is slower

    \b
    Exit codes:
      0  may be released
      1  regressed, drifted, or open in the history
      2  usage, configuration, or unknown revision
      3  something fails on HEAD that worked on BASE
      4  most cases are undecided or were not reached in time; or, with --prove and for critical benchmarks, any is
         undecided or without a number; or, with --strict, any is undecided
      5  nothing could be measured or compared
    """
    with invoked(options) as (request, progress):
        from regress.commands.gate import gate as command

        wanted = request({"check_rounds": rounds, "budget_s": budget})
        report = command(wanted, base, head, progress, environments=(base_env, head_env), record=record)
    finish(report, options)


@regress.command(short_help="Find the commit that made CASE slower, fail, or use more memory.")
@click.argument("case")
@click.argument("good")
@click.argument("bad")
@click.option("--metric", metavar="NAME", default="", help="Metric to search for [the worst that gates].")
@click.option("--budget", type=DurationType(), metavar="TIME", help="Stop measuring after this long [no limit].")
@click.option("--restart", is_flag=True, help="Discard what an interrupted bisection measured.")
@stack(placing, holding, suite, environment_option, output, where)
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

    CASE is a name, or a pattern that matches one case. Each probed commit is measured in turn with GOOD until it is 99 %
    certain on which side of the change it is; the result is measured against its parent once more. Commits that do not build
    are skipped, and merges are searched. Start an interrupted bisection again to resume it.

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
@stack(selecting, deciding, recorded)
@click.option("--base-machine", metavar="NAME", help="Machine whose results BASE uses, to compare two machines.")
@click.option("--head-machine", metavar="NAME", help="Machine whose results HEAD uses.")
@click.option("--base-env", metavar="NAME", help="Environment whose results BASE uses, to compare two.")
@click.option("--head-env", metavar="NAME", help="Environment whose results HEAD uses.")
@stack(output, where)
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
    """Judge recorded results by the rules of check, without measuring.

    Can also compare two machines or environments. A difference between them counts as changed, because no commit caused it, and
    the exit code is 0.

    BASE and HEAD may also be what other suites have written: a file of one run, a folder of such files (results/), or a pattern
    ('new-*.json'), each file a round. With one file a side nothing is claimed.

    \b
    Examples:
      regress run v1.4 && regress run v1.5 && regress compare v1.4 v1.5
      regress compare v1.5 v1.5 --head-machine gpu-2      this machine and gpu-2, at one commit
      regress compare old/ new/                           files of Google Benchmark, nvbench, pytest-benchmark, hyperfine

    Exit codes are those of check; 5 if one side has no results on its machine.
    """
    with invoked(options) as (request, _):
        from regress.commands.compare import From, compare_recorded
        from regress.commands.documents import are_documents, compare_documents

        if are_documents(base, head):
            places = {"--machine": options["machine"], "--environment": environment, "--base-machine": base_machine}
            places |= {"--head-machine": head_machine, "--base-env": base_env, "--head-env": head_env}
            report = compare_documents(request({}), base, head, [name for name, value in places.items() if value])
        else:
            sources = From(base_machine, base_env), From(head_machine, head_env)
            report = compare_recorded(request({}), base, head, environment, sources)
    finish(report, options)


@regress.command(short_help="Name the fastest implementation at each size.")
@click.argument("revision", required=False, metavar="[REV]")
@stack(selecting, recorded, output, where)
def fastest(revision: str | None, environment: str | None, **options: Any) -> None:
    """Name the fastest implementation at each size, from recorded results.

    Covers benchmarks with a parameter named `implementation`. REV is any commit with results, by default the newest. An
    implementation is fastest only if a Welch test tells it apart from all others.

    \b
    Example:
      regress run -b softmax && regress fastest -b softmax

    \b
    Exit codes:
      0  shown
      2  usage, configuration, or unknown revision
      5  nothing is recorded, or no benchmark has several implementations
    """
    with invoked(options) as (request, _):
        from regress.commands.fastest import fastest as command

        report = command(request({}), revision, environment)
    finish(report, options)


@regress.command()
@click.argument("case", required=False)
@click.option("--reason", metavar="TEXT", help="Why it is acceptable.")
@click.option(
    "--kind",
    type=click.Choice(["accepted", "noise", "quarantine"]),
    default="accepted",
    show_default=True,
    help="accepted: up to a level; noise: listed, but decides nothing; quarantine: listed separately.",
)
@click.option(
    "--until",
    metavar="TAG|DATE",
    default="",
    help='When it ends; "lifted": when the entry is removed [the next tag; of quarantine: lifted].',
)
@click.option("--metric", metavar="NAME", default="", help="For this metric only [accepted: those that regressed].")
@click.option("--link", metavar="URL", default="", help="Link to more about it.")
@click.option(
    "--level",
    type=LevelType(),
    metavar="+9%",
    help="Change that is accepted, since --since [what the last check measured].",
)
@click.option("--since", metavar="REV", default="", help="Commit before the change.")
@click.option("--replace", is_flag=True, help="Replace the existing entry.")
@click.option("--remove", is_flag=True, help="Remove the entry of CASE.")
@click.option("--list", "list_", is_flag=True, help="List the entries, and which are active, expired or unused.")
@click.option(
    "--all-open", is_flag=True, help="Mark everything open in the history as known; later changes still raise an alarm."
)
@stack(output, where)
def ack(case: str | None, reason: str | None, remove: bool, list_: bool, all_open: bool, **options: Any) -> None:
    """Acknowledge that CASE is worse: it is still listed, but fails nothing.

    CASE is a benchmark, a case, or a regular expression. The entry goes into regress-acks.toml, with a reason and an end;
    commit it with the change it is about. It accepts the level that the last check here measured; anything above raises an
    alarm again.

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
        raise click.UsageError(f"--{idle[0]} needs a CASE to acknowledge", context)
    if not (list_ or remove) and not (reason or "").strip():
        raise click.UsageError("--reason is missing: say why the regression is acceptable", context)
    if options["level"] is not None and options["kind"] != "accepted":
        raise click.UsageError("--level needs --kind accepted", context)
    given = {name: options.pop(name) for name in ("kind", "until", "metric", "link", "level", "since", "replace")}
    with invoked(options) as (request, _):
        from regress.commands.ack import AckRequest, ack_all_open, listed
        from regress.commands.ack import ack as command
        from regress.commands.ack import remove as take_out

        if all_open:
            report = ack_all_open(request({}), reason or "", given["link"])
        elif case is None:
            report = listed(request({}))
        elif remove:
            report = take_out(request({}), case, given["metric"])
        else:
            report = command(request({}), AckRequest(case, reason=reason or "", **given))
    finish(report, options)
