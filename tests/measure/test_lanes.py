"""Lanes on stand-ins for the frameworks: which streams are made current, and that they are put back."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from regress.measure.backend.frameworks import STRIDE, make_lanes


class Streams:
    """Just enough of `torch.cuda` or `cupy.cuda`: streams with handles, and a current one."""

    def __init__(self, first: int) -> None:
        self.made: list[int] = []
        self.current, self._first = 0, first

    def new(self) -> int:
        self.made.append(self._first + len(self.made))
        return self.made[-1]

    @contextlib.contextmanager
    def using(self, handle: int) -> Iterator[None]:
        before, self.current = self.current, handle
        yield
        self.current = before


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Streams:
    streams = Streams(100)
    cuda = SimpleNamespace(
        Stream=lambda: SimpleNamespace(cuda_stream=streams.new()),
        ExternalStream=lambda handle: SimpleNamespace(cuda_stream=handle),
        stream=lambda stream: Again(streams, stream.cuda_stream),
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    return streams


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Streams:
    streams = Streams(500)

    def stream(non_blocking: bool) -> Any:
        assert non_blocking, "a blocking stream would wait for the default one"
        return Again(streams, streams.new())

    cuda = SimpleNamespace(Stream=stream, ExternalStream=lambda handle: Again(streams, handle))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda))
    return streams


class Again:
    """A stream as a context that can be opened again and again."""

    def __init__(self, streams: Streams, handle: int) -> None:
        self._streams, self.ptr = streams, handle

    def __enter__(self) -> None:
        self._open = self._streams.using(self.ptr)
        self._open.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._open.__exit__(*error)


def test_the_first_lane_is_the_current_stream_and_the_others_are_streams_far_apart(torch: Streams) -> None:
    seen = []
    for lane in make_lanes(4, ["torch"]) * 2:
        with lane:
            seen.append(torch.current)
        assert torch.current == 0
    assert len(set(seen)) == 4
    assert seen[:4] == seen[4:], "the same streams again"
    assert seen[0] == 0
    assert seen[2] - seen[1] == seen[3] - seen[2] == STRIDE


def test_two_frameworks_work_on_one_stream(torch: Streams, cupy: Streams) -> None:
    _, lane = make_lanes(2, ["torch", "cupy"])
    with lane:
        assert torch.current == cupy.current != 0
    assert torch.current == cupy.current == 0


def test_cupy_alone(cupy: Streams) -> None:
    _, lane = make_lanes(2, ["cupy"])
    with lane:
        assert cupy.current in cupy.made


@pytest.mark.parametrize("frameworks", [[], ["numba"], ["torch", "warp"]])
def test_a_framework_that_cannot_be_given_a_stream_keeps_its_own(torch: Streams, frameworks: list[str]) -> None:
    (only,) = make_lanes(8, frameworks)
    with only:
        assert torch.current == 0
    assert torch.made == []
