"""One history, one report and one Chromium for all tests of the pages. The browser has no network."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from regress.commands.report import report
from regress.pages import PageSite
from regress.report.html import write_folder
from regress.report.progress import Progress
from regress.session import Request
from tests.conftest import LIMIT_S
from tests.report.html.history import create

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

QUIET = Progress(None)
COMMANDS = ("check", "bisect", "explain", "ack")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def until(page: Page, holds: str, *arguments: str) -> None:
    """Wait until the expression is true. The page's policy forbids Playwright's own `wait_for_function`, which looks again by
    `eval` in the page."""
    end_s = time.monotonic() + LIMIT_S
    while time.monotonic() < end_s:
        if page.evaluate(holds, *arguments):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"{holds} {arguments} did not come true")


def address(page: Page) -> str:
    """Where the page says it is. Playwright's own `url` follows a moment later."""
    return str(page.evaluate("location.href"))


def site_of(folder: Path, since: str | None = None) -> PageSite:
    return report(Request(folder), QUIET, since, COMMANDS)[0]


@pytest.fixture(scope="session")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository with its results; tests only read it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
        return create(tmp_path_factory.mktemp("history") / "tensors")


@pytest.fixture(scope="session")
def pages(history: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REGRESS_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        return write_folder(site_of(history), tmp_path_factory.mktemp("pages") / "report", QUIET).page


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install .[test]")
    if CHROMIUM is None:
        pytest.skip("there is no Chromium to look at pages with: apt-get install chromium")
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home,  # the browser may still write into it
        playwright.sync_playwright() as started,
    ):
        options = {
            "executable_path": CHROMIUM,
            "args": ["--no-sandbox"],
            "env": {"HOME": home},
            "timeout": 1000 * LIMIT_S,
        }
        browser = started.chromium.launch(**options)
        yield browser
        browser.close()


class Windows:
    """Windows of a browser without a network, one for each way of looking; what goes wrong in any of them is kept."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._open: dict[str, Page] = {}
        self.wrong: list[str] = []

    def page(self, **options: object) -> Page:
        """A window that remembers nothing."""
        key = repr(sorted(options.items()))
        if key not in self._open:
            settings = {
                "viewport": {"width": 1280, "height": 900},
                "offline": True,
                "accept_downloads": True,
                **options,
            }
            context = self._browser.new_context(**settings)  # type: ignore[arg-type]
            context.set_default_timeout(1000 * LIMIT_S)
            context.grant_permissions(["clipboard-read", "clipboard-write"])
            page = self._open[key] = context.new_page()
            page.on("console", lambda message: self.wrong.append(message.text))
            page.on("pageerror", lambda error: self.wrong.append(str(error)))
            page.on("requestfailed", lambda request: self.wrong.append(request.url))
        page = self._open[key]
        if page.url.startswith("file:"):
            page.evaluate("localStorage.clear()")
            page.goto("about:blank")
        return page

    def hacked(self) -> bool:
        return any(page.evaluate("window.hacked") for page in self._open.values())


@pytest.fixture(scope="session")
def windows(chromium: Browser) -> Windows:
    return Windows(chromium)


@pytest.fixture
def visit(windows: Windows, pages: Path) -> Iterator[Callable[..., Page]]:
    """Opens a page of the report. No page may say anything on the console, ask for a file that is not there, or run what is in
    a name."""

    def go(route: str = "#/", path: Path = pages, **options: object) -> Page:
        page = windows.page(**options)
        page.goto(f"{path.as_uri()}{route}")
        page.wait_for_selector("main[data-page]")
        return page

    windows.wrong.clear()
    yield go
    assert windows.wrong == []
    assert not windows.hacked()
