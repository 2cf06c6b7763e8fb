"""A side that is imported from a folder: a git worktree of the commit, the working tree itself, or a wheel that is unpacked.

Its own packages go first on the path, under an interpreter that has what the project needs.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from regress.config import Config, own_paths
from regress.errors import NothingMeasured, RegressError
from regress.model import DEFAULT_ENVIRONMENT, EXISTING, Environment, Side
from regress.run.environments import wheels
from regress.run.environments.builds import build
from regress.run.environments.prepared import BuildSite, Identity, Prepared
from regress.run.plan import covers
from regress.text.wording import first_of

EXTENSIONS = (".so", ".pyd")
COMPILED = (
    ".c",
    ".cc",
    ".cpp",
    ".cxx",
    ".cu",
    ".cuh",
    ".h",
    ".hh",
    ".hpp",
    ".pyx",
    ".pxd",
    ".rs",
    ".f90",
    "setup.py",
    "CMakeLists.txt",
)
"""Endings of files that extensions are compiled from, where no `build_inputs` are declared."""
ASIDE = ("docs", "doc", "tests", "test", "examples")
"""Folders beside the code, packages or not."""
LAYOUTS = ("src", "lib", "python")

BYTECODE = "pycache"
"""The folder of the cache for compiled Python files."""
BYTECODE_SPACE = 1 << 28
"""With fewer bytes free, none are kept: what a suite that imports torch compiles takes some 100 MB."""


def prepare(side: Side, environment: Environment, site: BuildSite, identity: Identity | None = None) -> Prepared:
    """Check the side's code out and build it, or unpack its wheel, if that was not done before, and find what to import.

    `identity` is how asv records the environment, where it has one. Raises BuildFailed (head) or NothingMeasured (base) when
    the build fails, NothingMeasured if there is no interpreter or wheel.
    """
    config, repository = site.config, site.repository
    python = _interpreter(config, environment)
    build_s, lock, lacking = 0.0, None, list[str]()
    if environment.wheel or environment.fetch:
        tree = wheels.unpacked(environment, config.root, python, site.cache / "wheels", site.note)
        roots: tuple[Path, ...] = (tree,)
    else:
        if side.dirty or built_here(side, site):
            tree = repository.root
        else:
            # An environment's builds are for its interpreter and libraries: no other environment meets them.
            own = (
                ""
                if environment.name == DEFAULT_ENVIRONMENT
                else f"-{re.sub(r'[^A-Za-z0-9_.+-]', '_', environment.name)}"
            )
            folder = site.cache / f"worktrees{own}"
            tree = repository.worktrees.get(side.commit, folder, lambda tree, name: matters(tree, name, config))
            lacking = repository.worktrees.lacking(tree)
            repository.worktrees.trim(folder, config.settings.worktrees)
            build_s, lock = build(side, tree, python, environment, site)
        roots = import_roots(tree, config)
    variables = {**_variables(roots, site.cache), **_asvs(side, environment, config), **environment.variables}
    beside = () if repository.is_bare or tree == repository.root else import_roots(repository.root, config)
    in_place = tree == repository.root and not side.dirty
    told: tuple[str, ...] = ()
    if in_place:
        told = (f"{side.name} {side.label} was measured in the working tree, as it is built there",)
    if lacking:
        told = (_lacking_words(lacking),)
    named_in = (*beside, *usual_folders(tree, config), *usual_folders(repository.root, config))
    return Prepared(side, tree, python, roots, variables, build_s, environment, beside, named_in, identity, told, lock)


def built_here(side: Side, site: BuildSite) -> bool:
    """Whether the working tree is the side's commit, with compiled files that nothing else would bring: no build is set, and
    what they are compiled from is not newer than they are."""
    settings, repository = site.config.settings, site.repository
    if (
        settings.build
        or repository.is_bare
        or repository.resolve("HEAD").sha != side.commit.sha
        or repository.is_dirty(own_paths(site.config))
    ):
        return False
    files = repository.contents(side.commit.sha)
    try:
        roots = import_roots(repository.root, site.config)
    except RegressError:  # the same is said of the commit's worktree, with its place
        return False
    folders = {
        path
        for name in files
        for path in [(repository.root / name).parent]
        for root in roots
        if path.is_relative_to(root)
    }
    paths = [path for folder in folders for path in folder.glob("*") if path.suffix in EXTENSIONS]
    compiled = [path for path in paths if str(path.relative_to(repository.root)) not in files]
    wanted = settings.build_inputs or tuple(f"*{ending}" for ending in COMPILED)
    sources = [repository.root / name for name in files if any(covers(pattern, name) for pattern in wanted)]
    newest = max((path.lstat().st_mtime for path in sources if path.exists()), default=0.0)
    return bool(compiled) and all(path.stat().st_mtime >= newest for path in compiled)


def matters(tree: Path, name: str, config: Config) -> bool:
    """Whether a file, or a submodule, may be imported or built: it is an input of the build, or lies in a package. Of a build
    that does not say what it depends on, every submodule is one, but no file beside the code."""
    settings, path = config.settings, tree / name
    if any(covers(pattern, name) or pattern.startswith(f"{name}/") for pattern in settings.build_inputs):
        return bool(settings.build)
    if Path(name).parts[0] in ASIDE:
        return False
    if settings.build and not settings.build_inputs and path.is_dir():
        return True
    project = tree / config.repo_subdir if config.repo_subdir else tree
    for root in import_roots(tree, config):
        if root.is_relative_to(path):
            return True
        if path.is_relative_to(root):
            top = root / path.relative_to(root).parts[0]
            return root != project or (top / "__init__.py").is_file()
    return False


def _lacking_words(names: Sequence[str]) -> str:
    what = f"{first_of(names)} of the commit's files are not here (Git LFS, submodules)"
    return f"{what}; judging by their location, nothing imports or builds them"


def unbuilt(side: Prepared, failure: str) -> str:
    """The compiled file whose lack made an import fail: the invoking checkout has it, the side's tree does not, and its name is
    in the failure's message. Empty if there is none."""
    for root, own in zip(side.checkout, side.import_roots, strict=False):
        for ending in EXTENSIONS:
            for path in root.rglob(f"*{ending}"):
                name = path.name.partition(".")[0]
                if re.search(rf"\b{re.escape(name)}\b", failure) and not (own / path.relative_to(root)).exists():
                    return str(path.relative_to(root))
    return ""


def _interpreter(config: Config, environment: Environment) -> str:
    """The interpreter under test: a path (a relative one starts at the configuration's folder) or a name on PATH."""
    wanted = environment.python or config.settings.python
    if not wanted:
        return sys.executable
    # Not resolved: the link in a virtual environment is what makes Python see that environment.
    path = str(config.root / Path(wanted).expanduser()) if os.sep in wanted else wanted
    interpreter = shutil.which(path)
    if interpreter is None:
        where = f'of environment "{environment.name}"' if environment.python else 'under "regress" in asv.conf.json'
        raise NothingMeasured(
            f"there is no interpreter {wanted}",
            why=f"{path} is not an executable file" if os.sep in wanted else f"no {wanted} on PATH",
            fix=f'correct "python" {where}, or leave it out for the one that runs regress',
        )
    return interpreter


def import_roots(tree: Path, config: Config) -> tuple[Path, ...]:
    """Folders to import the project from: `package_dir`, or src/ where it holds packages, or the project's folder itself."""
    project = tree / config.repo_subdir if config.repo_subdir else tree
    if config.settings.package_dir:
        root = project / config.settings.package_dir
        if not root.is_dir():
            raise RegressError(
                f"package_dir {config.settings.package_dir!r} is not a folder of this commit",
                why=f"looked for it in {project}",
                fix='correct "package_dir" under "regress" in asv.conf.json',
            )
        return (root,)
    source = project / "src"
    if any(next(source.glob(pattern), None) for pattern in ("*.py", "*/*.py", "*/*/*.py")):
        return (source,)
    return (project,)


def usual_folders(tree: Path, config: Config) -> tuple[Path, ...]:
    """The folders in which projects have their packages where they have any, as far as the tree has them."""
    project = tree / config.repo_subdir if config.repo_subdir else tree
    return tuple(folder for name in LAYOUTS if (folder := project / name).is_dir())


def _variables(roots: tuple[Path, ...], cache: Path) -> dict[str, str]:
    for root in roots:
        if os.pathsep in str(root):
            raise RegressError(
                f"the code cannot be imported from {root}",
                why=f"Python takes the {os.pathsep!r} in it for a separator, as in PYTHONPATH",
                fix="rename the folder without it; for the cache, set REGRESS_CACHE_DIR",
            )
    inherited = os.environ.get("PYTHONPATH", "")
    paths = [str(root) for root in roots] + [os.path.abspath(path) for path in inherited.split(os.pathsep) if path]
    return with_bytecode({**os.environ, "PYTHONPATH": os.pathsep.join(paths)}, cache)


def _asvs(side: Side, environment: Environment, config: Config) -> dict[str, str]:
    """What asv sets for benchmarks in an environment that it does not make; the commit too, which it sets in its own only."""
    return {
        "ASV": "true",
        "ASV_PROJECT": config.project,
        "ASV_CONF_DIR": str(config.root),
        "ASV_ENV_NAME": environment.name,
        "ASV_ENV_TYPE": EXISTING,
        "ASV_COMMIT": side.commit.sha,
    }


def with_bytecode(variables: Mapping[str, str], cache: Path) -> dict[str, str]:
    """The variables, so that what is imported stays compiled, in the cache: else measuring would leave __pycache__ folders in
    the user's suite.

    Images for containers often forbid bytecode. There it would cost every round a compilation of all it imports, torch and
    the standard library too; and what is kept here is in nobody's way.

    Where the disk is nearly full, nothing is kept: before Python 3.13, a file that does not fit is left half written, and every
    later import of it fails.
    """
    folder, variables = cache / BYTECODE, dict(variables)
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    cache.mkdir(parents=True, exist_ok=True)  # a working tree that is measured in place may be the first to use it
    if shutil.disk_usage(cache).free < BYTECODE_SPACE:
        shutil.rmtree(folder, ignore_errors=True)
        return {**variables, "PYTHONDONTWRITEBYTECODE": "1"}
    return {**variables, "PYTHONPYCACHEPREFIX": str(folder)}
