"""The user's own folders for configuration, caches and state, by the XDG convention."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, get_args

Kind = Literal["config", "cache", "state"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_HOMES = {
    "config": ("XDG_CONFIG_HOME", ".config"),
    "cache": ("XDG_CACHE_HOME", ".cache"),
    "state": ("XDG_STATE_HOME", ".local/state"),
}


def user_folder(kind: Kind) -> Path:
    """The user's own folder for configuration, caches or state."""
    variable, usual = _HOMES[kind]
    chosen = Path(os.environ.get(variable, ""))
    # The convention says that a relative path is to be ignored.
    return (chosen if chosen.is_absolute() else Path(os.path.expanduser("~")) / usual) / "bicameral"
