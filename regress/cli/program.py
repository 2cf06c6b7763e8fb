"""The program: its name, what it is for, and its options."""

from __future__ import annotations

import click

from regress import __version__

EXAMPLES = """
\b
Examples:
  regress demo d && cd d && regress check HEAD~1    see it work
  regress check                                     this branch against its merge base with main
  regress check v1.4 v1.5 -b softmax                two releases, the benchmarks that match
  regress run                                       measure and record this commit
"""


GROUPS = {
    "Set up": ("init", "demo", "doctor", "config", "list", "build"),
    "Judge": ("check", "gate", "compare", "fastest", "ack"),
    "Over many commits": ("run", "sweep", "bisect", "report", "merge", "import", "export"),
    "Find out why": ("explain", "profile", "once"),
}
"""The commands as the help lists them; what is in none of them stands below."""


MAY_BE_EMPTY = ("notify_command", "prefix")
"""Parameters of which an empty word says something: that no command is told, that names have no prefix."""


class WithoutEmptyWords(click.Command):
    """A command that refuses empty words. They come from shell variables that are not set, and an empty pattern would match
    every case, an empty path the current folder."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given, _, _ = self.make_parser(ctx).parse_args(args=list(args))
        for parameter in self.params:
            value = given.get(parameter.name or "")
            words = list(value) if isinstance(value, (list, tuple)) else [value]
            if parameter.name == "words" and words and str(words[0]).endswith(".py"):
                del words[1:]  # of profile: they are the script's own
            empty = any(isinstance(word, str) and not word.strip() for word in words)
            if empty and parameter.name not in MAY_BE_EMPTY:
                option = isinstance(parameter, click.Option)
                name = " / ".join(parameter.opts) if option else parameter.human_readable_name.strip("[]")
                raise click.UsageError(f"{name} is empty: perhaps a shell variable is not set", ctx)
        return super().parse_args(ctx, args)


class Grouped(click.Group):
    """The commands of the program, in groups."""

    command_class = WithoutEmptyWords

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        listed = [name for name in self.list_commands(ctx) if not self.commands[name].hidden]
        left = [name for name in listed if not any(name in names for names in GROUPS.values())]
        for title, names in {**GROUPS, "Others": left}.items():
            commands = [(name, self.commands[name]) for name in names if name in self.commands]
            if commands:
                with formatter.section(title):
                    formatter.write_dl([(name, command.get_short_help_str(200)) for name, command in commands])


@click.group(
    cls=Grouped, epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(__version__, prog_name="regress")
def regress() -> None:
    """Performance regression tracking for CUDA code, on ordinary asv suites.

    Times CUDA operations with device events, reports with Welch tests which benchmarks became more than 5 % slower or use more
    than 10 % more memory, and keeps the history in asv's files.
    """
