from __future__ import annotations

import json
import platform
from pathlib import Path

import pytest

from regress.errors import StoreError
from regress.history import this_machine


@pytest.fixture
def asv_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path / ".asv-machine.json"


def entry(name: str, **facts: str) -> dict[str, str]:
    return {"machine": name, **facts}


@pytest.mark.usefixtures("asv_file")
def test_without_a_machine_file_the_host_names_it() -> None:
    assert this_machine().name == platform.node()


def test_the_single_entry_of_asv_names_it(asv_file: Path) -> None:
    asv_file.write_text(json.dumps({"bench-1": entry("bench-1", cpu="told by hand"), "version": 1}))
    machine = this_machine()
    assert machine.name == "bench-1"
    assert machine.facts["cpu"] == "told by hand"


def test_of_several_entries_the_one_of_the_host_names_it(asv_file: Path) -> None:
    host = platform.node()
    asv_file.write_text(json.dumps({"a": entry("a"), host: entry(host, ram="7"), "version": 1}))
    assert (this_machine().name, this_machine().facts["ram"]) == (host, "7")


def test_several_entries_without_the_host_leave_its_name(asv_file: Path) -> None:
    asv_file.write_text(json.dumps({"a": entry("a", cpu="x"), "b": entry("b", cpu="y"), "version": 1}))
    assert this_machine().name == platform.node()
    assert this_machine().facts["cpu"] not in ("x", "y")


def test_a_given_name_wins_and_brings_its_facts(asv_file: Path) -> None:
    asv_file.write_text(json.dumps({"a": entry("a", cpu="x"), "version": 1}))
    assert this_machine("mine").name == "mine"
    assert this_machine("mine").facts["cpu"] != "x"
    assert this_machine("a").facts["cpu"] == "x"


@pytest.mark.usefixtures("asv_file")
def test_the_facts_are_those_asv_detects() -> None:
    from asv.machine import Machine

    expected = {key: str(value) for key, value in Machine.get_defaults().items()}
    name = expected.pop("machine")
    machine = this_machine()
    assert (machine.name, machine.facts) == (name, expected)


@pytest.mark.parametrize("content", ["{", "[]", "\xff"])
def test_a_broken_machine_file_is_an_error_and_no_guess(asv_file: Path, content: str) -> None:
    asv_file.write_bytes(content.encode("latin-1"))
    with pytest.raises(StoreError, match=r"\.asv-machine\.json") as caught:
        this_machine()
    assert caught.value.fix
