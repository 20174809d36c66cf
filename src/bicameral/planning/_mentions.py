"""Mentions: what a request speaks of, each with its kind and its exact words, found by rules.

Literal things come first and are marked verbatim where they may only be copied: links, addresses, quoted text. Then
files, amounts and days; then, in the words that are left, folders, tables, columns, values, people, mails and events.
The rules know English, German, French and Spanish. Each looks at a bounded number of words, so the work grows with the
length of the text and no faster. No model is asked and nothing of the world is looked at.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Sequence

from bicameral.planning._intent import named_dates
from bicameral.planning._intent_document import Mention, MentionKind
from bicameral.planning._lexicon import (
    ADDRESSING_VERBS,
    ASKING_VERBS,
    BY_WORDS,
    CLAUSE_OPENERS,
    COLUMN_NOUNS,
    CONJUNCTIONS,
    DETERMINERS,
    EVENT_NOUNS,
    FILE_NOUNS,
    FOLDER_NOUNS,
    FROM_WORDS,
    GROUP_NOUNS,
    GROUPING,
    HONORIFICS,
    MAIL_NOUNS,
    NAME_PARTICLES,
    NAMING_WORDS,
    NO_PERSON,
    NOUN_ENDINGS,
    POLITE,
    PREPOSITIONS,
    PRONOUNS,
    RELATIONS,
    STOP_TOKENS,
    TABLE_NOUNS,
    TO_WORDS,
    Token,
    split_tokens,
)
from bicameral.text import MONTH_NUMBERS, WEEKDAY_NUMBERS, lazy_pattern

_EXTENSIONS = frozenset(
    "txt md rst log csv tsv json jsonl ndjson xml html htm yaml yml toml ini cfg conf env sql db sqlite parquet "
    "xls xlsx "
    "ods odt doc docx rtf pdf ps epub ppt pptx odp png jpg jpeg gif webp svg bmp tif tiff heic mp3 "
    "wav ogg flac m4a mp4 mov avi mkv webm zip tar gz tgz bz2 xz rar 7z iso eml mbox msg ics vcf py js ts css c h "
    "cpp rs "
    "go java rb php sh bat ipynb tex bib bak tmp lock patch diff".split()
)
_TLDS = frozenset("com org net edu gov io dev app eu de ch fr es uk info ai".split())

# Every repetition is possessive: a text without the closing sign is read once and not once for each of its starts.
_LINK = lazy_pattern(r"(?:https?|ftp)://[^\s<>\"'“”«»]++|(?<![\w@./-])www\.[^\s<>\"'“”«»]++", re.IGNORECASE)
_ADDRESS = lazy_pattern(r"(?<![\w.+%-])[\w.+%-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})++")
_PATH = lazy_pattern(r"(?<![\w@])(?:[A-Za-z]:\\|~?/|\.{1,2}/|\\\\)?[\w.+~@%#-]++(?:[/\\][\w.+~@%#-]++)*+[/\\]?")
_NUMBER = r"\d{1,3}(?:[.,'’\u00a0\u202f ]\d{3}){1,6}+(?:[.,]\d{1,2})?|\d++(?:[.,]\d{1,2})?"
_CURRENCY = (
    r"€|\$|£|¥|₹|US\$|(?:eur|usd|gbp|chf|jpy|cad|aud|sek|nok|dkk|pln)\b"
    r"|(?:euros?|dollars?|pounds?|francs?|franken|cents?|dólares|dolares|libras?|pesos?|yen)\b"
)
_AMOUNT = lazy_pattern(
    rf"(?<![\w.,])(?:(?:{_CURRENCY})\s?(?:{_NUMBER})(?:\s?(?:k|m|mio|million|millionen|millones)\b)?(?:\.-|,-)?"
    rf"|(?:{_NUMBER})(?:\.-|,-)?\s?(?:k\s?|mio\.?\s|million(?:en|es|s)?\s)?(?:{_CURRENCY}))(?![\w])",
    re.IGNORECASE,
)
_QUOTES = {'"': '"', "“": "”", "„": '“”"', "«": "»", "»": "«", "‹": "›", "`": "`", "'": "'", "‘": "’", "‚": "‘’"}
_MAX_QUOTED = 400
_CHUNK = 400
_CHUNK_END = lazy_pattern(r"(?<=[^\d\W][.!?])\s|\n")


def find_mentions(request: str, today: dt.date) -> tuple[Mention, ...]:
    """What a request mentions, in order and without overlaps.

    Args:
        today: The day that `tomorrow` is relative to.

    Example:
        >>> [(each.kind, each.words) for each in find_mentions("Tell Kim that “the offer” is 20 €", date(2026, 3, 11))]
        [('person', 'Kim'), ('quoted', 'the offer'), ('amount', '20 €')]
    """
    spans = _Spans(request)
    _find_literals(spans)
    for start, end, kind in _dates(request, today):
        spans.claim(kind, start, end)
    tokens = [token for token in split_tokens(request) if spans.is_free(token.start)]
    for rule in (_named_containers, _columns_and_values, _possessors, _mails_and_events, _people):
        for kind, start, end in rule(tokens):
            spans.claim(kind, start, end)
    return spans.mentions()


class _Spans:
    """The mentions so far. A character belongs to one mention, the first that claims it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._taken = bytearray(len(text))
        self._found: list[Mention] = []

    def is_free(self, start: int, end: int | None = None) -> bool:
        return not any(self._taken[start : start + 1 if end is None else end])

    def claim(
        self, kind: MentionKind, start: int, end: int, *, verbatim: bool = False, around: tuple[int, int] | None = None
    ) -> bool:
        """Add a mention unless another one has a character of it; `around` is taken with it (quotation marks)."""
        first, last = around or (start, end)
        if start >= end or not self.is_free(first, last):
            return False
        self._taken[first:last] = b"\x01" * (last - first)
        words = self.text[start:end]
        self._found.append(Mention(kind=kind, words=words, start=start, end=end, verbatim=verbatim))
        return True

    def mentions(self) -> tuple[Mention, ...]:
        return tuple(sorted(self._found, key=lambda each: each.start))


# Literal things -------------------------------------------------------------------------------------------------------


def _find_literals(spans: _Spans) -> None:
    text = spans.text
    # Quoted text first: what stands in it is what the person dictates, also if it looks like a link.
    for first, last in _quoted_spans(text):
        inner = text[first:last]
        start, end = first + len(inner) - len(inner.lstrip()), last - len(inner) + len(inner.rstrip())
        words = text[start:end]
        kind = "file" if _is_file_name(words) or _follows_noun(text, first - 1, FILE_NOUNS) else "quoted"
        if kind == "quoted" and _ADDRESS.fullmatch(words):
            kind = "address"
        elif kind == "quoted" and _follows_noun(text, first - 1, FOLDER_NOUNS):
            kind = "folder"
        spans.claim(kind, start, end, verbatim=True, around=(first - 1, last + 1))
    for match in _LINK.finditer(text):
        spans.claim("link", match.start(), _trimmed_end(text, *match.span()), verbatim=True)
    for match in _ADDRESS.finditer(text):
        spans.claim("address", match.start(), _trimmed_end(text, *match.span()), verbatim=True)
    for match in _AMOUNT.finditer(text):
        spans.claim("amount", *match.span())
    for match in _PATH.finditer(text):
        start, end = match.start(), _trimmed_end(text, *match.span())
        if (kind := _path_kind(text[start:end])) is not None:
            spans.claim(kind, start, end, verbatim=kind == "link")


def _quoted_spans(text: str) -> Iterator[tuple[int, int]]:
    """The contents of quotation marks, nearest pairs first come; an apostrophe within a word opens nothing."""
    place = 0
    while place < len(text):
        closing = _QUOTES.get(text[place])
        opens = closing is not None and not (place and text[place - 1].isalnum())
        # The search for the closing mark is bounded, so that marks that nothing closes cost no more than a constant.
        end = _closing_place(text, place + 1, closing) if opens and closing is not None else None
        if end is not None and text[place + 1 : end].strip():
            yield place + 1, end
        place = place + 1 if end is None else end + 1


def _closing_place(text: str, start: int, closing: str) -> int | None:
    """Where quoted text ends: within a paragraph, not within a word, and within a bounded length."""
    for place in range(start, min(len(text), start + _MAX_QUOTED)):
        if text[place] == "\n" and text[place : place + 2] == "\n\n":
            return None
        inside_word = place + 1 < len(text) and text[place + 1].isalnum()
        if text[place] in closing and not (inside_word and text[place] in "'’"):
            return place
    return None


def _trimmed_end(text: str, start: int, end: int) -> int:
    """The end without the signs of the sentence around it; a bracket that was opened inside stays."""
    for _ in range(min(_MAX_TRIMMED, end - start)):
        last = text[end - 1]
        is_open = last in _OPENING and text.count(last, start, end) <= text.count(_OPENING[last], start, end)
        if is_open or last not in _TRIMMED:
            break
        end -= 1
    return end


_TRIMMED = frozenset(".,;:!?…'’)]}")
_MAX_TRIMMED = 16
_OPENING = {")": "(", "]": "[", "}": "{"}


def _is_file_name(words: str) -> bool:
    name = re.split(r"[/\\]", words.strip())[-1]
    stem, dot, extension = name.rpartition(".")
    return bool(dot and stem.strip()) and extension.lower() in _EXTENSIONS


def _path_kind(words: str) -> MentionKind | None:
    """Whether a word is a path: by its extension, its first characters, or a slash at its end."""
    if words.endswith(("/", "\\")) and len(words) > 1 and any(char.isalnum() for char in words):
        return "folder"
    if _is_file_name(words):
        return "file"
    if words.startswith(("~/", "./", "../", "/", "\\\\")) or re.match(r"[A-Za-z]:\\", words):
        return "folder" if any(char.isalnum() for char in words) else None
    labels = words.split(".")
    if len(labels) > 1 and labels[-1].lower() in _TLDS and all(re.fullmatch(r"[\w-]+", each) for each in labels):
        return "link"
    return None


def _follows_noun(text: str, place: int, nouns: frozenset[str]) -> bool:
    """Whether the word before a place, or the one before `called`, is one of these nouns."""
    before = [word.lower() for word in re.findall(r"\w+", text[max(0, place - 60) : place])][-2:]
    return bool(before) and (before[-1] in nouns or (before[-1] in NAMING_WORDS and before[0] in nouns))


def _dates(text: str, today: dt.date) -> Iterator[tuple[int, int, MentionKind]]:
    """The days and periods. The text is read in pieces of bounded length, since the cost of one is not linear."""
    for start, end in _chunks(text):
        piece, place = text[start:end], 0
        for named in named_dates(piece, today):
            found = piece.find(named.phrase, place)
            if found >= 0:
                place = found + len(named.phrase)
                yield start + found, start + place, "day" if named.start == named.end else "period"


def _chunks(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(text):
        limit = start + _CHUNK
        if limit >= len(text):
            end = len(text)
        else:
            ends = [match.end() for match in _CHUNK_END.finditer(text, start, limit)]
            blank = text.rfind(" ", start + 1, limit)
            end = ends[-1] if ends else blank if blank > start else limit
        yield start, end
        start = end


# Words ----------------------------------------------------------------------------------------------------------------

_Found = Iterator[tuple[MentionKind, int, int]]


def _at(tokens: Sequence[Token], place: int) -> Token | None:
    return tokens[place] if 0 <= place < len(tokens) else None


def _are_adjacent(first: Token, second: Token) -> bool:
    return second.start - first.end <= 1


def _is_name(token: Token | None) -> bool:
    """Whether a word may be the name that somebody gave to a folder, a table or a column."""
    return token is not None and token.text[0].isalnum() and token.lower not in STOP_TOKENS


def _named_containers(tokens: Sequence[Token]) -> _Found:
    """`the folder Invoices`, `the Invoices folder`, `folder called taxes`, and the same for tables."""
    for place, token in enumerate(tokens):
        kind: MentionKind | None = (
            "folder" if token.lower in FOLDER_NOUNS else "table" if token.lower in TABLE_NOUNS else None
        )
        if kind is None:
            continue
        before, after, next_one = _at(tokens, place - 1), _at(tokens, place + 1), _at(tokens, place + 2)
        if after is not None and after.lower in NAMING_WORDS and next_one is not None and _is_name(next_one):
            yield kind, next_one.start, _given_name_end(tokens, place + 2)
        elif after is not None and _is_name(after) and after.is_capitalised and _are_adjacent(token, after):
            yield kind, after.start, _given_name_end(tokens, place + 1)
        elif before is not None and _is_name(before) and not before.clause_start and _are_adjacent(before, token):
            yield kind, before.start, before.end
        elif before is not None and before.lower in DETERMINERS and after is not None and _is_name(after):
            yield kind, after.start, after.end


def _given_name_end(tokens: Sequence[Token], place: int) -> int:
    """The end of a name that goes on with numbers and capitalised words: `the folder Taxes 2026`."""
    end = place + 1
    while end < min(len(tokens), place + _MAX_NAME_WORDS) and _are_adjacent(tokens[end - 1], tokens[end]):
        if not (tokens[end].text[0].isdigit() or (tokens[end].is_capitalised and _is_name(tokens[end]))):
            break
        end += 1
    return tokens[end - 1].end


def _columns_and_values(tokens: Sequence[Token]) -> _Found:
    """`column amount`, `the amount column`, `total by category`, `whose status is open`, `status open`."""
    groups = False
    for place, token in enumerate(tokens):
        groups = groups or token.lower in GROUPING
        before, after, next_one = _at(tokens, place - 1), _at(tokens, place + 1), _at(tokens, place + 2)
        if token.lower in COLUMN_NOUNS:
            if (
                after is not None
                and _is_name(after)
                and (before is None or not _is_name(before) or before.clause_start)
            ):
                yield "column", after.start, after.end
            elif before is not None and _is_name(before) and not before.clause_start:
                yield "column", before.start, before.end
        elif token.lower in BY_WORDS and groups and after is not None and after.is_word and _is_name(after):
            if not _is_date_word(after.lower) and (not after.is_capitalised or token.lower in ("pro", "nach", "je")):
                yield "column", after.start, after.end
        elif token.lower in _WHERE_WORDS and after is not None and _is_name(after):
            yield "column", after.start, after.end
            value = _at(tokens, place + 3)
            if next_one is not None and next_one.lower in _IS_WORDS and value is not None and value.text[0].isalnum():
                yield "value", value.start, value.end
        elif token.lower in _COMPARING and after is not None and after.lower in _THAN and next_one is not None:
            if next_one.text[0].isdigit():
                yield "value", next_one.start, next_one.end
        elif token.lower in _MARKED and after is not None:
            value = next_one if after.lower in ("as", "als", "comme", "como", "with", "mit") else after
            if value is not None and _is_name(value):
                yield "value", value.start, value.end


_WHERE_WORDS = frozenset("where whose wo deren dessen où dont donde cuyo cuya cuyos".split())
_IS_WORDS = frozenset("is are equals = was ist sind gleich est sont es son".split())
_COMPARING = frozenset(
    "more less greater fewer higher lower bigger mehr weniger größer kleiner plus moins más menos".split()
)
_THAN = frozenset("than als que de".split())
_MARKED = frozenset(
    "marked tagged labelled labeled status category kategorie markiert catégorie statut categoría estado".split()
)


def _is_date_word(lower: str) -> bool:
    return lower in MONTH_NUMBERS or lower in WEEKDAY_NUMBERS


_MAX_NAME_WORDS = 4
_MAX_ACRONYM = 5


def _possessors(tokens: Sequence[Token]) -> _Found:
    """`Kim's mail`: the name without its ending."""
    for token in tokens:
        if token.lower.endswith("'s") and _may_be_person(token):
            yield "person", token.start, token.end - 2


def _people(tokens: Sequence[Token]) -> _Found:
    """Capitalised names after verbs and prepositions of address, with titles; relations (`my boss`)."""
    openers = _person_openers(tokens)
    for place in range(1, len(tokens)):
        token, before = tokens[place], tokens[place - 1]
        if token.lower in RELATIONS and before.lower in DETERMINERS:
            yield "person", token.start, token.end
        elif token.lower in HONORIFICS and token.is_capitalised:
            first = place + 2 if (dot := _at(tokens, place + 1)) is not None and dot.text == "." else place + 1
            if (end := _name_end(tokens, first)) is not None:
                yield "person", token.start, end
        elif (before.lower in openers and not _is_journey(tokens, place)) or _is_joined_name(tokens, place, openers):
            if (end := _name_end(tokens, place)) is not None:
                yield "person", token.start, end
            elif before.lower in ASKING_VERBS and before.clause_start and _is_uncapitalised_name(tokens, place):
                yield "person", token.start, token.end


def _person_openers(tokens: Sequence[Token]) -> frozenset[str]:
    """The words that a name may follow. `an` and `a` are English articles, unless other words are German or Spanish."""
    said = {token.lower for token in tokens}
    articles = frozenset({"an", "a"}) - ({"an"} if said & _GERMAN else set()) - ({"a"} if said & _SPANISH else set())
    return (ADDRESSING_VERBS | TO_WORDS | FROM_WORDS) - articles


_GERMAN = frozenset(
    "der die das den dem ein eine einen und bitte mit schick schicke sende schreib schreibe leite ist".split()
)
_SPANISH = frozenset(
    "el la los las un una del y por favor que envía envia manda reenvía escribe correo mi con dile".split()
)
_JOURNEYS = frozenset(
    "flight train trip drive travel go fly bus ferry way flug zug fahrt reise fliege fahre vol voyage vuelo viaje "
    "tren".split()
)


def _is_journey(tokens: Sequence[Token], place: int) -> bool:
    """Whether the words before a name say that it is a place: `the train from Kassel to Paris`."""
    return any(token.lower in _JOURNEYS for token in tokens[max(0, place - 6) : place])


def _is_joined_name(tokens: Sequence[Token], place: int, openers: frozenset[str]) -> bool:
    """Whether this is the second name of `to Kim and Alex`, or of `to Kim, Alex`."""
    before, earlier, opener = tokens[place - 1], _at(tokens, place - 2), _at(tokens, place - 3)
    if (before.lower not in CONJUNCTIONS and before.text != ",") or earlier is None or opener is None:
        return False
    return _may_be_person(earlier) and (opener.lower in openers or opener.text == "," or opener.lower in CONJUNCTIONS)


def _may_be_person(token: Token) -> bool:
    lower = token.lower.removesuffix("'s")
    return (
        token.is_word
        and token.is_capitalised
        and not token.sentence_start
        and len(lower) > 1
        and not (token.text.isupper() and len(lower) <= _MAX_ACRONYM)
        and lower not in STOP_TOKENS
        and lower not in NO_PERSON
        and lower not in GROUP_NOUNS
        and lower not in EVENT_NOUNS
        and lower not in MAIL_NOUNS
        and lower not in FOLDER_NOUNS | TABLE_NOUNS | COLUMN_NOUNS | FILE_NOUNS
        and not _is_date_word(lower)
        and not lower.endswith(NOUN_ENDINGS)
    )


def _name_end(tokens: Sequence[Token], place: int) -> int | None:
    """The end of the name that begins here, of up to four words with particles (`van der`); None if there is none."""
    first = _at(tokens, place)
    if first is None or not _may_be_person(first):
        return None
    end = first.end - (2 if first.lower.endswith("'s") else 0)
    if first.lower.endswith("'s"):
        return end
    reach = place + 1
    while reach < min(len(tokens), place + _MAX_NAME_WORDS) and _are_adjacent(tokens[reach - 1], tokens[reach]):
        token = tokens[reach]
        if _may_be_person(token):
            end = token.end - (2 if token.lower.endswith("'s") else 0)
        elif token.lower not in NAME_PARTICLES or token.is_capitalised:
            break
        reach += 1
    return end


def _is_uncapitalised_name(tokens: Sequence[Token], place: int) -> bool:
    """Whether a word in small letters must be a name: `tell kim that …`."""
    token, after = tokens[place], _at(tokens, place + 1)
    known = STOP_TOKENS | GROUP_NOUNS | POLITE | PRONOUNS
    return token.is_word and token.lower not in known and after is not None and after.lower in CLAUSE_OPENERS


_MAX_MODIFIERS = 2


def _mails_and_events(tokens: Sequence[Token]) -> _Found:
    """`the unread mails`, `the dentist appointment`, `the retro`: the noun with the words before it."""
    for place, token in enumerate(tokens):
        kind: MentionKind | None = (
            "mail" if token.lower in MAIL_NOUNS else "event" if token.lower in EVENT_NOUNS else None
        )
        # At the start of a clause it is a verb: `mail the total`, `call Kim`.
        if kind is None or token.clause_start:
            continue
        first = place
        while first > max(0, place - _MAX_MODIFIERS) and _is_modifier(tokens[first - 1], tokens[first]):
            if _is_addressee(tokens, first - 1):
                break
            first -= 1
        before = _at(tokens, first - 1)
        # Without an article or a modifier it is a word of its own: `by mail`.
        if first < place or (before is not None and before.lower in DETERMINERS) or token.lower.endswith("s"):
            yield kind, tokens[first].start, token.end


def _is_addressee(tokens: Sequence[Token], place: int) -> bool:
    """Whether a name is the first of two objects: `send Kim one mail`, and not `show the Kim mail`."""
    before = _at(tokens, place - 1)
    return (
        before is not None
        and before.lower in ADDRESSING_VERBS
        and before.lower != "show"
        and _may_be_person(tokens[place])
    )


def _is_modifier(token: Token, after: Token) -> bool:
    is_free = token.lower not in STOP_TOKENS and token.lower not in PREPOSITIONS and token.lower not in ADDRESSING_VERBS
    is_free = is_free and not token.lower.endswith("'s")
    return token.is_word and is_free and not token.clause_start and _are_adjacent(token, after)
