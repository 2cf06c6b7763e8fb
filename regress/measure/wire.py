"""The messages between driver and worker: one JSON object a line, over two private pipes.

The pipes are separate file descriptors, so nothing a benchmark prints can get between the lines. A command goes from the
driver to the worker, a reply comes back; `Visit` is answered by `Begin` and a `Proposal` or a `Round` for each of its tasks,
then by `End`. If a worker dies in between, its last `Begin` names the task that killed it.

All times are seconds, all sizes bytes.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import signal
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Type, TypeVar, Union, get_args, get_origin, get_type_hints

WIRE_VERSION = 4
"""Version of this file's messages; both ends are shipped together, so a difference means a broken installation."""

HARNESS_VERSION = 1
"""Version of *how* values are measured. It is part of a series' identity: raise it when a change of the loop, the timer
or a memory probe can move a value."""

PROTOCOL_IDENTITY = ("metric", "cache", "setup_each", "process", "harness")
"""The fields of a Protocol that make values comparable. The counts are not among them: a calibrated count varies from run to
run, and counts that an author declares are compared as declared."""
HOST_METRICS = ("host_time", "wall_time")
"""What the host's clock reads."""
HOST_IDENTITY = ("short_windows",)
"""Further fields of a Protocol that make values of these metrics comparable, and no others."""

GPU_FRAMEWORKS = ("torch", "cupy", "jax")
FRAMEWORKS = (*GPU_FRAMEWORKS, "triton", "numpy")
"""Modules whose versions are facts of a process, and of which a round says whether they were loaded. The first ones are those
that people name when they say what a GPU was used by."""

DECLARED_SAMPLING = ("number", "repeat", "rounds", "processes", "warmup_time", "min_run_count", "sample_time")
"""asv's attributes that say how samples are taken. They are not part of a benchmark's version, so they are compared
separately."""

TRACKED = "value"
"""The metric of a number that the author's function returns: it may be NaN or infinite, which a clock never is."""

SYNCHRONIZES = "synchronizes: no device time"
"""The flag of a visit whose function waits for the device itself."""

SET_UP_EACH = "set up before each sample"
"""How a protocol with `setup_each` is described to readers."""

PROGRAM = "program"
"""How the process of a round begins that is a program of its own; see `Protocol.process`."""

ONCE = "--once"
"""First word to a process that has no driver."""
SCRIPT = "--script"
"""First word to a process that profiles a script; the others are the trace, the script and its arguments."""
CALL_MARK = "regress.call"
"""Name of the range around each profiled call in a trace."""
CALLS_SKIPPED = 1
"""How many marked calls at the start of a trace do not count: in the first one a profiler asks for its buffers, which took
2.3 ms on an H200."""

STACK_SIGNAL = getattr(signal, "SIGRTMIN", signal.SIGUSR2)
"""To a rank: print where every thread is."""

T = TypeVar("T")


def nested(kind: type, many: bool = False, **options: Any) -> Any:
    """A dataclass field that holds a dataclass (`many`: a list or a dict of them), so that `decode` can rebuild it."""
    return field(metadata={"kind": kind, "many": many}, **options)


# -- parts ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Protocol:
    """How a case is measured. The driver fixes it once a case and sends it to every round of both sides."""

    metric: str
    """The metric that the case is about: gpu_time, wall_time, value, peak_rss or object_size."""
    calls: int = 1
    """Calls a window; a sample is the window's time divided by it."""
    short_windows: bool = False
    """Windows of the host's clock last 0.3 ms, or one call, and begin with caches warm. Sides that are measured together take
    them in turn."""
    wall_calls: int = 1
    """Calls a window of `wall_time` that is taken in addition to `gpu_time`; each is waited for."""
    host_calls: int = 1
    """Calls a window of `host_time`."""
    warm_calls: int = 0
    """Calls that go before each short window and are not timed."""
    windows: int = 0
    """Short windows a side before the first check of how precisely their difference is known."""
    pinned: bool = True
    """Short windows are taken on one core; False for calls that several threads work for."""
    lanes: int = 1
    """Streams on which the samples of a round are taken in turn."""
    cache: str = "hot"
    setup_each: bool = False
    """Run the benchmark's setup again before every sample: its author says how many calls that has (asv's `number`), or a
    repeated call was seen to do other work than one right after a setup."""
    samples_min: int = 20
    samples_max: int = 200
    window_budget_s: float = 0.1
    """Stop sampling when the windows add up to this time in seconds."""
    warmup_s: float = 5.0
    """Give up waiting for two equal windows after this."""
    process: str = "fresh"
    """How the process of a round starts: `fork` from one that has imported the suite, `fork-serial` from one that did so with
    torch at one thread, or `fresh`; `program` is an external program that measures itself."""
    harness: int = HARNESS_VERSION


@dataclass(frozen=True)
class Failure:
    """Why there is no value."""

    kind: str
    """error, timeout, oom, signal or skipped."""
    message: str
    where: str = ""
    """`file:line` of the innermost frame that is not ours, the file from the top of its repository."""
    detail: str = ""
    """Traceback or end of the log."""


@dataclass(frozen=True)
class Ends:
    """The least and the largest of this many samples, and what 95 of 100 do not exceed."""

    n: int
    low: float
    p95: float
    high: float


@dataclass(frozen=True)
class Measured:
    """The samples of one metric in one round, in the order taken, and the round's value."""

    value: float
    samples: List[float]
    unit: str = "s"
    invalid: int = 0
    """Samples that were not stored: negative, zero or NaN."""
    exact: bool = False
    """A value that repeats exactly for the same code, so it is compared without a test."""
    ends: Optional[Ends] = nested(Ends, default=None)
    """Of samples that were taken but not kept."""


@dataclass(frozen=True)
class Benchmark:
    """A benchmark as discovery found it."""

    name: str
    type: str
    unit: str
    params: List[List[str]]
    param_names: List[str]
    version: str
    metric: str
    needs_device: bool
    timeout_s: Optional[float] = None
    setup_cache_key: Optional[str] = None
    setup_cache_timeout_s: Optional[float] = None
    file: str = ""
    line: int = 0
    declared: Dict[str, Any] = field(default_factory=dict)
    """What the author declared for measuring and deciding (`number`, `repeat`, `tags`, ...); the JSON-able part."""
    asv: Dict[str, Any] = field(default_factory=dict)
    """The entry that asv itself would write into benchmarks.json."""
    uses: Dict[str, str] = field(default_factory=dict)
    """By file of the suite: a hash of what the benchmark uses of it. Empty if the author declares `version`, or if nothing is
    known."""
    program: str = ""
    """What measures it where that is a program of its own: the class of the suite that names it, or of what was imported the
    format."""
    lacks: List[List[str]] = field(default_factory=list)
    """Combinations of its parameters that there are no cases of."""

    @property
    def code(self) -> str:
        """A hash that changes with the benchmark's code, but not with comments and layout. asv's `version` only hashes the
        text of its function."""
        return " ".join(f"{file}:{word}" for file, word in sorted(self.uses.items())) or self.version


@dataclass(frozen=True)
class Program:
    """A class of the suite that names a command: its runs are rounds of all cases that it has."""

    name: str
    """Of the class, as names of benchmarks begin with it."""
    command: List[str]
    """Words, in which `{output}` stands for the file to write (else it is what the program prints), `{python}` for the side's
    interpreter, and `{NAME}` for a parameter."""
    format: str
    list_command: List[str] = field(default_factory=list)
    """Prints the cases, or writes them to `{output}`; empty: they are those of the first run."""
    cwd: str = ""
    """Folder to run in, named from that of the side's code."""
    env: Dict[str, str] = field(default_factory=dict)
    params: List[List[str]] = field(default_factory=list)
    """The program is run once for each combination of them."""
    param_names: List[str] = field(default_factory=list)
    mapping: Dict[str, Any] = field(default_factory=dict)
    """The columns of a format of the author's own."""
    timeout_s: Optional[float] = None
    """Of one run."""
    version: str = ""
    declared: Dict[str, Any] = field(default_factory=dict)
    """As of a benchmark, for all its cases."""
    file: str = ""
    line: int = 0


@dataclass(frozen=True)
class Rank:
    """Which of the processes that visit a case together one is. They meet each other at the `port` of this host, and us
    through the driver; `gpus` of the visible devices are shared out among them."""

    number: int = 0
    size: int = 1
    port: int = 0
    gpus: int = 1


@dataclass(frozen=True)
class SuiteProblem:
    """A module or class of the suite that gave no benchmark. `fatal`: an import failed; else a line for the user."""

    where: str
    message: str
    detail: str = ""
    fatal: bool = True
    name: str = ""
    """The module or class as names of benchmarks begin with it; empty for the suite's package itself."""
    program: bool = False
    """Nothing was imported: a program could not be run, or ended badly."""


@dataclass(frozen=True)
class Task:
    """One visit to one case."""

    name: str
    params: List[str]
    side: str
    order: int = -1
    """Index of the round within its side; -1 in the unmeasured visit."""
    protocol: Optional[Protocol] = nested(Protocol, default=None)
    """None: the unmeasured visit, which proposes a protocol."""
    memory: bool = False
    """Probe memory too, after the timing."""
    cache_dir: str = ""
    """Folder with the benchmark's `cache.pickle`; also its working directory."""
    quick: bool = False
    in_turn: bool = False
    """Short windows are taken in turn with other processes, as the driver says: see `Ready`."""
    timeout_s: float = 60.0
    """Wall-clock seconds after which the driver gives the visit up; the worker stops sampling before that."""


# -- commands ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Open:
    """First command: where the suite is, whose code must be measured, on which device."""

    suite_dir: str
    import_roots: List[str]
    """Folders whose packages must win over everything installed."""
    side: str
    named_in: List[str] = field(default_factory=list)
    """Further folders whose packages are the project's by their names: the side may lack them, and others be installed."""
    device: str = "auto"
    seed: int = 0
    overrides: Dict[str, Any] = field(default_factory=dict)
    """Attributes that win over what a benchmark declares (asv's `-a name=value`)."""
    cuda: List[str] = field(default_factory=list)
    """Regular expressions for names of `time_*` benchmarks that are measured under the device protocol."""
    one_thread: bool = False
    """To a fork server: keep torch at one thread while the suite is imported."""
    variables: Dict[str, str] = field(default_factory=dict)
    """To a fork server that was forked itself: its environment in addition to that of its zygote. PYTHONPATH is added to the
    path as well."""
    driver: int = 0
    """Process id of the driver: what descends from it is no stranger on the device."""
    rank: Rank = nested(Rank, default=Rank())
    wire: int = WIRE_VERSION


@dataclass(frozen=True)
class Discover:
    """Import the whole suite and list its benchmarks; answered by `Importing` for each module, and by `Suite`."""


@dataclass(frozen=True)
class Fork:
    """To a fork server: fork a worker that runs from the folder `home`, or with `serves` another fork server. This many
    descriptors follow through the socket: commands, replies, log; then the socket of a fork server, or the pipes of a worker
    that has a seat in a group. Answered by `Forked`."""

    home: str
    descriptors: int = 3
    serves: bool = False
    seat: int = 0
    """Its number."""


@dataclass(frozen=True)
class Reap:
    """To a fork server: whether the child has ended; answered by `Reaped`."""

    pid: int


@dataclass(frozen=True)
class Preload:
    """To a fork server: import these modules, so that its children find them; answered by `Preloaded`. None of them may bring
    in a package of these names: they belong to the project, and each side has its own code."""

    modules: List[str]
    without: List[str] = field(default_factory=list)


@dataclass(frozen=True)
class TryFork:
    """To the first child of a fork server: try what a fork may have broken. Answered by `Trying` before each step, then by
    `Works`."""

    device: bool = False
    """Whether device work is tried too."""


@dataclass(frozen=True)
class SetupCache:
    """Run a benchmark's `setup_cache` in `directory` and pickle what it returns; answered by `CacheReady`."""

    name: str
    directory: str


@dataclass(frozen=True)
class MeasureCeilings:
    """Measure what the device can do at most; answered by `Ceilings`."""

    peer: bool = False
    """Measure copies to the next device too. Without this it is not touched, because somebody else may be measuring on it."""


@dataclass(frozen=True)
class Record:
    """Profile at most `calls` calls of a case into a Chrome trace; answered by `CaseRecorded`."""

    task: Task = nested(Task)
    calls: int = 20
    trace: str = ""
    """The file to write; ends in .json.gz."""


@dataclass(frozen=True)
class Once:
    """To a separate process without pipes: run `calls` calls of a case, and end."""

    task: Task = nested(Task)
    calls: int = 1
    setup_cache: bool = False
    """Run the benchmark's `setup_cache` first."""


@dataclass(frozen=True)
class Visit:
    """Measure these tasks one after the other."""

    tasks: List[Task] = nested(Task, many=True)


@dataclass(frozen=True)
class TakeWindows:
    """To a process that is `Ready`: take your windows among those of the group, which begin in this order; answered by `Taken`.
    Each process hands over to the next by a byte in its pipe."""

    order: List[int]
    """Seats."""


@dataclass(frozen=True)
class Meeting:
    """To a rank that `Meets` the others: all have arrived; their values by rank."""

    values: List[List[float]]


@dataclass(frozen=True)
class Enough:
    """To a process that is `Ready`: no more windows of this metric; continue the visit."""


# -- replies -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Opened:
    """The worker is ready. `facts`: interpreter, device, driver, framework versions, as found."""

    pid: int
    facts: Dict[str, Any]
    warnings: List[str] = field(default_factory=list)
    wire: int = WIRE_VERSION


@dataclass(frozen=True)
class Importing:
    """This module of the suite is imported next."""

    module: str


@dataclass(frozen=True)
class Suite:
    benchmarks: List[Benchmark] = nested(Benchmark, many=True)
    problems: List[SuiteProblem] = nested(SuiteProblem, many=True)
    unforkable: str = ""
    """Why a fork of the process that imported the suite could not measure; empty if nothing speaks against it."""
    threads: List[str] = field(default_factory=list)
    """Modules whose import started threads, which a fork does not have."""
    outside: List[str] = field(default_factory=list)
    """Modules that were imported and belong neither to the suite nor to the project, in their order."""
    own: List[str] = field(default_factory=list)
    """Names of the packages of suite and project."""
    variables: Dict[str, str] = field(default_factory=dict)
    """Of the environment, what the import has set."""
    programs: List[Program] = nested(Program, many=True, default_factory=list)
    """What measures by itself: its cases are not among the benchmarks."""


@dataclass(frozen=True)
class Forked:
    pid: int


@dataclass(frozen=True)
class Reaped:
    """`returncode` as in subprocess, negative for a signal; None while the child runs."""

    returncode: Optional[int] = None


@dataclass(frozen=True)
class Preloaded:
    unforkable: str = ""
    """As in `Suite`, after these imports."""


@dataclass(frozen=True)
class Trying:
    """This is tried next; if no answer follows, it does not work in a fork."""

    step: str


@dataclass(frozen=True)
class Works:
    """All that was tried works in a fork."""


@dataclass(frozen=True)
class CacheReady:
    name: str
    seconds: float
    failure: Optional[Failure] = nested(Failure, default=None)


@dataclass(frozen=True)
class Ceilings:
    """The most the device did: bytes moved a second by a large copy (read and written), and by dtype ("float32", "tf32",
    "bfloat16", "float16") floating point operations a second of a large matrix product. Empty if nothing can measure it."""

    copy_bytes_s: float = 0.0
    matmul_flops_s: Dict[str, float] = field(default_factory=dict)
    failure: Optional[Failure] = nested(Failure, default=None)
    peer_bytes_s: float = 0.0
    """Bytes moved a second by a large copy to the next device; 0 if the process sees no other."""


@dataclass(frozen=True)
class Begin:
    """Task number `task` of the visit has started."""

    task: int


@dataclass(frozen=True)
class Proposal:
    """What the unmeasured visit found: how this side would measure the case, or why it cannot."""

    name: str
    params: List[str]
    side: str
    protocol: Optional[Protocol] = nested(Protocol, default=None)
    failure: Optional[Failure] = nested(Failure, default=None)
    seconds: float = 0.0
    """What the visit took; a measure for what a round will take."""
    setup_s: float = 0.0
    """Of these, for which the case was set up."""
    flags: List[str] = field(default_factory=list)
    values: Dict[str, Measured] = nested(Measured, many=True, default_factory=dict)
    """Counters of one call: exact, and too dear to take while timing. The driver puts them into the side's first round."""
    leaves: List[str] = field(default_factory=list)
    """State of the process that the case changed and did not put back."""
    late: bool = False
    """It imported modules of a framework, so what it left behind may come from their import."""
    host_bytes: int = 0
    """The most memory of the host that its process had during the visit; 0 if unknown, as in the next one."""
    device_share: float = 0.0
    """Share of the device's memory that was taken at its end, by anybody."""


@dataclass(frozen=True)
class Ready:
    """The case is set up and warm: short windows of this metric can be taken, by what `TakeWindows` says, until `Enough`."""

    metric: str


@dataclass(frozen=True)
class Meets:
    """A rank has reached a meeting point with these values, and waits for the `Meeting`."""

    where: str
    """The meeting point, in words that are the same for all ranks."""
    values: List[float]


@dataclass(frozen=True)
class Taken:
    """Seconds a call of each window, in the order taken: by the clock, and less those for which others had the core."""

    wall_s: List[float]
    net_s: List[float]
    busy: float = 0.0
    """Share of the time in which it waited for its turns that the process was computing."""


@dataclass(frozen=True)
class Against:
    """The ratio of a metric to that of another side, whose process took windows in turn with this one's."""

    metric: str
    side: str
    commit: str
    """What that side was, as its full hash; with "+changes" it was not the commit's own."""
    log_ratio: float
    """Median of the logarithms of this side's windows over the neighbouring ones of the other side."""
    error: float
    """Standard error of that median."""
    windows: int
    origin: str = ""
    """What the two processes were forked from: rounds of one origin share the layout of its memory."""
    common: bool = True
    """One process imported the frameworks for both, so they are at the same addresses."""


@dataclass(frozen=True)
class Round:
    """One visit to one case on one side, by a process that takes part in no other round."""

    name: str
    params: List[str]
    side: str
    order: int
    process: int = 0
    started_at: float = 0.0
    """Seconds since the epoch."""
    duration_s: float = 0.0
    setup_s: float = 0.0
    """The part of these for which the case was set up; not stored."""
    protocol: Optional[Protocol] = nested(Protocol, default=None)
    values: Dict[str, Measured] = nested(Measured, many=True, default_factory=dict)
    failure: Optional[Failure] = nested(Failure, default=None)
    facts: Dict[str, Any] = field(default_factory=dict)
    """What may explain a difference. Keys that others rely on:

    `sm_clock_hz`        median SM clock of the round's spins
    `throttled`          list of hardware or thermal slowdowns that were on while it was measured, retries used up
    `power_capped`       true where a software power cap was on
    `temperature_c`, `power_w`
    `foreign_processes`  list of words for other processes that compute on the device ("pid 812 (python), 4.1 GiB")
    `precision`          dict of precision flags: {"tf32_matmul": false, ...}
    `leaves`             names of the state of the process that the case changed and did not put back
    `project_files`      where the project's packages were imported from, a file each, named from the side's own folder; among
                         the facts of the process where that had imported them before the round
    `trend`              logarithm of the last samples over the first ones on the same stream
    `output`             shape and type of what the call returns: "float32[4096, 4096]"
    `bytes`, `flops`     work of one call as the benchmark declares it
    `ranks`              how many processes have visited the case together; the values are those of the slowest
    `own_s`              seconds a call for which each rank worked itself, and not waited for the others
    `skew_s`             how far these are apart: a rank that is late, where a collective itself has not become slower
    `beside`             how many GPUs were measured on at once, where several were: `host_time`, `wall_time` are left out
    """
    flags: List[str] = field(default_factory=list)
    """Doubts about the values, in words for the reader."""
    against: List[Against] = nested(Against, many=True, default_factory=list)
    """Ratios to rounds of other sides with the same order, measured in turn."""
    run: str = ""
    """The run of regress that recorded it, which is a session of the machine; empty while nothing has."""


@dataclass(frozen=True)
class CaseRecorded:
    """The profile. The trace has `calls` marked calls after the skipped ones; none if it failed."""

    calls: int = 0
    seconds: float = 0.0
    """A call without the profiler, from its start until the device is done; averaged over many in a row if nothing has to run
    between them."""
    failure: Optional[Failure] = nested(Failure, default=None)
    facts: Dict[str, Any] = field(default_factory=dict)
    """As those of a round: `bytes`, `flops`, `precision`, `loaded`."""
    flags: List[str] = field(default_factory=list)


@dataclass(frozen=True)
class Ran:
    """Seconds a call, or why that is unknown."""

    seconds: float = 0.0
    failure: Optional[Failure] = nested(Failure, default=None)


@dataclass(frozen=True)
class WrongCode:
    """The project was imported from elsewhere: nothing this worker measures counts."""

    module: str
    file: str
    expected: List[str]


@dataclass(frozen=True)
class End:
    """All tasks of the visit are done."""

    project_files: List[str] = field(default_factory=list)
    """Files of the project's packages that were imported, one a package; empty: the suite imports nothing of it."""
    late: List[str] = field(default_factory=list)
    """Framework modules that the visited cases imported, in order: usually a compiler's."""
    opening_s: float = 0.0
    """Seconds that opening the device has taken within the first case that needed it."""


@dataclass(frozen=True)
class Broken:
    """The worker cannot continue: an error outside any task."""

    failure: Failure = nested(Failure)


MESSAGES = {
    kind.__name__: kind
    for kind in (
        Open,
        Discover,
        Fork,
        Reap,
        Preload,
        TryFork,
        SetupCache,
        MeasureCeilings,
        Record,
        Once,
        Visit,
        TakeWindows,
        Meeting,
        Enough,
        Opened,
        Importing,
        Suite,
        Forked,
        Reaped,
        Preloaded,
        Trying,
        Works,
        CacheReady,
        Ceilings,
        Begin,
        Proposal,
        Ready,
        Meets,
        Taken,
        Round,
        CaseRecorded,
        Ran,
        WrongCode,
        End,
        Broken,
    )
}


# -- lines ---------------------------------------------------------------------------------------------------------------


def encode(message: Any) -> bytes:
    """A message as one line. Raises TypeError for what JSON cannot hold: `facts` and `declared` are the caller's care."""
    return (json.dumps({"is": type(message).__name__, **dataclasses.asdict(message)}) + "\n").encode()


def writable(text: str) -> str:
    """The text with halves of characters (a file name that is not UTF-8) written out as `\\udce9`: every file takes it."""
    return text.encode(errors="backslashreplace").decode()


def from_json(text: bytes) -> Any:
    """What `json.loads` gives, as everything takes it: text is `writable`, and a whole number of more than 64 bits is a float.
    Raises ValueError, also for what is nested too deeply."""
    try:
        value = json.loads(text, parse_int=_whole)
        return _writable(value) if b"\\u" in text or not text.isascii() else value
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _whole(digits: str) -> Union[int, float]:
    short = len(digits) <= 20  # `int` refuses thousands of digits
    return int(digits) if short and -(2**63) <= int(digits) < 2**64 else float(digits)


def _writable(value: Any) -> Any:
    if isinstance(value, str):
        return writable(value)
    if isinstance(value, list):
        return [_writable(item) for item in value]
    if isinstance(value, dict):
        return {writable(key): _writable(item) for key, item in value.items()}
    return value


def decode(line: bytes, parse: Callable[[bytes], Any] = json.loads) -> Any:
    """The message of a line. Raises ValueError for an invalid line. The driver parses with `from_json`, because a benchmark
    may have written it."""
    try:
        data = parse(line)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    kind = MESSAGES.get(str(data.pop("is", ""))) if isinstance(data, dict) else None
    if kind is None:
        raise ValueError(f"not a message: {line[:200]!r}")
    message = build(kind, data)
    for metric, measured in message.values.items() if isinstance(message, (Round, Proposal)) else ():
        if metric != TRACKED and not math.isfinite(measured.value):
            raise ValueError(f"no clock and no counter gives {metric} {measured.value}")
    return message


def build(kind: Type[T], data: Any) -> T:
    """A dataclass of this file from the dict that `dataclasses.asdict` made of it; unknown keys are ignored. Raises ValueError
    if a field has a value of another kind, or none and no default."""
    if not isinstance(data, dict):
        raise ValueError(f"not a {kind.__name__}: {str(data)[:200]}")
    values: Dict[str, Any] = {}
    hints = _hints(kind)  # type: ignore[arg-type]
    for item in dataclasses.fields(kind):  # type: ignore[arg-type]
        inner = item.metadata.get("kind")
        if item.name not in data:
            continue
        value = _checked(hints[item.name], data[item.name], inner is not None)
        if inner is not None and value is not None:
            if not item.metadata["many"]:
                value = build(inner, value)
            elif isinstance(value, dict):
                value = {key: build(inner, member) for key, member in value.items()}
            else:
                value = [build(inner, member) for member in value]
        values[item.name] = value
    try:
        return kind(**values)
    except TypeError as error:
        raise ValueError(str(error)) from None


@functools.lru_cache(maxsize=None)
def _hints(kind: Any) -> Dict[str, Any]:
    return get_type_hints(kind)


def _checked(hint: Any, value: Any, outside: bool) -> Any:
    """The value, which is of that type; with `outside` only so far: `build` looks at what is in it. Raises ValueError."""
    inner = get_args(hint)
    if hint is Any or (get_origin(hint) is Union and value is None):
        return value
    if get_origin(hint) is Union:
        return _checked(inner[0], value, outside)
    plain = dict if dataclasses.is_dataclass(hint) else get_origin(hint) or hint
    if not isinstance(value, (int, float) if plain is float else plain) or (
        isinstance(value, bool) and plain is not bool
    ):
        raise ValueError(f"{str(value)[:200]!r} is not a {hint}")
    if not outside and inner:
        items: Any = value.values() if isinstance(value, dict) else value
        for item in items:
            _checked(inner[-1], item, outside)
    return value
