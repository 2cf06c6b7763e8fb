"""What a GPUProfiler has measured.

document  the nouns of `regress.profile/1`, and how it is read and written
lines     its tables, as the profiler and `regress profile` print them

Only the standard library is used, for this is imported into programs that are profiled.
"""

from __future__ import annotations

from regress.profiles.document import SCHEMA, Bottleneck, Entry, Kernel, Operation, Profile, Variant, read, write

__all__ = ["SCHEMA", "Bottleneck", "Entry", "Kernel", "Operation", "Profile", "Variant", "read", "write"]
