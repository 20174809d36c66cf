"""Notations of cells: a closed set of names for how a column is written, each with its reader.

A plan that was bound names the notation of each column it computes with, so that a run and its replay read a cell in
the same way. Texts that were read are remembered, since a column repeats its words and days, and since the cells that
decided the notation when the plan was bound are read again when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, Literal, cast

from bicameral.columns._amounts import DecimalMark, amount_reader, read_plain_number
from bicameral.columns._dates import date_reader
from bicameral.columns._words import (
    LONGEST_CELL,
    YES_NO_LETTERS,
    parse_yes_no,
    read_letter,
    read_tick,
    read_worded_bit,
)

ColumnKind = Literal["empty", "yes/no", "date", "number", "money", "text", "ambiguous", "mixed"]

KIND_WORDS: Mapping[ColumnKind, str] = {
    "empty": "empty",
    "yes/no": "yes or no",
    "date": "dates",
    "number": "numbers",
    "money": "money",
    "text": "text",
    "ambiguous": "ambiguous",
    "mixed": "of several kinds",
}
FITTING_VALUES: Mapping[ColumnKind, str] = {
    "empty": "anything",
    "yes/no": "True or False, or the word as it stands in the table",
    "date": "a date, such as 2026-03-15",
    "number": "a number",
    "money": "an amount, such as 12.50 or '12.50 EUR'",
    "text": "a text",
    "ambiguous": "a text as it stands in the table, with == or contains",
    "mixed": "a text or a number",
}

NUMBER_FORMS: Mapping[DecimalMark, str] = {".": "1,234.5", ",": "1.234,5"}
GUESSED_NUMBER = "number: 1.234?"
"""The notation of a column in which every point may stand before decimals or between thousands, and nothing decides."""

CellReader = Callable[[object], Any]
"""Reads a cell as a truth value, a day in ISO form or an `Amount`; None for one that does not fit."""


def _find_reader(notation: str) -> CellReader:
    kind, _, form = notation.partition(": ")
    match kind, form:
        case "yes/no", "":
            return parse_yes_no
        case "yes/no", "x":
            return read_tick
        case "yes/no", "1/0":
            return read_worded_bit
        case "yes/no", _ if tuple(form.split("/")) in YES_NO_LETTERS:
            yes, no = form.split("/")
            return partial(read_letter, {yes: True, no: False})
        case "date" | "datetime", "":
            return date_reader(None)
        case "date", "day first" | "month first":
            return date_reader(form)
        case "number", "" | "1.234?":
            return read_plain_number
        case "number" | "money", _ if form in NUMBER_FORMS.values():
            return amount_reader("." if form == NUMBER_FORMS["."] else ",")
        case _:
            raise ValueError(f"{notation[:60]!r} is no notation of cells")


# -- what was read before

MEMO_SIZE = 1 << 17
"""How many texts all notations together remember; with their values they take some 40 MB at most."""


class ReadingMemo:
    """The texts that were read, by notation. When there are too many of them, all are forgotten.

    One limit for all notations: each of a dozen would need a smaller one, and the largest column is what matters.
    Threads may read at the same time. Each operation on a dict is atomic, and a text that another thread forgets or
    reads again has the same value.
    """

    def __init__(self) -> None:
        self._known: dict[str, dict[str, Any]] = {}
        self._added = 0
        """How many texts there are at most: one that was added twice counts twice until they are counted again."""

    def texts(self, notation: str) -> dict[str, Any]:
        """The values of the texts of a notation."""
        return self._known.setdefault(notation, {})

    def make_room(self, count: int = 1) -> bool:
        """Forget all texts if so many more would be too many; False if even then they are."""
        if count > MEMO_SIZE:
            return False
        self._added += count
        if self._added > MEMO_SIZE:
            self._added = count + sum(map(len, list(self._known.values())))
        if self._added > MEMO_SIZE:
            for texts in list(self._known.values()):
                texts.clear()
            self._added = count
        return True


_MEMO = ReadingMemo()


def remember_readings(notation: str, values: Mapping[str, Any]) -> None:
    """Store the values of texts that were read in a notation; of more than `MEMO_SIZE` texts none is stored."""
    if _MEMO.make_room(len(values)):
        _MEMO.texts(notation).update(values)


@lru_cache(maxsize=64)
def notation_reader(notation: str) -> CellReader:
    """The reader of cells in a notation, as a plan names it after a column was bound; ValueError if it is none.

    A notation says how a whole column is written, so that one cell is read in the same way wherever it stands.

    Example:
        >>> notation_reader("date: day first")("3/4/2026"), notation_reader("money: 1.234,5")("1.200,50 €")
        ('2026-04-03', Amount(number=Decimal('1200.50'), unit='EUR'))
    """
    read = _find_reader(notation)
    known = _MEMO.texts(notation)

    def run(cell: object) -> Any:
        # Only exact texts: 1, 1.0 and True are the same key.
        if type(cell) is not str:
            return read(cell)
        try:
            return known[cell]
        except KeyError:
            found = read(cell)
            if len(cell) <= LONGEST_CELL and _MEMO.make_room():
                known[cell] = found
            return found

    return run


def kind_of_notation(notation: str) -> ColumnKind:
    """The kind of a column in a notation."""
    kind = notation.partition(":")[0]
    return "date" if kind == "datetime" else cast("ColumnKind", kind)


def describe_kind(kind: ColumnKind) -> tuple[str, str]:
    """A kind in words for a message, and which values can be compared with a column of it."""
    return KIND_WORDS[kind], FITTING_VALUES[kind]


def describe_guess(notation: str) -> str:
    """How a column was read although its cells can be read in two ways; empty if they decide it."""
    if notation != GUESSED_NUMBER:
        return ""
    return "amounts such as 1.234 were read as 1 and a fraction; if a point stands between thousands they are wrong"
