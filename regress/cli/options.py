"""Options of the command line, and stacks of those that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime, timedelta
from datetime import time as clock
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import click

from regress.choices import DEVICES, FORMATS

if TYPE_CHECKING:
    NumberType = click.ParamType[float]
    OutputType = click.ParamType[tuple[str, Path]]
    GpusType = click.ParamType[tuple[str, ...]]
    TargetType = click.ParamType[Path]
else:  # older versions of click have no parameters there
    NumberType = OutputType = GpusType = TargetType = click.ParamType

Command = TypeVar("Command", bound=Callable[..., Any])


class Percent(NumberType):
    """A relative change: 5%, 0.05."""

    name = "percent"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            text = str(value).strip()
            number = float(text[:-1]) / 100 if text.endswith("%") else float(text)
        except ValueError:
            self.fail(f"{value!r} is not a percentage; write 5% or 0.05", param, ctx)
        if not 0 < number <= 1:
            self.fail(f"{value!r} is out of range; 5% and 0.05 mean the same", param, ctx)
        return number


class LevelType(NumberType):
    """A ratio to what was before: +9.4%, 1.094."""

    name = "level"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            text = str(value).strip()
            if not text.endswith("%") and "." not in text:  # 9 may mean 9 %, or nine times as much
                raise ValueError
            number = 1 + float(text[:-1]) / 100 if text.endswith("%") else float(text)
        except ValueError:
            self.fail(f"{value!r} is not a level; write +9.4% or 1.094", param, ctx)
        if not 0 < number < float("inf"):
            self.fail(f"{value!r} is out of range; +9.4% and 1.094 mean the same", param, ctx)
        return number


class DurationType(NumberType):
    """Seconds: 90, 90s, 10m, 1.5h."""

    name = "duration"
    _SECONDS: ClassVar = {"s": 1.0, "m": 60.0, "h": 3600.0}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        text = str(value).strip()
        unit = self._SECONDS.get(text[-1:])
        try:
            seconds = float(text[:-1]) * unit if unit is not None else float(text)
        except ValueError:
            self.fail(f"{value!r} is not a duration; write 90s, 10m or 1.5h", param, ctx)
        if not 0 < seconds < float("inf"):
            self.fail(f"{value!r} is out of range; write 90s, 10m or 1.5h", param, ctx)
        return seconds


class Moment(NumberType):
    """A moment, in seconds since the epoch: 06:00 (the next one), 2026-01-20T06:00."""

    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        now = datetime.now().astimezone()
        try:
            if len(value) <= len("06:00:00"):
                at = datetime.combine(now.date(), clock.fromisoformat(value)).astimezone()
                return (at if at > now else at + timedelta(days=1)).timestamp()
            moment = datetime.fromisoformat(value).astimezone()
        except ValueError:
            self.fail(f"{value!r} is not a time; write 06:00 or 2026-01-20T06:00", param, ctx)
        if moment <= now:
            self.fail(f"{value!r} is over", param, ctx)
        return moment.timestamp()


class Target(TargetType):
    """A file that is to be written; whether it can be is looked at before anything is measured. Without `makes_folder` its
    folder has to be there."""

    name = "file"

    def __init__(self, makes_folder: bool = True) -> None:
        self._makes_folder = makes_folder

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        file = Path(value)
        if file.is_dir():
            self.fail(f"{str(file)!r} is a folder", param, ctx)
        there = next(path for path in (file, *file.absolute().parents) if path.exists())
        if not self._makes_folder and not file.resolve().parent.is_dir():
            self.fail(f"the folder of {str(file)!r} does not exist", param, ctx)
        if there != file and not there.is_dir():
            self.fail(f"{str(file)!r} cannot be written: {there} is not a folder", param, ctx)
        if not os.access(there, os.W_OK):
            self.fail(f"{str(file)!r} cannot be written: {there} is write-protected", param, ctx)
        return file


class Output(OutputType):
    """FORMAT=FILE, with a Target."""

    name = "format=file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Path]:
        if isinstance(value, tuple):
            return value
        form, equals, file = str(value).partition("=")
        if not equals or form not in FORMATS:
            self.fail(f"{value!r} is not FORMAT=FILE with FORMAT one of {', '.join(FORMATS)}", param, ctx)
        return form, Target(makes_folder=False).convert(file, param, ctx)


class Gpus(GpusType):
    """Words that name GPUs, separated by commas."""

    name = "gpus"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        words = tuple(word.strip() for word in str(value).split(","))
        if not all(words):
            self.fail(f"{value!r} has an empty name; write 0,1, or UUIDs, or all", param, ctx)
        return words


def stack(*decorators: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """The decorators as one, in the order given."""

    def apply(function: Command) -> Command:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return apply


where = stack(
    click.option(
        "--config",
        "config_file",
        type=click.Path(path_type=Path),
        help="Configuration file [asv.conf.json here or above].",
    ),
    click.option("--no-fetch", is_flag=True, help='If "repo" is an address, use its clone without fetching.'),
    click.option("--debug", is_flag=True, help="Show tracebacks."),
)
output = stack(
    click.option(
        "--format",
        "form",
        type=click.Choice(list(FORMATS)),
        default="text",
        show_default=True,
        help="Format on stdout.",
    ),
    click.option(
        "--output",
        "outputs",
        type=Output(),
        metavar="FORMAT=FILE",
        multiple=True,
        help="Also write a file; repeatable.",
    ),
    click.option("-q", "--quiet", is_flag=True, help="Print only the verdict line, no progress."),
    click.option("-v", "--verbose", is_flag=True, help="Show every row, and the output of failures."),
    click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True),
)
selecting = stack(
    click.option(
        "-b",
        "--bench",
        "patterns",
        metavar="NAME",
        multiple=True,
        help="Exact name, or regular expression; repeatable.",
    ),
)
tagging = stack(
    click.option(
        "--tag", "tags", metavar="TAG", multiple=True, help="Only benchmarks with this tag; repeatable, any matches."
    ),
)
placing = stack(
    click.option("--device", type=click.Choice(DEVICES), help="Device to measure on [auto]."),
    click.option("--machine", metavar="NAME", help="Name of this machine in the history."),
)
recorded = stack(
    click.option("--machine", metavar="NAME", help="Machine whose results to use [this one]."),
    click.option(
        "--env",
        "--environment",
        "environment",
        metavar="NAME",
        help="Environment whose results to use, if there are several.",
    ),
)
holding = stack(
    click.option(
        "--lock-clocks", is_flag=True, help="Lock the GPU's clocks while measuring; needs administrator rights."
    ),
    click.option("--wait-lock", is_flag=True, help="Wait for a GPU that another regress is measuring on."),
    click.option("--on", metavar="KIND", help='Run on a node of this kind, from "cluster" in the configuration.'),
)
measuring = stack(
    placing,
    click.option(
        "--gpus",
        type=Gpus(),
        metavar="0,1",
        help="Measure on these GPUs at once: numbers, UUIDs, or all [the first one].",
    ),
    click.option(
        "--quick", is_flag=True, help="Run one round a case to see whether it works; judge and record nothing."
    ),
    holding,
)
suite = stack(
    click.option(
        "--suite",
        type=click.Choice(["checkout", "own"]),
        default="checkout",
        help="Benchmark files: this checkout's, or each commit's own [checkout].",
    ),
)
thresholds = stack(
    click.option("--time-threshold", type=Percent(), help="Smallest slowdown that counts [5%]."),
    click.option("--memory-threshold", type=Percent(), help="Smallest growth that counts [10%]."),
)
environment_option = click.option(
    "--env", "environment", metavar="NAME", default="", help="Environment, by its name in the configuration."
)
environments = stack(
    click.option(
        "--base-env", metavar="NAME", default="", help="Environment of BASE, by its name in the configuration."
    ),
    click.option("--head-env", metavar="NAME", default="", help="Environment of HEAD."),
)
record_option = click.option("--record", is_flag=True, help="Keep the results in results_dir, not only in the cache.")
html_option = click.option("--html", type=Target(), metavar="FILE", help="Also write a page.")
deciding = stack(
    thresholds,
    click.option("--strict", is_flag=True, help="Exit 4 when undecided, 3 when something fails on both sides."),
)
budgeting = stack(
    click.option(
        "--budget",
        type=DurationType(),
        metavar="TIME",
        help="Stop measuring after this long, trial runs included [10m].",
    ),
)
proving = click.option("--prove", is_flag=True, help="Require proof that no case is slower; exit 4 without it.")
stepping = stack(
    budgeting,
    click.option("--rounds", type=click.IntRange(min=2), metavar="N", help="Rounds a side for every case [in steps]."),
)
