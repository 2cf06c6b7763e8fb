"""Every command in README and docs runs, and what it is said to print is printed.

A block marked `console` is run in the demo's repository; a `python file=NAME` block is written there first. Of the output
shown, the rows that cannot vary (changes, verdicts, settings, names) must come out, white space aside.
"""

from __future__ import annotations

import gzip
import http.server
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import ClassVar

import click
import pytest

from regress.cli import regress
from regress.commands.demo import create
from regress.history.memory import NOISE_FILE
from regress.model import Cluster, Settings
from regress.report import Style, render
from regress.session import Request, Session
from tests.report.sample import sweep
from tests.traces.nsys_export import two_calls
from tests.traces.test_nsys_stats import API, COPIES, KERNELS, SIZES
from tests.traces.test_recorded import RECORDED

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
STABLE = re.compile(
    r"^([-+?!~=] |\d\. |A/A|FAIL|PASS|UNDECIDED|FOUND|mine\.|again |accept |base |head |report/|added to "
    r"|fastest by |bottleneck |of a call |of the program |device |host waiting |host busy |optim\.|scripted::"
    r"|ok  wrote |kernels |copies |(launch|compute)-bound |cuda[A-Z]|gelu |Memcpy |\[CUDA |cutlass_|nvjet_"
    r"|\S+ +(accepted|noise|quarantine) |[a-z_]+ +\S+ +(default|command line|asv\.conf\.json))"
)
TIME = re.compile(r"  \d[\d.:]* ?s?$|(?<=over \d\d)   .*$|(?<=over \d)   .*$")


def blocks(page: Path) -> list[tuple[str, str]]:
    return re.findall(r"^```(\S+(?: file=\S+)?)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def normal(text: str) -> str:
    return " ".join(text.split())


def run(command: str, folder: Path) -> str:
    """What the command prints; `regress` is this checkout's, whatever is installed, and `python` the one that runs this."""
    shim = folder.parent / "bin"
    shim.mkdir(exist_ok=True)
    for name, words in (("regress", "-m regress"), ("python", "")):
        script = shim / name
        script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {words} "$@"\n')
        script.chmod(0o755)
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env={**os.environ, "PATH": f"{shim}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), f"{command}: exit code {done.returncode}\n{done.stderr}"
    return done.stdout


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    """The demo, with what other profilers have exported beside it: a real table of ncu, and exports of nsys that we make."""
    folder = tmp_path / "d"
    create(folder, scripted=True)
    (folder / ".git" / "info").mkdir(exist_ok=True)
    (folder / ".git" / "info" / "exclude").write_text("/*.sqlite\n/*.csv\n/*.jq\n/*.sh\n")
    two_calls(folder / "calls.sqlite")
    (folder / "sums.csv").write_text("\n".join((KERNELS, COPIES, SIZES, API)))
    (folder / "kernels.csv").write_bytes(gzip.decompress((RECORDED / "ncu-raw.csv.gz").read_bytes()))
    return folder


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "```console" in page.read_text()], ids=lambda page: page.name
)
def test_commands_print_what_is_shown(page: Path, demo: Path) -> None:
    for kind, text in blocks(page):
        if " file=" in kind:
            (demo / kind.partition(" file=")[2]).write_text(text)
        if kind != "console":
            continue
        command, _, shown = text.partition("\n")
        assert command.startswith("$ ")
        command = command.removeprefix("$ ").removeprefix("regress demo d && cd d && ")
        (Session(Request(demo)).cache / NOISE_FILE).unlink(missing_ok=True)  # each is shown as the first on its machine
        printed = [normal(line) for line in run(command, demo).splitlines()]
        rows = [normal(TIME.sub("", line)) for line in shown.splitlines() if STABLE.match(line.strip())]
        assert rows, f"nothing of the output of {command!r} can be checked"
        for row in rows:
            cut = re.sub(r"( \d+ months ago.*|A/A \d+ s ago)", "", row)
            assert any(cut in line for line in printed), f"{command}: {cut!r} is not in\n" + "\n".join(printed)


class Heard(http.server.BaseHTTPRequestHandler):
    """Keeps what is posted to it."""

    bodies: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.bodies.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def webhook() -> Iterator[str]:
    Heard.bodies.clear()
    with http.server.HTTPServer(("127.0.0.1", 0), Heard) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


@pytest.mark.skipif(not (shutil.which("jq") and shutil.which("curl")), reason="the recipes take jq and curl")
def test_the_recipes_tell_what_is_new(tmp_path: Path, webhook: str) -> None:
    """Those of docs/nightly.md, by a `gh` and a `mail` that write down what they are given."""
    for kind, text in blocks(ROOT / "docs" / "nightly.md"):
        if " file=" in kind:
            (tmp_path / kind.partition(" file=")[2]).write_text(text)
    for name in ("gh", "mail"):
        (tmp_path / name).write_text(f"#!/bin/sh\n{{ printf '%s\\n' \"$@\"; cat; }} > {name}.said\n")
        (tmp_path / name).chmod(0o755)
    said = render(sweep(), Style(), "json")
    env = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "WEBHOOK": webhook}
    for name in ("issue", "webhook", "mail"):
        words = ["sh", f"tell-{name}.sh"]
        done = subprocess.run(words, cwd=tmp_path, env=env, input=said, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
    issue, mail = ((tmp_path / f"{name}.said").read_text() for name in ("gh", "mail"))
    subject, _, rest = json.loads(Heard.bodies[0])["text"].partition("\n\n")
    assert subject == sweep().remark
    assert f"--title\n{subject}\n--label\nperformance\n" in issue
    assert mail.startswith(f"-s\nregress: {subject}\nperf@example.org\n")
    assert issue.strip().endswith(rest)
    assert mail.strip().endswith(rest)
    lines = rest.splitlines()
    assert len(lines) == 8, "two regressions, four of one benchmark, and two cases without a number"
    assert "one of 2 commits up to 9d41e770" in lines[0]
    assert "peak_memory: +25 %, 3f2c1ab0" in lines[1]


def test_every_setting_is_documented_with_its_default() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| (\S+) \|", page, re.MULTILINE))
    defaults = {field.name: getattr(Settings(), field.name) for field in fields(Settings)}
    assert set(rows) == set(defaults)
    for long, patterns in (("env_key", Settings().env_key), ("release_tags", (Settings().release_tags,))):
        del rows[long], defaults[long]  # too long for a cell: it stands below
        assert all(f"`{pattern}`" in page for pattern in patterns)
    for name, value in defaults.items():
        shown = rows[name].strip('"')
        assert shown in (
            str(value),
            "true" if value is True else "",
            f"{value:g}" if isinstance(value, float) else "",
            "{}" if isinstance(value, Cluster) else "",
            "[]" if value == () else str(value),
        ), name


def test_the_page_of_commands_has_every_command_and_option() -> None:
    text = runpy.run_path(str(ROOT / "docs" / "conf.py"))["commands"]()
    for name, command in regress.commands.items():
        if command.hidden:
            continue
        _, partition, own = text.partition(f"### regress {name}\n")
        assert partition, name
        own = own.partition("\n### ")[0]
        for option in (param for param in command.params if isinstance(param, click.Option) and not param.hidden):
            assert f"{option.opts[-1]} " in own.replace("`", " ").replace(",", " "), (name, option.opts)


# -- asv -----------------------------------------------------------------------------------------------------------------


def rows_of(title: str) -> list[str]:
    """The names in the first column of the table under a heading of the page about asv."""
    section = (ROOT / "docs" / "asv.md").read_text().partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`([\w-]+)`", row)]


def test_every_key_of_asv_is_on_its_page() -> None:
    from asv.config import Config

    unread_by_its_config = ["version", "build_cache_size"]
    assert sorted(rows_of("Keys of asv.conf.json")) == sorted([*vars(Config()), *unread_by_its_config])


def test_every_command_of_asv_is_on_its_page() -> None:
    from asv import main  # noqa: F401  # registers what its plugins add
    from asv.commands import make_argparser

    assert sorted(rows_of("Commands")) == sorted(make_argparser()[1].choices)


def test_every_attribute_of_asv_is_on_its_page() -> None:
    import asv_runner

    assert asv_runner.__file__ is not None
    texts = [path.read_text() for path in Path(asv_runner.__file__).parent.rglob("*.py")]
    asked = {
        name
        for text in texts
        for name in re.findall(r'_get_(?:first_attr|all_attrs)\(\s*\[?[\w.]+\]?,\s*"(\w+)"', text)
    }
    assert {"setup", "number", "timeout", "env"} <= asked, "asv_runner asks in another way than it did"
    of_functions = {"benchmark_name", "pretty_name", "pretty_source"}
    assert all(any(name in text for text in texts) for name in of_functions)
    assert sorted(rows_of("Attributes of benchmarks")) == sorted(asked | of_functions)


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!http)([^)#]+)\)", re.sub(r"`[^`]*`", "", page.read_text())):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_make_targets_that_are_named_exist() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        assert set(re.findall(r"^ +make (\w+)", page.read_text(), re.MULTILINE)) <= targets
