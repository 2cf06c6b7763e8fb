"""regress: performance regression tracking for CUDA code on ordinary asv suites."""

__version__ = "0.1.0.dev0"
