"""The worker's files, placed once in the cache: whole, or not at all."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path
from typing import Any

import pytest

from regress.run.ship import ship


def test_they_are_placed_once_and_whole(tmp_path: Path) -> None:
    start = ship(tmp_path)
    assert start.is_file()
    assert (start.parent / "asv_runner" / "__init__.py").is_file()
    assert not list(start.parent.rglob("__pycache__"))
    assert ship(tmp_path) == start
    assert [path.name for path in start.parent.parent.iterdir()] == [start.parent.name]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EACCES])
@pytest.mark.parametrize("copied", [0, 7])
def test_a_disk_that_is_full_says_so_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, copied: int
) -> None:
    copy, done = shutil.copyfile, list[Path]()

    def full(source: Path, target: Path) -> Any:
        if len(done) == copied:
            raise OSError(number, "no", str(target))
        done.append(target)
        return copy(source, target)

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(OSError) as caught:
        ship(tmp_path)
    assert (caught.value.errno, list((tmp_path / "worker").iterdir())) == (number, [])
