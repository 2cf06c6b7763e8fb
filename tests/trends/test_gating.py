"""Which series of a benchmark raise alarms."""

from __future__ import annotations

from dataclasses import replace

from regress.model import METRICS, Case, Series, Settings
from regress.trends import changes_of
from regress.trends.gating import gating, that_gate

SHAS = tuple(f"{at:040x}" for at in range(24))


def series(metric: str, *values: float | None, primary: bool = False) -> Series:
    rounds = {at: (value, 1.001 * value) for at, value in enumerate(values) if value is not None}
    return Series(
        Case("b.f"),
        METRICS[metric],
        "box",
        "GPU-1",
        "env",
        SHAS,
        tuple(rounds),
        tuple(rounds.values()),
        ((("version", "1"),),) * len(rounds),
        (None,) * len(rounds),
        ("",) * len(rounds),
        primary=primary,
    )


def test_what_the_case_is_about_and_its_memory_always_speak() -> None:
    time, memory = series("gpu_time", *[1e-3] * 24, primary=True), series("peak_memory", *[1e6] * 24)
    wall, host = series("wall_time", *[1e-3] * 24), series("host_time", *[1e-5] * 24)
    every = (time, memory, wall, host)
    assert [gating(one_series, every) for one_series in every] == [None, None, frozenset(), frozenset()]
    assert gating(replace(wall, primary=True), [wall]) is None, "a CPU benchmark"
    assert gating(wall, [wall]) == frozenset()


def test_a_wall_time_speaks_where_the_time_of_the_device_is_lost_or_comes_back() -> None:
    """A regression of both times before that is told by the time of the device alone."""
    lost = [1e-3] * 6 + [1.3e-3] * 6 + [None] * 6 + [1.3e-3] * 6
    device, wall = (
        series("gpu_time", *lost, primary=True),
        series("wall_time", *[1e-3] * 6, *[1.3e-3] * 6, *[2e-3] * 6, *[1.3e-3] * 6),
    )
    at = gating(wall, (device, wall))
    assert at == frozenset(SHAS[12:19])
    points = changes_of(wall, Settings())
    assert [point.first for point in points] == [SHAS[6], SHAS[12], SHAS[18]]
    assert [point.first for point in that_gate(points, at)] == [SHAS[12], SHAS[18]]
    elsewhere = replace(device, device="GPU-2")
    assert gating(wall, (elsewhere, wall)) == frozenset(), "another card's says nothing"
