"""Which rounds of base and head are about the same case, and whether they were measured alike."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from regress.compare.evidence import Evidence
from regress.model import (
    DECLARED_SAMPLING,
    HOST_IDENTITY,
    HOST_METRICS,
    PROTOCOL_IDENTITY,
    Benchmark,
    Case,
    Round,
    declared_words,
    old_names,
)

Benchmarks = Mapping[str, Benchmark]


@dataclass(frozen=True)
class Suites:
    """The definitions of both sides. Without `base_given` those of head are taken for both.

    `renamed` has the old name of each benchmark that base knows under another name. A case bears its name on head.
    """

    head: Benchmarks
    base_given: Benchmarks | None = None
    renamed: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, head: Benchmarks, base_given: Benchmarks | None, measured_on_base: Iterable[str] = ()) -> Suites:
        """With the renamed benchmarks among those that base knows or that were measured there."""
        return cls(head, base_given, renames(head, {*measured_on_base, *(base_given or {})}))

    @property
    def base(self) -> Benchmarks:
        return self.head if self.base_given is None else self.base_given

    def pair(self, base: Iterable[Round], head: Iterable[Round]) -> list[tuple[Case, list[Round], list[Round]]]:
        """The rounds of each case on base and on head, either may be empty, by name and then as the suite orders its cases."""
        bases, heads = _by_case(base, lambda round: self.on_head(Case.of(round))), _by_case(head, Case.of)
        cases = sorted(bases.keys() | heads.keys(), key=lambda case: place(case, self.definition(case)))
        return [(case, bases.get(case, []), heads.get(case, [])) for case in cases]

    def definition(self, case: Case) -> Benchmark | None:
        return self.head.get(case.name) or self._on_base(case)

    def _on_base(self, case: Case) -> Benchmark | None:
        return self.base.get(self.renamed.get(case.name, case.name))

    def is_defined(self, case: Case, side: str) -> bool:
        """Whether each side's own definitions are known, and those of `side` have the case."""
        benchmark = self.head.get(case.name) if side == "head" else self._on_base(case)
        if self.base_given is None or benchmark is None or len(benchmark.params) != len(case.params):
            return False
        if list(case.params) in benchmark.lacks:
            return False
        # In any axis: the axes of base may stand in another order.
        return all(any(value in axis for axis in benchmark.params) for value in case.params)

    def differences(self, case: Case) -> list[str]:
        """Why results of base and head are not results of the same benchmark, in words; empty if they are."""
        base, head = self._on_base(case), self.head.get(case.name)
        if base is None or head is None:
            return []
        differences: list[str] = []
        # asv's version is a hash of the code with its name in it; that the code is the same under both names, `was` says.
        if case.name not in self.renamed:
            differences += filter(None, [code_differs(base, head)])
        if params := self.params_differ(case):
            differences.append(params)
        for name in DECLARED_SAMPLING:
            one, other = base.declared.get(name), head.declared.get(name)
            if one != other:
                differences.append(_differ(f"declared {name}", _or_none(one), _or_none(other)))
        return differences

    def params_differ(self, case: Case) -> str:
        """How base and head name the parameters of the benchmark, if they name other ones; else empty."""
        base, head = self._on_base(case), self.head.get(case.name)
        if base is None or head is None or sorted(base.param_names) == sorted(head.param_names):
            return ""
        return _differ("parameters", ", ".join(base.param_names) or "none", ", ".join(head.param_names) or "none")

    def on_head(self, on_base: Case) -> Case:
        """A case of base under its name on head, its parameters in the order in which head names them."""
        now = next((new for new, old in self.renamed.items() if old == on_base.name), on_base.name)
        case = Case(now, on_base.params)
        base, head = self.base.get(on_base.name), self.head.get(now)
        if base is None or head is None or base.param_names == head.param_names:
            return case
        named = dict(zip(base.param_names, on_base.params, strict=False))
        if len(named) != len(on_base.params) or sorted(named) != sorted(head.param_names):
            return case
        return Case(now, tuple(named[name] for name in head.param_names))


def code_differs(base: Benchmark, head: Benchmark) -> str:
    """That the code of a benchmark is not the same, and in which files; empty where it is."""
    if not (base.uses and head.uses):
        same = base.version == head.version
        return "" if same else "version differs: the code of the benchmark differs between the sides"
    files = sorted(file for file in base.uses.keys() | head.uses.keys() if base.uses.get(file) != head.uses.get(file))
    return f"the code of the benchmark differs between the sides: {', '.join(files)}" if files else ""


def place(case: Case, definition: Benchmark | None) -> tuple[str, list[int], Case]:
    """What cases are sorted by: their name, then as the suite orders its parameters, whenever they were measured."""
    axes = definition.params if definition is not None and len(definition.params) == len(case.params) else []
    return case.name, [_index(axis, value) for axis, value in zip(axes, case.params, strict=False)], case


def renames(head: Benchmarks, base_names: Collection[str]) -> dict[str, str]:
    """Of each benchmark of head that base has under another name, which the author declares with `was`: that old name.

    What base has under its name of today was not renamed. An old name that head has too, or that several benchmarks of head
    claim, is nobody's.
    """
    claims: dict[str, list[str]] = {}
    for benchmark in head.values():
        claimed = old_names(benchmark.name, declared_words(benchmark, "was"))
        old = next((name for name in claimed if name in base_names and name not in head), None)
        if old is not None and benchmark.name not in base_names:
            claims.setdefault(old, []).append(benchmark.name)
    return {names[0]: old for old, names in claims.items() if len(names) == 1}


def unlike(base: Evidence, head: Evidence, metric: str) -> list[str]:
    """How the good rounds of a case were measured differently, in what affects the metric, in words; empty if alike."""
    differences = []
    for name in (*PROTOCOL_IDENTITY, *(HOST_IDENTITY if metric in HOST_METRICS else ())):
        one, other = _protocol_values(base, name), _protocol_values(head, name)
        if len({*one, *other}) > 1:
            differences.append(_differ(f"protocol ({name})", " and ".join(one), " and ".join(other)))
    return differences


def _protocol_values(side: Evidence, name: str) -> list[str]:
    return sorted({str(getattr(round.protocol, name, "unknown")) for round in side.good})


def _differ(what: str, base: str, head: str) -> str:
    return f"different {what}: {base} on the base, {head} on the head"


def _or_none(value: object) -> str:
    return "none" if value is None else str(value)


def _by_case(rounds: Iterable[Round], case_of: Callable[[Round], Case]) -> dict[Case, list[Round]]:
    groups: dict[Case, list[Round]] = {}
    for round in rounds:
        groups.setdefault(case_of(round), []).append(round)
    return groups


def _index(axis: Sequence[str], value: str) -> int:
    return axis.index(value) if value in axis else len(axis)
