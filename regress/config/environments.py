"""The environments that the file names, and those of asv's."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from regress.config.configuration import Config
from regress.config.values import shown
from regress.errors import ConfigError
from regress.model import DEFAULT_ENVIRONMENT, EXISTING, Environment

_ASV_TYPES = ("virtualenv", "uv", "conda", "mamba", "rattler", EXISTING)
"""Types of environments that asv has or had; a plugin of asv's may bring others."""


def read_environment(name: str, value: Any) -> Environment:
    """The environment of an entry. Raises ConfigError for an invalid entry."""
    where = f'environment "{name}"'
    if not re.fullmatch(r"[A-Za-z0-9][\w.+-]*", name) or name == DEFAULT_ENVIRONMENT:
        raise ConfigError(
            f"{where} cannot have this name",
            why=f'a name is letters, digits, "_", ".", "+" and "-", and not {DEFAULT_ENVIRONMENT}, the one without a name',
            fix="rename it",
        )
    known = [field.name for field in dataclasses.fields(Environment) if field.name != "name"]
    given = value if isinstance(value, dict) else {"": value}
    for key, item in given.items():
        good = isinstance(item, dict) and all(isinstance(text, str) for text in item.values())
        if key not in known or not (good if key == "variables" else isinstance(item, str)):
            raise ConfigError(
                f"{where} has {shown({key: item} if key else item)}",
                why=f"expected {', '.join(known)}: strings, and for variables an object of strings",
                fix=f"correct {where}",
            )
    if given.get("wheel") and given.get("fetch"):
        raise ConfigError(f"{where} has both a wheel and a command that fetches one", why="one of them is measured",
                          fix='leave "wheel" or "fetch" out')  # fmt: skip
    other = next((key for key in ("python", "wheel", "fetch") if given.get(key)), "")
    if given.get("asv") and other:
        raise ConfigError(f'{where} has both "asv" and "{other}"', why="asv brings interpreter and code",
                          fix=f'leave "asv" or "{other}" out')  # fmt: skip
    return Environment(name, **given)


def environment(config: Config, name: str) -> Environment:
    """The environment of that name, also in its recorded form (with `-py3.12` appended); without a name, the default. Raises
    ConfigError if there is none.

    A name that begins with one of asv's types is asv's; whether asv has it shows when it is made.
    """
    asv_type = str(config.asv.get("environment_type") or "")
    # An existing interpreter has no commit installed by asv: what it is there, a worktree is for us.
    name = name or config.settings.environment or (DEFAULT_ENVIRONMENT if asv_type in ("", EXISTING) else asv_type)
    plain = re.sub(r"-py[\d.]+$", "", name)
    if plain == DEFAULT_ENVIRONMENT:
        return Environment()
    configured = config.settings.environments.get(name) or config.settings.environments.get(plain)
    if configured is None and re.split("[-:]", name)[0] in {*_ASV_TYPES, asv_type}:
        return Environment(name, asv=name)
    if configured is None:
        known = sorted(config.settings.environments)
        raise ConfigError(
            f"there is no environment {name}",
            why=f"the configuration has {', '.join(known)}" if known else "the configuration has no environments",
            fix='add it to "environments" under "regress" in asv.conf.json',
        )
    return configured
