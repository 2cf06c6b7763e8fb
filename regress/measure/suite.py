"""The suite under test: asv_runner's discovery, one benchmark at a time, with every failure kept as data."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import inspect
import itertools
import json
import os
import pickle
import re
import traceback
from types import ModuleType
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from .bench_types import CudaColdBenchmark, CudaTimeBenchmark, SizeBenchmark, load
from .code import Code
from .failures import last_line, place_of
from .modules import children
from .runner import PeakMemBenchmark, TimeBenchmark, first_attr
from .wire import DECLARED_SAMPLING, Benchmark, Program, SuiteProblem, build, writable

DECIDING = (
    "device",
    "cuda",
    "clock",
    "cache",
    "gpus",
    "ranks",
    "critical",
    "tags",
    "covers",
    "gates",
    "threshold",
    "better",
    "was",
    "energy",
    "exact",
    "dtype",
)
DECLARED = (*DECLARED_SAMPLING, *DECIDING)
"""Attributes of a benchmark that say how to measure it or how to decide on it."""

METRICS = {
    CudaColdBenchmark: "cold_time",
    TimeBenchmark: "wall_time",
    PeakMemBenchmark: "peak_rss",
    SizeBenchmark: "object_size",
}
"""The types whose metric is ours; everything else is a tracked `value`."""

ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")
LONGEST_PARAM, PARAM_BEGINNING = 4096, 100
"""Characters of a parameter's text; of a longer one this beginning is left."""


Found = Tuple[List[Benchmark], List[SuiteProblem]]


class Suite:
    """The benchmarks of a folder. Modules are imported on demand, so one case does not import the whole suite."""

    def __init__(
        self, folder: str, overrides: Dict[str, Any], roots: Sequence[str] = (), cuda: Sequence[str] = ()
    ) -> None:
        load()
        from asv_runner._aux import update_sys_path
        from asv_runner.benchmarks import _base

        if not isinstance(_base._unique_param_ids, ParamTexts):
            _base._unique_param_ids = ParamTexts(_base._unique_param_ids)

        self.folder = os.path.abspath(folder)
        self.places = [self.folder, *roots]
        """Where the user's own code is: what a failure's line is looked for in."""
        self.package = os.path.basename(self.folder)
        self._cuda = [re.compile(pattern) for pattern in cuda]
        self._overrides = type("Overrides", (), dict(overrides)) if overrides else None
        self.programs: List[Program] = []
        """Once the suite is discovered: what of it measures by itself."""
        self._found: Dict[str, _Recipe] = {}
        self._code = Code(self.folder)
        self._discovered = False
        update_sys_path(self.folder)

    # -- discovery -------------------------------------------------------------------------------------------------------

    def discover(self, announce: Callable[[str], None] = lambda module: None) -> Found:
        """Every benchmark of the suite, and what could not be imported or used; `programs` are found too. `announce` is called
        with each module before its import."""
        from .programs import programs_in  # which needs what stands here

        problems: List[SuiteProblem] = []
        described: Dict[str, Benchmark] = {}
        self.programs = []
        for module in self._modules(self.package, problems, announce):
            self.programs += programs_in(module, self.folder, problems)
            for recipe in _recipes(module):
                self._describe(recipe, described, problems)
        self._discovered = True
        return list(described.values()), problems

    def _describe(self, recipe: _Recipe, described: Dict[str, Benchmark], problems: List[SuiteProblem]) -> None:
        """Add the benchmark to those that are described, or why not to the problems. Of two of one name the first counts."""
        try:
            recipe.refuse_imported()
            benchmark = recipe.make()
            if benchmark is None:
                problems += recipe.misnamed()
                return
            if benchmark.name in described:
                problems += recipe.doubled(benchmark.name, self._found[benchmark.name])
                return
            self._choose_protocol(benchmark)
            definition = build(
                Benchmark, dataclasses.asdict(describe(benchmark, self.folder, self._used_by(recipe, benchmark)))
            )
            if writable(definition.name) != definition.name:
                raise ValueError(f"the name of {definition.name!a} is not UTF-8")
            if not all(definition.params):
                problems += recipe.without_cases(definition)
                return
        except BaseException as error:  # a constructor that needs arguments or exits, unreadable parameters, ...
            problem = recipe.problem(error)
            if problem.where not in {known.where for known in problems}:
                problems.append(problem)
            return
        self._found[definition.name], described[definition.name] = recipe, definition

    def _modules(
        self, name: str, problems: List[SuiteProblem], announce: Callable[[str], None]
    ) -> Iterator[ModuleType]:
        announce(name)
        try:
            module = importlib.import_module(name)
        except BaseException as error:  # a suite may call sys.exit() at import
            where = place_of(error, name, [self.folder])
            own = name.partition(".")[2]
            problems.append(SuiteProblem(where, last_line(error), traceback.format_exc(), name=own))
            return
        yield module
        for child in children(module, problems, _is_benchmark):
            yield from self._modules(f"{name}.{child}", problems, announce)

    def _used_by(self, recipe: _Recipe, benchmark: Any) -> Dict[str, str]:
        """The code of the suite that the benchmark uses; empty if the author declares a version."""
        if declared_version(benchmark) is not None:
            return {}
        name = recipe.attribute if recipe.owner is None else recipe.owner.__name__
        try:
            return self._code.used_by(recipe.module.__file__ or "", name, recipe.attribute)
        except (ValueError, RecursionError):  # on another drive; or nested deeper than can be followed
            return {}

    # -- one benchmark ---------------------------------------------------------------------------------------------------

    def get(self, name: str) -> Any:
        """A fresh benchmark of that name, with the overrides in force: the next one does not see what a case leaves in its
        instance, and its memory is freed with it. Imports only the benchmark's module if the name shows which.

        Raises LookupError if the suite has no such benchmark, and whatever the import or the constructor raises.
        """
        recipe = self._found.get(name) or self._by_module(name)
        if recipe is None and not self._discovered:
            self.discover()
            recipe = self._found.get(name)
        if recipe is None:
            raise LookupError(f"the suite has no benchmark {name}")
        benchmark = recipe.make()
        if self._overrides is not None:
            benchmark._attr_sources.insert(0, self._overrides)
        self._choose_protocol(benchmark)
        return benchmark

    def _choose_protocol(self, benchmark: Any) -> None:
        """Mark a `time_*` that is measured under the device protocol, because it says so or a pattern does."""
        timed = isinstance(benchmark, TimeBenchmark) and not hasattr(benchmark, "_timeraw_env")
        asked = first_attr(benchmark._attr_sources, "cuda", False) is True
        asked = asked or any(pattern.search(benchmark.name) for pattern in self._cuda)
        benchmark._device_protocol = timed and asked

    def _by_module(self, name: str) -> Optional[_Recipe]:
        parts = name.split(".")
        for tail in (1, 2):
            if not os.path.isfile(os.path.join(self.folder, *parts[:-tail]) + ".py"):
                continue
            module = importlib.import_module(".".join([self.package, *parts[:-tail]]))
            for recipe in _recipes(module):
                if recipe.could_be(name) and recipe.name_or_none() == name:
                    return self._found.setdefault(name, recipe)
        return self._found.get(name)


class _Recipe(NamedTuple):
    """How to make a benchmark again: the location of its function."""

    attribute: str
    module: ModuleType
    owner: Any
    member: Any

    def make(self) -> Any:
        """The benchmark, or None if the function is not one."""
        from asv_runner.discovery import _get_benchmark

        return _get_benchmark(self.attribute, self.module, self.owner, self.member)

    def could_be(self, name: str) -> bool:
        """False if the benchmark surely has another name; spares making every other benchmark of the module."""
        return hasattr(self.member, "benchmark_name") or name.split(".")[-1] == self.attribute

    def name_or_none(self) -> Optional[str]:
        try:
            benchmark = self.make()
        except BaseException:  # it is reported where the suite is discovered
            return None
        return None if benchmark is None else str(benchmark.name)

    def doubled(self, name: str, other: _Recipe) -> List[SuiteProblem]:
        """A line where another function has the name already. The same one may come twice, as modules import of each other."""
        if (self.owner, self.member) == (other.owner, other.member):
            return []
        mine, theirs = (".".join([recipe.module.__name__, *recipe.words()]) for recipe in (self, other))
        return [
            SuiteProblem(mine, f"skipped: {theirs} is {name} already, by its benchmark_name or __name__", fatal=False)
        ]

    def refuse_imported(self) -> None:
        """Raise TypeError where something that was imported has the name of an attribute by which times are taken."""
        sources = [source for source in (self.member, self.owner, self.module) if source is not None]
        for name in (*DECLARED_SAMPLING, "timeout") if _is_benchmark(self.attribute, TimeBenchmark) else ():
            value = first_attr(sources, name, None)
            if callable(value) or isinstance(value, ModuleType):
                raise TypeError(
                    f"{name} is {value!r}, taken for the benchmark's own {name}; import it under another name"
                )

    def misnamed(self) -> List[SuiteProblem]:
        """A message if only its `benchmark_name` keeps a function from being a benchmark: asv takes the type from it."""
        name = getattr(self.member, "benchmark_name", None)
        if name is None or getattr(self.member, "skip_benchmark", False) or not _is_benchmark(self.attribute):
            return []
        last = str(name).rpartition(".")[2]
        message = f"left out: its benchmark_name is {name!r}, and {last!r} begins like no type; begin it like {self.attribute}"
        return [SuiteProblem(".".join([self.module.__name__, *self.words()]), message, fatal=False)]

    def without_cases(self, benchmark: Benchmark) -> List[SuiteProblem]:
        """A line where a parameter has no values."""
        empty = benchmark.param_names[[bool(axis) for axis in benchmark.params].index(False)]
        message = f"left out: it has no cases, because there are no values of {empty}"
        return [SuiteProblem(".".join([self.module.__name__, *self.words()]), message, fatal=False)]

    def words(self) -> List[str]:
        """Class and function."""
        return [self.attribute] if self.owner is None else [self.owner.__name__, self.attribute]

    def problem(self, error: BaseException) -> SuiteProblem:
        """A line for an abstract class, and for one that wants arguments as such a base does; a failure for anything else."""
        owner = self.owner.__name__ if self.owner is not None else self.attribute
        minor = self.owner is not None and (inspect.isabstract(self.owner) or not _can_be_made(self.owner))
        text = f"skipped: {last_line(error)}" if minor else last_line(error)
        where = f"{self.module.__name__}.{owner}"
        return SuiteProblem(where, text, traceback.format_exc(), fatal=not minor, name=where.partition(".")[2])


def _is_benchmark(name: str, of: type = object) -> bool:
    """Whether a function or class of that name is a benchmark, of a type below `of`."""
    from asv_runner.benchmarks import benchmark_types

    return any(kind.name_regex.match(name) for kind in benchmark_types if issubclass(kind, of))


def _recipes(module: ModuleType) -> Iterator[_Recipe]:
    """Every function of a module, and every method of its classes, that may be a benchmark."""
    for attribute, value in list(vars(module).items()):
        if attribute.startswith("_"):
            continue
        if inspect.isclass(value):
            for name in dir(value):  # getmembers would run descriptors, and one that raises would end discovery
                member = inspect.getattr_static(value, name)
                member = member.__func__ if isinstance(member, (staticmethod, classmethod)) else member
                if inspect.isfunction(member):
                    yield _Recipe(name, module, value, getattr(value, name))
        elif inspect.isfunction(value):
            yield _Recipe(attribute, module, None, value)


def describe(benchmark: Any, folder: str, uses: Dict[str, str]) -> Benchmark:
    """What the driver needs to know of a benchmark, which uses that of the suite's code, and the entry asv would keep of it."""
    declared = {}
    for name in DECLARED:
        value = first_attr(benchmark._attr_sources, name, None)
        if value is not None and is_plain(value):
            declared[name] = value
    entry = {
        key: value
        for key, value in vars(benchmark).items()
        if not key.startswith("_") and isinstance(value, (str, int, float, list, dict, bool)) and is_plain(value)
    }
    params = benchmark.params
    version = str(benchmark.version)
    if declared_version(benchmark) is None and first_attr(benchmark._attr_sources, "version", None) is not None:
        version = hashlib.sha256(benchmark.code.encode("utf-8", "surrogatepass")).hexdigest()  # as asv does without one
    texts: Dict[str, Any] = {
        "params": params,
        "unit": unit_of(benchmark),
        "type": str(benchmark.type),
        "version": version,
    }
    entry.update({key: text for key, text in texts.items() if key in entry})
    file, line = source_of(benchmark.func, folder)
    return Benchmark(
        name=benchmark.name,
        type=str(benchmark.type),
        unit=unit_of(benchmark),
        params=params,
        param_names=benchmark.param_names,
        version=version,
        metric=metric_of(benchmark),
        needs_device=needs_device(benchmark),
        timeout_s=_number(benchmark.timeout),
        setup_cache_key=benchmark.setup_cache_key,
        setup_cache_timeout_s=_number(benchmark.setup_cache_timeout),
        file=file,
        line=line,
        declared=declared,
        asv=entry,
        uses=uses,
    )


def declared_version(benchmark: Any) -> Optional[str]:
    """What the author says is the version. A function or module of that name, imported for something else, says nothing."""
    value = first_attr(benchmark._attr_sources, "version", None)
    return str(value) if isinstance(value, (str, int, float)) else None


def unit_of(benchmark: Any) -> str:
    """What the benchmark calls its unit; asv's word for none if it is no text."""
    return benchmark.unit if isinstance(benchmark.unit, str) else "unit"


def metric_of(benchmark: Any) -> str:
    """The metric of a benchmark, by its class: an author may set `type` of a tracked number to anything."""
    if isinstance(benchmark, CudaTimeBenchmark) or getattr(benchmark, "_device_protocol", False):
        return "wall_time" if first_attr(benchmark._attr_sources, "clock", "gpu") == "wall" else "gpu_time"
    return next((metric for kind, metric in METRICS.items() if isinstance(benchmark, kind)), "value")


def needs_device(benchmark: Any) -> bool:
    """Whether the benchmark is nothing without a CUDA device: by its type, its protocol, or because it says so."""
    if isinstance(benchmark, (CudaTimeBenchmark, CudaColdBenchmark)) or getattr(benchmark, "_device_protocol", False):
        return True
    return str(first_attr(benchmark._attr_sources, "device", "")).startswith("cuda")


class ParamTexts:
    """The parameters of benchmarks as asv writes them: asv's own function, with changes to its texts. They are cached, because
    a benchmark is made again for each visit and may have thousands of parameters.

    Texts contain no memory addresses: asv strips one only at the end of a text, and a series whose name changes with every
    process is useless. A long text is shortened to its beginning and a hash, because a history repeats it often.
    """

    def __init__(self, by_asv: Callable[[List[List[Any]]], List[List[str]]]) -> None:
        self._by_asv = by_asv
        self._known: Dict[Tuple[Tuple[int, ...], ...], Tuple[List[List[Any]], List[List[str]]]] = {}

    def __call__(self, params: List[List[Any]]) -> List[List[str]]:
        key = tuple(tuple(map(id, axis)) for axis in params)
        if key not in self._known:
            # The values are kept as well: nothing else gets their numbers.
            self._known[key] = params, [self._texts(axis) for axis in self._by_asv(params)]
        return self._known[key][1]

    def _texts(self, axis: List[str]) -> List[str]:
        texts = [self._short(writable(ADDRESS.sub("", text))) for text in axis]
        return texts if len(set(texts)) == len(texts) else [f"{text} ({i})" for i, text in enumerate(texts)]

    def _short(self, text: str) -> str:
        if len(text) <= LONGEST_PARAM:
            return text
        return f"{text[:PARAM_BEGINNING]}… ({len(text)} characters, {hashlib.sha256(text.encode()).hexdigest()[:12]})"


def choose_params(benchmark: Any, params: List[str]) -> None:
    """Set the parameter combination whose texts are `params`. Raises LookupError if the benchmark has none such."""
    for index, combination in enumerate(itertools.product(*benchmark.params)):
        if list(combination) == params:
            if params:
                benchmark.set_param_idx(index)
            return
    raise LookupError(
        f"{benchmark.name} no longer has parameters ({', '.join(params)}): their text has to be the same in every process"
    )


def load_cache(benchmark: Any, directory: str) -> None:
    """Give the benchmark what its `setup_cache` returned."""
    if benchmark.setup_cache_key is None:
        benchmark.set_cache(None)
        return
    with open(os.path.join(directory, "cache.pickle"), "rb") as file:
        benchmark.set_cache(pickle.load(file))


def source_of(func: Any, folder: str) -> Tuple[str, int]:
    """File, relative to the parent of the suite's folder, and line of a function or class; nothing if unknown."""
    try:
        file = inspect.getsourcefile(func) or ""
        return os.path.relpath(file, os.path.dirname(folder)), inspect.getsourcelines(func)[1]
    except (OSError, TypeError):
        return "", 0


def _number(value: Any) -> Optional[float]:
    return float(value) if isinstance(value, (int, float)) else None


def _can_be_made(owner: Any) -> bool:
    """Whether a class takes no arguments; an abstract base in all but name does."""
    try:
        inspect.signature(owner).bind()
    except TypeError:
        return False
    except ValueError:  # it has no signature
        return True
    return True


def is_plain(value: Any) -> bool:
    """Whether JSON can represent it."""
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True
