"""What the change points are worth: on public series whose changes people have labelled, beside asv's step detection.

    python benchmarks/versus/labelled_steps.py MEASUREMENTS STUDY              the half that nothing was tuned on
    python benchmarks/versus/labelled_steps.py MEASUREMENTS STUDY --half even  the half that the constants were chosen on
    python benchmarks/versus/labelled_steps.py MEASUREMENTS STUDY --nightly    the quiet series of that half, night by night

MEASUREMENTS is a checkout of github.com/SAP/performance-regression-data-set (CC-BY-4.0), STUDY one of
github.com/mtucci/changepoint-performance-regression-study, which has the labels; neither is part of this repository. A series
is the median of each version; `split1` of the labels are its first 800 versions, `split2` those from 750 on. Taken are the
series with the labels of five people and without zeros: 388. A half is by the number of the series, so that both splits of one
series are in the same half.

    F1         as the study has it, its margin of 5 versions: place 0 counts as a change for everybody; precision is against the
               labels of all people together, recall the mean over them; the mean over series
    recall     of steps of 5 % and more: places that three of five people have labelled within 5 versions (the most agreed ones
               first, more than 5 apart), between whose levels, the medians up to the next such place, lie 5 %; found if
               something is reported within 5 versions
    alarms     per 1,000 versions, on series where at most one of the five has labelled anything
    ms         a series, one after the other in this process, the least of three; then of its first 50 versions alone

Intervals are 95 %, from a bootstrap over the series numbers. Needs asv.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import math
import random
import re
import statistics
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from asv.step_detect import detect_steps

from regress.stats.changepoints import changepoints

MARGIN = 5
LABELLED = re.compile(r"sap_(\d+)(?:_(split[12]))?")
SPLITS = {None: slice(None), "split1": slice(800), "split2": slice(750, None)}
RESAMPLES = 2000


# -- the data ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Labelled:
    """A series with what each person labelled: the places of the first values of new levels."""

    number: int
    values: list[float]
    people: list[frozenset[int]]

    @property
    def quiet(self) -> bool:
        return sum(map(bool, self.people)) <= 1

    def steps(self, least: float) -> list[int]:
        """The places that most people agree on, with levels that differ by `least`."""
        agreed: list[int] = []
        votes = {
            place: sum(_near(place, person) for person in self.people) for person in self.people for place in person
        }
        for place in sorted(votes, key=lambda place: (-votes[place], place)):
            if votes[place] >= 3 and not _near(place, agreed):
                agreed.append(place)
        ends = [0, *sorted(agreed), len(self.values)]
        levels = [statistics.median(self.values[low:high]) for low, high in itertools.pairwise(ends) if high > low]
        places = [place for place in ends[1:-1] if place > 0]
        moved = (abs(math.log(after / before)) for before, after in itertools.pairwise(levels))
        return [place for place, size in zip(places, moved, strict=True) if size >= math.log1p(least)]


def labelled(measurements: Path, study: Path) -> list[Labelled]:
    series = []
    labels = json.loads((study / "rq3" / "annotations.json").read_text())
    for name, people in sorted(labels.items()):
        match = LABELLED.fullmatch(name)
        if match is None or len(people) < 5:
            continue
        number = int(match[1])
        (path,) = (measurements / "hana" / "large_2022" / "data").glob(f"{number:05d}__*.csv")
        values = [statistics.median(version) for version in versions(path)][SPLITS[match[2]]]
        if min(values) > 0:
            series.append(Labelled(number, values, [frozenset(row) for row in people.values()]))
    return series


def versions(path: Path) -> list[list[float]]:
    """The measurements of each version, in the order of the file."""
    by_run: dict[str, list[float]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            by_run.setdefault(row["sut_version"], []).append(float(row["value"]))
    return list(by_run.values())


# -- the yardsticks ------------------------------------------------------------------------------------------------------


def _near(place: int, places: Collection[int]) -> bool:
    return any(abs(place - other) <= MARGIN for other in places)


def matched(truth: Collection[int], reported: Collection[int]) -> int:
    """How many true places have a report of their own within the margin, the nearest one first come."""
    left, hits = sorted(reported), 0
    for place in sorted(truth):
        near = [other for other in left if abs(other - place) <= MARGIN]
        if near:
            left.remove(min(near, key=lambda other: (abs(other - place), other)))
            hits += 1
    return hits


def f1(people: Sequence[Collection[int]], reported: Collection[int]) -> float:
    """F1 against several people; everybody has a change at place 0."""
    reports, truths = {0, *reported}, [{0, *person} for person in people]
    precision = matched(set().union(*truths), reports) / len(reports)
    recall = statistics.fmean(matched(truth, reports) / len(truth) for truth in truths)
    return 2 * precision * recall / (precision + recall)


@dataclass(frozen=True)
class Score:
    """What a detector came to on one series, in parts that can be added up."""

    f1: float
    found: int
    steps: int
    alarms: int
    quiet: int


def score(curve: Labelled, reported: Collection[int]) -> Score:
    steps = curve.steps(0.05)
    inside = [place for place in reported if 1 <= place < len(curve.values) - 1]
    return Score(
        f1(curve.people, inside),
        sum(_near(step, reported) for step in steps),
        len(steps),
        len(reported) if curve.quiet else 0,
        len(curve.values) if curve.quiet else 0,
    )


def summed(scores: Sequence[Score]) -> tuple[float, float, float]:
    """F1, recall, and alarms per 1,000 versions."""
    return (
        statistics.fmean(result.f1 for result in scores),
        sum(result.found for result in scores) / max(1, sum(result.steps for result in scores)),
        1000 * sum(result.alarms for result in scores) / max(1, sum(result.quiet for result in scores)),
    )


def intervals(scores: Sequence[Score], numbers: Sequence[int]) -> list[tuple[float, float]]:
    """Of each figure the range in which 95 % of the resamples lie."""
    groups: dict[int, list[Score]] = {}
    for number, result in zip(numbers, scores, strict=True):
        groups.setdefault(number, []).append(result)
    draw, keys = random.Random(0), sorted(groups)
    resamples = [
        summed([group for key in draw.choices(keys, k=len(keys)) for group in groups[key]]) for _ in range(RESAMPLES)
    ]
    columns = [sorted(column) for column in zip(*resamples, strict=True)]
    return [(column[RESAMPLES // 40], column[-1 - RESAMPLES // 40]) for column in columns]


# -- the detectors -------------------------------------------------------------------------------------------------------


def ours(values: Sequence[float], least: float) -> list[int]:
    return [
        step.index for step in changepoints(values) if not step.brief and abs(math.log(step.ratio)) >= math.log1p(least)
    ]


def asvs(values: Sequence[float]) -> list[int]:
    return [left for left, *_ in detect_steps(list(values))[1:]]


Detector = Callable[[Sequence[float]], list[int]]

DETECTORS: Mapping[str, tuple[Detector, int]] = {
    "ours, from 2 %": (lambda values: ours(values, 0.02), 3),
    "ours, from 5 %": (lambda values: ours(values, 0.05), 3),
    "asv's steps": (asvs, 1),
}
"""Each with how often it is timed."""


def timed(detect: Detector, values: Sequence[float], times: int) -> tuple[list[int], float]:
    """What is detected, and the least seconds of that many runs."""
    least = math.inf
    for _ in range(times):
        start = time.perf_counter()
        places = detect(values)
        least = min(least, time.perf_counter() - start)
    return places, least


def compare_detectors(every: Sequence[Labelled]) -> None:
    reported: dict[str, list[list[int]]] = {name: [] for name in DETECTORS}
    spent, spent_short = dict.fromkeys(DETECTORS, 0.0), dict.fromkeys(DETECTORS, 0.0)
    for curve in every:
        for name, (detect, times) in DETECTORS.items():
            places, seconds = timed(detect, curve.values, times)
            reported[name].append(places)
            spent[name] += seconds
            spent_short[name] += timed(detect, curve.values[:50], times)[1]
    versions_ = sum(len(curve.values) for curve in every)
    steps = sum(len(curve.steps(0.05)) for curve in every)
    quiet = [curve for curve in every if curve.quiet]
    print(
        f"{len(every)} series, {versions_} versions, {steps} steps of 5 % and more; {len(quiet)} quiet series", end=" "
    )
    print(f"of {sum(len(curve.values) for curve in quiet)} versions")
    alone = [f1([*curve.people[:i], *curve.people[i + 1 :]], curve.people[i]) for curve in every for i in range(5)]
    print(f"{'':18} {'F1':>24} {'recall':>24} {'alarms':>24} {'ms':>8} {'of 50':>8}")
    print(f"{'one human':18} {statistics.fmean(alone):24.3f}")
    numbers = [curve.number for curve in every]
    for name, places_of in reported.items():
        scores = [score(curve, places) for curve, places in zip(every, places_of, strict=True)]
        ranges = intervals(scores, numbers)
        cells = (
            f"{figure:.3f} ({low:.3f} ... {high:.3f})"
            for figure, (low, high) in zip(summed(scores), ranges, strict=True)
        )
        milliseconds, short = (1000 * seconds[name] / len(every) for seconds in (spent, spent_short))
        times_less = spent["asv's steps"] / spent[name]
        row = " ".join(f"{cell:>24}" for cell in cells)
        print(f"{name:18} {row} {milliseconds:8.2f} {short:8.3f}   asv's / {times_less:.0f}")


# -- night by night ------------------------------------------------------------------------------------------------------

FIRST, KNOWN = 30, 400
"""The versions before the first night, and the most that any night looks at."""


def nightly(every: Sequence[Labelled]) -> None:
    """What was ever reported of quiet series, if each version comes in a night of its own."""
    nights, ever = 0, {(brief, least): 0 for brief in (True, False) for least in (0.02, 0.05)}
    for curve in every:
        told: dict[tuple[bool, float], list[int]] = {key: [] for key in ever}
        for night in range(FIRST, len(curve.values) + 1):
            nights += 1
            start = max(0, night - KNOWN)
            for step in changepoints(curve.values[start:night]):
                for (brief, least), places in told.items():
                    new = step.brief == brief and not _near(start + step.index, places)
                    if new and abs(math.log(step.ratio)) >= math.log1p(least):
                        places.append(start + step.index)
        for key, places in told.items():
            ever[key] += len(places)
    print(f"{len(every)} quiet series, {nights} nights; ever reported, per 1,000 nights:")
    for (brief, least), count in ever.items():
        word = "tentative" if brief else "confirmed"
        print(f"{word}, from {100 * least:.0f} %   {1000 * count / nights:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measurements", type=Path, help="checkout of SAP/performance-regression-data-set")
    parser.add_argument("study", type=Path, help="checkout of mtucci/changepoint-performance-regression-study")
    parser.add_argument("--half", choices=("odd", "even", "all"), default="odd", help="series by their number [odd]")
    parser.add_argument("--nightly", action="store_true", help="what quiet series ever reported, night by night")
    arguments = parser.parse_args()
    wanted = {"odd": (1,), "even": (0,), "all": (0, 1)}[arguments.half]
    every = [curve for curve in labelled(arguments.measurements, arguments.study) if curve.number % 2 in wanted]
    if arguments.nightly:
        nightly([curve for curve in every if curve.quiet])
    else:
        compare_detectors(every)


if __name__ == "__main__":
    main()
