"""The scripted device without noise, so that what a profile says can be told exactly."""

from __future__ import annotations

from regress.measure.backend.fake import FakeBackend

WINDOW_S = 1.25e-6
"""Between two events with nothing between them."""
SLACK_S = 0.7e-6
"""To half a window it is known where an event stands in the trace."""


class Exact(FakeBackend):
    def begin_case(self, name: str, order: int) -> None:
        super().begin_case(name, order)
        self._level = self._host_level = 1.0

    def _noisy(self, seconds: float) -> float:
        return seconds
