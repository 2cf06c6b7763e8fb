"""The suite under test: asv_runner's discovery, one benchmark at a time, with every failure kept as data."""

from __future__ import annotations

import importlib
import inspect
import itertools
import json
import os
import pickle
import pkgutil
import traceback
from types import ModuleType
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from .bench_types import CudaTimeBenchmark, load
from .failures import last_line, place_of
from .runner import first_attr
from .wire import Benchmark, SuiteProblem

SAMPLING = ("number", "repeat", "rounds", "processes", "warmup_time", "min_run_count", "sample_time")
DECIDING = (
    "device",
    "cuda",
    "clock",
    "cache",
    "gpus",
    "critical",
    "tags",
    "covers",
    "threshold",
    "better",
    "was",
    "exact",
)
DECLARED = (*SAMPLING, *DECIDING)
"""Attributes of a benchmark that say how to measure it or how to decide on it."""

METRICS = {"time": "wall_time", "peakmemory": "peak_rss", "memory": "object_size"}
"""asv's types whose metric is ours; everything else is a tracked `value`."""


class Suite:
    """The benchmarks of a folder. Modules are imported when first needed, so that one case does not import the whole suite."""

    def __init__(self, folder: str, overrides: Dict[str, Any], roots: Sequence[str] = ()) -> None:
        load()
        from asv_runner._aux import update_sys_path

        self.folder = os.path.abspath(folder)
        self.places = [self.folder, *roots]
        """Where the user's own code is: what a failure's line is looked for in."""
        self.package = os.path.basename(self.folder)
        self._overrides = type("Overrides", (), dict(overrides)) if overrides else None
        self._found: Dict[str, Any] = {}
        self._discovered = False
        update_sys_path(self.folder)

    # -- discovery -------------------------------------------------------------------------------------------------------

    def discover(self) -> Tuple[List[Benchmark], List[SuiteProblem]]:
        """Every benchmark of the suite, and what could not be imported or used."""
        problems: List[SuiteProblem] = []
        described: List[Benchmark] = []
        for module in self._modules(self.package, problems):
            for benchmark in self._benchmarks_of(module, problems):
                if benchmark.name in self._found:
                    continue
                self._found[benchmark.name] = benchmark
                described.append(describe(benchmark, self.folder))
        self._discovered = True
        return described, problems

    def _modules(self, name: str, problems: List[SuiteProblem]) -> Iterator[ModuleType]:
        try:
            module = importlib.import_module(name)
        except BaseException as error:  # a suite may call sys.exit() at import
            problems.append(
                SuiteProblem(place_of(error, name, [self.folder]), last_line(error), traceback.format_exc())
            )
            return
        yield module
        for _, child, _ in pkgutil.iter_modules(getattr(module, "__path__", []), f"{name}."):
            yield from self._modules(child, problems)

    def _benchmarks_of(self, module: ModuleType, problems: List[SuiteProblem]) -> Iterator[Any]:
        for attribute, value in list(vars(module).items()):
            if attribute.startswith("_"):
                continue
            if inspect.isclass(value) and not inspect.isabstract(value):
                for name, member in inspect.getmembers(value):
                    if inspect.isfunction(member) or inspect.ismethod(member):
                        yield from self._try(name, module, value, member, problems)
            elif inspect.isfunction(value):
                yield from self._try(attribute, module, None, value, problems)

    def _try(
        self, name: str, module: ModuleType, owner: Any, member: Any, problems: List[SuiteProblem]
    ) -> Iterator[Any]:
        from asv_runner.discovery import _get_benchmark

        try:
            benchmark = _get_benchmark(name, module, owner, member)
        except Exception as error:  # a constructor that needs arguments, unreadable parameters, ...
            where = f"{module.__name__}.{owner.__name__}" if owner is not None else f"{module.__name__}.{name}"
            needs_arguments = owner is not None and not _can_be_made(owner)
            text = f"skipped: {last_line(error)}" if needs_arguments else last_line(error)
            problem = SuiteProblem(where, text, traceback.format_exc(), fatal=not needs_arguments)
            if problem.where not in {known.where for known in problems}:
                problems.append(problem)
            return
        if benchmark is not None:
            yield benchmark

    # -- one benchmark ---------------------------------------------------------------------------------------------------

    def get(self, name: str) -> Any:
        """The benchmark of that name, with the overrides in force. Imports its module alone where the name tells which.

        Raises LookupError where the suite has no such benchmark, and whatever the import raises.
        """
        benchmark = self._found.get(name) or self._by_module(name)
        if benchmark is None and not self._discovered:
            self.discover()
            benchmark = self._found.get(name)
        if benchmark is None:
            raise LookupError(f"the suite has no benchmark {name}")
        self._found[name] = benchmark
        if self._overrides is not None and benchmark._attr_sources[0] is not self._overrides:
            benchmark._attr_sources.insert(0, self._overrides)
        return benchmark

    def _by_module(self, name: str) -> Any:
        parts = name.split(".")
        for tail in (1, 2):
            if not os.path.isfile(os.path.join(self.folder, *parts[:-tail]) + ".py"):
                continue
            module = importlib.import_module(".".join([self.package, *parts[:-tail]]))
            for benchmark in self._benchmarks_of(module, []):
                self._found.setdefault(benchmark.name, benchmark)
        return self._found.get(name)


def describe(benchmark: Any, folder: str) -> Benchmark:
    """What the driver needs to know of a benchmark, and the entry asv would keep of it."""
    declared = {}
    for name in DECLARED:
        value = first_attr(benchmark._attr_sources, name, None)
        if value is not None and _is_plain(value):
            declared[name] = value
    entry = {
        key: value
        for key, value in vars(benchmark).items()
        if not key.startswith("_") and isinstance(value, (str, int, float, list, dict, bool)) and _is_plain(value)
    }
    needs_device = isinstance(benchmark, CudaTimeBenchmark)
    file, line = _source(benchmark.func, folder)
    return Benchmark(
        name=benchmark.name,
        type=benchmark.type,
        unit=benchmark.unit,
        params=benchmark.params,
        param_names=benchmark.param_names,
        version=benchmark.version,
        metric="gpu_time" if needs_device else METRICS.get(benchmark.type, "value"),
        needs_device=needs_device,
        timeout_s=_number(benchmark.timeout),
        setup_cache_key=benchmark.setup_cache_key,
        setup_cache_timeout_s=_number(benchmark.setup_cache_timeout),
        file=file,
        line=line,
        declared=declared,
        asv=entry,
    )


def choose_params(benchmark: Any, params: List[str]) -> None:
    """Set the parameter combination whose reprs are `params`. Raises LookupError where the benchmark has none such."""
    for index, combination in enumerate(itertools.product(*benchmark.params)):
        if list(combination) == params:
            if params:
                benchmark.set_param_idx(index)
            return
    raise LookupError(f"{benchmark.name} has no parameters ({', '.join(params)})")


def load_cache(benchmark: Any, directory: str) -> None:
    """Give the benchmark what its `setup_cache` returned."""
    if benchmark.setup_cache_key is None or not directory:
        benchmark.set_cache(None)
        return
    with open(os.path.join(directory, "cache.pickle"), "rb") as file:
        benchmark.set_cache(pickle.load(file))


def _source(func: Any, folder: str) -> Tuple[str, int]:
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
    except ValueError:  # no signature to be had
        return True
    return True


def _is_plain(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True
