"""The journal: the chain of seals, the order of events, erasure, what is on the disk; the sealed log of patterns."""

from __future__ import annotations

from scripts.mutants.mutant import Mutant

EVENTS = "journal/_events.py"
JOURNAL = "journal/_journal.py"
VERIFICATION = "journal/_verification.py"
SQLITE = "journal/_sqlite.py"
SEALS = "tests/journal/test_journal_seals.py"
ERASE = "tests/journal/test_journal_erase.py"
STORES = "tests/journal/test_journal_stores.py"
SYNCED = "tests/journal/test_journal_synced.py"

MUTANTS = (
    Mutant(
        "journal.chain-without-the-one-before",
        EVENTS,
        "_seal",
        "2\\n{before}\\n{run}",
        "2\\n\\n{run}",
        "an event could be exchanged for another that is sealed by itself",
        (f"{SEALS}::test_a_seal_is_made_over_the_one_before_and_every_fact_of_the_event",),
    ),
    Mutant(
        "journal.seal-without-its-time",
        EVENTS,
        "_seal",
        "\\n{at!r}\\n",
        "\\n",
        "the time of an event could be changed",
        (f"{SEALS}::test_a_seal_is_made_over_the_one_before_and_every_fact_of_the_event",),
    ),
    Mutant(
        "journal.seal-not-compared",
        EVENTS,
        "_chain_fault",
        "fits = fits and _seal(",
        "fits = fits or _seal(",
        "a changed event would pass as long as its body fits its digest",
        (SEALS,),
    ),
    Mutant(
        "journal.body-not-compared",
        EVENTS,
        "_chain_fault",
        "_digest(row.salt, row.body) == row.digest",
        "len(row.digest) == 32",
        "the body of an event could be changed unseen",
        (f"{STORES}::test_what_was_changed_behind_our_back_is_noticed", SEALS),
    ),
    Mutant(
        "journal.emptied-without-a-mark",
        EVENTS,
        "erasure_fault",
        "if row.is_erased and row.number > last:",
        "if row.is_erased and marks and row.number > last:",
        "events could be emptied without a trace of who did it",
        (f"{STORES}::test_what_was_changed_behind_our_back_is_noticed", ERASE),
    ),
    Mutant(
        "journal.erased-and-still-there",
        EVENTS,
        "erasure_fault",
        "if not row.is_erased and row.number < last and row.kind != ERASED_KIND:",
        "if not row.is_erased and row.number > last and row.kind == ERASED_KIND:",
        "an erasure that left something would not be noticed",
        (f"{SEALS}::test_what_is_erased_is_empty_and_what_is_empty_was_erased",),
    ),
    Mutant(
        "journal.digest-without-salt",
        EVENTS,
        "seal_event",
        "salt = os.urandom(SALT_BYTES)",
        "salt = bytes(SALT_BYTES)",
        "what was erased could be guessed from its digest",
        (f"{SEALS}::test_the_digests_of_two_events_that_hold_the_same_are_not_the_same",),
    ),
    Mutant(
        "journal.salt-stays",
        SQLITE,
        "SqliteStore.erase",
        "UPDATE events SET body = '', salt = x'' ",
        "UPDATE events SET body = '' ",
        "what was erased could be guessed with the salt that is left",
        (f"{ERASE}::test_what_is_left_says_nothing_of_a_body_that_one_could_guess", ERASE),
    ),
    Mutant(
        "journal.not-fenced",
        JOURNAL,
        "Journal.append_all",
        "if first is not None and number != first - 1:",
        "if first is not None and number < first - 1:",
        "two processes could go on with one run",
        (f"{STORES}::test_whoever_does_not_know_the_last_event_cannot_append", STORES),
    ),
    Mutant(
        "journal.anchor-not-compared",
        VERIFICATION,
        "missing_anchors",
        "[0][0] != anchor.seal",
        "[0][0] == ''",
        "a record that was written anew would pass against what is known of it",
        (f"{SEALS}::test_a_whole_tail_that_was_sealed_anew_or_cut_off_is_found_by_an_anchor_alone",),
    ),
    Mutant(
        "journal.not-on-the-disk",
        SQLITE,
        "SqliteStore._synchronous",
        "PRAGMA synchronous = FULL",
        "PRAGMA synchronous = NORMAL",
        "an effect could be made of which nothing is left after a power cut",
        (SYNCED,),
    ),
    Mutant(
        "journal.readable-by-others",
        "sqlite.py",
        "_create_file",
        "0o600",
        "0o644",
        "what tools and models said could be read by other users of the machine",
        ("tests/journal/test_journal_shared.py::test_the_file_is_for_nobody_else_to_read",),
    ),
    Mutant(
        "journal.blob-of-another-run",
        SQLITE,
        "SqliteStore.erase",
        "AND NOT EXISTS (SELECT 1 FROM uses WHERE uses.hash = blobs.hash)",
        "",
        "erasing one run would take away what another holds",
        (ERASE,),
    ),
    Mutant(
        "journal.erased-is-read",
        JOURNAL,
        "Journal.events",
        "if not erased and any(",
        "if erased and any(",
        "an erased run would be read as one in which nothing was said",
        (ERASE,),
    ),
)
