"""Makes docs/report.png, the overview of what a sweep recorded of the demo on an H200: `make picture`."""

from __future__ import annotations

import tempfile
from datetime import datetime, timezone
from pathlib import Path

from playwright.sync_api import ViewportSize, sync_playwright

from regress.report.html import write_folder
from tests.data import h200_demo
from tests.report.html.conftest import CHROMIUM, QUIET, site_of

PICTURE = Path(__file__).parents[3] / "docs" / "report.png"
MORNING = datetime(2025, 7, 1, 7, tzinfo=timezone.utc)
"""When somebody looks: the day after the newest commit, whenever the picture is made."""


def make(picture: Path) -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = write_folder(site_of(h200_demo(Path(folder, "tinynn"))), Path(folder, "report"), QUIET).page
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        size: ViewportSize = {"width": 1180, "height": 980}
        window = browser.new_page(viewport=size, color_scheme="light", timezone_id="UTC", offline=True)
        window.clock.set_fixed_time(MORNING)
        window.goto(page.as_uri())
        window.wait_for_selector("main[data-page] table")
        window.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    make(PICTURE)
