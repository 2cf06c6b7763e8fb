"""One visit to one case: set up, measure, tear down; everything that happens becomes a Round or a Proposal."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import time
from dataclasses import replace
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, TypeVar, Union

from .awaited import awaiting
from .backend import Backend, DeviceBackend, DeviceError, NoProfiler
from .bench_types import CudaTimeBenchmark
from .calibration import calibrate
from .company import Company
from .declared import bound, ready, set_up, setup_s, work
from .failures import failure_of
from .inplace import settled
from .memory import forget_peak_rss, peak_rss
from .methods import Visited, measured, own_seconds
from .precision import flags as precision_flags
from .precision import restored_flags
from .ranks import leave_process_group
from .seat import Seat
from .state import at_work, forget_compilations, restored, seed
from .suite import Suite, choose_params, load_cache, metric_of, needs_device
from .wire import FRAMEWORKS, HOST_METRICS, CaseRecorded, Failure, Once, Proposal, Ran, Record, Round, Task

T = TypeVar("T")
By = Callable[[Any, Task, float], T]
"""What to do with a benchmark that is set up; the last argument is the backend's clock before its import."""

PRECISION = ("tf32_matmul", "tf32_cudnn", "bf16_reduction", "fp16_reduction", "default_dtype", "jax_matmul_precision")
"""The settings that are kept with every round."""

LOOKING = 4
"""The part of a case's timeout within which setups are run to see whether each sample needs one."""


class Skipped(Exception):
    """The case does not apply here; the message says why."""


class Visitor:
    """Visits cases one after the other in this process."""

    def __init__(
        self, suite: Suite, backend: Backend, seed: int, home: str, company: Company, seat: Optional[Seat] = None
    ) -> None:
        self._suite, self._backend, self._seed, self._home = suite, backend, seed, home
        self._company, self._seat = company, seat
        self._calibrated = self._frozen = False
        self._named = bool(backend.facts())
        """The device was identified when the process started; torch can only do so once it is in use."""
        self._lost: Optional[DeviceError] = None
        self._early = set(sys.modules)
        self.at_work: List[str] = []
        """Threads that the last case has left at work: this process can measure nothing more."""
        self._setup_s = 0.0
        """Of the visit, for which the case was set up."""
        self.opening_s = 0.0
        """Seconds for which the first case that needed the device waited for it to be opened and calibrated."""

    def propose(self, task: Task) -> Proposal:
        """The unmeasured visit: whether the case works here, and the protocol this side would measure it with."""
        start, known = time.perf_counter(), len(self.late())
        forget_peak_rss()
        visited, failure, leaves = self._visit(task, self._by_method)
        return Proposal(
            task.name,
            task.params,
            task.side,
            protocol=visited.protocol if visited is not None else None,
            failure=failure,
            seconds=time.perf_counter() - start,
            setup_s=self._setup_s,
            flags=self._flags(visited, leaves),
            values=visited.values if visited is not None else {},
            leaves=leaves,
            late=len(self.late()) > known,
            host_bytes=peak_rss(),
            device_share=visited.device_share if visited is not None else 0.0,
        )

    def measure(self, task: Task) -> Round:
        """The measured visit, by the task's protocol."""
        started, start, waited_s = time.time(), time.perf_counter(), self._waited_s()
        visited, failure, leaves = self._visit(task, self._by_method)
        left = {"leaves": leaves} if leaves else {}
        return Round(
            name=task.name,
            params=task.params,
            side=task.side,
            order=task.order,
            process=os.getpid(),
            started_at=started,
            duration_s=time.perf_counter() - start - (self._waited_s() - waited_s),
            setup_s=self._setup_s,
            protocol=task.protocol,
            values=visited.values if visited is not None else {},
            failure=failure,
            facts={**(visited.facts if visited is not None else {}), **left, "loaded": loaded_frameworks()},
            flags=self._flags(visited, leaves),
        )

    def _waited_s(self) -> float:
        """Seconds that others had their turns for."""
        return self._seat.waited_s if self._seat is not None else 0.0

    def record(self, asked: Record) -> CaseRecorded:
        """The case's calls under a profiler."""
        recorded, failure, leaves = self._visit(
            asked.task, lambda benchmark, task, started: self._recorded(benchmark, asked)
        )
        if recorded is None:
            return CaseRecorded(failure=failure)
        return replace(
            recorded, flags=self._flags(recorded, leaves), facts={**recorded.facts, "loaded": loaded_frameworks()}
        )

    def once(self, asked: Once) -> Ran:
        """The case's calls, marked for tools from outside."""
        seconds, failure, _ = self._visit(
            asked.task, lambda benchmark, task, started: self._once(benchmark, asked.calls)
        )
        return Ran(seconds or 0.0, failure)

    def late(self) -> List[str]:
        """Modules of the frameworks that the visits have imported, in their order."""
        return [name for name in sys.modules if name not in self._early and name.partition(".")[0] in FRAMEWORKS]

    def broken(self) -> Optional[DeviceError]:
        """The error after which this process can measure nothing more, or None."""
        try:
            self._backend.synchronize()
        except DeviceError as error:
            return error if error.sticky else self._lost
        return self._lost

    def _flags(self, result: Union[Visited, CaseRecorded, None], leaves: Sequence[str]) -> List[str]:
        """Doubts about the result, and side effects of the case on later ones."""
        changed = [name for name in leaves if name not in self.at_work]
        flags = list(result.flags) if result is not None else []
        if changed:
            flags.append(f"changes {', '.join(changed)} and does not restore it; regress did")
        if self.at_work:
            flags.append(f"leaves threads running ({', '.join(self.at_work)}): they ended with its process")
        return flags

    # -- one case --------------------------------------------------------------------------------------------------------

    def _visit(self, task: Task, by: By[T]) -> Tuple[Optional[T], Optional[Failure], List[str]]:
        """The result, or why there is none, and what the case changed in the process without restoring it."""
        started = self._backend.now()
        leaves: List[List[str]] = []
        result: Optional[T] = None
        failure, self._setup_s = None, 0.0
        try:
            # What a module sets when it is imported is the module's, and stays: only the case's own changes are put back.
            seed(self._seed)
            benchmark = self._suite.get(task.name)
            with restored(self._home, task.cache_dir) as changed, restored_flags() as flags, at_work() as self.at_work:
                leaves = [flags, changed, self.at_work]  # filled when the block ends, however it does
                result = self._set_up(benchmark, task, started, by)
        except Skipped as skipped:
            failure = Failure("skipped", str(skipped))
        except BaseException as error:  # whatever a benchmark raises is data
            if isinstance(error, DeviceError) and error.sticky:
                self._lost = error
            failure = failure_of(error, self._suite.places)
        finally:
            # The case is gone: what is left are imports and caches, which the next one's collections need not look through.
            gc.collect()
            gc.freeze()
        return result if failure is None else None, failure, [name for names in leaves for name in names]

    def _set_up(self, benchmark: Any, task: Task, started: float, by: By[T]) -> T:
        if needs_device(benchmark) and not self._backend.has_device:
            raise Skipped(f"needs a CUDA device: {self._backend.why_no_device}")
        choose_params(benchmark, task.params)
        if not self._frozen:
            # With torch loaded a collection between two blocks would otherwise take longer than the block.
            gc.collect()
            gc.freeze()
            self._frozen = True
        load_cache(benchmark, task.cache_dir)
        forget_compilations()
        seed(self._seed)
        self._backend.begin_case(str(task.name) + repr(task.params), task.order)
        before_s = setup_s(benchmark)
        with awaiting(benchmark):
            try:
                if set_up(benchmark):
                    raise Skipped("skipped by its setup (NotImplementedError) or by skip_params")
                result = by(benchmark, task, started)
            except BaseException:
                # The first error is the cause; what teardown makes of a case that failed half way is not.
                self._end(benchmark, task, tolerant=True)
                raise
            finally:
                self._setup_s = setup_s(benchmark) - before_s
            self._end(benchmark, task)
        return result

    def _end(self, benchmark: Any, task: Task, tolerant: bool = False) -> None:
        try:
            benchmark.do_teardown()
        except BaseException:
            if not tolerant:
                raise
        finally:
            if not tolerant:
                self._backend.synchronize()  # an error of this case must not surface in the next
                if self._backend.ranks.several:
                    leave_process_group()  # where one has failed, the others may never leave it: their processes are ended

    def _by_method(self, benchmark: Any, task: Task, started: float) -> Visited:
        metric, backend = metric_of(benchmark), self._backend
        if task.protocol is not None:
            benchmark._setup_each = task.protocol.setup_each
        if backend.ranks.several:
            benchmark._setup_each = False  # a process group is opened once a round
        if metric == "gpu_time" and not self._calibrated:
            assert isinstance(backend, DeviceBackend)
            start = time.perf_counter()
            before = ready(benchmark)
            if before is not None:
                before()
            bound(benchmark)()  # lets the framework open its context first
            calibrate(backend)
            self._calibrated = True
            self.opening_s = time.perf_counter() - start

        def by_method() -> Visited:
            return measured(benchmark, bound(benchmark), task, backend, metric, started, self._seat)

        if task.protocol is None and _is_timed(benchmark) and not backend.ranks.several:
            visited = settled(benchmark, backend, by_method, task.timeout_s / LOOKING)
        else:
            visited = by_method()
        if backend.ranks.several and task.protocol is not None and metric in ("gpu_time", *HOST_METRICS):
            visited.facts["own_s"] = own_seconds(bound(benchmark), backend, ready(benchmark))
        visited.device_share = backend.taken_share() if needs_device(benchmark) else 0.0
        declared, doubts = _work(benchmark)
        visited.facts.update(declared)
        visited.flags += doubts
        if needs_device(benchmark):
            visited.facts.update(self._circumstances())
            others, doubts = self._company.seen()
            visited.facts.update(others)
            visited.flags += doubts
        return visited

    def _recorded(self, benchmark: Any, asked: Record) -> CaseRecorded:
        with _profilable() as profiling:

            def record() -> CaseRecorded:
                recorded: CaseRecorded = profiling.record(benchmark, self._backend, asked)
                return recorded

            limit_s = asked.task.timeout_s / LOOKING
            timed = _is_timed(benchmark)
            recorded = settled(benchmark, self._backend, record, limit_s, late=False) if timed else record()
        declared, doubts = _work(benchmark)
        device = self._circumstances() if needs_device(benchmark) else {}
        return replace(recorded, facts={**declared, **device}, flags=[*recorded.flags, *doubts])

    def _once(self, benchmark: Any, calls: int) -> float:
        with _profilable() as profiling:
            seconds: float = profiling.run_marked(benchmark, self._backend, calls)
        return seconds

    def _circumstances(self) -> Dict[str, Any]:
        """What else may explain a device's time."""
        precision = {name: value for name, value in precision_flags().items() if name in PRECISION}
        device = {} if self._named else self._backend.facts()
        return {**device, "precision": precision}


def _is_timed(benchmark: Any) -> bool:
    """Whether calls of the benchmark are timed in this process, by asv's rules. The first call of a `cudatime_*` does more in
    any case: an optimizer makes its state, a library its workspace."""
    ours = isinstance(benchmark, CudaTimeBenchmark)
    return metric_of(benchmark) == "wall_time" and not ours and not hasattr(benchmark, "_timeraw_env")


@contextlib.contextmanager
def _profilable() -> Iterator[Any]:
    """The module that profiles; what cannot be profiled is skipped."""
    from . import profiling  # most workers are never asked

    try:
        yield profiling
    except NoProfiler as why:
        raise Skipped(f"cannot be profiled: {why}") from None


def _work(benchmark: Any) -> Tuple[Dict[str, float], List[str]]:
    """The declared work of a call, and what is wrong with it."""
    try:
        return work(benchmark), []
    except Exception as error:  # the values are good whatever the author says of them
        return {}, [f"bytes or flops cannot be read: {type(error).__name__}: {error}"]


def loaded_frameworks() -> List[str]:
    """The frameworks that this process has imported."""
    return [name for name in FRAMEWORKS if name in sys.modules]
