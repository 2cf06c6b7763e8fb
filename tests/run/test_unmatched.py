"""What was named and is not there is said, with what is near it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from regress.measure.wire import Benchmark
from regress.model import Settings
from regress.run.plan import Selection, select
from regress.run.unmatched import nothing_matches, unmatched

SETTINGS = Settings()


def declaring(name: str, **declared: Any) -> Benchmark:
    return Benchmark(name, "time", "s", [], [], "1", "wall_time", False, declared=declared)


SUITE = [declaring("ops.Softmax.time_fwd", tags=["core"], covers="lib/softmax"), declaring("io.time_load", tags="slow")]


@pytest.mark.parametrize(
    ("selection", "said"),
    [
        (Selection(("Softmax", "io.time_load")), []),
        (Selection(("Softmax", "Sofmax")), ["no benchmark matches 'Sofmax'; near it: ops.Softmax.time_fwd"]),
        (Selection(("Softmax", "x{3}y")), ["no benchmark matches 'x{3}y'"]),
        (Selection(("Softmax", "Gone"), known=True), []),
        (
            Selection((), ("core", "cores", "cuda")),
            ["no benchmark has the tag 'cores'; near it: core", "no benchmark has the tag 'cuda'"],
        ),
    ],
)
def test_names_and_tags(selection: Selection, said: list[str]) -> None:
    assert unmatched(SUITE, selection, SETTINGS) == said


@pytest.mark.parametrize("setting", ["critical", "thresholds", "gate_thresholds", "cuda"])
def test_patterns_of_settings(setting: str) -> None:
    by_name = setting.endswith("thresholds")
    patterns: Any = [r"ops\.", r"opps\."]
    given: dict[str, Any] = {setting: {pattern: {"time": 0.1} for pattern in patterns} if by_name else tuple(patterns)}
    settings = replace(SETTINGS, **given)
    (said,) = unmatched(SUITE, Selection(), settings)
    assert said.startswith(f'"{setting}" has {patterns[1]!r}, which matches no benchmark')


def test_a_direction_that_is_none() -> None:
    assert unmatched([declaring("track_x", better="lowest")], Selection(), SETTINGS) == [
        'track_x: better = \'lowest\' is not a direction; fix: "lower" or "higher"'
    ]


def test_what_covers_no_file_is_measured_and_said() -> None:
    suite = [*SUITE, declaring("slip", covers=["lib/sofmax/"]), declaring("module", covers="lib.softmax")]
    files = frozenset({"lib/softmax/k.cu", "lib/io.py", "README"})
    selection = Selection(changed=("README",), files=files)
    assert [case.name for case in select(suite, selection)] == ["slip", "module"], (
        "nobody knows whether they are affected"
    )
    near = "; near it: lib/softmax/, lib/softmax/k.cu"
    assert unmatched(suite, selection, SETTINGS) == [
        f"slip: covers = 'lib/sofmax/' matches no file of the repository, so it is measured{near}",
        f"module: covers = 'lib.softmax' matches no file of the repository, so it is measured{near}",
    ]
    assert unmatched(suite, Selection(), SETTINGS) == [], "only where it decides what is measured"


def test_nothing_matches_says_where_and_what_is_near() -> None:
    error = nothing_matches(
        Selection(("sofmax", "time_laod")), "searched in b", [benchmark.name for benchmark in SUITE]
    )
    assert (error.what, error.why) == ("no benchmark matches 'sofmax' or 'time_laod'", "searched in b")
    assert error.fix == "did you mean ops.Softmax.time_fwd or io.time_load? regress list has all names"
    assert nothing_matches(Selection((), ("core",)), "searched in b", ()).fix == "regress list"
