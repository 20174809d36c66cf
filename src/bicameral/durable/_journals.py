"""Where durable runs are recorded: in their PostgreSQL, or in a SQLite file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bicameral.config import Config
from bicameral.runs import Journal

if TYPE_CHECKING:
    from ._database import Database


def journal_for(database: Database, config: Config | None) -> Journal:
    """The journal that goes with a database.

    With PostgreSQL it lies in the same one, so that every worker reads what the others did. With SQLite it is the
    configured journal, which has all other runs too, or a file beside the database.
    """
    from bicameral.runs import open_journal_at

    if database.file is None:
        return open_journal_at(database.address)
    return open_journal_at(config.journal_file if config else database.file.with_name("journal.db"))
