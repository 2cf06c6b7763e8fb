"""Existing suites: a `time_*` that begins or ends with a synchronize, run under the device protocol.

A synchronize at either end of the body would starve every block, and is not what is to be timed: the loop waits by itself. So
the known synchronize calls of a body that none of its device work goes ahead of, or that none follows, do nothing while it is
timed. One in the middle is part of what the body does, and is kept.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

from .backend import DeviceBackend
from .backend.frameworks import QuietSynchronizes, really

Call = Callable[[], object]

MOST_WAITS = 64
"""Synchronizes of one call that are looked at; a call with more is taken to need them all."""
SHORTEST_SPIN_S, LONGEST_SPIN_S = 1e-3, 64e-3
NOTHING = 2.1
"""Empty windows. Up to this, nothing but an event is between two events: on an H200 an empty window reads 1.28 us, one with
an event in it 2.56, and one with the shortest kernel 2.9 to 4.0."""


class QuietCall:
    """A call whose first and last synchronizes do nothing while the context is open. `kept` of them stand between device work
    and more of it and do what they are there for; `left_out` names the others. A body that fails without them, because it reads
    what it waited for, keeps them all. `before` runs ahead of every call that is made to find out."""

    def __init__(self, call: Call, backend: DeviceBackend, before: Optional[Call] = None) -> None:
        self._call, self._backend, self._before = call, backend, before
        self._seen = 0
        self._quiet = QuietSynchronizes(self._hook)
        self._needed = range(0)
        """Indices, in the order of the body, of the synchronizes that are kept."""
        self.left_out: List[str] = []

    @property
    def kept(self) -> int:
        return len(self._needed)

    def __call__(self) -> object:
        self._seen = 0
        return self._call()

    def __enter__(self) -> QuietCall:
        self._prepared()  # what the first call compiles or allocates would look like work between two synchronizes
        try:
            names, self._needed = self._classified()
            self.left_out = [name for index, name in enumerate(names) if index not in self._needed]
            if self._backend.ranks.any("synchronizes", bool(self.left_out)):
                with self._quiet:
                    self._prepared()
        except Exception:  # it ran with them, and fails without: it reads what it waited for
            self._needed, self.left_out = range(self._counted()), []
        self._backend.synchronize()
        self._quiet.__enter__()
        return self

    def _prepared(self) -> None:
        if self._before is not None:
            self._before()
        self()

    def _counted(self) -> int:
        """The synchronizes of a call that does them all."""
        with QuietSynchronizes(really) as counting:
            self._prepared()
        return counting.count

    def __exit__(self, *error: object) -> None:
        self._quiet.__exit__(*error)

    def _hook(self, name: str, original: Callable[..., Any], args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        index, self._seen = self._seen, self._seen + 1
        return original(*args, **kwargs) if index in self._needed else None

    def _classified(self) -> Tuple[List[str], range]:
        """The names of a call's synchronizes, and the indices of those between two pieces of device work.

        At the start and after each a spin keeps the device busy, so that events around what follows see device time alone.
        Where the spin ends too early it is doubled; where it always does, work is taken to follow.
        """
        spin_s = SHORTEST_SPIN_S
        while True:
            stretches = _Stretches(self._backend, spin_s)
            if self._before is not None:
                self._before()
            with QuietSynchronizes(stretches.hook):
                stretches.begin()
                self._call()
            stretches.end()
            if len(stretches.names) > MOST_WAITS:
                return stretches.names, range(len(stretches.names))
            unproven = self._backend.ranks.any("synchronizes", not all(stretches.proven))
            if not unproven or spin_s >= LONGEST_SPIN_S:
                return stretches.names, stretches.needed()
            spin_s *= 2


class _Stretches:
    """What the device does before, between and after the synchronizes of one call, each stretch behind a spin of its own."""

    def __init__(self, backend: DeviceBackend, spin_s: float) -> None:
        self._backend, self._spin_s = backend, spin_s
        self.names: List[str] = []
        self.proven: List[bool] = []
        backend.use_events(2 * MOST_WAITS + 2)

    def begin(self) -> None:
        """Begin the next stretch."""
        stretch = len(self.names)
        if stretch <= MOST_WAITS:
            self._backend.hold_stream()
            self._backend.spin(self._spin_s)
            self._backend.record(2 * stretch)

    def end(self) -> None:
        """End a stretch; it is proven if its spin is still on."""
        stretch = len(self.names)
        if stretch <= MOST_WAITS:
            self._backend.record(2 * stretch + 1)
            self.proven.append(not self._backend.passed(2 * stretch))

    def hook(self, name: str, original: Callable[..., Any], args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        self.end()
        result = really(name, original, args, kwargs)
        self.names.append(name)
        self.begin()
        return result

    def needed(self) -> range:
        """Indices of the synchronizes that have device work of the call both ahead of them and behind them."""
        backend = self._backend
        backend.synchronize()
        least_s = NOTHING * backend.window_overhead_s
        busy = [
            index
            for index, proven in enumerate(self.proven)
            if not proven or backend.elapsed(2 * index, 2 * index + 1) > least_s
        ]
        return range(busy[0], busy[-1]) if busy else range(0)
