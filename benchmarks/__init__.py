"""The suite of this repository: CUDA operations, the same operations on the CPU, and our own hot paths."""
