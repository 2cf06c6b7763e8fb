"""Work that is shared between forked processes: the parts of a long history, and the pages of a report."""

from __future__ import annotations

import os
import signal
import struct
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

PAYS_S = 0.05
"""Least seconds of work for a process: several times what it takes to fork one."""
MOST_PROCESSES = 16
"""Each takes memory for its item, such as a benchmark of thousands of series."""
TICKETS = 1000
"""Most tickets: at four bytes each, all of them fit into a pipe that nobody reads from yet."""
SPARE = 16
"""Files that can still be opened when all processes exist."""
HELD = (signal.SIGINT, signal.SIGTERM)

T = TypeVar("T")
R = TypeVar("R")


def processors() -> int:
    """How many processes can work at once; 1 where a fork is not safe."""
    if sys.platform != "linux" or threading.active_count() > 1:
        return 1
    return len(os.sched_getaffinity(0))


def helpers(items: int, item_s: float) -> int:
    """How many processes should share items that take `item_s` seconds each; 0 if this process is faster alone."""
    count = min(processors(), items, int(items * item_s / PAYS_S), MOST_PROCESSES)
    return count if count > 1 else 0


@contextmanager
def beside(work: Callable[[], object]) -> Iterator[None]:
    """`work` is done in a process of its own while the block runs, which ends with both. If the block raises, the process is
    ended. If the process cannot be forked or fails, nothing is reported: look at what it has made."""
    with _forked([(0, None)], lambda _: work(), 1) as receivers:
        yield
        for receiver in receivers:
            with suppress(EOFError, OSError):
                receiver.recv()


@contextmanager
def shared(
    items: Sequence[T], work: Callable[[T], R], processes: int | None = None
) -> Iterator[Iterator[tuple[int, R]]]:
    """The result of `work` for each item, with the item's index, in the order in which they get done.

    This process does the first item, which loads what all items need and shows how many processes are worth forking. These
    take one item after the other. Whatever they could not do is done here at the end, so that errors are raised here.
    """
    left, start_s = dict(enumerate(items)), time.perf_counter()
    first = [(place, work(left.pop(place))) for place in list(left)[:1]]
    if processes is None:
        processes = helpers(len(left), time.perf_counter() - start_s)
    with _forked(list(left.items()), work, processes if left else 0) as receivers:
        yield _results(first, left, work, receivers)


def _results(
    first: Sequence[tuple[int, R]], left: dict[int, T], work: Callable[[T], R], receivers: list[Connection]
) -> Iterator[tuple[int, R]]:
    from multiprocessing.connection import wait

    yield from first
    while receivers:
        ready = wait(receivers)
        for receiver in [connection for connection in receivers if connection in ready]:
            try:
                place, result = receiver.recv()
            except (EOFError, OSError):  # it is done, or was killed
                receivers.remove(receiver)
                receiver.close()
                continue
            del left[place]
            yield place, result
    for place, item in left.items():
        yield place, work(item)


@contextmanager
def _forked(items: list[tuple[int, T]], work: Callable[[T], R], processes: int) -> Iterator[list[Connection]]:
    """Processes that share the items; yields where their results arrive. None outlives the block or this process."""
    if not processes:
        yield []
        return
    import multiprocessing

    context = multiprocessing.get_context("fork")
    size = -(-len(items) // TICKETS)
    tickets, counter = os.pipe()
    os.write(counter, b"".join(struct.pack("=I", start) for start in range(0, len(items), size)))
    os.close(counter)  # when all are taken, reading gives nothing
    receivers: list[Connection] = []
    workers = []
    try:
        # Where no more processes or files are available, these help.
        with suppress(OSError), _spared(tickets), _held():
            for _ in range(processes):
                receiver, sender = context.Pipe(duplex=False)
                told = (tickets, size, items, work, sender, [*receivers, receiver])
                worker = context.Process(target=_serve, args=told, daemon=True)
                with warnings.catch_warnings():  # of threads in libraries, which the work does not use
                    warnings.simplefilter("ignore", DeprecationWarning)
                    worker.start()
                workers.append(worker)
                receivers.append(receiver)
                sender.close()
        yield list(receivers)
    finally:
        for receiver in receivers:
            receiver.close()
        for worker in workers:
            worker.kill()  # what it has written beside a file is removed the next time
            worker.join()
        os.close(tickets)


@contextmanager
def _spared(file: int) -> Iterator[None]:
    """Holds SPARE files open. Raises OSError if there are not that many left."""
    with ExitStack() as spare:
        for _ in range(SPARE):
            spare.callback(os.close, os.dup(file))
        yield


@contextmanager
def _held() -> Iterator[None]:
    """Blocks the signals that end the program: one that comes during a fork would be lost."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, HELD)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(
    tickets: int,
    size: int,
    items: Sequence[tuple[int, T]],
    work: Callable[[T], R],
    sender: Connection,
    receivers: Sequence[Connection],
) -> None:
    """In a worker: one item after the other, until all are taken, one fails, or nobody reads the results any more."""
    # A Ctrl-C reaches all processes of the terminal: the one that forked answers it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD)
    for receiver in receivers:
        receiver.close()
    with suppress(Exception):
        while ticket := os.read(tickets, 4):
            (start,) = struct.unpack("=I", ticket)
            for place, item in items[start : start + size]:
                sender.send((place, work(item)))
