"""When measuring has to end."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass


class TimeIsOver(Exception):
    """The time that there was for measuring has ended; what was under way counts for nothing."""


@dataclass(frozen=True)
class Deadline:
    """A moment of the monotonic clock; one that is infinite never comes."""

    end_s: float = math.inf

    def check(self) -> None:
        """Raises TimeIsOver if it has come."""
        if time.monotonic() >= self.end_s:
            raise TimeIsOver

    def within(self, timeout_s: float) -> float:
        """The timeout, or what time is left where that is less. Raises TimeIsOver if there is none."""
        self.check()
        return min(timeout_s, self.end_s - time.monotonic())


ENDLESS = Deadline()
