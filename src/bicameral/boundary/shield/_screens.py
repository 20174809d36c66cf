r"""All screens of the shield: characters, encodings, hidden HTML, and phrases that address a model.

A screen runs only where a quick test says that it could find something, and takes time linear in the text: no pattern
has a part that could match in two ways, phrases (in several languages) are located by their stems first, and patterns
do not backtrack over a word (`\w++`). Encoded text (base64, hex, percent signs, entities, escapes) is decoded once, and
only to be screened.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from itertools import islice
from typing import Any
from urllib.parse import unquote

from bicameral.boundary.shield._screening import Mark, MarkKind
from bicameral.display import CONTROLS, DIRECTIONS, INVISIBLE, JOINERS, MOST_MARKS, NO_CHARACTERS, PRIVATE, SELECTORS

TAG_CHARACTERS = range(0xE0000, 0xE0080)
_SELECTORS = range(0xE0100, 0xE01F0)

# Single direction marks (such as the Arabic letter mark) weigh less than characters that embed or override a direction.
_DIRECTION_MARKS = "\u061c\u200e\u200f"

INVISIBLE_RUN = re.compile(f"[{INVISIBLE}{JOINERS}{SELECTORS}{PRIVATE}{NO_CHARACTERS}{_DIRECTION_MARKS}]+")
DIRECTION_RUN = re.compile(f"(?![{_DIRECTION_MARKS}])[{DIRECTIONS}]+")
CONTROL_CHARACTER = re.compile(f"(?![\r\x85])[{CONTROLS}]")

_PILED_MARKS = re.compile(f"[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]{{{MOST_MARKS + 1},}}")

_LATIN_RANGE = "A-Za-z\u00c0-\u024f"
_OTHER_RANGE = "\u0370-\u03ff\u0400-\u052f\u0531-\u058f\u13a0-\u13ff"
_MIXED_SCRIPTS = re.compile(f"[{_LATIN_RANGE}][{_OTHER_RANGE}]|[{_OTHER_RANGE}][{_LATIN_RANGE}]")
_LOOKALIKE = re.compile(f"[{_OTHER_RANGE}]")
_LETTER = re.compile(f"[{_LATIN_RANGE}{_OTHER_RANGE}]")
_STYLED_RANGE = "\uff21-\uff3a\uff41-\uff5a\u24b6-\u24e9\U0001d400-\U0001d7ff\U0001f130-\U0001f189"
_STYLED_LETTER = re.compile(f"[{_STYLED_RANGE}]")
_STYLED_WORD = re.compile(f"[{_STYLED_RANGE}]{{4,}}")
_SPACED_WORD = re.compile(r"(?<!\w)[^\W\d_](?:[ .*_·-][^\W\d_]){7,}(?!\w)")

_MAX_MARKS_OF_A_KIND = 1_000
"""Marks of one kind in one text; it is suspicious long before."""
_MAX_WORD_REACH = 40
"""Characters that a word is followed to each side."""


def character_marks(text: str, alphabet: str) -> Iterator[Mark]:
    """Marks of characters and runs of them; `alphabet` is every character of the text once, without ASCII."""
    if INVISIBLE_RUN.search(alphabet):
        for match in islice(INVISIBLE_RUN.finditer(text), _MAX_MARKS_OF_A_KIND):
            yield _invisible_mark(text, match.start(), match.end())
    yield from _pattern_marks(_PILED_MARKS, text, "invisible", 0.3, "many marks on one letter")
    if DIRECTION_RUN.search(alphabet):
        yield from _pattern_marks(DIRECTION_RUN, text, "direction", 0.5, "characters that turn the writing direction")
    if _LOOKALIKE.search(alphabet):
        yield from islice(_mixed_script_marks(text), _MAX_MARKS_OF_A_KIND)
    if _STYLED_LETTER.search(alphabet):
        yield from _pattern_marks(_STYLED_WORD, text, "styled", 0.4, "letters in a style of their own")


def _pattern_marks(pattern: re.Pattern[str], text: str, kind: MarkKind, weight: float, note: str) -> Iterator[Mark]:
    for match in islice(pattern.finditer(text), _MAX_MARKS_OF_A_KIND):
        yield Mark(kind, match.start(), match.end(), weight, note)


def _invisible_mark(text: str, start: int, end: int) -> Mark:
    run = text[start:end]
    if any(ord(character) in TAG_CHARACTERS for character in run):
        return Mark("invisible", start, end, 0.9, "tag characters, which carry text that nobody sees")
    if sum(ord(character) in _SELECTORS for character in run) > 1:
        return Mark("invisible", start, end, 0.8, "variation selectors in a row, which can carry text")
    if end - start >= 8:
        return Mark("invisible", start, end, 0.7, "many invisible characters in a row")
    inside_a_word = text[start - 1 : start].isascii() and text[start - 1 : start].isalpha()
    if inside_a_word and text[end : end + 1].isascii() and text[end : end + 1].isalpha() and run != "\u00ad":
        return Mark("invisible", start, end, 0.5, "an invisible character inside a word")
    return Mark("invisible", start, end, 0.05, "an invisible character")


def _mixed_script_marks(text: str) -> Iterator[Mark]:
    end = 0
    for match in _MIXED_SCRIPTS.finditer(text):
        if match.start() < end:
            continue
        start, end = match.start(), match.end()
        while start > max(0, match.start() - _MAX_WORD_REACH) and _LETTER.match(text[start - 1]):
            start -= 1
        while end < min(len(text), match.end() + _MAX_WORD_REACH) and _LETTER.match(text[end]):
            end += 1
        if end - start >= 4:
            yield Mark("mixed-script", start, end, 0.5, "a word of letters from two scripts")


def tagged_text(text: str) -> str:
    """The text that the tag characters of a text encode."""
    return "".join(chr(ord(each) - 0xE0000) for each in text if 0xE0020 <= ord(each) <= 0xE007E)


_LOOKALIKES = dict(
    zip(
        "аеорсухіјѕԁһԛԝьпгтимнвкАВЕКМНОРСТХУІЈЅαεορτυνικΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
        "aeopcyxijsdhqwbnrtumhbkABEKMHOPCTXYIJSaeoptuvikABEZHIKMNOPTYX",
        strict=True,
    )
)


def plain_skeleton(text: str) -> tuple[str, list[int]]:
    """The text as it looks, in plain letters and without invisible characters, and the position of each letter."""
    letters: list[str] = []
    positions: list[int] = []
    plain_forms: dict[str, str] = {}
    for position, character in enumerate(text):
        if character.isascii():
            plain = character
        elif (plain := plain_forms.get(character, "?")) == "?":
            plain = plain_forms[character] = _plain_character(character)
        if plain:
            letters.append(plain)
            positions.append(position)
    return "".join(letters), positions


def _plain_character(character: str) -> str:
    if INVISIBLE_RUN.match(character) or DIRECTION_RUN.match(character):
        return ""
    like = _LOOKALIKES.get(character) or unicodedata.normalize("NFKC", character)
    return like if len(like) == 1 else character


MIN_ENCODED_LENGTH = 24
"""Shorter words are not decoded: they can carry little text."""
MAX_TRIED = 200
"""Pieces of one encoding that are decoded in one text."""
MAX_DECODED = 4_096

# No pattern has a part that could match in two ways, so each takes one look at every character.
_BASE64 = re.compile(rf"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{{{MIN_ENCODED_LENGTH},}}+={{0,2}}")
_HEX = re.compile("(?:[0-9A-Fa-f]{2})+")
_PERCENT = re.compile("(?:%[0-9A-Fa-f]{2}){6,}+")
_ENTITIES = re.compile("(?:&#x?[0-9A-Fa-f]{1,6};){6,}+")
_ESCAPES = re.compile(r"(?:\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}){6,}+")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2}))")

DecodedPiece = tuple[Mark, str]


def decoded_pieces(text: str, *, long_words: bool) -> Iterator[DecodedPiece]:
    """Pieces that decode to readable text, each with its mark; `long_words` says whether base64 is possible at all."""
    if long_words:
        yield from _try_decoding(text, _BASE64, _decode_base64_or_hex, 0.4)
    if "%" in text:
        yield from _try_decoding(text, _PERCENT, unquote, 0.4)
    if "&#" in text:
        yield from _try_decoding(text, _ENTITIES, lambda piece: html.unescape(piece[: piece.rfind(";") + 1]), 0.4)
    # A low weight: JSON of texts in other scripts is full of these.
    if "\\u" in text or "\\x" in text:
        yield from _try_decoding(text, _ESCAPES, _decode_escapes, 0.1)


def _try_decoding(
    text: str, pattern: re.Pattern[str], decode: Callable[[str], str | None], weight: float
) -> Iterator[DecodedPiece]:
    for tried, match in enumerate(pattern.finditer(text)):
        if tried >= MAX_TRIED:
            return
        decoded = decode(match[0][:MAX_DECODED])
        if decoded is not None and is_readable_text(decoded):
            yield Mark("encoded", match.start(), match.end(), weight, "a piece that decodes to text"), decoded


def _decode_base64_or_hex(piece: str) -> str | None:
    bare = piece.rstrip("=")
    if _HEX.fullmatch(bare) and (decoded := _decode_utf8(bytes.fromhex(bare))) is not None:
        return decoded
    plain = bare.replace("-", "+").replace("_", "/")
    plain = plain[: len(plain) - (len(plain) % 4 == 1)]
    try:
        return _decode_utf8(base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True))
    except (binascii.Error, ValueError):
        return None


def _decode_utf8(raw: bytes) -> str | None:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        # The piece may have been cut off inside a character.
        return raw[: error.start].decode("utf-8") if error.start >= len(raw) - 3 > 0 else None


def _decode_escapes(piece: str) -> str:
    return "".join(chr(int(four or two, 16)) for four, two in _ESCAPE.findall(piece))


def is_readable_text(text: str) -> bool:
    """Whether this is text to read: mostly letters, nothing unprintable."""
    if len(text) < 6:
        return False
    letters = sum(character.isalpha() or character.isspace() for character in text)
    odd = sum(not (character.isprintable() or character in "\n\r\t") for character in text)
    return odd == 0 and letters >= 0.6 * len(text)


MAX_COMMENTS = 200
_THREE_WORDS = re.compile(r"[^\W\d_]{2,}[ \t\r\n]+[^\W\d_]{2,}[ \t\r\n]+[^\W\d_]{2,}")

_HIDING_STYLES = (
    ("display", re.compile(r"display\s{0,3}:\s{0,3}none")),
    ("visibility", re.compile(r"visibility\s{0,3}:\s{0,3}hidden")),
    ("font-size", re.compile(r"font-size\s{0,3}:\s{0,3}0(?:\.0|px|em|pt|%|;|\s|\"|')")),
    ("opacity", re.compile(r"opacity\s{0,3}:\s{0,3}0(?:\.0+)?(?:[;\s\"'])")),
    ("text-indent", re.compile(r"text-indent\s{0,3}:\s{0,3}-\d{3}")),
    ("left", re.compile(r"left\s{0,3}:\s{0,3}-\d{3}")),
    ("color", re.compile(r"color\s{0,3}:\s{0,3}(?:#fff(?:fff)?\b|white\b|transparent\b)")),
    ("hidden", re.compile(r"hidden(?=[\s>=])")),
)


def hidden_marks(lowered: str) -> Iterator[Mark]:
    """Marks of hidden elements, and of comments with words in them."""
    if "<" not in lowered:
        return
    for anchor, style in _HIDING_STYLES:
        if anchor in lowered:
            for match in style.finditer(lowered):
                before = lowered[max(0, match.start() - 500) : match.start()]
                # Inside of a tag.
                if before.rfind("<") > before.rfind(">"):
                    weight = 0.15 if anchor == "color" else 0.35
                    yield Mark("hidden-html", match.start(), match.end(), weight, "an element that nobody sees")
    yield from _comment_marks(lowered)


def _comment_marks(text: str) -> Iterator[Mark]:
    start = text.find("<!--")
    for _ in range(MAX_COMMENTS):
        if start < 0:
            return
        end = text.find("-->", start + 4)
        inside = text[start + 4 : end if end >= 0 else None][:2_000]
        if _THREE_WORDS.search(inside):
            yield Mark("hidden-html", start, end + 3 if end >= 0 else len(text), 0.25, "a comment with words in it")
        if end < 0:
            return
        start = text.find("<!--", end)


# A phrase is searched in a window around a stem, so that a pattern never runs over the whole text.
BEFORE, AFTER = 60, 140
_GAP = r"[^\w.!?:]++(?:\w++[^\w.!?:]++){0,5}?"
"""A few words of the same sentence."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """A pattern, its stems (every match contains one of them), and the weight, note and kind of its marks."""

    stems: tuple[str, ...]
    pattern: str
    weight: float
    note: str
    kind: MarkKind


@cache
def _load_phrases() -> tuple[tuple[Phrase, ...], tuple[Phrase, ...]]:
    """The phrases in Latin script, and those in other scripts, from `phrases.toml`."""
    tables = tomllib.loads(resources.files("bicameral.boundary.shield").joinpath("phrases.toml").read_text("utf-8"))
    latin, other = (tuple(map(_phrase_from_entry, tables[script])) for script in ("latin", "other"))
    return latin, other


def _phrase_from_entry(entry: Mapping[str, Any]) -> Phrase:
    stems = tuple(entry["stems"])
    if "verbs" in entry:
        pattern = rf"\b(?:{entry['verbs']}){_GAP}(?:{entry['things']})"
        return Phrase(stems, pattern, 0.7, "an order to ignore instructions", "instruction")
    note = entry.get("note", "words that order a model about")
    return Phrase(
        stems, entry["pattern"].replace("<gap>", _GAP), entry["weight"], note, entry.get("kind", "instruction")
    )


@cache
def _compile_phrase(phrase: Phrase) -> re.Pattern[str]:
    return re.compile(phrase.pattern)


def phrase_marks(lowered: str, *, ascii_only: bool) -> Iterator[Mark]:
    """Marks of phrases in a text in small letters."""
    latin, other = _load_phrases()
    yield from _find_phrases(lowered, latin)
    if not ascii_only:
        yield from _find_phrases(lowered, other)


def _find_phrases(text: str, phrases: Iterable[Phrase]) -> Iterator[Mark]:
    places_by_stem: dict[str, list[int]] = {}
    for phrase in phrases:
        for stem in phrase.stems:
            if stem not in places_by_stem:
                places_by_stem[stem] = _stem_places(text, stem)
        for start, end in _windows_around(sorted(place for stem in phrase.stems for place in places_by_stem[stem])):
            for match in _compile_phrase(phrase).finditer(text, start, end):
                yield Mark(phrase.kind, match.start(), match.end(), phrase.weight, phrase.note)


def _windows_around(places: list[int]) -> Iterator[tuple[int, int]]:
    """The parts of a text near these positions, merged so that they do not overlap."""
    start = end = 0
    for place in places:
        if place - BEFORE > end:
            if end:
                yield start, end
            start = place - BEFORE
        end = place + AFTER
    if end:
        yield start, end


def _stem_places(text: str, stem: str) -> list[int]:
    """Positions of a stem; those close together are skipped, since one window covers them."""
    places: list[int] = []
    place = text.find(stem)
    while place >= 0:
        places.append(place)
        place = text.find(stem, place + AFTER // 2)
    return places


_CONTROL_BYTES = bytes(code for code in range(32) if code not in b"\t\n\r") + b"\x7f"
_BASE64_OTHERS = b"+/-_0123456789"
# Each byte is mapped to a representative of its kind, so that a run of one kind is found by a plain substring search.
_BYTE_KINDS = bytes(
    ord("a") if chr(code).isalpha() and code < 128 else 48 if code in _BASE64_OTHERS else 32 if code == 32 else 46
    for code in range(256)
)
_BASE64_KINDS = bytes(ord("a") if code in b"a0" else code for code in range(256))
_SPACED_LETTERS, _LONG_RUN = b" ".join([b"a"] * 8), b"a" * MIN_ENCODED_LENGTH
_DISGUISING_KINDS = frozenset({"invisible", "mixed-script", "styled", "direction"})


def all_marks(text: str) -> Iterator[Mark]:
    """The marks of every screen over one text."""
    plain = text.isascii()
    alphabet = "" if plain else "".join(character for character in set(text) if not character.isascii())
    marks = [] if plain else list(character_marks(text, alphabet))
    yield from marks
    raw = text.encode("utf-8", "surrogatepass")
    if len(raw.translate(None, _CONTROL_BYTES)) < len(raw) or CONTROL_CHARACTER.search(alphabet):
        yield from _pattern_marks(CONTROL_CHARACTER, text, "control", 0.3, "control characters")
    # `lower` turns this letter alone into two; positions must stay the same.
    lowered = text.replace("İ", "i").lower()
    phrases = list(phrase_marks(lowered, ascii_only=plain))
    yield from phrases
    yield from hidden_marks(lowered)
    kinds = raw.translate(_BYTE_KINDS)
    if _SPACED_LETTERS in kinds:
        yield from _pattern_marks(_SPACED_WORD, text, "spaced", 0.3, "words spelled out letter by letter")
    for mark, decoded in decoded_pieces(text, long_words=_LONG_RUN in kinds.translate(_BASE64_KINDS)):
        yield replace(mark, weight=0.9) if _has_phrases(decoded) else mark
    if any(mark.kind in _DISGUISING_KINDS for mark in marks):
        yield from _disguised_phrases(text, phrases)
        if _has_phrases(tagged_text(text)):
            yield Mark("instruction", 0, len(text), 0.9, "an order in tag characters")


def _has_phrases(text: str) -> bool:
    return any(True for _ in phrase_marks(text.lower(), ascii_only=text.isascii()))


def _disguised_phrases(text: str, plain_marks: list[Mark]) -> Iterator[Mark]:
    """Phrases that appear only after invisible characters are removed and look-alikes are replaced."""
    skeleton, places = plain_skeleton(text)
    known = {(mark.note, mark.start) for mark in plain_marks}
    for mark in phrase_marks(skeleton.lower(), ascii_only=skeleton.isascii()):
        start, end = places[mark.start], places[mark.end - 1] + 1
        if (mark.note, start) not in known:
            yield Mark("instruction", start, end, 0.9, "an order in disguised letters")
