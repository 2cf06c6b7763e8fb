"""The figures of docs/evidence.md, measured again: `python -m tests.acceptance` on a machine with a GPU.

Each part is a module with one function, `run(scratch) -> list[Table]`; what has to hold stands in `limits`.
"""
