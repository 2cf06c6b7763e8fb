"""How far the reading of a history is."""

from __future__ import annotations

from regress.session import reading
from tests.run.test_execute import Watch


def test_it_is_told_by_the_mebibyte_and_of_a_small_history_not_at_all() -> None:
    small, large = Watch(), Watch()
    told = reading(small)
    told(4_000, 8_000)
    told(8_000, 8_000)
    tell = reading(large)
    for read in (1 << 19, 1 << 20, 3 << 20):
        tell(read, 3 << 20)
    assert (small.total, small.done, small.texts) == (0, 0, [])
    assert (large.total, large.done, len(large.texts)) == (3, 3, 2)
