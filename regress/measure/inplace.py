"""Whether a call does other work the second time, because it changes what `setup` has made.

asv sets up before each call. That costs a setup a call, and a sample that is one call behind a setup is read with cold caches;
so it is done only where it makes a difference: where calls right after a setup and repeated ones do not take the same time.

A call behind a setup is slower in any case (11 times, for `len` of a list), because its code and its data are cold. So what
setup has made is read from one end to the other ahead of either: the data is as warm as it can be then, and the code is cold.
"""

from __future__ import annotations

import contextlib
import gc
import time
import zlib
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Callable, Iterator, List, Optional, Tuple, TypeVar

from .awaited import Awaited
from .backend import Backend, DeviceError
from .declared import Call, bound, number, renew, reset_of
from .windows import LEAST_S, LONG_CALL_S, HostWindows, others_s, several_threads, undisturbed

T = TypeVar("T")

UNLIKE, UNLIKE_LATE = 1.25, 2.0
"""Further apart than the first, and than repeated calls are among themselves, or than the second, a call right after a setup
does other work; after measuring, when the allocator too may have come to be in another state, only the second counts."""
SEEN_S = 3e-6
"""A smaller difference is not seen, which a window of many calls has to have for each of them no more."""
LATE_WINDOW_S, LATE_CALLS = 50e-6, 4096
"""After measuring, as many calls are looked at together as take this long: what has grown meanwhile is colder, too, when it is
read, which costs a single short call more than what it does."""
CERTAIN_S = 1e-3
"""From here up, the first call of all is hardly slower than others; where it is like repeated ones, nothing is set up again."""
REPEATED, REPEATED_S = 5, 50e-3
"""Repeated calls to compare with: this many, or what fits this time. The highest and the lowest of this many do not count."""
LOOKS = 2
"""Of what takes longer than this part of the limit there is no look: the visit has to end in time."""
UNLIKE_SETUPS, ALIKE_SETUPS = 4, 2
UNLIKE_LONG, ALIKE_LONG = 2, 1
"""After this many setups calls have to be unlike repeated ones, all in the same direction, or alike; of long calls after
fewer."""
MOST_OBJECTS, MOST_BYTES = 10_000, 32 << 20
"""What is read at most of that which setup has made."""
NO_DATA = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)


def settled(
    benchmark: Any,
    backend: Backend,
    measure: Callable[[], T],
    limit_s: float,
    late: bool = True,
) -> T:
    """What `measure` gives for a benchmark that is set up: with repeated calls, or with a setup before each sample where that
    matters, and where repeated calls fail.

    With `late` it is looked at once more after measuring, as calls may change little at a time. No setup for that begins after
    `limit_s` seconds.
    """
    if not benchmark._setups or number(benchmark) or reset_of(benchmark) is not None:
        return measure()
    benchmark._setup_each = False
    look = _Look(benchmark, backend, limit_s)
    if look.first_s > limit_s / LOOKS:
        return measure()
    try:
        if not look.unlike():
            result = measure()
            if not late or look.first_s > LONG_CALL_S or not look.unlike(late=True):
                return result
    except DeviceError:
        raise
    except Exception:
        if not look.works_afresh():
            raise
    benchmark._setup_each = benchmark._used = True
    return measure()


class _Look:
    """Takes calls right after a setup, and repeated ones."""

    def __init__(self, benchmark: Any, backend: Backend, limit_s: float) -> None:
        call, self._until = bound(benchmark), time.monotonic() + limit_s
        self._repeat = _ByHost(benchmark, call, backend)
        self.first_s = self._repeat()
        self._afresh = _ByHost(benchmark, call, backend, lambda: renew(benchmark))
        self._fresh: List[float] = []
        """Seconds of the calls right after a setup that were looked at last."""

    def unlike(self, late: bool = False) -> bool:
        """Whether repeated calls, as they are by now, take another time than those right after a setup. Of several threads that
        work for a call nobody can tell: each call waits for the slowest of them."""
        with undisturbed(pinned=False):
            if late:
                self._look_at_several()
            low, high, several = self._alike(late)
            if several:
                return False
            if self.first_s >= CERTAIN_S and low <= self.first_s <= high:
                return False
            if self._fresh and all(low <= one_s <= high for one_s in self._fresh):
                return False
            self._fresh, long = [], self.first_s > LONG_CALL_S
            needed, enough = (UNLIKE_LONG, ALIKE_LONG) if long else (UNLIKE_SETUPS, ALIKE_SETUPS)
            alike = below = above = 0
            while alike < enough and max(below, above) < needed:
                if time.monotonic() > self._until:
                    return False
                one_s = self._afresh()
                self._fresh.append(one_s)
                if not late and not low <= one_s <= high:
                    # A second call repeats the first on the same machine, but not if the work grows slowly.
                    next_s = self._repeat()
                    low, high = min(low, next_s / UNLIKE), max(high, next_s * UNLIKE)
                below, above = below + (one_s < low), above + (one_s > high)
                alike = len(self._fresh) - below - above
            return alike < enough

    def _look_at_several(self) -> None:
        """Look at this many calls together that coldness is not what they take."""
        while self._repeat.calls < LATE_CALLS and self._repeat() * self._repeat.calls < LATE_WINDOW_S:
            self._repeat.calls *= 4
        if self._repeat.calls > 1:
            self._afresh.calls, self._fresh = self._repeat.calls, []

    def works_afresh(self) -> bool:
        """Whether a call right after a setup raises nothing."""
        try:
            self._afresh()
        except Exception:
            return False
        return True

    def _alike(self, late: bool) -> Tuple[float, float, bool]:
        """The least and the most that a call takes which does the work of a repeated one, and whether several threads work."""
        began, of_others_s, calls_s = time.monotonic(), others_s(), [self._repeat()]
        while len(calls_s) < REPEATED and time.monotonic() - began < REPEATED_S:
            calls_s.append(self._repeat())
        of_others_s = others_s() - of_others_s
        several = of_others_s > SEEN_S and several_threads(sum(calls_s) * self._repeat.calls, of_others_s)
        calls_s.sort()
        outer = int(len(calls_s) == REPEATED)
        low, high = calls_s[outer], calls_s[-1 - outer]
        unlike = UNLIKE_LATE if late else min(max(UNLIKE, high / max(low, LEAST_S)), UNLIKE_LATE)
        seen_s = SEEN_S / self._repeat.calls
        several &= self._repeat.clock.real_clock
        return min(low / unlike, low - seen_s), max(high * unlike, high + seen_s), several


class _ByHost(HostWindows):
    """Seconds of a call by the host's clock, after what setup has made was read."""

    def __init__(self, benchmark: Any, call: Call, clock: Backend, renewed: Optional[Call] = None) -> None:
        super().__init__(call, clock, 1, before=renewed)
        self._benchmark = benchmark

    def __call__(self) -> float:
        return self.take().net_s

    def _begin(self) -> None:
        if self.clock.real_clock:
            _read(_made_by(self._benchmark))


# -- what setup has made -------------------------------------------------------------------------------------------------


def _made_by(benchmark: Any) -> Iterator[object]:
    """Where setup may have put what it has made: the instance, and the globals that it and the call name."""
    functions = [call.function if isinstance(call, Awaited) else call for call in (benchmark.func, *benchmark._setups)]
    yield getattr(functions[0], "__self__", None)
    for function in functions:
        code = getattr(function, "__code__", None)
        for name in code.co_names if code is not None else ():
            yield function.__globals__.get(name)


def _read(roots: Iterator[object]) -> None:
    """Read objects and what they hold, without running anybody's code."""
    left, seen, length = list(roots), set[int](), 0
    while left and len(seen) < MOST_OBJECTS and length < MOST_BYTES:
        one = left.pop()
        if id(one) in seen or isinstance(one, NO_DATA):
            continue
        seen.add(id(one))
        if isinstance(one, (int, float, str)):
            continue
        with contextlib.suppress(TypeError, ValueError, BufferError), memoryview(one) as held:  # type: ignore[arg-type]
            length += held.nbytes
            zlib.crc32(held.cast("B")[:MOST_BYTES])
        left += one[:MOST_OBJECTS] if type(one) in (list, tuple) else gc.get_referents(one)  # type: ignore[index]
