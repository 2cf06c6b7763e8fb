"""What is asked of the loaded frameworks: the stream in use, other streams to work on, and their ways to wait for the device.

Nothing is imported to find out, and no context is opened: a framework counts once it has opened one itself.
"""

from __future__ import annotations

import contextlib
import sys
import types
from typing import Any, Callable, ContextManager, Dict, List, NamedTuple, Optional, Sequence, Tuple

Lane = ContextManager[object]
Reader = Callable[[], int]
Maker = Callable[[List[Lane], int], int]
"""Appends the context in which another stream is current: a new one, or that of the handle. Returns the stream's handle."""
Hook = Callable[[str, Callable[..., Any], Tuple[Any, ...], Dict[str, Any]], Any]

DEFAULT_STREAM = 0
PER_THREAD_STREAM = 2
"""The driver's handle for the calling thread's own default stream."""

SYNCHRONIZES = (
    ("torch.cuda", "synchronize"),
    ("torch.cuda", "Stream.synchronize"),
    ("torch.cuda", "Event.synchronize"),
    ("torch.accelerator", "synchronize"),
    ("cupy.cuda", "Stream.synchronize"),
    ("cupy.cuda", "ExternalStream.synchronize"),
    ("cupy.cuda", "Event.synchronize"),
    ("cupy.cuda", "Device.synchronize"),
    ("cupy.cuda.runtime", "deviceSynchronize"),
    ("cupy.cuda.runtime", "streamSynchronize"),
    ("cupy.cuda.runtime", "eventSynchronize"),
    ("numba.cuda", "synchronize"),
    ("numba.cuda.cudadrv.driver", "Stream.synchronize"),
    ("numba.cuda.cudadrv.driver", "Event.synchronize"),
    ("warp", "synchronize"),
    ("warp", "synchronize_device"),
    ("warp", "synchronize_stream"),
    ("warp", "synchronize_event"),
    ("regress_scripted", "synchronize"),
)
"""Module and name of every known call that waits for the device. `torch.Stream` and `torch.Event` are missing: they are
written in C, and torch recognizes their instances by the exact type."""


# -- streams -------------------------------------------------------------------------------------------------------------


def current_stream(device: int = 0) -> int:
    """Handle of the stream that the framework in use enqueues into right now; 0, the default stream, if none is in use."""
    return stream_reader(device)()


def stream_reader(device: int = 0) -> Reader:
    """A function that reads the current stream's handle and is cheap enough to be called for every event: which framework is
    asked is settled here. The first of those in use wins: torch, CuPy, numba, Warp."""
    return next(iter(_readers(device).values()), _default_stream)


def in_use(device: int = 0) -> List[str]:
    """Names of the frameworks that have opened their context: "torch", "cupy", "numba", "warp"."""
    return list(_readers(device))


def _readers(device: int) -> Dict[str, Reader]:
    readers = {name: framework.reader(device) for name, framework in _FRAMEWORKS.items()}
    return {name: reader for name, reader in readers.items() if reader is not None}


def _default_stream() -> int:
    return DEFAULT_STREAM


def _torch(device: int) -> Optional[Reader]:
    torch: Any = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return None
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if raw is not None:  # makes no Stream object
        return lambda: int(raw(device))
    return lambda: int(cuda.current_stream(device).cuda_stream)


def _cupy(device: int) -> Optional[Reader]:
    cupy: Any = sys.modules.get("cupy")
    cuda = getattr(cupy, "cuda", None)
    if cuda is None:
        return None

    def read() -> int:
        return int(cuda.get_current_stream().ptr)

    # CuPy does not tell whether it has opened a context; memory in its pool or a stream of its own shows that it is in use.
    used = read() != DEFAULT_STREAM or cupy.get_default_memory_pool().total_bytes() > 0
    return read if used else None


def _numba(device: int) -> Optional[Reader]:
    driver = getattr(sys.modules.get("numba.cuda.cudadrv.driver"), "driver", None)
    if not getattr(driver, "is_initialized", False):
        return None
    # numba has no current stream: where none is given it launches into the default one, of the thread if so configured.
    per_thread = getattr(getattr(sys.modules.get("numba"), "config", None), "CUDA_PER_THREAD_DEFAULT_STREAM", 0)
    return lambda: PER_THREAD_STREAM if per_thread else DEFAULT_STREAM


def _warp(device: int) -> Optional[Reader]:
    warp: Any = sys.modules.get("warp")
    inside = sys.modules.get("warp._src.context") or sys.modules.get("warp.context")
    if warp is None or getattr(inside, "runtime", None) is None or not warp.is_cuda_available():
        return None

    def read() -> int:
        handle = warp.get_stream(f"cuda:{device}").cuda_stream
        return int(getattr(handle, "value", handle) or DEFAULT_STREAM)

    return read


# -- lanes ---------------------------------------------------------------------------------------------------------------

STRIDE = 4
"""Of this many streams that are made, one serves as a lane. Neighbours share a level: on an H100, the mean over 8 neighbours
still varied by 1.5 to 2.4 % from process to process for kernels under 5 us, over every fourth of 32 by 1.0 to 1.4 %."""


def make_lanes(count: int, frameworks: Sequence[str]) -> List[Lane]:
    """As many contexts that make the frameworks in use work on another stream each, the current stream the first of them; only
    that one where a framework cannot be given another stream."""
    here: Lane = contextlib.nullcontext()
    makers = [maker for name in frameworks if (maker := _FRAMEWORKS[name].maker) is not None]
    if not makers or len(makers) < len(frameworks):
        return [here]
    streams = [_Lane(makers) for _ in range(STRIDE * (count - 1))]
    return [here, *streams[STRIDE - 1 :: STRIDE]]


class _Lane:
    """One stream, current in all the frameworks while the context is open. It can be opened again and again."""

    def __init__(self, makers: List[Maker]) -> None:
        first, *others = makers
        self._contexts: List[Lane] = []
        handle = first(self._contexts, 0)
        for make in others:
            make(self._contexts, handle)
        self._open = contextlib.ExitStack()

    def __enter__(self) -> None:
        for context in self._contexts:
            self._open.enter_context(context)

    def __exit__(self, *_: object) -> None:
        self._open.close()


def _torch_lane(contexts: List[Lane], handle: int) -> int:
    cuda = sys.modules["torch"].cuda
    stream = cuda.ExternalStream(handle) if handle else cuda.Stream()
    contexts.append(cuda.stream(stream))
    return int(stream.cuda_stream)


def _cupy_lane(contexts: List[Lane], handle: int) -> int:
    cuda = sys.modules["cupy"].cuda
    stream = cuda.ExternalStream(handle) if handle else cuda.Stream(non_blocking=True)
    contexts.append(stream)
    return int(stream.ptr)


class _Framework(NamedTuple):
    """How a framework is asked for its stream, and given another one."""

    reader: Callable[[int], Optional[Reader]]
    maker: Optional[Maker] = None


_FRAMEWORKS = {
    "torch": _Framework(_torch, _torch_lane),
    "cupy": _Framework(_cupy, _cupy_lane),
    "numba": _Framework(_numba),
    "warp": _Framework(_warp),
}
"""The first that is in use decides which stream is the current one."""


# -- synchronizes --------------------------------------------------------------------------------------------------------


class _Place(NamedTuple):
    """Where callers look up a known synchronize call, or the type that has it as a method."""

    owner: Any
    attribute: str
    name: str
    """What the call is counted under."""
    method: str = ""
    """Replaces the type: a type written in C cannot be changed, so a subclass takes its place."""


def _places() -> List[_Place]:
    """Of the known calls of the loaded frameworks, and of the names under which other modules have imported them. Types that
    can be neither changed nor inherited from are left out."""
    known: List[_Place] = []
    elsewhere: Dict[int, _Place] = {}
    for module_name, path in SYNCHRONIZES:
        owner: Any = sys.modules.get(module_name)
        name, (holder, _, attribute) = f"{module_name}.{path}", path.rpartition(".")
        place = _Place(owner, attribute, name)
        if holder and owner is not None:
            kind = vars(owner).get(holder)
            place = _Place(kind, attribute, name)
            if isinstance(kind, type) and not _settable(kind, attribute):
                if not _inheritable(kind):
                    continue
                place = _Place(owner, holder, name, attribute)
        held = getattr(place.owner, place.attribute, None) if place.owner is not None else None
        missing = held is None or not hasattr(held, place.method or "__call__")
        if missing or not _settable(place.owner, place.attribute):
            continue
        known.append(place)
        if place.owner is owner:  # what a module holds, another one may have imported
            elsewhere[id(held)] = place
    owners = {id(place.owner) for place in known}
    for module in {id(module): module for module in list(sys.modules.values())}.values():  # some have two names
        if not isinstance(module, types.ModuleType) or id(module) in owners:
            continue
        for attribute, value in list(vars(module).items()):
            if id(value) in elsewhere:
                known.append(elsewhere[id(value)]._replace(owner=module, attribute=attribute))
    return known


def _inheritable(kind: type) -> bool:
    try:
        types.new_class(kind.__name__, (kind,))
    except TypeError:
        return False
    return True


def _with_method(kind: type, name: str, function: Callable[..., Any]) -> type:
    """A subclass with another method, for which every instance of the type itself counts as an instance."""

    class Instances(type(kind)):  # type: ignore[misc]  # the base is known at run time only
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, kind)

    return types.new_class(kind.__name__, (kind,), {"metaclass": Instances}, lambda body: body.update({name: function}))


def _settable(owner: Any, attribute: str) -> bool:
    try:
        _replace(owner, attribute, vars(owner).get(attribute, getattr(owner, attribute)))()
    except (AttributeError, TypeError):  # a type that is written in C
        return False
    return True


def _replace(owner: Any, attribute: str, value: Any) -> Callable[[], None]:
    """Set the attribute; the returned function restores exactly what was there, or removes what was only inherited."""
    own = vars(owner)
    inherited, before = attribute not in own, own.get(attribute)
    setattr(owner, attribute, value)
    if inherited:
        return lambda: delattr(owner, attribute)
    return lambda: setattr(owner, attribute, before)


def really(name: str, original: Callable[..., Any], args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
    """The hook that lets every call do what it is there for."""
    return original(*args, **kwargs)


class QuietSynchronizes:
    """While this is open, the known synchronize calls are counted and do nothing, or what `hook` does instead.

    The hook gets the call's name, the function it replaces, and the arguments. `calls` holds the names in order.
    """

    def __init__(self, hook: Optional[Hook] = None) -> None:
        self._hook = hook
        self._undo: List[Callable[[], None]] = []
        self.calls: List[str] = []

    @property
    def count(self) -> int:
        return len(self.calls)

    def __enter__(self) -> QuietSynchronizes:
        for place in _places():
            hidden = getattr(place.owner, place.attribute)
            original = getattr(hidden, place.method) if place.method else hidden
            value: Any = self._stand_in(place.name, original)
            if place.method:
                value = _with_method(hidden, place.method, value)
            self._undo.append(_replace(place.owner, place.attribute, value))
        return self

    def __exit__(self, *_: object) -> None:
        while self._undo:
            self._undo.pop()()

    def _stand_in(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        calls, hook = self.calls, self._hook

        def stand_in(*args: Any, **kwargs: Any) -> Any:
            calls.append(name)
            return hook(name, original, args, kwargs) if hook is not None else None

        return stand_in
