"""The folder of a report.

    index.html        the page
    data/index.js     the Index
    data/values.js    the Values of its rows
    data/b/*.js       a Shard a benchmark
    feed.xml          what is open, for feed readers
    badge.svg         how much is open, for a README
    manifest.json     what page and shards were made from, and the parts of the index, which need not be made again

The manifest also marks the folder as a report's. Every file is replaced as a whole, the index after the shards it names: a
report that was interrupted is the old one with some newer shards, and the next run continues from there. One process writes
at a time.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from regress.errors import RegressError
from regress.files import lock
from regress.pages import Leaf, PageIndex, PageSite, Part
from regress.report.html.account import shard_script
from regress.report.html.badge import BADGE, badge
from regress.report.html.feed import FEED, Known, feed
from regress.report.html.page import page, page_stamp, script_of
from regress.sharing import shared
from regress.text.wording import reason

if TYPE_CHECKING:
    from regress.report.progress import Progress

MANIFEST = "manifest.json"
FORMAT = 3
SHARDS = Path("data", "b")
SOURCES = ["data/index.js"]
"""What the page loads its data from."""
SAVE_S = 10.0
"""Seconds between saves of the manifest, in case the process is killed."""
FIX = 'choose another folder: "report_dir" under "regress" in asv.conf.json'


@dataclass(frozen=True)
class Written:
    """What was written: the file to open, and how many benchmarks were made again."""

    page: Path
    index: PageIndex
    benchmarks: int
    made: int
    changed: int
    """Files of benchmarks whose content changed."""


@dataclass(frozen=True)
class _Kept:
    """A benchmark in the manifest."""

    seen: str
    stamp: str
    part: Part


@dataclass(frozen=True)
class _Manifest:
    format: int = FORMAT
    page: str = ""
    """Its stamp."""
    benchmarks: dict[str, _Kept] = field(default_factory=dict)
    told: tuple[Known, ...] = ()
    """What the feed has said so far."""


def write_folder(site: PageSite, folder: Path, progress: Progress) -> Written:
    """Bring the folder up to date. Raises RegressError if it holds something else or cannot be written. If interrupted, it
    keeps what was made."""
    with _explained(folder), _alone(folder, progress):
        before = _manifest(folder)
        kept = dict(before.benchmarks)
        (folder / SHARDS).mkdir(parents=True, exist_ok=True)
        if not kept:
            _write_manifest(folder, before)  # from now on the folder is ours

        def save() -> None:
            _write_manifest(folder, replace(before, benchmarks=kept))

        try:
            made, changed = _make_shards(site, folder, kept, progress, save)
        except BaseException:
            save()
            raise
        kept = {leaf.name: kept[leaf.name] for leaf in site.leaves}
        index, values = site.index([entry.part for entry in kept.values()])
        page_made_of = page_stamp(index.project, SOURCES)
        if before.page != page_made_of or not (folder / "index.html").exists():
            replace_file(folder / "index.html", page(index.project, sources=SOURCES))
        replace_file(folder / "data" / "values.js", script_of("values", "", values))
        replace_file(folder / "data" / "index.js", script_of("index", "", index))
        entries, told = feed(index, before.told)
        replace_file(folder / FEED, entries)
        replace_file(folder / BADGE, badge(index))
        wanted = {leaf.file for leaf in site.leaves}
        for path in (folder / SHARDS).iterdir():
            if path.name not in wanted:
                path.unlink()
        _write_manifest(folder, _Manifest(page=page_made_of, benchmarks=kept, told=told))
    return Written(folder / "index.html", index, len(kept), made, changed)


@contextmanager
def _alone(folder: Path, progress: Progress) -> Iterator[None]:
    """While the block runs no other process writes into the folder, which is locked itself: a file for that would be published
    with the report."""
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # of a file system without locks
            if not lock(descriptor, wait=False):
                progress.note(f"another process writes {folder}; waiting until it has")
                lock(descriptor)
        yield
    finally:
        os.close(descriptor)


class _Done(NamedTuple):
    """A benchmark that is up to date now."""

    kept: _Kept
    made: bool
    changed: bool


def _make_shards(
    site: PageSite, folder: Path, kept: dict[str, _Kept], progress: Progress, save: Callable[[], None]
) -> tuple[int, int]:
    """Make what is out of date and enter it in `kept`, which is saved now and then; returns how many were made, and how many
    files changed."""
    stale = [leaf for leaf in site.leaves if not _current(folder, leaf, kept.get(leaf.name))]
    made = changed = 0
    saved_s = time.monotonic()

    def work(leaf: Leaf) -> _Done:
        return _bring_up_to_date(folder, leaf, kept.get(leaf.name))

    with shared(stale, work) as results:
        progress.start(len(stale), "making pages")
        for place, done in results:
            leaf = stale[place]
            kept[leaf.name] = done.kept
            made, changed = made + done.made, changed + done.changed
            if time.monotonic() - saved_s >= SAVE_S:
                save()
                saved_s = time.monotonic()
            progress.advance(leaf.name)
    progress.close()
    return made, changed


def _bring_up_to_date(folder: Path, leaf: Leaf, kept: _Kept | None) -> _Done:
    """Make the benchmark's file. If the files of its results are new but say the same, only note that these were seen."""
    path = folder / SHARDS / leaf.file
    if kept is not None and kept.stamp == leaf.stamp() and path.exists():
        return _Done(replace(kept, seen=leaf.seen), made=False, changed=False)
    shard, part = leaf.make()
    changed = replace_file(path, shard_script(shard))
    return _Done(_Kept(leaf.seen, leaf.stamp(), part), made=True, changed=changed)


def write_file(site: PageSite, path: Path, progress: Progress) -> Written:
    """The whole report in one file. Raises RegressError if it cannot be written."""

    def work(leaf: Leaf) -> tuple[str, Part]:
        shard, part = leaf.make()
        return shard_script(shard), part

    made: dict[int, tuple[str, Part]] = {}
    with shared(site.leaves, work) as results:
        progress.start(len(site.leaves), "making pages")
        for place, result in results:
            made[place] = result
            progress.advance(site.leaves[place].name)
    progress.close()
    every = [made[place] for place in range(len(made))]
    index, values = site.index([part for _, part in every])
    data = [script_of("index", "", index), script_of("values", "", values), *(data for data, _ in every)]
    write_alone(path, "--single-file", page(index.project, data=data))
    return Written(path, index, len(every), len(every), len(every))


def _manifest(folder: Path) -> _Manifest:
    """What the folder was made from; nothing if there is no folder, or it has another format."""
    path = folder / MANIFEST
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=_Manifest)
        return manifest if manifest.format == FORMAT else _Manifest()
    except msgspec.MsgspecError:
        return _Manifest()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise _unwritten(path, error) from error
    # A first report that could not be written, as on a full disk, leaves empty folders.
    files = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    if folder.exists() and (not folder.is_dir() or any(files)):
        raise RegressError(
            f"{folder} is not a folder of a report",
            why=f"it is not empty, and has no {MANIFEST}: its files would be lost",
            fix='give "report_dir" under "regress" in asv.conf.json a folder of its own',
        )
    return _Manifest()


def _write_manifest(folder: Path, manifest: _Manifest) -> None:
    replace_file(folder / MANIFEST, msgspec.json.encode(manifest).decode())


def _current(folder: Path, leaf: Leaf, kept: _Kept | None) -> bool:
    """Whether the benchmark is up to date by the names of files alone, without reading them."""
    return kept is not None and kept.seen == leaf.seen and (folder / SHARDS / leaf.file).exists()


def replace_file(path: Path, text: str) -> bool:
    """Replace the content of the file atomically; returns whether that changed anything."""
    data = text.encode("utf-8", errors="replace")
    try:
        if path.read_bytes() == data:
            return False
    except FileNotFoundError:
        pass
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")  # two processes may write one page
    try:
        temporary.write_bytes(data)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return True


@contextmanager
def _explained(path: Path, fix: str = FIX) -> Iterator[None]:
    """Turns an OSError of writing into words."""
    try:
        yield
    except OSError as error:
        raise _unwritten(Path(str(error.filename or path)), error, fix) from error


def write_alone(path: Path, option: str, text: str) -> None:
    """Write a page that is one file. Raises RegressError, which names the option, if it cannot be written."""
    with _explained(path, f"{option} FILE with a file that can be written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text)


def _unwritten(path: Path, error: OSError, fix: str = FIX) -> RegressError:
    return RegressError(f"cannot write {path}", why=reason(error), fix=fix)
