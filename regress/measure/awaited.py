"""Benchmarks of coroutines: what is declared with `async def` is awaited, in an event loop of its own for each visit.

To enter a loop and to leave it takes 9 us, an await 0.08. So a window enters it once, and its clock is read inside: of the
loop, a number has only what the call itself asks of it.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from typing import Any, Callable, ContextManager, Iterator, Optional, Tuple


class Awaited:
    """A coroutine function, or one that wraps one, as a function that comes back when it is done."""

    def __init__(self, function: Callable[..., Any], loop: Any) -> None:
        self.function, self._loop = function, loop

    def __call__(self, *params: Any) -> Any:
        return self.enter(self.once(*params))

    async def once(self, *params: Any) -> Any:
        """A call, within the loop."""
        result = self.function(*params)
        return await result if inspect.isawaitable(result) else result

    def call(self, params: Tuple[Any, ...], called: Optional[Callable[[], None]]) -> AwaitedCall:
        """A call with these parameters; `called` is told of each."""
        if called is None and inspect.iscoroutinefunction(self.function):
            return AwaitedCall(self.enter, functools.partial(self.function, *params))

        async def once() -> Any:
            if called is not None:
                called()
            return await self.once(*params)

        return AwaitedCall(self.enter, once)

    def enter(self, coroutine: Any) -> Any:
        """What the coroutine returns, which is run in the loop."""
        return self._loop.run_until_complete(coroutine)


class AwaitedCall:
    """A call of an awaited function with its parameters: `once` within the loop, `enter` to get there."""

    def __init__(self, enter: Callable[[Any], Any], once: Callable[[], Any]) -> None:
        self.enter, self.once = enter, once

    def __call__(self) -> Any:
        return self.enter(self.once())


def awaiting(benchmark: Any) -> ContextManager[None]:
    """While it is open, calls of the benchmark and its setup and teardown come back when they are done, also where they are
    coroutine functions. Raises TypeError for generator functions: calling one runs nothing."""
    cached = [benchmark._setup_cache] if benchmark._setup_cache is not None else []
    functions = [benchmark.func, *benchmark._setups, *benchmark._teardowns, *cached]
    for function in functions:
        _refuse_generators(function)
    return _in_loop(benchmark) if any(map(_is_coroutine, functions)) else contextlib.nullcontext()


@contextlib.contextmanager
def _in_loop(benchmark: Any) -> Iterator[None]:
    import asyncio  # few suites need it

    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)  # for what a function that is not async makes

    def awaited(function: Any) -> Any:
        return Awaited(function, loop) if _is_coroutine(function) else function

    benchmark.func, benchmark._setup_cache = awaited(benchmark.func), awaited(benchmark._setup_cache)
    benchmark._setups, benchmark._teardowns = [*map(awaited, benchmark._setups)], [*map(awaited, benchmark._teardowns)]
    try:
        yield
    finally:
        try:
            _end(loop)
        finally:
            asyncio.set_event_loop(None)
            loop.close()


def _end(loop: Any) -> None:
    """End what is left in the loop, as `asyncio.run` does."""
    import asyncio

    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.run_until_complete(loop.shutdown_default_executor())


def _is_coroutine(function: Any) -> bool:
    return inspect.iscoroutinefunction(inspect.unwrap(function)) if callable(function) else False


def _refuse_generators(function: Any) -> None:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        name = getattr(function, "__name__", "it")
        raise TypeError(
            f"{name} is a generator function, and calling it runs nothing of it; "
            "fix: call the generator from another function that runs it to its end (for _ in steps(): pass)"
        )
