"""The journal: every event of every run, in one SQLite file or one PostgreSQL database, append-only.

Events come in and are sealed into a hash chain; the events of a run can be read back at any time. The chain can be
verified, and the content of a run can be erased such that the rest stays verifiable. Large values are stored once, by
their hash.
"""

from bicameral.journal._event_queries import EventId as EventId
from bicameral.journal._events import (
    END_KINDS as END_KINDS,
    UNDO_SUFFIX as UNDO_SUFFIX,
    Anchor as Anchor,
    Erasure as Erasure,
    Event as Event,
    EventKind as EventKind,
    EventRow as EventRow,
    NewEvent as NewEvent,
    NumberTaken as NumberTaken,
    RunStatus as RunStatus,
    RunSummary as RunSummary,
    check_chain as check_chain,
    dumps as dumps,
    seal_event as seal_event,
)
from bicameral.journal._journal import Journal as Journal, open_journal_at as open_journal_at
