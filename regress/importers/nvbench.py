"""nvbench's JSON (`--json FILE`, or `--jsonbin FILE` with its samples), by version 1 of what its json_printer writes.

Cold GPU time is what a case is about; `wall_time` is the host's time of the same launches, `batch_time` that of launches one
after the other. The samples are in files beside the document, as little-endian float32.
"""

from __future__ import annotations

import array
import itertools
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from regress.files import read_bytes
from regress.importers.document import Document, Given, Raw, known_version, name_of, param, stem_of, struct
from regress.model import Failure, Measured
from regress.stats.summary import median

VERSIONS = ("1",)
"""Of `meta.version.json.string`."""
TIMES = {
    "gpu_time": "nv/cold/time/gpu",
    "wall_time": "nv/cold/time/cpu",
    "batch_time": "nv/batch/time/gpu",
    "cpu_only": "nv/cpu_only/time/cpu",
}
SAMPLES = {"gpu_time": "nv/cold/sample_times", "cpu_only": "nv/cpu_only/sample_times"}
UNITS = {"duration": "s", "item_rate": "1/s", "byte_rate": "B/s", "bytes": "B", "frequency": "Hz", "percentage": "%"}
"""Of a summary of the author's own, by its hint."""
RATE, CLOCK = "nv/cold/bw/global/bytes_per_second", "nv/cold/sm_clock_rate/mean"
ERROR = "Unexpected error: "
"""What the reason begins with where nvbench skips a state because it raised."""


class _Value(msgspec.Struct):
    name: str
    type: str
    value: str


class _Summary(msgspec.Struct):
    tag: str
    hint: str = ""
    data: list[_Value] | None = None


class _State(msgspec.Struct):
    device: int | None = None
    axis_values: list[_Value] | None = None
    summaries: list[_Summary] | None = None
    is_skipped: bool = False
    skip_reason: str = ""


class _Benchmark(msgspec.Struct):
    name: str
    states: list[_State] | None = None


class _Device(msgspec.Struct):
    id: int
    name: str


class _Version(msgspec.Struct):
    string: str


class _Versions(msgspec.Struct):
    json: _Version
    nvbench: _Version


class _Meta(msgspec.Struct):
    version: _Versions
    argv: list[str] | None = None


class _Written(msgspec.Struct):
    meta: _Meta
    benchmarks: list[_Benchmark] | None
    devices: list[_Device] | None = None


def knows(raw: Raw) -> bool:
    """Whether it is such a document."""
    content = raw.content
    meta = content.get("meta") if isinstance(content, dict) else None
    version = meta.get("version") if isinstance(meta, dict) else None
    return isinstance(version, dict) and "nvbench" in version


def read(raw: Raw) -> Document:
    """The document. Raises ValueError, and OSError for samples that cannot be read."""
    written = struct(raw.content, _Written)
    known_version(written.meta.version.json.string, VERSIONS, "a document of JSON version")
    devices = {device.id: device.name for device in written.devices or ()}
    used = {state.device for benchmark in written.benchmarks or () for state in benchmark.states or ()} - {None}
    reader = _Reader(raw.path, devices if len(used) > 1 else {})
    cases = tuple(
        reader.given(benchmark.name, state)
        for benchmark in written.benchmarks or ()
        for state in benchmark.states or ()
    )
    facts = {"nvbench": written.meta.version.nvbench.string}
    if len(used) == 1 and (name := devices.get(min(number for number in used if number is not None))):
        facts["gpu"] = name
    return Document(
        cases,
        stem_of(written.meta.argv[0]) if written.meta.argv else "",
        facts=facts,
        needs_device=any(case.metric == "gpu_time" for case in cases),
        further=tuple(reader.samples),
    )


class _AxisValue(msgspec.Struct):
    input_string: str
    value: int | float | str | None = None


class _Axis(msgspec.Struct):
    name: str
    values: list[_AxisValue]


class _ListedBenchmark(msgspec.Struct):
    name: str
    axes: list[_Axis] | None = None


class _Listed(msgspec.Struct):
    benchmarks: list[_ListedBenchmark]


def listed(raw: Raw) -> Document:
    """The cases that `--jsonlist-benches` prints: all combinations of the axes."""
    cases = []
    for benchmark in struct(raw.content, _Listed).benchmarks:
        axes = benchmark.axes or []
        for combination in itertools.product(*([_text(value) for value in axis.values] for axis in axes)):
            params = dict(zip([axis.name for axis in axes], map(param, combination), strict=True))
            cases.append(Given(name_of(benchmark.name), {}, params, "gpu_time"))
    return Document(tuple(cases), needs_device=True)


def _text(listed: _AxisValue) -> str:
    """A value of an axis as it stands in the results, where a whole number has no point."""
    return listed.input_string if listed.value is None else str(listed.value).removesuffix(".0")


class _Reader:
    """Reads the states of a document. Where several `devices` were measured on, they are a parameter."""

    def __init__(self, path: Path, devices: Mapping[int, str]) -> None:
        self._path, self._devices = path, devices
        self.samples: list[bytes] = []
        """The files of samples, as they were read."""

    def given(self, benchmark: str, state: _State) -> Given:
        params = {axis.name: param(axis.value) for axis in state.axis_values or ()}
        if self._devices:
            params["Device"] = str(state.device)
        name, summaries = name_of(benchmark), {summary.tag: summary for summary in state.summaries or ()}
        if state.is_skipped:
            kind = "error" if state.skip_reason.startswith(ERROR) else "skipped"
            return Given(name, {}, params, "gpu_time", failure=Failure(kind, state.skip_reason.removeprefix(ERROR)))
        values, flags = self._times(summaries)
        if not values:
            failure = Failure("error", "no sample was accepted: nvbench discards those of a throttled device")
            return Given(name, {}, params, "gpu_time", failure=failure)
        facts = {"sm_clock_hz": _number(summaries[CLOCK])} if CLOCK in summaries else {}
        if RATE in summaries and (mean := summaries.get(f"{TIMES['gpu_time']}/mean")) is not None:
            facts["bytes"] = _number(summaries[RATE]) * _number(mean)
        own = {
            name_of(tag): _own(summary)
            for tag, summary in summaries.items()
            if not tag.startswith("nv/") and summary.data
        }
        return Given(name, {**values, **own}, params, next(iter(values)), facts, tuple(flags))

    def _times(self, summaries: Mapping[str, _Summary]) -> tuple[dict[str, Measured], list[str]]:
        """Each time: the median where samples or a median were written, else the mean, which is said."""
        values: dict[str, Measured] = {}
        flags: list[str] = []
        for metric, tag in TIMES.items():
            if f"{tag}/mean" not in summaries:
                continue
            samples = self._samples_of(summaries, SAMPLES[metric]) if metric in SAMPLES else []
            center = summaries.get(f"{tag}/median")
            value = median(samples) if samples else _number(center or summaries[f"{tag}/mean"])
            values["wall_time" if metric == "cpu_only" else metric] = Measured(value, samples)
            if not samples and center is None and metric in SAMPLES:
                flags.append("nvbench wrote no samples: the value is their mean")
        return values, flags

    def _samples_of(self, summaries: Mapping[str, _Summary], tag: str) -> list[float]:
        summary = summaries.get(f"nv/json/bin:{tag}")
        named = {field.name: field.value for field in summary.data or ()} if summary is not None else {}
        if "filename" not in named:
            return []
        data = self._file(named["filename"])
        if len(data) != 4 * int(named.get("size", len(data) // 4)):
            raise ValueError(
                f"{named['filename']} has {len(data)} bytes, and its {named.get('size')} samples take 4 each"
            )
        self.samples.append(data)
        samples = array.array("f", data)
        if sys.byteorder == "big":
            samples.byteswap()
        return samples.tolist()

    def _file(self, name: str) -> bytes:
        """A file that is named from the document's folder, or, by older versions, from where nvbench was run."""
        places = (self._path.parent / name, self._path.parent / Path(name).parent.name / Path(name).name, Path(name))
        place = next((candidate for candidate in places if candidate.is_file()), None)
        if place is None:
            raise ValueError(
                f"its samples are not there: {places[0]}; carry that folder along, or write it with --json"
            )
        return read_bytes(place)


def _number(summary: _Summary) -> float:
    value = next((field.value for field in summary.data or () if field.name == "value"), None)
    if value is None:
        raise ValueError(f"{summary.tag} has no value")
    return float(value)


def _own(summary: _Summary) -> Measured:
    value = _number(summary)
    return Measured(value, [value], unit=UNITS.get(summary.hint, ""))
