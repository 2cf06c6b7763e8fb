"""Device-time benchmarks for an unmodified asv."""

from regress.measure.bench_types import export_as_benchmark

__all__ = ["export_as_benchmark"]
