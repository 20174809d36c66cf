"""Hidden characters: one table of them, how they are found and made visible, and how long texts are folded."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Literal

HiddenKind = Literal["control", "direction", "invisible", "blank"]

# The table, as the inside of regular expressions.
CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
"""Control characters except tab and line feed: a terminal executes them."""
DIRECTIONS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""Characters that change the writing direction."""
JOINERS = "\u200c\u200d"
"""Part of ordinary words in Persian and in Indic scripts, and of emoji; invisible everywhere else."""
SELECTORS = "\ufe00-\ufe0f"
"""Variation selectors: ordinary after an emoji; elsewhere each can carry four invisible bits."""
INVISIBLE = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2028\u2029\u2060-\u2065\u206a-\u206f\u2800\u3164\ufeff\uffa0"
    "\ufff9-\ufffb\U00013430-\U0001345f\U00016fe4\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
"""Fillers, soft hyphens, invisible operators, annotations, tag characters, the supplement of variation selectors."""
PRIVATE = "\ue000-\uf8ff\U000f0000-\U0010fffd"
"""Private use: their appearance depends on the font."""
NO_CHARACTERS = "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"
"""Surrogates and noncharacters."""
BLANKS = "\u1680\u2000-\u2008\u200a\u205f"
"""Unusual spaces; those of French, Japanese and thousands separators (U+00A0, 2009, 202F, 3000) are not among them."""

# Signs of Arabic, Syriac and Kaithi that Unicode classifies as format characters, but that are visible.
_SEEN_FORMATS = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")
_ORDINARY_SPACES = frozenset("\t\n \u00a0\u2009\u202f\u3000")

MOST_MARKS = 4
"""Combining marks that one letter may have; no language writes more."""
_JOINING_SCRIPTS = ((0x600, 0xDFF), (0xF00, 0x109F), (0x1780, 0x18AF), (0xFB50, 0xFDFF))
_EMOJI_TOO = frozenset("\u203c\u2049\u3030\u2139\u2194\u2195\u2196\u2197\u2198\u2199\u25fb\u25fc\u25fd\u25fe")


@lru_cache(maxsize=4096)
def hidden_kind(character: str) -> HiddenKind | None:
    """The kind of a hidden character, whatever its context; None if it is visible."""
    if character in _ORDINARY_SPACES or character in _SEEN_FORMATS:
        return None
    for kind, pattern in _hidden_classes():
        if pattern.match(character):
            return kind
    match unicodedata.category(character):
        case "Cc":
            return "control"
        # Cn: a character that this version of Python does not know may be anything, so its code point is shown.
        case "Cf" | "Cn" | "Co" | "Cs" | "Zl" | "Zp":
            return "invisible"
        case "Zs":
            return "blank"
        case _:
            return None


@cache
def _hidden_classes() -> tuple[tuple[HiddenKind, re.Pattern[str]], ...]:
    # Compiled on first use: every command imports this module, and most never need the patterns.
    return (
        ("control", re.compile(f"[{CONTROLS}]")),
        ("direction", re.compile(f"[{DIRECTIONS}]")),
        ("blank", re.compile(f"[{BLANKS}]")),
        ("invisible", re.compile(f"[{INVISIBLE}{JOINERS}{SELECTORS}{PRIVATE}{NO_CHARACTERS}]")),
    )


def hidden_places(text: str, *, strict: bool = False) -> dict[int, HiddenKind]:
    """The positions of all hidden characters of a text, with their kinds.

    The context of a character counts: a joiner inside an emoji or a Persian word and one selector after an emoji are
    ordinary, and a combining mark is hidden if too many are on one letter, or if it has no letter.

    `strict` is for names (addresses, paths, links) and for what directs a call: there only plain characters are
    ordinary, and unusual spaces and joiners are hidden as well.

    Example:
        >>> hidden_places("pay\\u200b me")
        {3: 'invisible'}
    """
    if text.isascii() and text.isprintable():
        return {}
    hidden = _hidden_in_context(text)
    if strict and not text.isascii():
        odd = (
            at
            for at, character in enumerate(text)
            if hidden_kind(character) or (character.isspace() and not character.isascii())
        )
        hidden |= dict.fromkeys(odd, "invisible")
    return hidden


def _hidden_in_context(text: str) -> dict[int, HiddenKind]:
    alphabet = set(text)
    suspects = {character for character in alphabet if hidden_kind(character) is not None}
    marks = {character for character in alphabet if unicodedata.category(character) in ("Mn", "Me")}
    if not suspects and not marks:
        return {}
    hidden: dict[int, HiddenKind] = {}
    # Only the flags of England, Scotland and Wales are ordinary emoji with tag characters.
    flags: set[int] = set()
    if "\U0001f3f4" in alphabet:
        flags.update(position for flag in _flag_pattern().finditer(text) for position in range(*flag.span()))
    mark_count, has_base = 0, False
    for position, character in enumerate(text):
        if character in marks:
            mark_count += 1
            if mark_count > MOST_MARKS or not has_base:
                hidden[position] = "invisible"
                continue
        else:
            mark_count, has_base = 0, character not in "\n\t"
        if character in suspects and position not in flags and not _is_ordinary_here(text, position):
            hidden[position] = hidden_kind(character) or "invisible"
    return hidden


def has_hidden(text: str) -> bool:
    """Whether a text has any hidden character."""
    return bool(hidden_places(text))


def make_visible(text: str, *, strict: bool = False) -> str:
    """The text with every hidden character written as its code point; line feeds and tabs stay.

    `strict` is as for `hidden_places`.

    Example:
        >>> make_visible("a\\x1b[31mb")
        'a<001b>[31mb'
    """
    text = text.replace("\r\n", "\n")
    places = hidden_places(text, strict=strict)
    if not places:
        return text
    return "".join(f"<{ord(character):04x}>" if at in places else character for at, character in enumerate(text))


def escape_json(text: str) -> str:
    """JSON with every hidden character escaped: the same value, and nothing that a terminal or log executes."""
    places = hidden_places(text)
    if not places:
        return text
    return "".join(_json_escape(character) if at in places else character for at, character in enumerate(text))


def _json_escape(character: str) -> str:
    code = ord(character)
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\u{0xD800 + ((code - 0x10000) >> 10):04x}\\u{0xDC00 + ((code - 0x10000) & 0x3FF):04x}"


@cache
def _flag_pattern() -> re.Pattern[str]:
    return re.compile(
        "\U0001f3f4\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074"
        "|\U000e0077\U000e006c\U000e0073)\U000e007f"
    )


def _is_ordinary_here(text: str, position: int) -> bool:
    """Whether a joiner or selector has its intended effect at this position."""
    before, after = text[position - 1 : position], text[position + 1 : position + 2]
    match text[position]:
        case "\ufe0e" | "\ufe0f":
            return bool(before) and (_is_emoji(before) or (before in "0123456789#*" and after == "\u20e3"))
        case "\u200d" if before and after and _is_emoji(after):
            return _is_emoji(before) or (before == "\ufe0f" and position > 1 and _is_emoji(text[position - 2]))
        case "\u200c" | "\u200d":
            return bool(before and after) and _is_joining_letter(before) and _is_joining_letter(after)
        case _:
            return False


def _is_joining_letter(character: str) -> bool:
    """Whether a letter belongs to a script in which joiners change the shape of a word."""
    return any(first <= ord(character) <= last for first, last in _JOINING_SCRIPTS)


def _is_emoji(character: str) -> bool:
    if character in _EMOJI_TOO or "\U0001f3fb" <= character <= "\U0001f3ff":
        return True
    return unicodedata.category(character) == "So" and hidden_kind(character) is None


HEAD_PARTS, TAIL_PARTS = 2, 1
"""The lines that are shown are divided in this ratio between the beginning and the end."""


def fold_lines(lines: Sequence[str], most: int, whole: str, how: str = "") -> list[str]:
    """At most about `most` lines of a long text: its head, a line about what is left out, and its tail.

    Args:
        lines: The lines to show.
        most: How many of them.
        whole: The text itself. Its size and hash are shown, so that two texts that differ only in the middle do not
            look the same.
        how: How the whole text can be seen.
    """
    if len(lines) <= most:
        return list(lines)
    tail = max(1, most * TAIL_PARTS // (HEAD_PARTS + TAIL_PARTS))
    head = max(1, most - tail)
    omitted = len(lines) - head - tail
    raw = whole.encode("utf-8", "surrogatepass")
    facts = [f"{omitted:,} more {'line' if omitted == 1 else 'lines'}, {byte_size(len(raw))} in all"]
    facts.append(f"sha256 {hashlib.sha256(raw).hexdigest()[:16]}")
    return [*lines[:head], f"… {'; '.join([*facts, *([how] if how else [])])}", *lines[len(lines) - tail :]]


def byte_size(count: int) -> str:
    """A number of bytes in words."""
    if count < 10_000:
        return f"{count:,} bytes"
    return f"{count / 1000:,.0f} kB" if count < 10_000_000 else f"{count / 1_000_000:,.0f} MB"
