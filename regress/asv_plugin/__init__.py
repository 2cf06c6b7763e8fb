"""The benchmark types as a plugin of asv, importable as `asv_bench_regress`.

asv_runner imports `NAME/benchmarks/*.py` of every installed distribution whose name starts with `asv_bench`.
"""
