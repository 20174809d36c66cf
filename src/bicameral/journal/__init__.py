"""The journal: every event of every run, in one SQLite file or one PostgreSQL database, append-only.

Events come in and are sealed into a hash chain; the events of a run can be read back at any time. The chain can be
verified, and the content of a run can be erased such that the rest stays verifiable. Large values are stored once, by
their hash.
"""

from bicameral.journal._events import (
    END_KINDS,
    Anchor,
    Erasure,
    Event,
    EventKind,
    NewEvent,
    RunStatus,
    RunSummary,
    dumps,
)
from bicameral.journal._journal import Journal, open_journal_at

__all__ = [
    "END_KINDS",
    "Anchor",
    "Erasure",
    "Event",
    "EventKind",
    "Journal",
    "NewEvent",
    "RunStatus",
    "RunSummary",
    "dumps",
    "open_journal_at",
]
