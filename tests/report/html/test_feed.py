"""What stands beside the pages: the feed of what is open, and the badge that counts it."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest

from regress.pages import PageIndex
from regress.report.html import write_folder
from regress.report.html.badge import badge
from regress.report.html.feed import ATOM, feed
from tests.pages.made import QUIET, Made, noisy

SLOW = noisy((12, 1e-3), (12, 1.2e-3))
ADDRESS = "https://example.org/perf"


def entries(text: str) -> list[dict[str, str]]:
    """Of each entry the text of its elements, and its link."""
    root = ElementTree.fromstring(text)
    return [
        {element.tag.removeprefix(f"{{{ATOM}}}"): element.text or element.attrib.get("href", "") for element in entry}
        for entry in root.iter(f"{{{ATOM}}}entry")
    ]


def ids(text: str) -> list[str]:
    return [entry["id"] for entry in entries(text)]


def words(index: PageIndex) -> str:
    return ElementTree.fromstring(badge(index)).findtext("{http://www.w3.org/2000/svg}text") or ""


def test_the_feed_has_what_is_open_and_what_atom_asks_for(tmp_path: Path) -> None:
    made = Made(tmp_path / "p", 24, {"report_url": ADDRESS})
    made.record(
        {"x.time_slow": SLOW, "x.time_back": noisy((8, 1e-3), (8, 1.3e-3), (8, 1e-3)), "x.time_same": [1e-3] * 24}
    )
    text, _ = feed(made.index(), ())
    root = ElementTree.fromstring(text)
    assert {element.tag.removeprefix(f"{{{ATOM}}}") for element in root} >= {
        "id",
        "title",
        "updated",
        "author",
        "link",
        "entry",
    }
    assert {element.get("rel"): element.get("href") for element in root.findall(f"{{{ATOM}}}link")} == {
        "alternate": f"{ADDRESS}/index.html",
        "self": f"{ADDRESS}/feed.xml",
    }
    (entry,) = entries(text)
    sha = made.shas[12]
    assert re.fullmatch(rf"\+2\d\.\d % wall time: x\.time_slow, since {sha[:8]} change 12", entry["title"])
    assert entry["updated"] == "2026-01-10T09:20:00Z"
    assert entry["id"].startswith("urn:uuid:")
    assert entry["link"] == f"{ADDRESS}/index.html#/b/x.time_slow?metric=wall_time&change={sha[:12]}"
    assert f"<p>{sha[:8]} change 12 (Ada)</p>" in entry["content"]
    assert "<pre>regress check" in entry["content"]


def test_an_event_keeps_its_id(tmp_path: Path) -> None:
    """When commits come after it, when one in its range is measured, and on a machine that writes its first feed."""
    made = Made(tmp_path / "p", 40)
    coarse = [*SLOW[:10], *[None] * 4, *SLOW[14:], *[None] * 16]
    text, known = feed(made.record({"x.time_slow": coarse}).index(), ())
    (first,) = ids(text)
    later = [*SLOW[:10], *[None] * 4, *SLOW[14:], *noisy((16, 1.2e-3))]
    index = made.record({"x.time_slow": later}).index()
    assert ids(feed(index, known)[0]) == ids(feed(index, ())[0]) == [first]
    narrow = [*SLOW[:12], *[None] * 2, *SLOW[14:], *noisy((16, 1.2e-3))]
    text, known = feed(made.record({"x.time_slow": narrow}).index(), known)
    assert ids(text) == [first]
    assert made.shas[10][:8] not in entries(text)[0]["content"]
    again = [*SLOW[:12], *[None] * 2, *SLOW[14:], *noisy((8, 1.2e-3), (8, 1.5e-3))]
    text, _ = feed(made.record({"x.time_slow": again}).index(), known)
    assert ids(text)[1:] == [first]
    assert len(set(ids(text))) == 2


def test_the_report_remembers_what_its_feed_has_told(tmp_path: Path) -> None:
    made = Made(tmp_path / "p", 24)
    folder = tmp_path / "report"
    write_folder(made.record({"x.time_slow": [*SLOW[:10], *[None] * 4, *SLOW[14:]]}).site(), folder, QUIET)
    before = ids((folder / "feed.xml").read_text())
    write_folder(made.record({"x.time_slow": SLOW}).site(), folder, QUIET)
    assert ids((folder / "feed.xml").read_text()) == before != []
    assert words(made.index()) == "1 regression open"
    assert "1 regression open" in (folder / "badge.svg").read_text()


def test_nothing_in_the_feed_is_markup_of_its_own(tmp_path: Path) -> None:
    name = 'x.time_<b>&"\x01\ufffe\u2028'
    index = Made(tmp_path / "p", 24).record({name: SLOW}).index()
    hostile = tuple(
        replace(commit, subject="</p><script>\x00 ]]>", author="<i>\ud800", date=9e18) for commit in index.commits
    )
    index = replace(index, commits=hostile, suspects=hostile, project="</title>\x07")
    (entry,) = entries(feed(index, ())[0])
    assert set(re.findall("<[^>]*>", entry["content"])) == {"<p>", "</p>", "<pre>", "</pre>"}
    assert "&lt;/p&gt;&lt;script&gt;\\x00" in entry["content"]
    assert entry["updated"] == "1970-01-01T00:00:00Z"
    assert "\\x07: 1 regression open" in badge(index)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (noisy((24, 1e-3)), "no regressions open"),
        (noisy((12, 1e-3), (12, 0.8e-3)), "no regressions open"),
        ([*noisy((22, 1e-3)), 1.5e-3, 1.5e-3], "no regressions open"),
        (SLOW, "1 regression open"),
    ],
)
def test_the_badge_counts_what_is_open(tmp_path: Path, values: list[float | None], expected: str) -> None:
    index = Made(tmp_path / "p", 24).record({"x.time_f": values}).index()
    assert words(index) == expected
    assert len(entries(feed(index, ())[0])) == len(index.open)


def test_what_moved_at_once_is_one_entry(tmp_path: Path) -> None:
    made = Made(tmp_path / "p", 24)
    for machine, level in (("gpu-1", 1.2e-3), ("gpu-2", 1e-3)):
        made.record({f"s{at}.time_f": noisy((12, 1e-3), (12, level)) for at in range(6)}, machine=machine)
    index = made.index()
    (entry,) = entries(feed(index, ())[0])
    assert entry["title"] == f"6 benchmarks moved at once on gpu-1, since {made.shas[12][:8]} change 12"
    assert "machine" in entry["content"]
    assert "s5.time_f" in entry["content"]
    assert "Ada" not in entry["content"], "nobody is blamed"
    assert words(index) == "6 regressions open", "as on the overview"


def test_without_an_address_links_stay_beside_the_feed(tmp_path: Path) -> None:
    text, _ = feed(Made(tmp_path / "p", 24).record({"x.time_slow": SLOW}).index(), ())
    assert entries(text)[0]["link"].startswith("index.html#/b/x.time_slow?")
    assert 'rel="self"' not in text


def test_what_stopped_says_where_and_of_nobody_known_no_name_is_given(tmp_path: Path) -> None:
    stopped = [1e-3] * 6 + [float("nan")] * 6
    made = Made(tmp_path / "p", 12).record(
        {"x.time_f": stopped, "x.time_g": noisy((6, 1e-3), (6, 1.2e-3))}, machine="one"
    )
    index = made.record({"x.time_f": stopped}, machine="two").index()
    index = replace(index, suspects=tuple(replace(suspect, author="") for suspect in index.suspects))
    slow, broken = sorted(entries(feed(index, ())[0]), key=lambda entry: entry["title"])
    assert "<p>on one, two</p>" in broken["content"]
    assert f"last value at {made.shas[5][:8]} change 5" in broken["content"]
    assert f"<p>{made.shas[6][:8]} change 6</p>" in slow["content"]
