"""Windows of coroutines: the loop is entered once a window, and not while the clock runs."""

from __future__ import annotations

from regress.measure.awaited import AwaitedCall
from regress.measure.backend.fake import FakeBackend
from regress.measure.windows import HostWindows


def test_the_way_into_the_loop_is_in_no_window() -> None:
    device = FakeBackend()
    entered = 0

    def enter(coroutine: object) -> object:
        nonlocal entered
        entered += 1
        device.host(1.0)
        try:
            coroutine.send(None)  # type: ignore[attr-defined]
        except StopIteration as done:
            return done.value
        raise AssertionError("it waits for nothing")

    async def once() -> None:
        device.host(1e-3)

    window = HostWindows(AwaitedCall(enter, once), device, 100).take()
    assert entered == 1
    assert 0.8e-3 < window.wall_s < 1.2e-3
