"""The program: its name, what it is for, and its options."""

from __future__ import annotations

import click

from regress import __version__

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
