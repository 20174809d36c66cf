"""Kinds of table columns, found from their cells: yes/no, dates, numbers, money, text.

The cells of a column come in; out comes a `Column` that says what kind they are and reads each of them. A notation is
decided by the column as a whole: `3/4/2026` alone is the third of April or the fourth of March, and a `25/3/2026` in
the same column decides it. A column that fits two readings is `ambiguous`, and nothing is guessed: it can be searched
for a text as it is written, and is neither ordered nor added up.

Columns of native numbers, of truth values and of ISO dates are `plain`: their cells are read as they are.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal, localcontext
from functools import lru_cache, partial
from typing import Any, Literal, cast

from bicameral.text import MONTH_NUMBERS

# Not numbers: 007 and +49 30 1234 (codes, telephone numbers), 1,234 (depends on the country), 12e4 (an item number).
_INT = re.compile(r"0|-?[1-9][0-9]{0,299}")
_FLOAT = re.compile(r"-?(?:0|[1-9][0-9]{0,299})(?:\.[0-9]{1,299})?(?:[eE][-+][0-9]{1,3})?")


def parse_number(text: str) -> int | float | None:
    """The number that a text represents as Python and JSON write it, or None if it is not a number."""
    text = text.strip()
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        value = float(text)
        return value if abs(value) != float("inf") else None
    return None


ColumnKind = Literal["empty", "yes/no", "date", "number", "money", "text", "ambiguous", "mixed"]

MISFIT_SHARE = 5
"""One cell in so many may be something else, such as a remark in a column of dates; more make the column text."""
LONGEST_CELL = 40
"""A longer text is prose and none of the kinds."""
_DIGITS = 700

_MISSING = frozenset(
    "- – — ? . .. ... n/a n.a. na nan none null nil unknown tbd tba unbekannt offen k.a. inconnu n/d s/d "
    "desconocido".split()
)
"""What people write where there is no value. It does not speak against a kind, and is counted as not read."""


@dataclass(frozen=True, slots=True)
class Amount:
    """A number with its unit: a currency, `%`, or nothing."""

    number: Decimal
    unit: str = ""


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
                return _KIND_WORDS[self.kind]

    @property
    def fitting(self) -> str:
        """Which values can be compared with the column."""
        return _FITTING[self.kind]


_KIND_WORDS: Mapping[ColumnKind, str] = {
    "empty": "empty",
    "yes/no": "yes or no",
    "date": "dates",
    "number": "numbers",
    "money": "money",
    "text": "text",
    "ambiguous": "ambiguous",
    "mixed": "of several kinds",
}
_FITTING: Mapping[ColumnKind, str] = {
    "empty": "anything",
    "yes/no": "True or False, or the word as it stands in the table",
    "date": "a date, such as 2026-03-15",
    "number": "a number",
    "money": "an amount, such as 12.50 or '12.50 EUR'",
    "text": "a text",
    "ambiguous": "a text as it stands in the table, with == or contains",
    "mixed": "a text or a number",
}

# -- yes and no

_YES = frozenset("yes ja oui sí si true wahr vrai verdadero cierto sim sì ✓ ✔ ☑ ✅".split())
_NO = frozenset("no nein non false falsch faux falso não nao nee ✗ ✘ ☐ ❌".split())
_LETTERS = (("y", "n"), ("j", "n"), ("o", "n"), ("s", "n"), ("t", "f"))
"""Single letters count only as a pair: a column of `S` alone may be a size."""


def parse_yes_no(value: object) -> bool | None:
    """The truth value that a word stands for in English, German, French, Spanish, Italian, Portuguese or Dutch.

    Example:
        >>> parse_yes_no("Nein"), parse_yes_no("oui"), parse_yes_no("maybe")
        (False, True, None)
    """
    if isinstance(value, bool):
        return value
    if not isinstance(value, str):
        return None
    word = value.strip().casefold()
    return True if word in _YES else False if word in _NO else None


def _yes_no_column(cells: list[object], blanks: int) -> Column | None:
    words = {_fold(cell) for cell in cells}
    if words == {"x"} and blanks:
        return _made("yes/no", cells, "yes/no: x", blank_is_no=True)
    for yes, no in _LETTERS:
        if words == {yes, no}:
            return _made("yes/no", cells, f"yes/no: {yes}/{no}")
    if any(type(cell) is bool or isinstance(cell, str) for cell in cells) and _fits(cells, parse_yes_no):
        return _made("yes/no", cells, "yes/no")
    # 1 and 0 are yes and no only beside cells that say so in words.
    worded = [cell for cell in cells if not (_is_native_number(cell) and cell in (0, 1))]
    if worded and len(worded) < len(cells) and all(parse_yes_no(cell) is not None for cell in worded):
        return _made("yes/no", cells, "yes/no: 1/0") if any(isinstance(cell, str) for cell in worded) else None
    return None


def _read_letter(letters: Mapping[str, bool], cell: object) -> bool | None:
    return letters.get(_fold(cell), parse_yes_no(cell))


def _read_tick(cell: object) -> bool | None:
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return False
    return True if _fold(cell) == "x" else parse_yes_no(cell)


def _read_worded_bit(cell: object) -> bool | None:
    return bool(cell) if _is_native_number(cell) and cell in (0, 1) else parse_yes_no(cell)


# -- dates

Order = Literal["day first", "month first"]

_ISO = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?", re.A)
_DOTTED = re.compile(r"(\d{1,2})\. ?(\d{1,2})\. ?(\d{4}|\d{2})", re.A)
_SLASHED = re.compile(r"(\d{1,2})([/-])(\d{1,2})\2(\d{4}|\d{2})", re.A)
_YEAR_FIRST = re.compile(r"(\d{4})([/.])(\d{1,2})\2(\d{1,2})", re.A)
_DAY_MONTH = re.compile(r"(\d{1,2})(?:\.|st|nd|rd|th|er|º)?(?: de)?[ -]?([^\W\d_]{3,12})\.?,?(?: de)?[ -](\d{4})")
_MONTH_DAY = re.compile(r"([^\W\d_]{3,12})\.? (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})")


def parse_date(text: str, order: Order | None = None) -> dt.date | None:
    """The day that a text names; None if it names none, or if `order` is needed to know which.

    Args:
        text: A whole cell, such as `2026-03-15`, `15.03.2026`, `15/3/2026`, `March 15, 2026` or `15 de marzo de 2026`.
        order: Which number of `3/4/2026` is the day. Without it such a text is read only if it can be read in one way.

    Example:
        >>> parse_date("15. März 2026"), parse_date("3/15/2026"), parse_date("3/4/2026")
        (datetime.date(2026, 3, 15), datetime.date(2026, 3, 15), None)
    """
    text = text.strip()
    if not 6 <= len(text) <= LONGEST_CELL:
        return None
    if match := _ISO.fullmatch(text):
        return _day(match[1], match[2], match[3])
    if match := _DOTTED.fullmatch(text):
        return _day(match[3], match[2], match[1])
    if match := _YEAR_FIRST.fullmatch(text):
        return _day(match[1], match[3], match[4])
    if match := _SLASHED.fullmatch(text):
        day_first, month_first = _day(match[4], match[3], match[1]), _day(match[4], match[1], match[3])
        if order is not None:
            return day_first if order == "day first" else month_first
        return None if day_first and month_first and day_first != month_first else day_first or month_first
    if match := _DAY_MONTH.fullmatch(text):
        return _named_day(match[3], match[2], match[1])
    if match := _MONTH_DAY.fullmatch(text):
        return _named_day(match[3], match[1], match[2])
    return None


def _named_day(year: str, month: str, day: str) -> dt.date | None:
    number = MONTH_NUMBERS.get(month.casefold())
    return None if number is None else _day(year, str(number), day)


def _day(year: str, month: str, day: str) -> dt.date | None:
    number = int(year)
    if len(year) == 2:
        # As POSIX has it: 69 to 99 are years of the last century.
        number += 2000 if number < 69 else 1900
    try:
        return dt.date(number, int(month), int(day))
    except ValueError:
        return None


def is_iso_date(cell: object) -> bool:
    """Whether a cell is a date, or the ISO form of one; such texts are in order as they are."""
    return isinstance(cell, dt.date) or (isinstance(cell, str) and _ISO.fullmatch(cell) is not None)


def _date_reader(order: Order | None) -> Callable[[object], str | None]:
    """Reads a cell as a day in ISO form. A time of day in ISO form is kept: it is part of the order."""

    def read(cell: object) -> str | None:
        if isinstance(cell, dt.date):
            return cell.isoformat()
        if not isinstance(cell, str):
            return None
        text = cell.strip()
        day = parse_date(text, order)
        return None if day is None else text if _ISO.fullmatch(text) else day.isoformat()

    return read


def _date_column(cells: list[object]) -> Column | None:
    # A cell that is a number already is none that the reader of the file could take for a date.
    if any(_is_native_number(cell) or isinstance(cell, bool) for cell in cells):
        return None
    orders: tuple[Order, Order] = ("day first", "month first")
    readers = {order: notation_reader(f"date: {order}") for order in orders}
    fitting = [order for order in orders if _fits(cells, readers[order])]
    unclear = Column("ambiguous", len(cells), plain=False, readings=("day/month/year", "month/day/year"))
    if not fitting:
        # Days in both orders: cells that contradict each other are no text, which would be put in order as it is.
        either = _fits(cells, lambda cell: readers["day first"](cell) or readers["month first"](cell))
        return unclear if either else None
    if all(is_iso_date(cell) or _is_missing(cell) for cell in cells):
        # A day is compared with the day of a moment, and the moments are put in order with their times.
        notation = "datetime" if any(isinstance(cell, str) and len(cell.strip()) > 10 for cell in cells) else "date"
        return replace(_made("date", cells, "date: day first", plain=True), notation=notation)
    if len(fitting) == 2:
        decided = _decide(*([readers[order](cell) for cell in cells] for order in orders))
        if decided is None:
            return unclear
        fitting = [orders[decided]]
    return _made("date", cells, f"date: {fitting[0]}")


# -- numbers and money

Decimals = Literal[".", ","]

# One line per currency: its code, and how people write it.
_CURRENCY_NAMES = (
    "EUR € euro euros",
    "USD $ us$",
    "GBP £",
    "CHF fr. sfr. sfr",
    "JPY ¥",
    "CAD c$",
    "AUD a$",
    "SEK",
    "NOK",
    "DKK",
    "PLN zł",
    "CZK kč",
    "INR ₹",
    "CNY",
    "MXN",
    "BRL r$",
    "HUF",
)
_CURRENCIES = {name.casefold(): names.split()[0] for names in _CURRENCY_NAMES for name in names.split()}
_UNIT = "|".join(re.escape(name) for name in sorted(_CURRENCIES, key=len, reverse=True))
_AMOUNT = re.compile(
    rf"(?P<sign>[-−+]?) ?(?P<before>{_UNIT})? ?(?P<inner>[-−]?)"
    r"(?P<digits>\d[\d.,'’ ]*)(?P<dash>[.,][-–—]{1,2})? ?"
    rf"(?P<after>{_UNIT}|%)?",
    re.A | re.I,
)
_SPACES = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " "})
_GROUPED: Mapping[Decimals, re.Pattern[str]] = {
    # Groups of three digits, all with the same mark, and the decimals with the other one.
    ".": re.compile(r"(?:\d+|[1-9]\d{0,2}(?P<mark>[,'’ ])\d{3}(?:(?P=mark)\d{3})*)(?:\.\d+)?", re.A),
    ",": re.compile(r"(?:\d+|[1-9]\d{0,2}(?P<mark>[.'’ ])\d{3}(?:(?P=mark)\d{3})*)(?:,\d+)?", re.A),
}
_LEADING_ZERO = re.compile(r"0\d")


def parse_amount(text: str, decimals: Decimals) -> Amount | None:
    """The number that a text is in a notation, with its currency or percent sign.

    Args:
        text: A whole cell, such as `1,234.50`, `1.234,50 €`, `CHF 1'234.50`, `-$5` or `12 %`.
        decimals: The mark before the decimals; the other marks can only group digits.

    Example:
        >>> parse_amount("1.200,50 €", ",")
        Amount(number=Decimal('1200.50'), unit='EUR')
    """
    text = text.translate(_SPACES).strip()
    if len(text) > LONGEST_CELL or not (match := _AMOUNT.fullmatch(text)):
        return None
    before, after, digits = match["before"], match["after"], match["digits"].strip()
    if (before and after) or (match["sign"] and match["inner"]) or (match["dash"] and not (before or after)):
        return None
    # +49 30 1234 is a telephone number and 007 a code.
    if match["sign"] == "+" or _LEADING_ZERO.match(digits) or not _GROUPED[decimals].fullmatch(digits):
        return None
    number = Decimal(re.sub(r"[^\d.]", "", digits if decimals == "." else digits.replace(".", "").replace(",", ".")))
    unit = after if after == "%" else _CURRENCIES[(before or after).casefold()] if before or after else ""
    return Amount(-number if match["sign"] or match["inner"] else number, unit)


def _amount_reader(decimals: Decimals) -> Callable[[object], Amount | None]:
    def read(cell: object) -> Amount | None:
        if _is_native_number(cell):
            return Amount(Decimal(str(cell)))
        return parse_amount(cell, decimals) if isinstance(cell, str) else None

    return read


def _amount_column(cells: list[object]) -> Column | None:
    if any(isinstance(cell, dt.date | dt.time | bool | list | dict) for cell in cells):
        return None
    marks: tuple[Decimals, Decimals] = (".", ",")
    readers: dict[Decimals, CellReader] = {mark: notation_reader(f"number: {_NUMBER_FORMS[mark]}") for mark in marks}
    fitting: list[Decimals] = [mark for mark in marks if _fits(cells, readers[mark])]
    unclear = Column("ambiguous", len(cells), plain=False, readings=("1,234 = 1234", "1,234 = 1.234"))
    if not fitting:
        return unclear if _fits(cells, lambda cell: readers["."](cell) or readers[","](cell)) else None
    values: dict[Decimals, list[Any]] = {mark: [readers[mark](cell) for cell in cells] for mark in fitting}
    if len(fitting) == 2:
        decided = _decide(values["."], values[","])
        if decided is None:
            return unclear
        fitting = [marks[decided]]
    amounts = [amount for amount in values[fitting[0]] if amount is not None]
    if fitting[0] == "," and any(isinstance(cell, float) for cell in cells):
        # A file's reader takes the text 1.200 for the number 1.2, and in this column it may have been 1200.
        return Column("ambiguous", len(cells), plain=False, readings=("1.200 = 1200", "1.200 = 1.2"))
    units = tuple(sorted({amount.unit for amount in amounts if amount.unit}))
    if "%" in units and (len(units) > 1 or any(not amount.unit for amount in amounts)):
        return Column("mixed", len(cells))
    kind: ColumnKind = "money" if units and units != ("%",) else "number"
    return _made(kind, cells, f"{kind}: {_NUMBER_FORMS[fitting[0]]}", units=units)


_NUMBER_FORMS: Mapping[Decimals, str] = {".": "1,234.5", ",": "1.234,5"}


# -- notations

CellReader = Callable[[object], Any]
"""Reads a cell as a truth value, a day in ISO form or an `Amount`; None for one that does not fit."""

_MEMO_SIZE = 4_096


@lru_cache(maxsize=64)
def notation_reader(notation: str) -> CellReader:
    """The reader of cells in a notation, as a plan names it after a column was bound; ValueError if it is none.

    A notation says how a whole column is written, so that one cell is read in the same way wherever it stands. Texts
    that were read before are remembered, since a column repeats its words and days.

    Example:
        >>> notation_reader("date: day first")("3/4/2026"), notation_reader("money: 1.234,5")("1.200,50 €")
        ('2026-04-03', Amount(number=Decimal('1200.50'), unit='EUR'))
    """
    return _remembering(_find_reader(notation))


def _find_reader(notation: str) -> CellReader:
    kind, _, form = notation.partition(": ")
    match kind, form:
        case "yes/no", "":
            return parse_yes_no
        case "yes/no", "x":
            return _read_tick
        case "yes/no", "1/0":
            return _read_worded_bit
        case "yes/no", _ if tuple(form.split("/")) in _LETTERS:
            yes, no = form.split("/")
            return partial(_read_letter, {yes: True, no: False})
        case "date" | "datetime", "":
            return _date_reader(None)
        case "date", "day first" | "month first":
            return _date_reader(form)
        case "number", "":
            return _read_plain_number
        case "number" | "money", _ if form in _NUMBER_FORMS.values():
            return _amount_reader("." if form == _NUMBER_FORMS["."] else ",")
        case _:
            raise ValueError(f"{notation[:60]!r} is no notation of cells")


def _remembering(read: CellReader) -> CellReader:
    known: dict[str, Any] = {}

    def run(cell: object) -> Any:
        # Only exact texts: 1, 1.0 and True are the same key.
        if type(cell) is not str:
            return read(cell)
        try:
            return known[cell]
        except KeyError:
            found = read(cell)
            if len(cell) <= LONGEST_CELL:
                if len(known) >= _MEMO_SIZE:
                    known.clear()
                known[cell] = found
            return found

    return run


def _read_plain_number(cell: object) -> Amount | None:
    if isinstance(cell, str):
        return None if parse_number(cell) is None else Amount(Decimal(cell.strip()))
    return Amount(Decimal(str(cell))) if _is_native_number(cell) else None


def kind_of_notation(notation: str) -> ColumnKind:
    """The kind of a column in a notation."""
    kind = notation.partition(":")[0]
    return "date" if kind == "datetime" else cast("ColumnKind", kind)


def describe_kind(kind: ColumnKind) -> tuple[str, str]:
    """A kind in words for a message, and which values can be compared with a column of it."""
    return _KIND_WORDS[kind], _FITTING[kind]


def is_blank(cell: object) -> bool:
    """Whether a cell is empty."""
    return _is_blank(cell)


def is_missing(cell: object) -> bool:
    """Whether a cell is empty, or says that there is no value, such as `n/a`."""
    return _is_blank(cell) or _is_missing(cell)


# -- the column as a whole


def find_column_kind(cells: Iterable[object]) -> Column:
    """The kind of a column, found from all its cells.

    Args:
        cells: The cells as a file was read: numbers, truth values, dates and texts.

    Example:
        >>> find_column_kind(["ja", "nein", "", "ja"]).kind
        'yes/no'
        >>> find_column_kind(["3/4/2026", "5/6/2026"]).kind
        'ambiguous'
    """
    cells = list(cells)
    types = set(map(type, cells))
    # Most columns have numbers only, and are told by the types of their cells.
    if types <= {int, float, type(None)}:
        return Column("number", len(cells), notation="number") if types - {type(None)} else Column("empty")
    filled = [cell for cell in cells if not _is_blank(cell)]
    if not filled:
        return Column("empty")
    if types <= {bool, type(None)}:
        return Column("yes/no", len(filled), reads=parse_yes_no, notation="yes/no")
    # A column of words is told by its first cell.
    if all(map(_is_plain_or_missing, filled)):
        numbers = sum(_is_native_number(cell) or _is_plain_number(cell) for cell in filled)
        if numbers:
            return Column("number", len(filled), len(filled) - numbers, notation="number")
    found = _yes_no_column(filled, len(cells) - len(filled)) or _date_column(filled) or _amount_column(filled)
    return found or Column("text" if all(isinstance(cell, str) for cell in filled) else "mixed", len(filled))


def _made(
    kind: ColumnKind,
    cells: list[object],
    notation: str,
    *,
    plain: bool = False,
    units: tuple[str, ...] = (),
    blank_is_no: bool = False,
) -> Column:
    reads = notation_reader(notation)
    unread = sum(reads(cell) is None for cell in cells)
    return Column(kind, len(cells), unread, plain, units, (), reads, blank_is_no, notation)


def _fits(cells: list[object], reads: Callable[[object], Any]) -> bool:
    """Whether nearly all cells can be read so, and at least one; gives up as soon as too many cannot."""
    allowed, misfits, found = len(cells) // MISFIT_SHARE, 0, False
    for cell in cells:
        if reads(cell) is not None:
            found = True
        elif not _is_missing(cell):
            misfits += 1
            if misfits > allowed:
                return False
    return found


def _decide(first: list[Any], second: list[Any]) -> int | None:
    """Which of two readings of the same cells is right; None if the cells do not decide it, or contradict each other.

    A reading is right if some cell can only be read in this way, and none only in the other.
    """
    if first == second:
        return 0
    only_first = any(one is not None and other is None for one, other in zip(first, second, strict=True))
    only_second = any(one is None and other is not None for one, other in zip(first, second, strict=True))
    return None if only_first == only_second else int(only_second)


def _is_plain_or_missing(cell: object) -> bool:
    return _is_native_number(cell) or _is_plain_number(cell) or _is_missing(cell)


def _is_plain_number(cell: object) -> bool:
    return isinstance(cell, str) and parse_number(cell) is not None


def _is_native_number(cell: object) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def _is_blank(cell: object) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _is_missing(cell: object) -> bool:
    return isinstance(cell, str) and len(cell) <= 20 and _fold(cell) in _MISSING


def _fold(cell: object) -> str:
    return cell.strip().casefold() if isinstance(cell, str) and len(cell) <= LONGEST_CELL else repr(type(cell))


def add_amounts(amounts: Iterable[Amount]) -> Decimal:
    """The exact sum of amounts in one currency; ValueError if there are several."""
    amounts = list(amounts)
    units = {amount.unit for amount in amounts if amount.unit}
    if len(units) > 1:
        raise ValueError(", ".join(sorted(units)))
    with localcontext() as context:
        context.prec = _DIGITS
        return sum((amount.number for amount in amounts), Decimal(0))
