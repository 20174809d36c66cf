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
        (STORE,),
    ),
    Mutant(
        "records.read-as-accepted",
        LEDGER,
        "LedgerState._apply_written",
        'state == "accepted" and tree.flat.trusted',
        'state == "accepted"',
        "a forged entry could be accepted without a person",
        (ATTACKS,),
    ),
    Mutant(
        "records.yes-for-another",
        LEDGER,
        "LedgerState._apply_review",
        'or found.seal != body["seal"]',
        "",
        "a person's yes could be used for something that was not shown",
        (ATTACKS,),
    ),
    Mutant(
        "records.another-proposal",
        RECORDS,
        "Records._decide",
        "found.seal != record.seal",
        "False",
        "a person's yes could be written for another proposal",
        (ATTACKS,),
    ),
    Mutant(
        "records.lost-update",
        RECORDS,
        "Records._write",
        "if state.current_version(name) != base:",
        "if state.current_version(name) < base:",
        "of two changes of one version the second would overwrite the first",
        (STORE,),
    ),
    Mutant(
        "records.stale-proposal",
        RECORDS,
        "Records._decide",
        "if accepted and found.base != state.current_version(record.id):",
        "if accepted and found.base > state.current_version(record.id):",
        "a proposal for an old version would undo what came after it",
        (STORE,),
    ),
    Mutant(
        "records.ledger-of-another",
        LEDGER,
        "Ledger.key",
        'json.dumps(self, separators=(",", ":"))',
        "self.collection",
        "entries of one owner could be moved to another",
        (ATTACKS,),
    ),
    Mutant(
        "records.chain-not-checked",
        LEDGER,
        "LedgerState._apply",
        "if fault is not None or",
        "if",
        "a file that was tampered with would be used",
        (ATTACKS,),
    ),
    Mutant(
        "records.known-not-checked",
        RECORDS,
        "Records._state",
        "self._known not in state.seals",
        "False",
        "a store whose end was cut off would pass against the seal that is known",
        (ATTACKS,),
    ),
    Mutant(
        "records.choice-without-labels",
        RECORDS,
        "Records.find",
        "self._record(each, choice)",
        "self._record(each)",
        "what is found would not carry the labels of what it was chosen from",
        (STORE,),
    ),
    Mutant(
        "records.salt-left",
        SQLITE,
        "SqliteEntries.erase",
        "UPDATE entries SET body = '', salt = x'' WHERE",
        "UPDATE entries SET body = '' WHERE",
        "what was erased could be guessed with the salt that is left",
        (ATTACKS,),
    ),
    Mutant(
        "records.not-scrubbed",
        RECORDS,
        "Records._erase",
        "erased[1], self._store.scrub())",
        "erased[1], True)",
        "what was erased would stay in the write-ahead log",
        (ATTACKS,),
    ),
    Mutant(
        "records.written-while-held",
        SQLITE,
        "SqliteEntries.append",
        "shared=False",
        "shared=True",
        "an identity could change while a session is open",
        (STORE,),
    ),
)
