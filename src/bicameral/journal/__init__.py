"""The journal: what happened in every run, in one SQLite file or one PostgreSQL, appended to and never changed.

Events come in, sealed one to the next; out come the events of a run, whoever asks and however long after. It can be
verified, and what it holds of a run can be erased so that the rest stays provable. Large values lie apart, by hash.
"""

from bicameral.journal._blobs import dumps
from bicameral.journal._events import END_KINDS, Anchor, Erasure, Event, EventKind, NewEvent, RunStatus, RunSummary
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
