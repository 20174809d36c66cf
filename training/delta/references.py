"""References in the request's own words: what a planner cannot read in a request it can only make up.

A block has one plan for many phrasings, so that `file("heating bills")` also stands under "What did heating cost?". The
build gives each phrasing the plan in its own words:

- A file is called by those of its words that the phrasing has. A phrasing that has none of them is left out.
- A column of days that the phrasing does not name is `column("date")`, in the language of the request: *bills of May*
  says nothing of a *due date*. The binder takes the only column with days for it.
- Other columns keep the block's word: *who paid most* means an amount, whatever it is called.
- A field of JSON is read with a key only where the phrasing has its word: nobody knows what a service calls its fields.
  A phrasing without it is left out; what stands in JSON somewhere is read with `extract`.
- A search over everything has those of the block's words that the phrasing has, in the spelling of the block: a word of
  the plan's own would find what nobody asked for, and a slip of the phrasing nothing. With none of them it stays.
"""

from __future__ import annotations

import re
from functools import cache

from bicameral.binding._words import same_stem, vocabulary, words_of

from .compose.domains import LANGUAGES, load_language

_FILE = re.compile(r"""\bfile\("([^"<>]+)"\)""")
_COLUMN = re.compile(r"""\bcolumn\((["'])([^"']+)\1\)""")
_COMPARED = re.compile(
    r"""column\(["']([^"']+)["']\)(?:\]\s*(?:[<>]=?|==)\s*|,\s*"(?:[<>]=?|==)",\s*)(?:date\(|today\(\))"""
)
# Compared with a truth value, a number or a text that is no day, taken as a condition, or added up: no days.
_OTHERWISE = re.compile(
    r"""column\(["']([^"']+)["']\)(?:\]\s*(?:[<>]=?|[!=]=)\s*|,\s*"(?:[<>]=?|[!=]=)",\s*)"""
    r"""(?:True\b|False\b|value\(|\d|["'](?!\d{4}-\d{2}|<))"""
)
_CONDITION = re.compile(
    r"""\b(?:not|and|or|if) \w+\[column\(["']([^"']+)["']\)\](?=\s*(?:$|[\]):]|and\b|or\b|else\b))"""
)
_ADDED = re.compile(r"""\bgroup_rows\(\w+, column\(["'][^"']+["']\), column\(["']([^"']+)["']\)\)""")
_JSON = re.compile(r"\b(?:fetch_json|read_json)\(")
_KEY = re.compile(r"""\[(["'])([^"'<>]+)\1\]""")
_FIND = re.compile(r"""\bfind\("([^"<>]+)"\)""")
_DATE = {"en": "date", "de": "Datum", "fr": "date", "es": "fecha"}
_SHORTEST = 4


class UnnamedError(ValueError):
    """A plan reads something that the request has no word for."""


def in_own_words(plan: str, request: str, language: str) -> str:
    """The plan with its references in words of the request.

    Raises:
        UnnamedError: The request has no word of a file that the plan reads, or of a field of its JSON.

    Example:
        >>> in_own_words('rows = read_csv(file("heating bills"))', "What did heating cost?", "en")
        'rows = read_csv(file("heating"))'
    """
    said = words_of(request)
    if _JSON.search(plan) and (unsaid := [match[2] for match in _KEY.finditer(plan) if not _is_named(match[2], said)]):
        raise UnnamedError(f"the request has no word of the field {unsaid[0]!r}")
    plan = _FILE.sub(lambda match: f'file("{_named_part(match[1], said)}")', plan)
    plan = _FIND.sub(lambda match: f'find("{_said_words(match[1], said)}")', plan)
    days = {name for name in _day_columns(plan, language) if not _is_named(name, said)}
    # Two columns of days would become one.
    if len(days) == 1:
        plan = _COLUMN.sub(lambda match: _dated(match, days, language), plan)
    return plan


def _dated(match: re.Match[str], days: set[str], language: str) -> str:
    return f"column({match[1]}{_DATE[language]}{match[1]})" if match[2] in days else match[0]


def _day_columns(plan: str, language: str) -> set[str]:
    used = {match[2] for match in _COLUMN.finditer(plan)}
    # What a column is called is not what its cells are: `bought` is a day in one table and yes or no in another.
    others = {name for pattern in (_OTHERWISE, _CONDITION, _ADDED) for name in pattern.findall(plan)}
    return set(_COMPARED.findall(plan)) | (used & _known_days(language)) - others


@cache
def _known_days(language: str) -> frozenset[str]:
    """The columns of days of the composed domains."""
    domains = load_language(language if language in LANGUAGES else "en").domains
    return frozenset(each.day.column for each in domains if each.day is not None)


def _named_part(words: str, said: tuple[str, ...]) -> str:
    table = vocabulary()
    tokens = words.split()
    own = [any(_is_said(part, said) for part in words_of(token)) for token in tokens]
    telling = [
        named and not all(part in table.empty | table.generic for part in words_of(token))
        for token, named in zip(tokens, own, strict=True)
    ]
    if not any(telling):
        if any(own):
            return words
        raise UnnamedError(f"the request has no word of file({words!r})")
    kept: list[str] = []
    linked: list[str] = []
    for place, token in enumerate(tokens):
        empty = all(part in table.empty for part in words_of(token))
        if empty:
            # `of the` stays between two words that stay, and goes with either of them.
            linked = [*linked, token] if kept and (place == 0 or tokens[place - 1] in (kept[-1], *linked)) else []
        elif own[place]:
            kept += [*linked, token]
            linked = []
        else:
            linked = []
    return " ".join(kept)


def _said_words(words: str, said: tuple[str, ...]) -> str:
    """The words of a search that a request has, with what stands between two of them."""
    try:
        return _named_part(words, said)
    except UnnamedError:
        return words


def _is_named(name: str, said: tuple[str, ...]) -> bool:
    return any(_is_said(part, said) for part in words_of(name) if part not in vocabulary().empty)


def _is_said(word: str, said: tuple[str, ...]) -> bool:
    """Whether a form of a word is among those of the request: the same beginning, or a part of a compound."""
    if word in said or f"{word}s" in said or any(same_stem(word, each) for each in said):
        return True
    start = word[: max(_SHORTEST, len(word) - 3)]
    return len(word) >= _SHORTEST and any(each.startswith(start) or (len(each) > 5 and each in word) for each in said)
