"""`regress doctor`: is this machine fit to measure, and how well does it measure?

machine.py  each check says what it found and what to do about it
aa.py       `--aa`: a side measured against itself
"""

from __future__ import annotations

from regress.commands.doctor.aa import check_itself
from regress.commands.doctor.machine import doctor

__all__ = ["check_itself", "doctor"]
