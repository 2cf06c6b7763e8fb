"""Small files that commands keep for the next time. What cannot be read, or has not the type that it should have, counts as
not there: it is measured, or seen, again.

    {"format": FORMAT, NAME: {KEY: …}}        a StateFile of the cache, which several processes change with its folder locked
    {…} or […]                                one value, which one process writes: `read` and `write` lock nothing
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Generic, TypeVar, get_args, get_origin

import msgspec.json

from regress.files import lock, read_bytes
from regress.history.disk import explained, locked, replace_file
from regress.history.json_text import loads

TIMEOUT_S = 10.0
"""How long another process may hold the file."""

T = TypeVar("T")


class StateFile(Generic[T]):
    """One such file, whose entries have the type `kind`: of dictionaries in it, each item by itself."""

    def __init__(self, path: Path, name: str, kind: type[T], version: int = 1) -> None:
        self._path, self._name, self._kind, self._version = path, name, kind, version

    def read(self) -> dict[str, T]:
        try:
            data = loads(read_bytes(self._path))
        except (OSError, ValueError):
            return {}
        right = isinstance(data, dict) and data.get("format") == self._version
        entries: dict[str, T] | None = _converted(data.get(self._name), dict[str, self._kind]) if right else None  # type: ignore[name-defined]
        return entries or {}

    @contextmanager
    def changing(self) -> Iterator[dict[str, T]]:
        """The entries, to be changed in the block; they are written after it, with the folder locked. Raises StoreError."""
        with locked(self._path.parent, TIMEOUT_S):
            entries = self.read()
            yield entries
            data = {"format": self._version, self._name: msgspec.to_builtins(entries)}
            text = json.dumps(data, indent=1, sort_keys=True, allow_nan=False)
            replace_file(self._path, f"{text}\n".encode())


def _converted(data: Any, kind: Any) -> Any:
    """The data as that type, without what is of another one; None where all of it is."""
    if get_origin(kind) is dict and isinstance(data, dict):
        items = {key: _converted(item, get_args(kind)[1]) for key, item in data.items()}
        return {key: item for key, item in items.items() if item is not None}
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError:
        return None


@contextmanager
def one_at_a_time(path: Path, waits: Callable[[], None]) -> Iterator[None]:
    """While the block runs no other process is in one about that file, which has nothing in it; `waits` is called before it
    waits for one. Where neither file nor lock can be had nobody waits: doing it twice must be harmless."""
    with ExitStack() as held:
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            file = held.enter_context(path.open("a"))
            if not lock(file.fileno(), wait=False):
                waits()
                lock(file.fileno())
        yield


def read(path: Path, kind: type[T]) -> T | None:
    """What the file holds; None if there is none, or another format."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError):
        return None


def write(path: Path, value: Any) -> None:
    """Make the file hold that: a reader finds it whole, or not at all. Raises StoreError."""
    data = msgspec.json.format(msgspec.json.encode(value), indent=1)
    with explained(path):
        fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            with fresh.open("wb") as file:
                file.write(data + b"\n")
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(path)
        finally:
            fresh.unlink(missing_ok=True)
