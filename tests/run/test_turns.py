"""Turns of lanes, with threads in place of lanes: what is alone, who goes first, and that nobody keeps a turn."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from regress.measure.wire import Task
from regress.model import Case
from regress.run.gpus import Gpu
from regress.run.interrupts import Interrupt
from regress.run.turns import Turns, TurnStep
from tests.conftest import LIMIT_S

LANES = [(Gpu(name),) for name in "abcd"]


@pytest.fixture
def interrupt() -> Iterator[Interrupt]:
    interrupted = Interrupt()
    yield interrupted
    interrupted.close()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as thread_pool_executor:
        yield thread_pool_executor


def tasks(*names: str) -> list[Task]:
    return [Task(name, [], "head") for name in names]


def test_what_is_alone_comes_last_and_at_a_stretch() -> None:
    one, quiet, two, other = tasks("one", "quiet", "two", "other")
    turns = Turns(LANES[:2], {Case("quiet"), Case("other")})
    assert turns.steps([one, quiet, two, other]) == [
        TurnStep([one]),
        TurnStep([two]),
        TurnStep([quiet, other], alone=True),
    ]
    assert [turns.beside(task, LANES[0]) for task in (one, quiet)] == [2, 1]


def test_how_many_gpus_measure_is_counted_without_what_waits_for_them() -> None:
    (task,) = tasks("one")
    (a, b, c, d), pair = LANES, (*LANES[0], *LANES[1])
    turns = Turns([pair, a, b, c, d])
    assert [turns.beside(task, gpus) for gpus in (pair, a, c)] == [4, 4, 4]
    assert [Turns([pair, c]).beside(task, gpus) for gpus in (pair, c)] == [3, 3]
    assert [Turns([pair, a]).beside(task, gpus) for gpus in (pair, a)] == [1, 1], "one after the other"
    assert Turns().beside(task, ()) == 1


@pytest.mark.parametrize("turns", [Turns(), Turns(LANES[:1], {Case("quiet")}), Turns(LANES[:2])])
def test_where_nobody_has_to_wait_a_process_gets_all_at_once(turns: Turns) -> None:
    both = tasks("one", "quiet")
    assert turns.steps(both) == [TurnStep(both)]


def waits(turns: Turns, number: int) -> None:
    """Return when so many lanes wait to be alone."""
    tick, rounds = threading.Event(), 0
    while turns._waiting < number:
        assert rounds < 100 * LIMIT_S
        tick.wait(0.01)
        rounds += 1


def test_who_waits_to_be_alone_goes_ahead_of_the_next_step_of_all_others(
    interrupt: Interrupt, pool: ThreadPoolExecutor
) -> None:
    turns, order, begun = Turns(LANES, {Case("quiet")}), list[str](), threading.Barrier(3)

    def alone(name: str) -> None:
        with turns.working(interrupt):
            begun.wait(LIMIT_S)
            with turns.taken(True, interrupt):
                order.append(name)

    def begins() -> None:
        with turns.working(interrupt):
            order.append("another lane")

    with turns.working(interrupt):
        with turns.taken(False, interrupt):
            lanes = [pool.submit(alone, name) for name in ("alone", "alone too")]
            begun.wait(LIMIT_S)
            waits(turns, 2)
            lanes.append(pool.submit(begins))
            order.append("a step")
        order.append("the next step")
    for future in lanes:
        future.result(LIMIT_S)
    assert order[0] == "a step"
    assert set(order[1:3]) == {"alone", "alone too"}
    assert set(order[3:]) == {"the next step", "another lane"}


def test_nothing_is_beside_what_is_alone(interrupt: Interrupt, pool: ThreadPoolExecutor) -> None:
    turns, at_work, met = Turns(LANES, {Case("quiet")}), set[int](), list[tuple[bool, int]]()
    begin = threading.Barrier(4)

    def lane(number: int) -> None:
        begin.wait(LIMIT_S)
        for _ in range(50):
            with turns.working(interrupt):
                for alone in (False, False, True):
                    with turns.taken(alone, interrupt):
                        at_work.add(number)
                        met.append((alone, len(at_work)))
                        threading.Event().wait(0.0002)
                        met.append((alone, len(at_work)))
                        at_work.remove(number)

    for future in [pool.submit(lane, number) for number in range(4)]:
        future.result(LIMIT_S)
    assert {beside for alone, beside in met if alone} == {1}
    assert max(beside for alone, beside in met if not alone) > 1
    assert len(met) == 4 * 50 * 3 * 2


def takes_a_turn(turns: Turns, interrupt: Interrupt) -> None:
    with turns.working(interrupt), turns.taken(True, interrupt):
        pass


def test_a_lane_that_fails_hands_its_turn_back(interrupt: Interrupt, pool: ThreadPoolExecutor) -> None:
    turns = Turns(LANES[:2], {Case("quiet")})
    for alone in (True, False):
        with pytest.raises(OSError, match="gone"), turns.working(interrupt), turns.taken(alone, interrupt):
            raise OSError("the process is gone")
        pool.submit(takes_a_turn, turns, interrupt).result(LIMIT_S)


def test_ctrl_c_ends_the_wait_for_a_turn(interrupt: Interrupt, pool: ThreadPoolExecutor) -> None:
    turns, own = Turns(LANES[:2], {Case("quiet")}), Interrupt()
    with contextlib.closing(own), turns.working(interrupt):
        waiting = pool.submit(takes_a_turn, turns, own)
        waits(turns, 1)
        own.set()
        with pytest.raises(KeyboardInterrupt):
            waiting.result(LIMIT_S)
        with turns.taken(False, interrupt):
            pass  # nobody is waited for any more
    pool.submit(takes_a_turn, turns, interrupt).result(LIMIT_S)
