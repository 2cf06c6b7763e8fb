"""Settings of the loaded frameworks that change what an operation computes with, and so how long it takes.

They are read for the record, and put back after a case that changes them. Reading imports nothing and initialises no device.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Tuple

MIXED = "mixed"
"""What torch refuses to name: its older and its newer interface were used for one setting, and contradict each other."""

DETERMINISTIC = ("off", "warn", "on")
"""torch's three modes, by their numbers."""


@dataclass(frozen=True)
class PrecisionSetting:
    """One setting of a framework. `read` and `write` take the framework's module."""

    name: str
    framework: str
    read: Callable[[Any], Any]
    write: Callable[[Any, Any], object]


def _attribute(name: str, framework: str, path: str) -> PrecisionSetting:
    """A setting that is an attribute, by its dotted path within the framework."""
    holder, _, attribute = path.rpartition(".")

    def owner(module: Any) -> Any:
        for part in holder.split("."):
            module = getattr(module, part)
        return module

    return PrecisionSetting(
        name,
        framework,
        lambda module: getattr(owner(module), attribute),
        lambda module, value: setattr(owner(module), attribute, value),
    )


def _jax(name: str, key: str) -> PrecisionSetting:
    return PrecisionSetting(
        name, "jax", lambda jax: getattr(jax.config, key), lambda jax, value: jax.config.update(key, value)
    )


SETTINGS: Tuple[PrecisionSetting, ...] = (
    # In the order of writing: what comes first moves what comes later (true, "medium", "tf32" are three grains of one thing).
    _attribute("tf32_matmul", "torch", "backends.cuda.matmul.allow_tf32"),
    PrecisionSetting(
        "float32_matmul",
        "torch",
        lambda torch: torch.get_float32_matmul_precision(),
        lambda torch, value: torch.set_float32_matmul_precision(value),
    ),
    _attribute("tf32_cudnn", "torch", "backends.cudnn.allow_tf32"),
    _attribute("fp32_precision", "torch", "backends.fp32_precision"),
    _attribute("fp32_precision_cudnn", "torch", "backends.cudnn.fp32_precision"),
    _attribute("fp32_precision_matmul", "torch", "backends.cuda.matmul.fp32_precision"),
    _attribute("fp32_precision_conv", "torch", "backends.cudnn.conv.fp32_precision"),
    _attribute("fp32_precision_rnn", "torch", "backends.cudnn.rnn.fp32_precision"),
    _attribute("fp32_precision_mkldnn", "torch", "backends.mkldnn.matmul.fp32_precision"),
    _attribute("bf16_reduction", "torch", "backends.cuda.matmul.allow_bf16_reduced_precision_reduction"),
    _attribute("fp16_reduction", "torch", "backends.cuda.matmul.allow_fp16_reduced_precision_reduction"),
    _attribute("fp16_accumulation", "torch", "backends.cuda.matmul.allow_fp16_accumulation"),
    _attribute("cudnn", "torch", "backends.cudnn.enabled"),
    _attribute("cudnn_benchmark", "torch", "backends.cudnn.benchmark"),
    _attribute("cudnn_deterministic", "torch", "backends.cudnn.deterministic"),
    PrecisionSetting(
        "deterministic",
        "torch",
        lambda torch: DETERMINISTIC[torch.get_deterministic_debug_mode()],
        lambda torch, value: torch.use_deterministic_algorithms(value != "off", warn_only=value == "warn"),
    ),
    PrecisionSetting(
        "default_dtype",
        "torch",
        lambda torch: torch.get_default_dtype(),
        lambda torch, value: torch.set_default_dtype(value),
    ),
    PrecisionSetting(
        "grad",
        "torch",
        lambda torch: torch.is_grad_enabled(),
        lambda torch, value: torch.set_grad_enabled(value),
    ),
    PrecisionSetting(
        "threads",
        "torch",
        lambda torch: torch.get_num_threads(),
        lambda torch, value: torch.set_num_threads(value),
    ),
    _jax("jax_matmul_precision", "jax_default_matmul_precision"),
    _jax("jax_x64", "jax_enable_x64"),
    PrecisionSetting("numpy_errors", "numpy", lambda numpy: numpy.geterr(), lambda numpy, value: numpy.seterr(**value)),
)


def flags() -> Dict[str, Any]:
    """Every setting that the loaded frameworks have, by name, as JSON can hold it. One that is torn is "mixed"."""
    return {name: _plain(value) for name, value in _read().items()}


@contextlib.contextmanager
def restored_flags() -> Iterator[List[str]]:
    """Put back what is changed while this is open. The list holds, once it is closed, the names of what was changed."""
    before = _read()
    changed: List[str] = []
    try:
        yield changed
    finally:
        after = _read()
        changed += [name for name, value in before.items() if after.get(name) != value]
        if changed:
            _write(before)


def _read() -> Dict[str, Any]:
    with _legacy_allowed():
        return {setting.name: value for setting in SETTINGS for value in _value(setting)}


def _write(values: Dict[str, Any]) -> None:
    with _legacy_allowed():
        for setting in SETTINGS:
            # Looked at again each time: an earlier one may have moved it, or put it right already.
            if values.get(setting.name, MIXED) not in (MIXED, *_value(setting)):
                with contextlib.suppress(AttributeError, RuntimeError):
                    setting.write(sys.modules[setting.framework], values[setting.name])


def _value(setting: PrecisionSetting) -> Tuple[Any, ...]:
    """The setting's value; nothing if the framework is not loaded or has no such setting."""
    module = sys.modules.get(setting.framework)
    try:
        return () if module is None else (setting.read(module),)
    except AttributeError:
        return ()  # another version of the framework, or one whose import failed half way
    except RuntimeError:
        return (MIXED,)


@contextlib.contextmanager
def _legacy_allowed() -> Iterator[None]:
    """torch warns about its older interface, which is the only one that some versions have."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value).rpartition(".")[2]
