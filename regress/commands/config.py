"""`regress config`: the settings in force and where each came from."""

from __future__ import annotations

from regress.config import effective
from regress.model import Report
from regress.session import Request, Session


def show_config(request: Request) -> Report:
    """Every setting with its value and its source: default, asv.conf.json or the command line."""
    session = Session(request)
    return Report(command="config", settings=effective(session.config), warnings=session.config.warnings)
