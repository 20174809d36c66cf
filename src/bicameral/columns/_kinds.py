"""Kinds of columns: all cells of a column together decide what they are and how they are written.

Each text is read once, however often it occurs, and in all readings that are possible at once.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from typing import Any

from bicameral.columns._amounts import (
    DECIMAL_MARKS,
    Amount,
    DecimalMark,
    parse_number,
    read_amounts,
)
from bicameral.columns._dates import DATE_ORDERS, is_iso_date, read_days
from bicameral.columns._notations import (
    FITTING_VALUES,
    GUESSED_NUMBER,
    KIND_WORDS,
    NUMBER_FORMS,
    ColumnKind,
    describe_guess,
    notation_reader,
    remember_readings,
)
from bicameral.columns._words import (
    LONGEST_CELL,
    YES_NO_LETTERS,
    fold_cell,
    is_native_bit,
    is_native_number,
    is_placeholder,
    parse_yes_no,
)

MISFIT_SHARE = 5
"""One cell in so many may be something else, such as a remark in a column of dates; more make the column text."""


@dataclass(frozen=True, slots=True)
class Column:
    """What the cells of a column are.

    Args:
        kind: The kind that all its filled cells have, apart from `unread` of them.
        filled: How many cells are not empty.
        unread: How many filled cells do not fit the kind.
        plain: Whether its cells are compared as they are.
        units: The currencies of its amounts, or `%`.
        readings: The two readings of an ambiguous column, in words.
        reads: Reads a cell or a value that is compared with one; None if it does not fit.
        blank_is_no: Whether an empty cell means no, beside ticks.
        notation: How its cells are written, as one of a closed set of texts that `notation_reader` takes; empty where
            they are read as they are or cannot be read.
    """

    kind: ColumnKind
    filled: int = 0
    unread: int = 0
    plain: bool = True
    units: tuple[str, ...] = ()
    readings: tuple[str, ...] = ()
    reads: Callable[[object], Any] = field(default=lambda cell: cell, repr=False, compare=False)
    blank_is_no: bool = False
    notation: str = ""

    @property
    def description(self) -> str:
        """The kind for a message, such as `money (CHF, EUR)`."""
        match self.kind:
            case "ambiguous":
                return f"ambiguous: it can be read as {' or as '.join(self.readings)}"
            case "number" if self.units == ("%",):
                return "percentages"
            case "money" if self.units:
                return f"money ({', '.join(self.units)})"
            case _:
                return KIND_WORDS[self.kind]

    @property
    def fitting(self) -> str:
        """Which values can be compared with the column."""
        return FITTING_VALUES[self.kind]

    @property
    def guess(self) -> str:
        """How the column was read although nothing decides how it is meant; empty if something does."""
        return describe_guess(self.notation)


def find_column_kind(cells: Iterable[object], decimals: DecimalMark | None = None) -> Column:
    """The kind of a column, found from all its cells.

    Args:
        cells: The cells as a file was read: numbers, truth values, dates and texts.
        decimals: The mark that people write before decimals where the table comes from. It decides only what no cell
            does.

    Example:
        >>> find_column_kind(["ja", "nein", "", "ja"]).kind
        'yes/no'
        >>> find_column_kind(["3/4/2026", "5/6/2026"]).kind
        'ambiguous'
        >>> find_column_kind(["1.234", "2.500"], ",").notation
        'number: 1.234,5'
    """
    cells = list(cells)
    return _find_kind(set(map(type, cells)), len(cells), lambda: _FilledCells(cells), decimals)


def find_counted_kind(
    different: Sequence[object], counts: Sequence[int], decimals: DecimalMark | None = None
) -> Column:
    """The same as `find_column_kind`, from the different cells of a column and how often each of them occurs.

    Args:
        different: The different cells, in the order in which they first occur.
        counts: How often each occurs.
        decimals: The mark before decimals where no cell decides it.

    Example:
        >>> find_counted_kind(["ja", "nein"], [700, 300]).filled
        1000
    """
    return _find_kind(set(map(type, different)), sum(counts), lambda: _FilledCells(different, counts), decimals)


def _find_kind(
    types: set[type], length: int, fill: Callable[[], _FilledCells], decimals: DecimalMark | None
) -> Column:
    # Most columns have numbers only, and are told by the types of their cells.
    if types <= {int, float, type(None)}:
        return Column("number", length, notation="number") if types - {type(None)} else Column("empty")
    found = fill()
    if not found.count:
        return Column("empty")
    if types <= {bool, type(None)}:
        return Column("yes/no", found.count, reads=parse_yes_no, notation="yes/no")
    column = _plain_number_column(found, decimals) or _yes_no_column(found) or _date_column(found)
    column = column or _amount_column(found, decimals)
    return column or Column("mixed" if found.others else "text", found.count)


class _FilledCells:
    """The cells of a column that are not empty: its texts, each once with how often it occurs, and all others."""

    def __init__(self, cells: Sequence[object], counts: Sequence[int] | None = None) -> None:
        texts: dict[str, int] = {}
        others: list[object] = []
        for cell, times in zip(cells, repeat(1) if counts is None else counts, strict=False):
            if isinstance(cell, str):
                texts[cell] = texts.get(cell, 0) + times
            elif cell is not None:
                others += (cell,) * times
        for blank in [text for text in texts if not text or text.isspace()]:
            del texts[blank]
        self.texts = texts
        self.others = others
        self.count = sum(texts.values()) + len(others)
        self.blanks = (len(cells) if counts is None else sum(counts)) - self.count
        self.allowed = self.count // MISFIT_SHARE
        """How many cells may be something else."""

    def read(self, reads: Callable[[object], Any], is_read: Callable[[Any], bool]) -> _Readings | None:
        """All cells in a reading; None if too many of them cannot be read, or all."""
        texts: dict[str, Any] = {}
        misfits, some = 0, False
        for text, times in self.texts.items():
            found = texts[text] = reads(text)
            if is_read(found):
                some = True
            elif not is_placeholder(text):
                misfits += times
                if misfits > self.allowed:
                    return None
        others = [reads(cell) for cell in self.others]
        misfits += sum(not is_read(found) for found in others)
        some = some or any(map(is_read, others))
        return _Readings(texts, others) if some and misfits <= self.allowed else None

    def make_column(self, kind: ColumnKind, notation: str, values: _Readings) -> Column:
        """The column in a notation, with the values of its cells in it."""
        unread = sum(times for text, times in self.texts.items() if values.texts[text] is None)
        unread += sum(found is None for found in values.others)
        # A run reads the same cells again.
        remember_readings(notation, {text: found for text, found in values.texts.items() if len(text) <= LONGEST_CELL})
        return Column(kind, self.count, unread, plain=False, reads=notation_reader(notation), notation=notation)


@dataclass(frozen=True, slots=True)
class _Readings:
    """What was read in the texts of a column, and in its other cells in their order."""

    texts: dict[str, Any]
    others: list[Any]

    def choose(self, number: int) -> _Readings:
        """One of two readings of each cell."""
        texts = {text: found[number] for text, found in self.texts.items()}
        return _Readings(texts, [found[number] for found in self.others])

    def pairs(self) -> Iterable[tuple[Any, Any]]:
        """The two readings of each cell."""
        yield from self.texts.values()
        yield from self.others


def _is_one(found: Any) -> bool:
    return found is not None


def _is_one_of_two(found: tuple[Any, Any]) -> bool:
    return found[0] is not None or found[1] is not None


def _fitting_readings(cells: _FilledCells, both: _Readings) -> list[int]:
    """Which of the two readings fit nearly all cells."""
    neither = first_only = second_only = 0
    some_first = some_second = False
    counted = zip(both.texts.values(), cells.texts.values(), cells.texts, strict=True)
    for (first, second), times, cell in chain(counted, ((found, 1, "") for found in both.others)):
        if first is None and second is None:
            neither += 0 if is_placeholder(cell) else times
            continue
        some_first, some_second = some_first or first is not None, some_second or second is not None
        if second is None:
            first_only += times
        elif first is None:
            second_only += times
    fits_first = some_first and neither + second_only <= cells.allowed
    fits_second = some_second and neither + first_only <= cells.allowed
    return [number for number, fits in enumerate((fits_first, fits_second)) if fits]


def _decide(pairs: Iterable[tuple[Any, Any]]) -> int | None:
    """Which of two readings of the same cells is right; None if the cells do not decide it, or contradict each other.

    A reading is right if some cell can only be read in this way, and none only in the other.
    """
    differ = only_first = only_second = False
    for first, second in pairs:
        if first is second:
            continue
        if second is None:
            only_first = True
        elif first is None:
            only_second = True
        differ = differ or first != second
    if not differ:
        return 0
    return None if only_first == only_second else int(only_second)


def _contradict(pairs: Iterable[tuple[Any, Any]]) -> bool:
    """Whether some cell can only be read in one way and some only in the other."""
    found = {first is None for first, second in pairs if (first is None) != (second is None)}
    return len(found) == 2


# -- yes and no


def _yes_no_column(cells: _FilledCells) -> Column | None:
    # Letters and ticks are told by the words of the column; a column with many of them is none of these.
    words: set[str] = set()
    for text in cells.texts:
        words.add(fold_cell(text))
        if len(words) > 2:
            break
    words |= set(map(fold_cell, cells.others))
    if words == {"x"} and cells.blanks:
        return _read_yes_no(cells, "yes/no: x", blank_is_no=True)
    for yes, no in YES_NO_LETTERS:
        if words == {yes, no}:
            return _read_yes_no(cells, f"yes/no: {yes}/{no}")
    told = bool(cells.texts) or any(type(cell) is bool for cell in cells.others)
    if told and (found := cells.read(parse_yes_no, _is_one)) is not None:
        return cells.make_column("yes/no", "yes/no", found)
    # 1 and 0 are yes and no only beside cells that say so in words.
    bits = sum(map(is_native_bit, cells.others))
    worded = (cell for each in (cells.texts, cells.others) for cell in each if not is_native_bit(cell))
    if bits and cells.texts and all(parse_yes_no(cell) is not None for cell in worded):
        return _read_yes_no(cells, "yes/no: 1/0")
    return None


def _read_yes_no(cells: _FilledCells, notation: str, *, blank_is_no: bool = False) -> Column:
    reads = notation_reader(notation)
    found = _Readings({text: reads(text) for text in cells.texts}, [reads(cell) for cell in cells.others])
    return replace(cells.make_column("yes/no", notation, found), blank_is_no=blank_is_no)


# -- dates


def _date_column(cells: _FilledCells) -> Column | None:
    # A cell that is a number already is none that the reader of the file could take for a date.
    if any(isinstance(cell, int | float) for cell in cells.others):
        return None
    both = cells.read(read_days, _is_one_of_two)
    if both is None:
        return None
    fitting = _fitting_readings(cells, both)
    unclear = Column("ambiguous", cells.count, plain=False, readings=("day/month/year", "month/day/year"))
    if not fitting:
        # Days in both orders: cells that contradict each other are no text, which would be put in order as it is.
        return unclear
    if all(is_iso_date(cell) for cell in cells.others) and all(
        is_iso_date(text) or is_placeholder(text) for text in cells.texts
    ):
        # A day is compared with the day of a moment, and the moments are put in order with their times.
        notation = "datetime" if any(len(text.strip()) > 10 for text in cells.texts) else "date"
        reads = notation_reader("date: day first")
        return replace(cells.make_column("date", notation, both.choose(0)), plain=True, reads=reads)
    number = fitting[0] if len(fitting) == 1 else _decide(both.pairs())
    if number is None:
        return unclear
    return cells.make_column("date", f"date: {DATE_ORDERS[number]}", both.choose(number))


# -- numbers and money

_THOUSANDS_OR_DECIMALS = re.compile(r"-?[1-9][0-9]{0,2}\.[0-9]{3}")


def is_twofold_number(text: str) -> bool:
    """Whether the point in a text may stand before decimals or between thousands, as in `1.234`."""
    return _THOUSANDS_OR_DECIMALS.fullmatch(text.strip()) is not None


def _plain_number_column(cells: _FilledCells, decimals: DecimalMark | None) -> Column | None:
    """A column of numbers as Python and JSON write them.

    A column in which each point can stand between thousands as well is read as the settings say, and without them as
    programs write numbers; then it carries the guess, and an answer that rests on it says so.
    """
    if not all(map(is_native_number, cells.others)):
        return None
    numbers, twofold, decided = len(cells.others), False, any(isinstance(cell, float) for cell in cells.others)
    for text, times in cells.texts.items():
        # A column of words is told by its first cell.
        if parse_number(text) is not None:
            numbers += times
            if not text.strip().lstrip("-").isdigit():
                twofold, decided = (True, decided) if is_twofold_number(text) else (twofold, True)
        elif not is_placeholder(text):
            return None
    if not numbers:
        return None
    unread = cells.count - numbers
    if not twofold or decided or decimals == ".":
        return Column("number", cells.count, unread, notation="number")
    if decimals == ",":
        return _amount_column(cells, decimals)
    reads = notation_reader(GUESSED_NUMBER)
    return Column("number", cells.count, unread, plain=False, reads=reads, notation=GUESSED_NUMBER)


def _amount_column(cells: _FilledCells, decimals: DecimalMark | None) -> Column | None:
    if any(isinstance(cell, dt.date | dt.time | bool | list | dict) for cell in cells.others):
        return None
    both = cells.read(read_amounts, _is_one_of_two)
    if both is None:
        return None
    fitting = _fitting_readings(cells, both)
    unclear = Column("ambiguous", cells.count, plain=False, readings=("1,234 = 1234", "1,234 = 1.234"))
    if not fitting:
        return unclear
    number = fitting[0] if len(fitting) == 1 else _decide(both.pairs())
    if number is None and decimals is not None and not _contradict(both.pairs()):
        number = DECIMAL_MARKS.index(decimals)
    if number is None:
        return unclear
    if number == 1 and any(isinstance(cell, float) for cell in cells.others):
        # A program that wrote the text 1.200 as the number 1.2 did not know that in this column it is 1200.
        return Column("ambiguous", cells.count, plain=False, readings=("1.200 = 1200", "1.200 = 1.2"))
    values = both.choose(number)
    amounts: list[Amount] = [found for each in (values.texts.values(), values.others) for found in each if found]
    units = tuple(sorted({amount.unit for amount in amounts} - {""}))
    if "%" in units and (len(units) > 1 or any(not amount.unit for amount in amounts)):
        return Column("mixed", cells.count)
    kind: ColumnKind = "money" if units and units != ("%",) else "number"
    return replace(cells.make_column(kind, f"{kind}: {NUMBER_FORMS[DECIMAL_MARKS[number]]}", values), units=units)
