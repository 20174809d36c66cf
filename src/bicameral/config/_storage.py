"""Where a configuration keeps what lasts: the journal of runs, and the cache of plans and intents."""

from __future__ import annotations

import hashlib
from collections.abc import MutableMapping
from typing import TYPE_CHECKING

from ._config import Config

if TYPE_CHECKING:
    from bicameral.runs import Journal


def open_journal(config: Config) -> Journal:
    """The journal of all runs, made if it is not there."""
    from bicameral.runs import Journal

    return Journal(config.journal_file)


def open_cache(config: Config) -> MutableMapping[str, str]:
    """The cache of plans and intents of this project. Losing it costs time and nothing else."""
    from bicameral.cache import FolderCache

    # A folder for each project: what was planned in one is never taken up in another.
    project = hashlib.sha256(config.project.encode("utf-8", "surrogateescape")).hexdigest()
    return FolderCache(config.cache_folder / "plans" / project[:32])
