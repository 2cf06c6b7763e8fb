"""The configuration: asv.conf.json with our settings under its key "regress".

finding        finds and reads the file
reading        from there to a Config
configuration  the Config
repository     the local repository, or the address, that "repo" means
settings       our settings, and the values each accepts
cluster        the kinds of nodes that `--on` measures on
environments   those that the file names, and those of asv's
places         where the program reads and writes
values         single values, checked and shown

asv's own keys keep asv's meaning and defaults, and paths are relative to the file's folder. Keys that neither knows are left
to asv, which ignores them. Under "regress", an unknown key is an error.
"""

from __future__ import annotations

from regress.config.cluster import kinds_of
from regress.config.configuration import Config
from regress.config.environments import environment
from regress.config.finding import find
from regress.config.places import (
    acks_file,
    cache_dir,
    cache_in_tree,
    clone_dir,
    effective,
    environments_dir,
    lock_dir,
    own_paths,
    usual_cache,
    written_folders,
)
from regress.config.reading import load, with_overrides

__all__ = [
    "Config",
    "acks_file",
    "cache_dir",
    "cache_in_tree",
    "clone_dir",
    "effective",
    "environment",
    "environments_dir",
    "find",
    "kinds_of",
    "load",
    "lock_dir",
    "own_paths",
    "usual_cache",
    "with_overrides",
    "written_folders",
]
