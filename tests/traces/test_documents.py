"""Exports are read as they were written, and what is broken says how."""

from __future__ import annotations

import json
import os
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from regress.errors import RegressError
from regress.profiles import read, write
from tests.conftest import closed
from tests.traces.exports import export

SCHEMA = json.loads(files("regress.report").joinpath("regress.profile.schema.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(tmp_path_factory.mktemp("exports") / "run.json")


def test_an_export_fulfils_its_schema(sample: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.Draft202012Validator(closed(SCHEMA)).validate(json.loads(sample.read_text()))


def test_what_was_written_is_read(sample: Path, tmp_path: Path) -> None:
    profile = read(sample)
    write(profile, tmp_path / "again.json")
    assert read(tmp_path / "again.json") == profile
    assert (tmp_path / "again.json").read_text() == sample.read_text()


def test_two_processes_of_one_number_write_one_export_as_others_do(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In two containers that share a folder."""
    profile, path, replaced = read(sample), tmp_path / "again.json", os.replace

    def both(*names: Any) -> None:
        monkeypatch.setattr(os, "replace", replaced)
        write(profile, path)
        replaced(*names)

    monkeypatch.setattr(os, "replace", both)
    write(profile, path)
    assert read(path) == profile
    assert list(tmp_path.iterdir()) == [path]


def test_later_keys_are_let_pass(sample: Path, tmp_path: Path) -> None:
    data = json.loads(sample.read_text()) | {"later": [1]}
    data["entries"][0]["later"] = None
    (tmp_path / "later.json").write_text(json.dumps(data))
    assert read(tmp_path / "later.json") == read(sample)


def broken(data: dict[str, Any], *path: Any, value: Any) -> dict[str, Any]:
    target: Any = data
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = value
    return data


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        (("schema",), "regress.check/1", "it is not a profile: its \"schema\" is 'regress.check/1'"),
        (("schema",), "regress.profile/2", "this is read here: regress.profile/1"),
        (("operations",), 3, "the profile: operations is 3, not a list"),
        (("operations", 1, "total_s"), "long", 'the profile: operations[1]: total_s is "long", not a number'),
        (("operations", 0, "calls"), 1.5, "the profile: operations[0]: calls is 1.5, not a whole number"),
        (("entries", 2, "duration_s"), float("nan"), "the profile: entries[2]: duration_s is not a finite number"),
        (("entries", 2, "failed"), 1, "the profile: entries[2]: failed is 1, not true or false"),
        (("facts",), [], "the profile: facts is [], not an object"),
        (("limits",), {"copy": "fast"}, 'the profile: limits[copy] is "fast", not a number'),
        (("duration_s",), 10**400, "the profile: duration_s is not a finite number"),
        (("variants", 0, "device"), "tpu", 'ran on "tpu", neither gpu nor cpu'),
        (("variants", 0, "durations_s", 0), -1e-9, "has a time below zero"),
        (("variants", 1, "hosts_s"), [1.0] * 99, "has 99 host times for"),
        (("bottlenecks", 0), {}, "the profile: bottlenecks[0]: missing 6 required positional arguments"),
    ],
)
def test_what_is_broken_says_where(sample: Path, tmp_path: Path, path: tuple[Any, ...], value: Any, why: str) -> None:
    data = broken(json.loads(sample.read_text()), *path, value=value)
    (tmp_path / "broken.json").write_text(json.dumps(data))
    with pytest.raises(RegressError) as refused:
        read(tmp_path / "broken.json")
    assert why in refused.value.why


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", "null", "\x00\xff", "[" * 100_000])
def test_what_is_no_export_at_all(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(RegressError, match=r"x\.json is not an export of GPUProfiler"):
        read(tmp_path / "x.json")
