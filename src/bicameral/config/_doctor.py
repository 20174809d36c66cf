"""The doctor: looks at the configuration and the machine, and says what to mend."""

from __future__ import annotations

import os
import platform
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from bicameral.errors import ConfigError

from ._check import Check, failed
from ._config import Config
from ._doctor_machine import machine_checks
from ._doctor_services import service_checks
from ._environment import misspelt


def doctor(config: Config | ConfigError) -> list[Check]:
    """Everything that was looked at; where the configuration could not be read, the defaults are looked at instead.

    Example:
        >>> [check.name for check in doctor(load_config()) if check.status == "bad"]
        []
    """
    usable = config if isinstance(config, Config) else Config.defaults()
    return [
        _python(),
        _file(config),
        *_variables(),
        *_folders(usable),
        *service_checks(usable),
        *machine_checks(usable),
    ]


def _python() -> Check:
    return Check("python", "ok", f"{platform.python_version()}, {sys.executable}")


def _file(config: Config | ConfigError) -> Check:
    if isinstance(config, ConfigError):
        return failed("configuration", config)
    if config.source is None:
        return Check("configuration", "ok", "no file; the defaults serve (`bicameral init` writes one)")
    if config.withheld:
        return Check(
            "configuration",
            "warn",
            f"{config.source} is not accepted, so these settings are not used: {', '.join(config.withheld)}",
            "Look at it, then run `bicameral config accept`.",
        )
    return Check("configuration", "ok", str(config.source))


def _variables() -> Iterator[Check]:
    for name, meant in misspelt(os.environ):
        yield Check("environment", "warn", f"{name} is set, but nothing reads it", f"Did you mean {meant}?")


def _folders(config: Config) -> Iterator[Check]:
    for use, names, needed in (("read", config.folders.read, os.R_OK), ("write", config.folders.write, os.W_OK)):
        for name in names:
            yield _folder(config, use, name, needed)
    for name in config.folders.trusted:
        yield _trusted(config, name)


def _trusted(config: Config, name: str) -> Check:
    title, path = "trusted folder", config.base / Path(name).expanduser()
    if not path.exists():
        return Check(title, "bad", f"{path} is not there", "Make it, or take it out of `trusted` in [folders].")
    if path.stat().st_mode & stat.S_IWOTH:
        return Check(title, "bad", f"everybody may write in {path}", "Change its permissions, or do not trust it.")
    return Check(title, "ok", f"{path}: what is read there counts as your own word")


def _folder(config: Config, use: str, name: str, needed: int) -> Check:
    title, path = f"folder to {use}", config.base / Path(name).expanduser()
    if not path.exists():
        return Check(
            title, "bad", f"{path} is not there", f"Make it, or change `{use}` in [folders] of bicameral.toml."
        )
    if not os.access(path, needed | (os.X_OK if path.is_dir() else 0)):
        return Check(title, "bad", f"you may not {use} {path}", "Change its permissions, or name another folder.")
    return Check(title, "ok", str(path))
