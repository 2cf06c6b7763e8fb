from __future__ import annotations

import subprocess
import sys

from regress.measure.backend.fake import FakeBackend
from regress.measure.memory import peak_of_call, peak_rss


def test_the_peak_counts_what_one_call_needs_above_what_was_there() -> None:
    device = FakeBackend()
    kept = [device.alloc(1000)]

    def call() -> object:
        scratch = device.alloc(300)
        output = device.alloc(200)
        del scratch
        return output

    found = peak_of_call(call, device, device.probe)
    assert (found.value, found.exact, found.unit) == (500.0, True, "B")
    assert kept


def test_what_is_made_once_does_not_count() -> None:
    device = FakeBackend()
    cache: dict[str, object] = {}

    def call() -> object:
        if "workspace" not in cache:
            cache["workspace"] = device.alloc(10_000)
        return device.alloc(10)

    assert peak_of_call(call, device, device.probe).value == 10


def test_a_child_of_a_large_process_does_not_report_the_parents_size() -> None:
    big = bytearray(300 << 20)
    big[::4096] = b"x" * len(big[::4096])
    code = "from regress.measure.memory import peak_rss; print(peak_rss())"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert peak_rss() > 300 << 20
    assert int(child.stdout) < 200 << 20
