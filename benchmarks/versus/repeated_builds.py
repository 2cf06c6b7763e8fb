"""How often two sides of one build are told apart: on public repeated measurements, where no change is possible.

    python benchmarks/versus/repeated_builds.py MEASUREMENTS

MEASUREMENTS is a checkout of github.com/SAP/performance-regression-data-set (CC-BY-4.0). What was measured 22 times or more of
one build is dealt to two sides in turn: five rounds a side for a check, six fresh ones a side for the confirmation. Both go
through the rule of a check, with its threshold of 5 % and no floor. A flag is a regression or an improvement.
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

from regress.compare.rule import Rule
from regress.model import Settings, metric_of
from regress.stats.ttests import welch

SCREEN, CONFIRM = 5, 6
"""Rounds a side of a check, and of the confirmation."""


def sides(values: Sequence[float]) -> tuple[list[float], list[float]]:
    """Measured in turn: A B B A."""
    return [*values[0::4], *values[3::4]], [*values[1::4], *values[2::4]]


def flagged(values: Sequence[float], rule: Rule, alpha: float) -> bool:
    base, head = sides(values)
    test = welch(base, head)
    if test.p is None or test.low is None or test.high is None:
        return False
    verdict, _ = rule.decide(test.ratio, test.low, test.high, significant=test.p < alpha, level=1.0, spread=0.0)
    return verdict.traits.claims


def builds(measurements: Path) -> Iterator[list[float]]:
    """What was measured often enough of one build, of every series."""
    for path in sorted((measurements / "hana" / "large_2022" / "data").glob("*.csv")):
        by_run: dict[str, list[float]] = {}
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                by_run.setdefault(row["sut_version"], []).append(float(row["value"]))
        yield from (ratios for ratios in by_run.values() if len(ratios) >= 2 * (SCREEN + CONFIRM) and min(ratios) > 0)


def repeated(measurements: Path) -> None:
    settings = Settings()
    rule = Rule(settings.time_threshold, 0.0, metric_of("wall_time").better, "s")
    n = mean = welch_only = confirmed = quiet = quiet_welch = 0
    for values in builds(measurements):
        screen, fresh = values[: 2 * SCREEN], values[2 * SCREEN : 2 * (SCREEN + CONFIRM)]
        base, head = sides(screen)
        flag = flagged(screen, rule, settings.alpha)
        n += 1
        mean += rule.large(statistics.fmean(head) / statistics.fmean(base))
        welch_only += flag
        confirmed += flag and flagged(fresh, rule, settings.alpha)
        if statistics.stdev(map(math.log, screen)) < 0.03:
            quiet += 1
            quiet_welch += flag
    print(f"{n} builds measured {2 * (SCREEN + CONFIRM)} times or more; flagged, where no change is possible:")
    for name, count, of in (
        ("mean over 5 %", mean, n),
        ("Welch and 5 %", welch_only, n),
        ("the same, spread under 3 %", quiet_welch, quiet),
        (f"confirmed by {CONFIRM} fresh rounds", confirmed, n),
    ):
        print(f"{name:32} {100 * count / of:7.3f} %   {count} of {of}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measurements", type=Path, help="checkout of SAP/performance-regression-data-set")
    repeated(parser.parse_args().measurements)


if __name__ == "__main__":
    main()
