"""The files of a configuration that no tool may change."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bicameral.tools import ProtectedPath, database_files

from ._acceptance import acceptance_file
from ._config import Config
from ._load import NAME
from ._widening import named_files


def protected_paths(config: Config) -> Iterator[ProtectedPath]:
    """Everything that decides how the next run behaves, and what is remembered of earlier ones.

    What a withheld configuration names is protected like what an accepted one does: its owner may accept it tomorrow.
    """
    source = config.source or config.base / NAME
    start = source.parent
    yield ProtectedPath(source, "the configuration")
    # The environment may name files that the configuration does not.
    for settings in (_written_settings(source), config.model_dump(include={"toolboxes", "policy"})):
        for file in named_files(settings, source, config.base):
            yield ProtectedPath(file, "code or a policy that the configuration names")
    for file in _settings_files(config, start):
        yield ProtectedPath(file, "a file of settings that the configuration names")
    yield from database_files(config.journal_file, "the journal of runs")
    database = (config.durable.database or config.durable_database).removeprefix("sqlite:///")
    if "://" not in database:
        yield from database_files(config.base / os.path.expanduser(database), "the database of submitted runs")
    yield ProtectedPath(config.token_file, "the file of the server's tokens")
    yield ProtectedPath(acceptance_file(), "the record of configurations that were accepted")
    yield ProtectedPath(config.cache_folder, "in the cache of plans", whole=True)
    yield ProtectedPath(config.models_folder, "among the weights of models", whole=True)


def _written_settings(source: Path) -> dict[str, Any]:
    """What the file says, also where it is withheld."""
    try:
        return tomllib.loads(source.read_text("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return {}


def _settings_files(config: Config, start: Path) -> Iterator[Path]:
    for name in (config.models.profile, config.llm.prices):
        if name:
            yield start / os.path.expanduser(name)
    if config.llm.config_path:
        for folder in (start, config.base):
            yield folder / os.path.expanduser(config.llm.config_path)
