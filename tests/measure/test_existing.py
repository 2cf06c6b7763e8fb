"""A `time_*` under the device protocol: which of its synchronizes are left out, and what is timed then."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from regress.measure.backend.fake import FakeBackend
from regress.measure.blocks import DeviceSamples, Starved
from regress.measure.existing import QuietCall
from regress.measure.loop import DeviceLoop

Body = Callable[[Any], None]


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> tuple[FakeBackend, ModuleType]:
    """The device, and the module through which code under test reaches it."""
    import sys

    monkeypatch.setitem(sys.modules, "regress_scripted", None)
    device = FakeBackend()
    device.install()
    return device, sys.modules["regress_scripted"]


def without(device: Any) -> None:
    device.kernel("k", 50e-6)


def trailing(device: Any) -> None:
    device.kernel("k", 50e-6)
    device.synchronize()


def twice_at_the_end(device: Any) -> None:
    device.kernel("k", 50e-6)
    device.synchronize()
    device.host(20e-6)
    device.synchronize()


def in_the_middle(device: Any) -> None:
    device.kernel("k", 50e-6)
    device.synchronize()
    device.kernel("l", 50e-6)
    device.synchronize()


def at_both_ends(device: Any) -> None:
    device.synchronize()
    device.kernel("k", 50e-6)
    device.synchronize()


def everywhere(device: Any) -> None:
    device.synchronize()
    device.kernel("k", 50e-6)
    device.synchronize()
    device.host(20e-6)
    device.synchronize()
    device.kernel("l", 50e-6)
    device.synchronize()


def alone(device: Any) -> None:
    device.host(20e-6)
    device.synchronize()


@pytest.mark.parametrize(
    ("body", "kept", "left_out"),
    [
        (without, 0, 0),
        (trailing, 0, 1),
        (twice_at_the_end, 0, 2),
        (in_the_middle, 1, 1),
        (at_both_ends, 0, 2),
        (everywhere, 2, 2),
        (alone, 0, 1),
    ],
)
def test_synchronizes_at_the_ends_of_the_work_are_left_out(
    scripted: tuple[FakeBackend, ModuleType], body: Body, kept: int, left_out: int
) -> None:
    device, module = scripted
    with QuietCall(lambda: body(module), device) as quiet:
        assert (quiet.kept, len(quiet.left_out)) == (kept, left_out)
        assert set(quiet.left_out) <= {"regress_scripted.synchronize"}


@pytest.mark.parametrize("body", [trailing, at_both_ends])
def test_at_the_ends_it_no_longer_starves_the_queue(scripted: tuple[FakeBackend, ModuleType], body: Body) -> None:
    device, module = scripted

    def call() -> None:
        body(module)

    assert isinstance(DeviceLoop(call, device).block(10, 1), Starved)
    with QuietCall(call, device) as quiet:
        block = DeviceLoop(quiet, device).block(10, 1)
    assert isinstance(block, DeviceSamples)
    assert block.device[0] == pytest.approx(50e-6, rel=0.02)
    before = device.host_s
    call()
    assert device.host_s - before > 50e-6, "afterwards it waits again"


def test_one_in_the_middle_still_waits(scripted: tuple[FakeBackend, ModuleType]) -> None:
    device, module = scripted
    with QuietCall(lambda: in_the_middle(module), device) as quiet:
        assert isinstance(DeviceLoop(quiet, device).block(10, 1), Starved)


def test_a_call_that_fails_leaves_the_synchronizes_as_they_were(scripted: tuple[FakeBackend, ModuleType]) -> None:
    device, module = scripted
    before = module.synchronize

    def call() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"), QuietCall(call, device):
        pass
    assert module.synchronize is before
