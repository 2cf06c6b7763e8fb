"""`regress profile SCRIPT`: a whole program under the profiler."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from regress import config as configuration
from regress.commands.profile.case import FOLDER, exit_codes
from regress.errors import ProfileError
from regress.model import CallProfile, Case, Failure, Report
from regress.run.profiled import Scripted, scripted
from regress.run.ship import ship
from regress.session import Request
from regress.traces import chrome
from regress.traces.calls import call_profile


def profile_script(request: Request, words: Sequence[str]) -> Report:
    """Profile the script, with the arguments behind it, under the interpreter of the configuration where there is one.
    Raises ProfileError where the script is not there."""
    start = time.monotonic()
    if not Path(words[0]).is_file():
        raise ProfileError(f"there is no script {words[0]}", why=f"searched from {Path.cwd()}", fix="name a file")
    python, cache = sys.executable, configuration.usual_cache()
    if request.config_file is not None or configuration.find(request.start) is not None:
        loaded = configuration.load(request.config_file, request.start)
        python, cache = loaded.settings.python or python, configuration.cache_dir(loaded).parent
    script = Path(words[0])
    ran = scripted(python, ship(cache), words, cache / FOLDER / f"{script.stem}.json.gz")
    profile = _told(Case(script.name), ran)
    codes = exit_codes([profile], ran.interrupted)
    return Report(
        command="profiled",
        exit_codes=codes,
        state=codes[0].word,
        plan=f"{script.name}, the whole program",
        profiled=(profile,),
        cases=1,
        remark=script.name,
        warnings=() if profile.on_device or profile.totals is None else ("no device work was recorded",),
        duration_s=time.monotonic() - start,
    )


def _told(case: Case, ran: Scripted) -> CallProfile:
    if ran.trace is None:
        return CallProfile(case, failure=ran.failure)
    try:
        timeline = chrome.read(ran.trace)
    except ProfileError as error:
        return CallProfile(case, failure=ran.failure or Failure("error", str(error)))
    profile = call_profile(case, timeline, "", 0.0, lambda seconds: None)
    return replace(profile, trace=str(ran.trace), failure=ran.failure)
