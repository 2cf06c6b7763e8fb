"""The processes of one visit, one a rank: asked as if they were a single one.

They meet through the driver (see `regress.measure.ranks`), so it always knows which of them have arrived. If one fails, all
end: the others might wait in a collective forever, so they are asked where they are, and ended.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from regress.measure.wire import STACK_SIGNAL, TRACKED, Broken, Meeting, Meets, Proposal, Rank, WrongCode
from regress.model import Failure, Measured, Round
from regress.run.servers import Died, Server, TimedOut, arriving

SETTLE_S = 1.0
"""How long the others may still report after one rank has failed: usually all fail alike."""
STACK_S, STACK_POLL_S = 2.0, 0.05
STACK = re.compile(r"^(?:Current thread|Thread) 0x\w+.*\(most recent call first\):\n((?:  File .*\n)+)", re.MULTILINE)
FRAME = re.compile(r'  File "(.*)", line (\d+) in (.*)')


@contextlib.contextmanager
def free_port() -> Iterator[int]:
    """A port of this host that nobody else gets while the block runs: it is bound, but nobody listens, and a program that asks
    for this very port, as torch's store does, can bind it again."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


class Ranks:
    """Processes that visit a case together. Use it as a context manager: leaving it ends them.

    `start` starts the process of a rank, as many as `size`, which share `gpus` devices; `suite` is the folder of the
    benchmarks."""

    def __init__(self, start: Callable[[Rank], Server], size: int, gpus: int, suite: Path) -> None:
        self._suite = suite
        self.servers: list[Server] = []
        with contextlib.ExitStack() as ending:
            port = ending.enter_context(free_port())
            for number in range(size):
                self.servers.append(ending.enter_context(start(Rank(number, size, port, gpus))))
            self._ending = ending.pop_all()

    def __enter__(self) -> Ranks:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.__exit__(kind, error, trace)

    def send(self, message: Any) -> None:
        """Raises Died if one of them has ended."""
        for number, server in enumerate(self.servers):
            try:
                server.send(message)
            except Died as died:
                raise self._died(number, died, {}) from None

    def strange(self, written: object) -> Died:
        """The error for a message from one of them that is no answer."""
        return self.servers[0].strange(written)

    def receive(self, timeout_s: float) -> Any:
        """What all of them say, as one message; `Broken` if they do not say the same. Raises TimedOut and Died, which name
        the ranks that are missing and what the others do."""
        deadline = time.monotonic() + timeout_s
        while True:
            said: dict[int, Any] = {}
            try:
                self._hear(said, deadline)
            except TimedOut:
                raise TimedOut(timeout_s, *self._standing(said)) from None
            except Died as died:
                dead = next(number for number, server in enumerate(self.servers) if server.ended)
                raise self._died(dead, died, said) from None
            meets = [message for _, message in sorted(said.items()) if isinstance(message, Meets)]
            if len(meets) < len(self.servers) or len({meet.where for meet in meets}) > 1:
                return self._together(said)
            self.send(Meeting([meet.values for meet in meets]))

    # -- one message of each ---------------------------------------------------------------------------------------------

    def _hear(self, said: dict[int, Any], deadline: float) -> None:
        """By rank, in the order of arrival: what each says next; if one has failed, what the others say soon after.
        A rank that ends while it waits for the others ends them too: they may wait for it in a collective."""
        for server, message in arriving(self.servers, max(0.0, deadline - time.monotonic()), self.servers):
            said[self.servers.index(server)] = message
            if _failure(message) is not None:
                break
        rest = [server for number, server in enumerate(self.servers) if number not in said]
        with contextlib.suppress(TimedOut):
            for server, message in arriving(rest, SETTLE_S):
                said[self.servers.index(server)] = message

    def _together(self, said: Mapping[int, Any]) -> Any:
        """One message for what each of them has said."""
        failed = next((number for number in said if _failure(said[number]) is not None), None)
        if failed is None:
            alike = len(said) == len(self.servers) and len({type(message) for message in said.values()}) == 1
            if alike and not isinstance(said[0], Meets):
                return merged([said[number] for number in sorted(said)])
            where, stacks = self._standing(said)
            return Broken(Failure("error", f"its ranks have parted: {where}", detail=stacks))
        if isinstance(said[failed], WrongCode):
            return said[failed]
        failure = _failure(said[failed])
        assert failure is not None
        others = [_failure(said.get(number)) for number in range(len(self.servers))]
        if failure.kind == "skipped" or all(other is not None and other.message == failure.message for other in others):
            return Broken(failure)
        where, stacks = self._standing(said, failed)
        message = f"rank {failed}: {failure.message}; {where}"
        return Broken(Failure(failure.kind, message, failure.where, failure.detail + stacks))

    def _died(self, number: int, died: Died, said: Mapping[int, Any]) -> Died:
        where, stacks = self._standing(said, number)
        return Died(died.returncode, died.log + stacks, f"rank {number} ", f"; {where}")

    # -- where the others are --------------------------------------------------------------------------------------------

    def _standing(self, said: Mapping[int, Any], without: int | None = None) -> tuple[str, str]:
        """Where each rank is, but for one: in a few words, and the stacks of those that are at work."""
        words, stacks = [], []
        for number, server in enumerate(self.servers):
            if number == without:
                continue
            message = said.get(number)
            failure = _failure(message)
            if isinstance(message, Meets):
                words.append(f"rank {number} waits for the others ({message.where})")
            elif failure is not None:
                words.append(f"rank {number}: {failure.message}")
            elif message is not None:
                words.append(f"rank {number} has ended its visit")
            else:
                stack = stack_of(server)
                words.append(f"rank {number} {_innermost(stack, self._suite)}")
                stacks.append(f"\nrank {number}, most recent call first:\n{stack}" if stack else "")
        return ", ".join(words), "".join(stacks)


def stack_of(server: Server) -> str:
    """Where the main thread of a rank is, as its interpreter says, the innermost frame first; empty if it does not answer."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(server.opened.pid, STACK_SIGNAL)
    deadline, before = time.monotonic() + STACK_S, ""
    while time.monotonic() < deadline and not server.ended:
        time.sleep(STACK_POLL_S)
        stacks = STACK.findall(text := server.log())
        if stacks and text == before:
            return str(stacks[-1])
        before = text
    return ""


def _innermost(stack: str, suite: Path) -> str:
    """The function that it is in, and the line of the suite from which that was called."""
    frames = FRAME.findall(stack)
    if not frames:
        return "does not say where it is"
    own = next(((file, line) for file, line, _ in frames if Path(file).is_relative_to(suite)), frames[0][:2])
    return f"is in {frames[0][2]} ({Path(own[0]).name}:{own[1]})"


def _failure(message: Any) -> Failure | None:
    """Why a rank cannot go on; None if it can."""
    if isinstance(message, WrongCode):
        return Failure("error", message.module)
    failure: Failure | None = getattr(message, "failure", None)
    return failure


# -- one message of many -------------------------------------------------------------------------------------------------


def merged(said: Sequence[Any]) -> Any:
    """What messages of one kind, in the order of the ranks, say together: the values of the slowest, and how far they are
    apart. A number that the benchmark has returned is the first rank's."""
    first = said[0]
    if isinstance(first, (Proposal, Round)):
        flags = list(dict.fromkeys(flag for reply in said for flag in reply.flags))
        first = replace(first, values=_largest([reply.values for reply in said]), flags=flags)
    if isinstance(first, Proposal):
        leaves = list(dict.fromkeys(name for reply in said for name in reply.leaves))
        return replace(
            first,
            seconds=max(reply.seconds for reply in said),
            leaves=leaves,
            host_bytes=sum(reply.host_bytes for reply in said),
            device_share=max(reply.device_share for reply in said),
        )
    if isinstance(first, Round):
        return replace(
            first, duration_s=max(reply.duration_s for reply in said), facts=_facts([reply.facts for reply in said])
        )
    return first


def _largest(values: Sequence[Mapping[str, Measured]]) -> dict[str, Measured]:
    """By metric, what all have measured."""
    names = [name for name in values[0] if all(name in of_rank for of_rank in values)]
    return {
        name: values[0][name]
        if name == TRACKED
        else max((of_rank[name] for of_rank in values), key=lambda value: value.value)
        for name in names
    }


def _facts(facts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Those of the first rank, and what is wrong with any device; the slowest clock; what each rank has worked itself."""
    whole: dict[str, Any] = {**facts[0], "ranks": len(facts)}
    for name in ("throttled", "foreign_processes"):
        if words := list(dict.fromkeys(word for of_rank in facts for word in of_rank.get(name, ()))):
            whole[name] = words
    if clocks := [of_rank["sm_clock_hz"] for of_rank in facts if "sm_clock_hz" in of_rank]:
        whole["sm_clock_hz"] = min(clocks)
    own = [of_rank["own_s"] for of_rank in facts if "own_s" in of_rank]
    if len(own) == len(facts):
        whole["own_s"], whole["skew_s"] = own, max(own) - min(own)
    return whole
