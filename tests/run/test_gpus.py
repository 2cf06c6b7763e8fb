"""How GPUs are named, and which processors each of them has for itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regress.errors import RegressError
from regress.run import gpus
from regress.run.gpus import Gpu, named, shares, shown

SHOWN = ["GPU-beef", "GPU-abcd", "GPU-abef"]


class Nvml:
    """Every GPU is near the processors of its mask."""

    NVMLError = RuntimeError

    def __init__(self, **masks: list[int]) -> None:
        self._masks, self.opened = masks, 0

    def nvmlInit(self) -> None:
        self.opened += 1

    def nvmlShutdown(self) -> None:
        self.opened -= 1

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        return uuid

    def nvmlDeviceGetCpuAffinity(self, handle: str, words: int) -> list[int]:
        return self._masks[handle.removeprefix("GPU-")]


@pytest.fixture(autouse=True)
def _eight_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four cores of two threads each: 0 and 4 are one core."""
    monkeypatch.setattr(gpus, "allowed", lambda: frozenset(range(8)))
    monkeypatch.setattr(gpus, "_core", lambda cpu: cpu % 4)


def uuids(*words: str) -> list[str]:
    return [gpu.uuid for gpu in named(words, SHOWN, Nvml())]


def test_gpus_are_named_by_number_by_uuid_by_its_beginning_or_all_together() -> None:
    assert uuids("0") == ["GPU-beef"]
    assert uuids("1", "GPU-beef") == ["GPU-abcd", "GPU-beef"]
    assert uuids("GPU-abe") == ["GPU-abef"]
    assert uuids("all") == sorted(SHOWN)
    assert uuids("0", "GPU-beef", "all") == sorted(SHOWN), "each once"


@pytest.mark.parametrize(("word", "what"), [("3", "no GPU"), ("GPU-ab", "several GPUs"), ("", "no GPU")])
def test_a_word_that_names_no_gpu_is_an_error_that_lists_them(word: str, what: str) -> None:
    with pytest.raises(RegressError, match=f"names {what}") as caught:
        named([word], SHOWN)
    assert caught.value.why == "there are 0 (GPU-beef), 1 (GPU-abcd), 2 (GPU-abef)"


def test_only_cuda_has_gpus_to_name() -> None:
    assert len(shown("fake")) > 1
    with pytest.raises(RegressError, match="names CUDA devices") as caught:
        shown("cpu")
    assert caught.value.why == "the device is set to cpu"


def test_one_gpu_alone_may_use_every_processor() -> None:
    assert named(["0"], SHOWN, Nvml(beef=[1])) == (Gpu("GPU-beef"),)


def test_each_gpu_is_kept_to_the_processors_near_it() -> None:
    nvml = Nvml(beef=[0b00110011], abcd=[0b11001100])
    processors = {gpu.uuid: set(gpu.cpus) for gpu in named(["0", "1"], SHOWN, nvml)}
    assert processors == {"GPU-beef": {0, 1, 4, 5}, "GPU-abcd": {2, 3, 6, 7}}
    assert nvml.opened == 0


def test_gpus_near_the_same_processors_have_whole_cores_each() -> None:
    nvml = Nvml(beef=[0xFF], abcd=[0xFF])
    assert {frozenset(gpu.cpus) for gpu in named(["0", "1"], SHOWN, nvml)} == {
        frozenset({0, 1, 4, 5}),
        frozenset({2, 3, 6, 7}),
    }


@pytest.mark.parametrize("nvml", [Nvml(), SimpleNamespace()])
def test_where_nobody_knows_what_is_near_all_processors_are_shared_out(nvml: Any) -> None:
    cpus = [gpu.cpus for gpu in named(["0", "1"], SHOWN, nvml)]
    assert cpus[0] | cpus[1] == frozenset(range(8))
    assert not cpus[0] & cpus[1]


def test_more_gpus_than_cores_share_them() -> None:
    near = [frozenset({0, 4})] * 2
    assert shares(near, frozenset(range(8))) == near


@given(st.integers(1, 8), st.integers(1, 64))
def test_shares_are_disjoint_and_leave_no_processor_out(number: int, processors: int) -> None:
    usable = frozenset(range(processors))
    parts = shares([frozenset()] * number, usable, core_of=lambda cpu: cpu)
    assert frozenset().union(*parts) == usable
    if number <= processors:
        assert sum(map(len, parts)) == processors
        assert max(map(len, parts)) - min(map(len, parts)) <= 1
