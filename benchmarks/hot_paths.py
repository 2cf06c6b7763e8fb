"""Our own hot paths: what a check does between two measurements, and what a user waits for."""

from __future__ import annotations

import random
import subprocess
import sys

from regress.measure.stopping import enough, round_value
from regress.measure.wire import Measured, Protocol, Round, decode, encode


class Wire:
    """A round's way from the worker to the driver."""

    def setup(self) -> None:
        samples = [random.lognormvariate(0, 0.01) * 1e-5 for _ in range(200)]
        values = {name: Measured(1e-5, samples) for name in ("gpu_time", "host_time", "wall_time")}
        self.round = Round("suite.Bench.cudatime_x", ["1024", "'float32'"], "head", 3, values=values)
        self.line = encode(self.round)

    def time_encode(self) -> bytes:
        return encode(self.round)

    def time_decode(self) -> object:
        return decode(self.line)


class Stopping:
    """Asked after every block of samples."""

    def setup(self) -> None:
        self.samples = [random.lognormvariate(0, 0.01) * 1e-5 for _ in range(100)]
        self.protocol = Protocol("gpu_time")

    def time_enough(self) -> bool:
        return enough(self.samples, self.protocol)

    def time_round_value(self) -> float:
        return round_value(self.samples)


class Start:
    """What every command pays before it does anything."""

    def time_help(self) -> None:
        subprocess.run([sys.executable, "-m", "regress", "--help"], check=True, capture_output=True)
