"""asv_runner looks through the modules of this package for `export_as_benchmark`."""
