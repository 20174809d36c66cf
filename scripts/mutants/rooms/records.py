"""Records: owners, reviews, the chain, and erasure."""

from __future__ import annotations

from scripts.mutants.mutant import Mutant

LEDGER = "records/_ledger.py"
RECORDS = "records/_records.py"
SQLITE = "records/_sqlite.py"
STORE = "tests/records/test_records_store.py"
ATTACKS = "tests/records/test_records_attacks.py"

MUTANTS = (
    Mutant(
        "records.accepted-by-being-written",
        RECORDS,
        "Records._write",
        "trusted = tree.flat.trusted and not",
        "trusted = not",
        "what untrusted text had a hand in would be served without anybody's yes",
        (f"{STORE}::test_what_untrusted_text_had_a_hand_in_waits_for_a_person",),
    ),
    Mutant(
        "records.read-as-accepted",
        LEDGER,
        "LedgerState._apply_written",
        'state == "accepted" and tree.flat.trusted',
        'state == "accepted"',
        "a forged entry could be accepted without a person",
        (f"{ATTACKS}::test_an_entry_that_no_store_would_write_is_refused_although_its_seal_is_right",),
    ),
    Mutant(
        "records.yes-for-another",
        LEDGER,
        "LedgerState._apply_review",
        'or found.seal != body["seal"]',
        "",
        "a person's yes could be used for something that was not shown",
        (f"{ATTACKS}::test_an_entry_that_no_store_would_write_is_refused_although_its_seal_is_right",),
    ),
    Mutant(
        "records.another-proposal",
        RECORDS,
        "Records._decide",
        "found.seal != record.seal",
        "False",
        "a person's yes could be written for another proposal",
        (f"{ATTACKS}::test_a_yes_is_for_exactly_the_proposal_that_was_shown",),
    ),
    Mutant(
        "records.lost-update",
        RECORDS,
        "Records._write",
        "if state.current_version(name) != base:",
        "if state.current_version(name) < base:",
        "of two changes of one version the second would overwrite the first",
        (f"{STORE}::test_of_two_changes_of_one_version_the_second_is_a_conflict",),
    ),
    Mutant(
        "records.stale-proposal",
        RECORDS,
        "Records._decide",
        "if accepted and found.base != state.current_version(record.id):",
        "if accepted and found.base > state.current_version(record.id):",
        "a proposal for an old version would undo what came after it",
        (f"{STORE}::test_a_proposal_for_a_version_that_is_gone_cannot_be_accepted",),
    ),
    Mutant(
        "records.ledger-of-another",
        LEDGER,
        "Ledger.key",
        'json.dumps(self, separators=(",", ":"))',
        "self.collection",
        "entries of one owner could be moved to another",
        (f"{ATTACKS}::test_entries_that_are_moved_to_another_owner_are_found_out",),
    ),
    Mutant(
        "records.chain-not-checked",
        LEDGER,
        "LedgerState._apply",
        "if fault is not None or",
        "if",
        "a file that was tampered with would be used",
        (f"{ATTACKS}::test_a_file_that_was_tampered_with_is_refused_and_not_written_to",),
    ),
    Mutant(
        "records.known-not-checked",
        RECORDS,
        "Records._state",
        "self._known not in state.seals",
        "False",
        "a store whose end was cut off would pass against the seal that is known",
        (f"{ATTACKS}::test_what_a_chain_cannot_show_a_known_seal_does",),
    ),
    Mutant(
        "records.choice-without-labels",
        RECORDS,
        "Records.find",
        "self._record(each, choice)",
        "self._record(each)",
        "what is found would not carry the labels of what it was chosen from",
        (f"{STORE}::test_what_is_found_carries_the_labels_of_all_that_it_was_chosen_from",),
    ),
    Mutant(
        "records.salt-left",
        SQLITE,
        "SqliteEntries.erase",
        "UPDATE entries SET body = '', salt = x'' WHERE",
        "UPDATE entries SET body = '' WHERE",
        "what was erased could be guessed with the salt that is left",
        (f"{ATTACKS}::test_what_is_left_of_a_value_says_nothing_to_whoever_guesses_it",),
    ),
    Mutant(
        "records.not-scrubbed",
        RECORDS,
        "Records._erase",
        "erased[1], self._store.scrub())",
        "erased[1], True)",
        "what was erased would stay in the write-ahead log",
        (f"{ATTACKS}::test_of_what_was_erased_no_byte_is_left_in_the_files",),
    ),
    Mutant(
        "records.written-while-held",
        SQLITE,
        "SqliteEntries.append",
        "shared=False",
        "shared=True",
        "an identity could change while a session is open",
        (f"{STORE}::test_while_somebody_holds_a_collection_nobody_writes_to_it",),
    ),
)
