"""Formats are found by name and loaded late."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from regress.choices import FORMATS
from regress.model import Report
from regress.report import Style, render


def test_every_format_has_a_renderer() -> None:
    for module in FORMATS.values():
        assert callable(importlib.import_module(module).render)


@pytest.mark.parametrize("format", FORMATS)
def test_a_renderer_ends_its_text_with_one_newline(format: str) -> None:
    text = render(Report("check", state="PASS", cases=1), Style(), format)
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_an_unknown_format_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        render(Report("check"), Style(), "yaml")


def test_a_format_is_a_module_and_a_line_in_the_table() -> None:
    code = (
        "import sys, types, click.testing; from regress.choices import FORMATS\n"
        "FORMATS['made-up'] = 'made_up'; sys.modules['made_up'] = types.SimpleNamespace(render=lambda *_: 'made up')\n"
        "from regress.cli import regress; from regress.model import Report; from regress.report import Style, render\n"
        "assert 'made-up' in click.testing.CliRunner().invoke(regress, ['check', '--help']).output\n"
        "print(render(Report('check'), Style(), 'made-up'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "made up"


def test_rendering_text_loads_nothing_heavy() -> None:
    code = (
        "import sys; from regress.report import Style, render; from regress.report.progress import Progress;"
        "from regress.model import Report; render(Report('check'), Style());"
        "print(sorted(sys.modules.keys() & {'rich', 'numpy', 'scipy', 'asv', 'torch', 'jsonschema', 'click'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
