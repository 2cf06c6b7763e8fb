"""Small timelines and Chrome traces for the tests of this folder."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from regress.traces.timeline import ApiCall, Copy, CopyKind, Launch, Sync, Timeline

US = 1e-6


def near(value: float) -> Any:
    """The value as far as floats have it, in place of a field or of a part of a tuple."""
    return pytest.approx(value)


def launch(name: str, start_us: float, us: float, operator: str = "", shapes: str = "", **more: Any) -> Launch:
    operators = tuple(operator.split("/")) if operator else ()
    return Launch(name, start_us * US, us * US, operators=operators, shapes=shapes, **more)


def copy(name: str, start_us: float, us: float, size: int, kind: CopyKind = "other", operator: str = "") -> Copy:
    return Copy(name, start_us * US, us * US, kind=kind, bytes=size, operators=(operator,) if operator else ())


def timeline(
    launches: Sequence[Launch] = (),
    copies: Sequence[Copy] = (),
    syncs: Sequence[Sync] = (),
    *,
    span_us: float | None = None,
    calls: int = 1,
    api_calls: Sequence[ApiCall] = (),
) -> Timeline:
    """Of that span, or as long as its work takes; columns in the order of their starts."""
    end_s = max((piece.end_s for piece in (*launches, *copies)), default=0.0) if span_us is None else span_us * US
    return Timeline(
        0.0,
        end_s,
        calls,
        launches=tuple(sorted(launches, key=lambda work: work.start_s)),
        copies=tuple(sorted(copies, key=lambda work: work.start_s)),
        syncs=tuple(syncs),
        api_calls=tuple(api_calls),
    )


def in_turn(*kernels: Launch, span_us: float | None = None, copies: Sequence[Copy] = (), calls: int = 1) -> Timeline:
    """Kernels one after the other without gaps, however they say they start."""
    at, placed = 0.0, []
    for launch in kernels:
        placed.append(
            Launch(
                launch.name,
                at,
                launch.duration_s,
                operators=launch.operators,
                shapes=launch.shapes,
                registers=launch.registers,
            )
        )
        at += launch.duration_s
    return timeline(placed, copies, span_us=span_us, calls=calls)


NAMES = ("void gelu<4>(float*)", "void gelu<8>(float*)", "norm", "sgemm_nn", "softmax", "triton_poi_fused_add_0")
OPERATORS = ("", "aten::gelu", "aten::layer_norm", "aten::mm")


@st.composite
def timelines(draw: st.DrawFn) -> Timeline:
    """Timelines with kernels, copies and waits, some of them side by side."""
    times = st.integers(0, 200).map(float)
    lengths = st.integers(1, 40).map(float)
    shapes = st.sampled_from(("", "[64, 64]"))
    kernels = st.builds(launch, st.sampled_from(NAMES), times, lengths, st.sampled_from(OPERATORS), shapes)
    copied = st.builds(
        copy, st.sampled_from(("Memset (Device)", "Memcpy DtoH (Device -> Pinned)")), times, lengths, st.just(4)
    )
    waits = st.builds(lambda start, us: Sync("cudaStreamSynchronize", start * US, us * US), times, lengths)
    return timeline(
        draw(st.lists(kernels, max_size=12)),
        draw(st.lists(copied, max_size=4)),
        draw(st.lists(waits, max_size=3)),
        span_us=draw(st.integers(240, 400)),
        calls=draw(st.integers(1, 4)),
    )


# -- Chrome traces -------------------------------------------------------------------------------------------------------

ORIGIN = 5020813535681.015
"""Microseconds since the machine started, as traces count."""


def event(cat: str, name: str, ts: float, dur: float, args: dict[str, Any], tid: int = 1) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ORIGIN + ts, "dur": dur, "args": args}


def write_trace(path: Path, events: Sequence[dict[str, Any]], **more: Any) -> Path:
    """As torch writes it; gzipped where the name says so."""
    text = json.dumps({"schemaVersion": 1, "traceEvents": list(events), **more}).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path
