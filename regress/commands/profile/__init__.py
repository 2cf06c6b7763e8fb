"""`regress profile` and `regress once`: where the time of a call goes. The word says what is profiled.

case     a case of the suite, with torch.profiler
script   a program of the user's
ncu      a case kernel by kernel, with Nsight Compute
exports  what a GPUProfiler has written, of one run or compared
foreign  what Nsight Systems or Nsight Compute has written
once     one call of a case, for a profiler outside
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from regress.commands.profile.case import profile_cases
from regress.commands.profile.exports import profile_exports
from regress.commands.profile.foreign import show_export
from regress.commands.profile.ncu import meter_cases
from regress.commands.profile.script import profile_script
from regress.model import Report
from regress.run.execute import Watcher
from regress.session import Request
from regress.traces.exported import ENDINGS, kind_of

Subject = Literal["case", "ncu", "script", "foreign", "exports"]


def subject_of(words: Sequence[str], *, ncu: bool = False, record: str | None = None) -> Subject:
    """What the words name. A file that is not there is what it would be by its name. Raises ProfileError for one that cannot be
    read."""
    word, path = words[0], Path(words[0])
    if ncu:
        return "ncu"
    if word.endswith(".py"):
        return "script"
    if kind_of(path) != "GPUProfiler" if path.is_file() else path.suffix in ENDINGS:
        return "foreign"
    return "exports" if record is not None or path.exists() or word.endswith(".json") else "case"


def profile(
    request: Request,
    subject: Subject,
    words: Sequence[str],
    watcher: Watcher,
    *,
    calls: int | None = None,
    environment: str = "",
    against: Sequence[str] = (),
    record: str | None = None,
) -> Report:
    """The profile of what the words name; of a case they may name a revision too. See the function of each subject for what it
    raises."""
    if subject == "ncu":
        return meter_cases(request, words[1:], watcher, calls, environment)
    if subject == "script":
        return profile_script(request, words)
    if subject == "foreign":
        return show_export(words, against, record, watcher)
    if subject == "exports":
        return profile_exports(request, words, against, record)
    return profile_cases(request, words[1:], watcher, calls, environment, against)
