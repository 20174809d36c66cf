"""Evidence and the verbatim check, and the reader of what a quarantined model wrote."""

from __future__ import annotations

from scripts.mutants.mutant import Mutant

EVIDENCE = "boundary/_evidence.py"
VERBATIM = "boundary/_verbatim_check.py"
EXTRACT = "boundary/_extract.py"
REPLY = "boundary/_reply.py"
COPIES = "tests/boundary/test_boundary_copies.py"
REJECTED = f"{COPIES}::test_what_does_not_stand_in_the_text_is_rejected"
LOOKS = "tests/boundary/test_boundary_evidence.py"
SMUGGLING = "tests/boundary/test_boundary_smuggling.py"
CLOSED = f"{SMUGGLING}::test_a_way_to_smuggle_text_is_closed"
READ = "tests/boundary/test_boundary_extract.py"
BROKEN = f"{READ}::test_a_hostile_or_broken_reply_is_rejected_with_a_short_reason"

MUTANTS = (
    Mutant(
        "evidence.part-of-an-address",
        EVIDENCE,
        "Evidence._has_bounded",
        "if before.match(text, at) and after.match(text, at + len(value)):",
        "if before.match(text, at) or after.match(text, at + len(value)):",
        "a part of an address in the text would count as an address",
        (REJECTED,),
    ),
    Mutant(
        "evidence.part-of-a-number",
        EVIDENCE,
        "Evidence.has_grouped",
        "and start + len(wanted) in groups.ends",
        "",
        "the beginning of an account number would count as one",
        (REJECTED,),
    ),
    Mutant(
        "evidence.any-currency",
        EVIDENCE,
        "Evidence.has_money",
        "and currency in self.currencies",
        "or currency in self.currencies",
        "an amount of another currency would count as copied",
        (REJECTED,),
    ),
    Mutant(
        "evidence.any-year",
        EVIDENCE,
        "TextDates.has_date",
        "(day.year, *pair) in self._days",
        "pair in self._pairs",
        "a date of another year would count as copied",
        (REJECTED, f"{COPIES}::test_another_date_is_not_this_one"),
    ),
    Mutant(
        "evidence.any-time",
        EVIDENCE,
        "TextDates.has_datetime",
        "return self.has_date(moment.date()) and (",
        "return self.has_date(moment.date()) or (",
        "a moment at another time of the day would count as copied",
        (REJECTED,),
    ),
    Mutant(
        "evidence.search-without-end",
        EVIDENCE,
        "Evidence._has_bounded",
        "self._looks -= 1",
        "pass",
        "whoever wrote the text would decide how long the search takes",
        (f"{LOOKS}::test_looks_are_counted_and_a_search_over_its_bound_is_no_find",),
    ),
    Mutant(
        "evidence.grown-text",
        EVIDENCE,
        "Evidence.__init__",
        "if len(text) <= MAX_NORMALISED else 0",
        "if text else 0",
        "a text that grows when it is normalised would be searched all the same",
        (f"{LOOKS}::test_a_text_that_grows_too_much_holds_nothing",),
    ),
    Mutant(
        "evidence.exhausted-is-found",
        EXTRACT,
        "_ReplyReader.read_value",
        "if self.evidence.is_exhausted and places:",
        "if self.evidence.is_exhausted:\n            return value\n        if self.evidence.is_exhausted and places:",
        "a value would count as copied because nobody could look for it",
        (f"{LOOKS}::test_a_value_that_could_not_be_looked_for_is_rejected_with_that_reason",),
    ),
    Mutant(
        "evidence.lists-not-checked",
        VERBATIM,
        "_scalar_parts",
        'yield from _scalar_parts(each, item, f"{path}[{number}]")\n        case TupleType',
        'yield path, each, "other"\n        case TupleType',
        "invented values in a list would pass",
        (COPIES,),
    ),
    Mutant(
        "evidence.email-need-not-be-copied",
        VERBATIM,
        "",
        '{"email", "url", "iban",',
        '{"url", "iban",',
        "an address that a model made up would be taken",
        (REJECTED,),
    ),
    Mutant(
        "evidence.any-case-of-a-code",
        VERBATIM,
        "_is_in_text",
        "return evidence.has_token(value)",
        "return evidence.has_words(value)",
        "a part of a code would count as the code",
        (REJECTED,),
    ),
    Mutant(
        "reply.extra-field",
        REPLY,
        "_parse_record",
        "if set(entries) - set(wanted.names):",
        "if not set(entries):",
        "text would come along in a field that the form does not have",
        (CLOSED,),
    ),
    Mutant(
        "reply.field-twice",
        REPLY,
        "_unique_keys",
        "if len({key for key, _ in pairs}) < len(pairs):",
        "if len({key for key, _ in pairs}) > len(pairs):",
        "of a field that is given twice the second would be taken unseen",
        (CLOSED,),
    ),
    Mutant(
        "reply.beside-the-value",
        REPLY,
        "parse_reply",
        '.keys() != {"value"}:',
        '.keys() < {"value"}:',
        "text would come along beside the one field of the form",
        (READ, SMUGGLING),
    ),
    Mutant(
        "reply.hidden-characters",
        REPLY,
        "_require_readable",
        "if _FORBIDDEN_CHARACTERS.search(text):",
        "if _FORBIDDEN_CHARACTERS.match(text):",
        "characters that nobody sees would pass in the middle of a text",
        (CLOSED,),
    ),
    Mutant(
        "reply.format-not-checked",
        REPLY,
        "_parse_text",
        "if wanted.format in FORMATS and (",
        "if wanted.format not in FORMATS and (",
        "a sentence would pass as a code",
        (CLOSED,),
    ),
    Mutant(
        "reply.money-without-measure",
        REPLY,
        "_parse_record",
        'abs(read["amount"]) > MAX_AMOUNT',
        'read["amount"] < -MAX_AMOUNT',
        "digits beyond all measure would pass as an amount",
        (CLOSED,),
    ),
    Mutant(
        "reply.not-found-where-not-asked",
        REPLY,
        "_raise_if_missing",
        "if field in required_fields(wanted) and why in ABSENCES:",
        "if field in required_fields(wanted) or why in ABSENCES:",
        "a model's own words would be passed on as the name of a field or a reason",
        (READ, SMUGGLING),
    ),
    Mutant(
        "reply.none-for-what-must-be",
        REPLY,
        "parse_typed",
        "if value is None and not _is_optional(wanted)",
        "if value is None and _is_optional(wanted)",
        "nothing would not be told from a value",
        (READ,),
    ),
    Mutant(
        "reply.time-in-any-form",
        REPLY,
        "_parse_time",
        "if not re.fullmatch(",
        "if not re.match(",
        "a time with text behind it would be read",
        (f"{SMUGGLING}::test_a_date_or_time_holds_nothing_else", CLOSED),
    ),
    Mutant(
        "reply.long-number",
        REPLY,
        "_parse_int",
        "if len(digits) > MAX_DIGITS:",
        "if len(digits) > MAX_REPLY:",
        "a text could be carried out in the digits of a number",
        (CLOSED, BROKEN),
    ),
)
