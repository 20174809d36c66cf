"""Records: what patterns and programs keep between runs, with owner, origin, label, review and erasure.

A labelled value comes in and is sealed into the hash chain of its owner's collection, in one SQLite file or one
PostgreSQL database. It comes back with its label. What untrusted text had a hand in is a proposal until a named person
accepts it. Versions supersede each other; an erasure leaves nothing but a tombstone.
"""

from bicameral.errors import RecordError as RecordError
from bicameral.records._record import (
    Proposal as Proposal,
    Provenance as Provenance,
    Record as Record,
    RecordErasure as RecordErasure,
    RecordLimits as RecordLimits,
    RecordState as RecordState,
    Review as Review,
    Tombstone as Tombstone,
)
from bicameral.records._records import (
    Records as Records,
    Reviewer as Reviewer,
    record_collections as record_collections,
)
