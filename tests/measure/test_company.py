from __future__ import annotations

from collections.abc import Sequence

import pytest

from regress.measure.backend import Backend
from regress.measure.backend.nvml import Foreign
from regress.measure.company import Company


class Shared(Backend):
    """A device that others use too."""

    def __init__(self, *others: Foreign) -> None:
        self.others = list(others)

    def processes(self, ours: int | None = None) -> list[Foreign]:
        return list(self.others)


def hidden(*pids: int) -> list[Foreign]:
    """Processes as they are seen from a container."""
    return [Foreign(pid, unreliable=True) for pid in pids]


def test_a_process_that_comes_in_between_is_seen_by_the_cases_after_it() -> None:
    device = Shared(Foreign(8, "first", 1 << 30))
    company = Company(device)
    assert company.warnings() == []
    assert company.seen() == ({"foreign_processes": ["pid 8 (first), 1.0 GiB"]}, [])
    device.others = [Foreign(9, "second", 2 << 30)]
    facts, doubts = company.seen()
    assert facts == {"foreign_processes": ["pid 8 (first), 1.0 GiB", "pid 9 (second), 2.0 GiB"]}
    assert doubts == []


@pytest.mark.parametrize(
    ("now", "doubts"),
    [
        ([7, 8], 0),
        ([7, 8, 9], 0),  # ours, once our context is open
        ([9], 0),
        ([7, 8, 9, 10], 1),
    ],
)
def test_from_a_container_one_that_came_is_ours_and_no_id_is_evidence(now: Sequence[int], doubts: int) -> None:
    device = Shared(*hidden(7, 8))
    company = Company(device)
    assert len(company.warnings()) == 2
    device.others = hidden(*now)
    facts, seen = company.seen()
    assert (facts, len(seen)) == ({}, doubts)
    if doubts:
        assert "pids 9, 10, of which one is ours" in seen[0]


def test_from_a_container_those_of_a_group_are_ours() -> None:
    device = Shared()
    company = Company(device, driver=1, ours=2)
    device.others = hidden(9, 10)
    assert company.seen() == ({}, [])
    device.others = hidden(9, 10, 11)
    _, (doubt,) = company.seen()
    assert "pids 9, 10, 11, of which 2 are ours" in doubt


def test_alone_there_is_nothing_to_say() -> None:
    company = Company(Shared())
    assert (company.warnings(), company.seen()) == ([], ({}, []))
