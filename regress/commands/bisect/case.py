"""The one case that is looked at, by its name or by a pattern that matches no other."""

from __future__ import annotations

import re
from collections.abc import Sequence

from regress.errors import NothingMeasured, RegressError
from regress.model import Case
from regress.text.wording import first_of, near_names, quoted

NEAR = 3


def one_case(words: str, cases: Sequence[Case]) -> Case:
    """The case of that name; the only one of the benchmark of that name; or the only one that the regular expression matches.

    Raises NothingMeasured if there is none, RegressError where there are several.
    """
    for found in (
        [each for each in cases if str(each) == words],
        [each for each in cases if each.name == words],
        _matching(words, cases),
    ):
        if len(found) == 1:
            return found[0]
        if found:
            raise RegressError(
                f"{words!r} is {len(found)} cases; bisect takes one",
                why=first_of(found, NEAR),
                fix=f"name one: {quoted(str(found[0]))}",
            )
    near = near_names(words, [*map(str, cases), *(each.name for each in cases)], NEAR)
    raise NothingMeasured(
        f"there is no case {words!r}",
        why=f"the suite has {len(cases)} cases, and no similar name"
        if not near
        else "it is neither a name nor a pattern that matches",
        fix="name " + " or ".join(near) if near else "regress list",
    )


def _matching(words: str, cases: Sequence[Case]) -> list[Case]:
    try:
        pattern = re.compile(words)
    except re.error:
        return []
    return [each for each in cases if pattern.search(str(each))]
