"""Makes SQLite exports as Nsight Systems would. Not recorded: written after the documented schema (Exported data, SQLite schema
reference), with the columns that recordings of 2024 have, so that the reader can be tested where the tool is not installed."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

TABLES = """
StringIds: id! value!
TARGET_INFO_GPU: vmId! id! name busLocation totalMemory smCount
CUPTI_ACTIVITY_KIND_KERNEL: start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid demangledName!
    shortName! mangledName launchType cacheConfig registersPerThread! gridX! gridY! gridZ! blockX! blockY! blockZ!
    staticSharedMemory! dynamicSharedMemory! localMemoryPerThread! localMemoryTotal! gridId! sharedMemoryExecuted graphNodeId
CUPTI_ACTIVITY_KIND_MEMCPY: start! end! deviceId! contextId! streamId! correlationId globalPid bytes! copyKind! srcKind dstKind
    srcDeviceId srcContextId dstDeviceId dstContextId migrationCause graphNodeId
CUPTI_ACTIVITY_KIND_MEMSET: start! end! deviceId! contextId! streamId! correlationId globalPid value! bytes! graphNodeId memKind
CUPTI_ACTIVITY_KIND_RUNTIME: start! end! eventClass! globalTid correlationId nameId! returnValue! callchainId
CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: start! end! deviceId! contextId! streamId! correlationId globalPid syncType! eventId!
CUPTI_ACTIVITY_KIND_GRAPH_TRACE: start! end! deviceId! contextId! streamId! correlationId globalPid graphId graphExecId
PROFILER_OVERHEAD: start! end! globalTid nameId! returnValue!
NVTX_EVENTS: start! end eventType! rangeId category color text globalTid endGlobalTid textId domainId
"""
"""Columns of each table; with a mark those that are never NULL."""
SCHEMA = {
    name: columns.split()
    for name, columns in (word.split(":") for word in re.split(r"\n(?=\w)", TABLES) if word.strip())
}
TID = (5 << 24 | 99) << 24 | 101
"""Of thread 101 of process 99 on machine 5, as the export numbers them."""
PID = TID & ~0xFFFFFF


class Export:
    """An export that is being written; tables are made when the first row comes, as the tool does."""

    def __init__(self, path: Path, leave_out: Iterable[str] = ()) -> None:
        self.path = path
        self._database = sqlite3.connect(path)
        self._leave_out = set(leave_out)
        self._strings: dict[str, int] = {}

    def add(self, table: str, **values: object) -> None:
        columns = {column.rstrip("!"): column.endswith("!") for column in SCHEMA[table]}
        assert set(values) <= set(columns), set(values) - set(columns)
        kept = [column for column in columns if column not in self._leave_out]
        definitions = [f"{column} NOT NULL" if columns[column] else column for column in kept]
        self._database.execute(f"CREATE TABLE IF NOT EXISTS {table} ({', '.join(definitions)})")
        row = [values.get(column, 0 if columns[column] else None) for column in kept]
        self._database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)

    def string(self, value: str) -> int:
        if value not in self._strings:
            self._strings[value] = 1000 + len(self._strings)
            self.add("StringIds", id=self._strings[value], value=value)
        return self._strings[value]

    def kernel(self, name: str, start: int, end: int, *, correlation: int = 0, pid: int = PID, **more: object) -> None:
        number, short = self.string(name), self.string(name.partition("<")[0])
        sizes: dict[str, object] = {
            "gridX": 4,
            "gridY": 2,
            "gridZ": 1,
            "blockX": 128,
            "blockY": 1,
            "blockZ": 1,
            "registersPerThread": 40,
        }
        place: dict[str, object] = {
            "start": start,
            "end": end,
            "streamId": 7,
            "correlationId": correlation,
            "globalPid": pid,
        }
        self.add(
            "CUPTI_ACTIVITY_KIND_KERNEL", **{**place, **sizes, "demangledName": number, "shortName": short, **more}
        )

    def call(self, name: str, start: int, end: int, *, correlation: int = 0, tid: int = TID) -> None:
        self.add(
            "CUPTI_ACTIVITY_KIND_RUNTIME",
            start=start,
            end=end,
            globalTid=tid,
            correlationId=correlation,
            nameId=self.string(name),
        )

    def finish(self) -> Path:
        self._database.commit()
        self._database.close()
        return self.path


def two_calls(path: Path, leave_out: Sequence[str] = ()) -> Path:
    """Two marked calls, each a kernel, a memset and a copy to the host that is waited for; and a warm-up before."""
    export = Export(path, leave_out)
    export.add("TARGET_INFO_GPU", id=0, name="NVIDIA H200")
    for index, start in enumerate((1_000_000, 2_000_000, 3_000_000)):
        if index:
            export.add(
                "NVTX_EVENTS", start=start, end=start + 100_000, eventType=59, text="regress.call", globalTid=TID
            )
        first = 10 * index
        export.call("cudaLaunchKernel_v7000", start + 1_000, start + 5_000, correlation=first)
        export.kernel(
            "void gelu<float>(float *)", start + 10_000, start + 30_000, correlation=first, dynamicSharedMemory=512
        )
        place = {"deviceId": 0, "streamId": 7, "globalPid": PID}
        export.call("cudaMemsetAsync_v3020", start + 6_000, start + 8_000, correlation=first + 1)
        sets = {"start": start + 30_000, "end": start + 32_000, "correlationId": first + 1, "bytes": 4096, "memKind": 2}
        export.add("CUPTI_ACTIVITY_KIND_MEMSET", **sets, **place)
        export.call("cudaMemcpyAsync_v3020", start + 9_000, start + 12_000, correlation=first + 2)
        copied = {
            "start": start + 40_000,
            "end": start + 45_000,
            "correlationId": first + 2,
            "bytes": 1024,
            "copyKind": 2,
        }
        export.add("CUPTI_ACTIVITY_KIND_MEMCPY", **copied, srcKind=2, dstKind=1, **place)
        export.call("cudaStreamSynchronize_v3020", start + 13_000, start + 47_000, correlation=first + 3)
        waited = {"start": start + 13_500, "end": start + 46_500, "correlationId": first + 3, "syncType": 3}
        export.add("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", **waited, streamId=7)
    return export.finish()
