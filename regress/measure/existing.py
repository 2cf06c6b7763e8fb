"""Existing suites: a `time_*` that ends in a synchronize, run under the device protocol.

A synchronize at the end of the body would starve every block, and is not what is to be timed: the loop waits by itself. So the
known synchronize calls of a body that no device work follows do nothing while it is timed. One in the middle is part of what
the body does, and is kept.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

from .backend import DeviceBackend
from .backend.frameworks import QuietSynchronizes, really

Call = Callable[[], object]

MOST_WAITS = 64
"""Synchronizes of one call that are looked at; a call with more is taken to need them all."""
SHORTEST_SPIN_S, LONGEST_SPIN_S = 1e-3, 64e-3
NOTHING_S = 0.5e-6
"""Device time between two events with nothing between them, beyond an empty window, is below this."""


class QuietCall:
    """A call whose last synchronizes do nothing while the context is open. `kept` of them, in the order of the body, are
    followed by more device work and do what they are there for; `left_out` names the others. A body that fails without them,
    because it reads what it waited for, keeps them all. `before` runs ahead of every call that is made to find out."""

    def __init__(self, call: Call, backend: DeviceBackend, before: Optional[Call] = None) -> None:
        self._call, self._backend, self._before = call, backend, before
        self._seen = 0
        self._quiet = QuietSynchronizes(self._hook)
        self.kept = 0
        self.left_out: List[str] = []

    def __call__(self) -> object:
        self._seen = 0
        return self._call()

    def __enter__(self) -> QuietCall:
        self._prepared()  # what the first call compiles or allocates would look like work between two synchronizes
        try:
            names, self.kept = self._classified()
            self.left_out = names[self.kept :]
            if self.left_out:
                with self._quiet:
                    self._prepared()
        except Exception:  # it ran with them, and fails without: it reads what it waited for
            self.kept, self.left_out = self._counted(), []
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
        self._seen += 1
        return original(*args, **kwargs) if self._seen <= self.kept else None

    def _classified(self) -> Tuple[List[str], int]:
        """The names of a call's synchronizes, and how many of them device work follows.

        After each a spin keeps the device busy, so that events around what follows see device time alone. Where the spin ends
        too early it is doubled; where it always does, work is taken to follow.
        """
        spin_s = SHORTEST_SPIN_S
        while True:
            stretches = _Stretches(self._backend, spin_s)
            if self._before is not None:
                self._before()
            with QuietSynchronizes(stretches.hook):
                self._call()
            stretches.end()
            if len(stretches.names) > MOST_WAITS:
                return stretches.names, len(stretches.names)
            if all(stretches.proven) or spin_s >= LONGEST_SPIN_S:
                return stretches.names, stretches.followed()
            spin_s *= 2


class _Stretches:
    """What the device does between the synchronizes of one call, each stretch behind a spin of its own."""

    def __init__(self, backend: DeviceBackend, spin_s: float) -> None:
        self._backend, self._spin_s = backend, spin_s
        self.names: List[str] = []
        self.proven: List[bool] = []
        backend.use_events(2 * MOST_WAITS + 2)
        backend.synchronize()
        backend.hold_stream()

    def hook(self, name: str, original: Callable[..., Any], args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        if self.names:
            self.end()
        found = really(name, original, args, kwargs)
        if len(self.names) < MOST_WAITS:
            self._backend.spin(self._spin_s)
            self._backend.record(2 * len(self.names))
        self.names.append(name)
        return found

    def end(self) -> None:
        """End the stretch of the last synchronize; it is proven if the spin is still on."""
        last = len(self.names) - 1
        if 0 <= last < MOST_WAITS:
            self._backend.record(2 * last + 1)
            self.proven.append(not self._backend.passed(2 * last))

    def followed(self) -> int:
        """How many synchronizes, from the first, have device work behind them."""
        backend = self._backend
        backend.synchronize()
        least_s = backend.window_overhead_s + NOTHING_S
        busy = [
            not proven or backend.elapsed(2 * index, 2 * index + 1) > least_s
            for index, proven in enumerate(self.proven)
        ]
        return max((index + 1 for index, found in enumerate(busy) if found), default=0)
