"""The suite of this repository: CUDA operations, the same kinds of operation on the CPU, and our own hot paths.

    elementwise, reductions, matmul, embedding, attention   operations by what bounds them
    autograd, optimizer                                     the parts of a training step
    transfers, bandwidth, allocation                        memory: between host and device, on the device, from the driver
    wrapper, scaling, cold_start                            against a reference: raw torch, NumPy and float64, the warm state
    cupy_arrays, jax_arrays                                 other libraries; skipped where they are not installed
    cpu, hot_paths                                          no GPU needed
    common                                                  what the files share; no benchmark is in it

versus/ is no part of the suite: a script there times whole runs against asv's.

`cudatime_*` is timed on the device and `cudacold_*` from a fresh process; both are skipped without a GPU. `time_*` is timed by
the host's clock, `track_*` returns its number. The tag `core` is on a few minutes' worth of them from every part.
"""
