"""Names of kernels, as compilers and libraries make them, and what their words mean.

A profile does not record in what precision a product was computed, or whether on tensor cores, but the names of the libraries'
kernels show it. If they do not, it stays unknown: the name is a hint, never a measurement.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

_ANONYMOUS = re.compile(r"\(anonymous namespace\)::|<unnamed>::|::_GLOBAL__N__\w+(?=::)")
_OPERATOR = re.compile(r"operator\s*(\(\)|<<=?|>>=?|<=>|<=?|>=?|->\*?)")
_WRAPPERS = (
    "cutlass::Kernel",
    "cutlass::Kernel2",
    "cutlass::device_kernel",
    "at::cuda::detail::enable_3x_kernel_for_sm9x",
)
"""Kernels that say in their first template argument alone what they are."""
_WORD = re.compile(r"\b\w+(?!\w|::)")
"""No namespaces."""
_SAY_NOTHING = {
    *("void", "bool", "char", "short", "int", "long", "unsigned", "signed", "float", "double", "Half", "BFloat16"),
    *("const", "true", "false", "operator", "lambda", "instance", "TensorIterator", "TensorIteratorBase"),
}
"""Words that do not show what a kernel does."""
MOST_WORDS = 3
_CLOSES = {")": "(", "]": "[", "}": "{", ">": "<"}


def short(name: str) -> str:
    """The name alone: `void at::native::f<float, 4>(int, T)` -> `at::native::f`.

    Removes template arguments, the return type, parameters and anonymous namespaces. A name without any of these is returned
    as it is; for a wrapper that is the same for every kernel in it, the wrapped kernel is named.
    """
    bare = _bare(name)
    argument = name.partition(f"{bare}<")[2] if bare in _WRAPPERS else ""
    return short(argument) if argument else bare


def labels(names: Iterable[str]) -> dict[str, str]:
    """The short name of each; if several are equal, with the words of its arguments that distinguish it:
    `at::native::elementwise_kernel<…CUDAFunctor_add…>`. Only these words show what such a kernel does, and its full name is
    too long for a table. Names that no words distinguish stay whole."""
    alike: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        alike.setdefault(short(name), []).append(name)
    return {name: label for told, group in alike.items() for name, label in _told_apart(told, group).items()}


def _told_apart(told: str, names: list[str]) -> dict[str, str]:
    """Distinguish first by the words of functions and functors, then by types and numbers too."""
    by_name = dict.fromkeys(names, told)
    kept: dict[str, set[str]] = {name: set() for name in names}
    for spoken in (True, False):
        times = Counter(by_name.values())
        tied = [name for name in names if times[by_name[name]] > 1]
        words = {name: dict.fromkeys(_WORD.findall(name)) for name in tied}
        common = Counter(word for own in words.values() for word in own)
        for name, own in words.items():
            telling = [word for word in own if common[word] < len(tied)]
            rare = sorted((word for word in telling if _speaks(word) or not spoken), key=lambda word: common[word])
            kept[name].update(rare[:MOST_WORDS])
            if kept[name]:
                by_name[name] = f"{told}<…{'…'.join(word for word in own if word in kept[name])}…>"
    times = Counter(by_name.values())
    return {name: label if times[label] == 1 else name for name, label in by_name.items()}


def _speaks(word: str) -> bool:
    return re.fullmatch(r"T?\d+", word) is None and word not in _SAY_NOTHING


def _bare(name: str) -> str:
    text = _ANONYMOUS.sub("", name)
    kept: list[str] = []
    open_brackets: list[str] = []
    at = 0
    while at < len(text):
        operator = _OPERATOR.match(text, at)
        if operator is not None and (at == 0 or not (text[at - 1].isalnum() or text[at - 1] == "_")):
            kept.extend(operator[0] if not open_brackets else "")
            at = operator.end()
            continue
        letter = text[at]
        if letter == "(" and not open_brackets and kept:
            break  # the parameters
        if letter in "(<[{":
            open_brackets.append(letter)
        elif letter in _CLOSES:
            _close(open_brackets, letter, arrow=text[at - 1 : at] == "-")
        elif not open_brackets:
            kept.append(letter)
        at += 1
    words = "".join(kept).split()
    return words[-1] if words else name


def _close(open_brackets: list[str], letter: str, arrow: bool) -> None:
    """A `>` may be a comparison or part of an arrow, so it closes only an open bracket."""
    opening = _CLOSES[letter]
    if letter == ">":
        if not arrow and open_brackets[-1:] == ["<"]:
            open_brackets.pop()
    elif opening in open_brackets:
        while open_brackets.pop() != opening:
            pass


# -- what the words tell -------------------------------------------------------------------------------------------------

_SIMPLE = re.compile(r"elementwise|reduce_kernel|CatArray|copy_kernel|index_kernel", re.IGNORECASE)
_FILLS = re.compile(r"FillFunctor|fill_kernel", re.IGNORECASE)
_TENSOR_CORES = re.compile(
    r"tensorop|wgmma|hmma|warpgroup|s16816|s1688|h16816|tf32|gemm_(bf16|f16|e4m3|s8)|flash|nvjet"
)
_NO_TENSOR_CORES = re.compile(r"sgemm|dgemm|simt|ffma|gemv|gemmSN|gemmk1")
_PRECISIONS = (
    ("TF32", re.compile(r"tf32|s1688gemm_f?32|tensorop_s1688", re.IGNORECASE)),
    ("bfloat16", re.compile(r"bf16|bfloat16|nvjet_(sm\d+_)?t", re.IGNORECASE)),
    ("float16", re.compile(r"(?<!b)f16|fp16|half|h16816|hgemm|nvjet_(sm\d+_)?h", re.IGNORECASE)),
    ("float8", re.compile(r"e4m3|e5m2|fp8", re.IGNORECASE)),
    ("float64", re.compile(r"dgemm|f64|double", re.IGNORECASE)),
    ("float32", re.compile(r"sgemm|f32|float", re.IGNORECASE)),
)
"""The first that fits: names of products hold the type of the sum too, which is float32 for most."""


def is_simple(name: str) -> bool:
    """Whether it is a typical kernel of an unfused program: elementwise, a reduction, a copy."""
    return _SIMPLE.search(name) is not None


def fills(name: str) -> bool:
    """Whether it sets memory to one value."""
    return _FILLS.search(name) is not None


def on_tensor_cores(name: str) -> bool | None:
    """Whether a product runs on tensor cores; None if the name does not show it."""
    if _NO_TENSOR_CORES.search(name):
        return False
    return True if _TENSOR_CORES.search(name) else None


def precision(name: str) -> str:
    """The word for what the factors are: TF32, bfloat16, float16, float8, float64, float32; empty if the name has none."""
    return next((word for word, pattern in _PRECISIONS if pattern.search(name)), "")
