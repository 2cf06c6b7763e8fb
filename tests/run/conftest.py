from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture
def _heard() -> Iterator[None]:
    """Ctrl-C is heard: a shell starts background jobs with SIGINT ignored, the tests among them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
