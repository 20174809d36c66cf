"""Numbers in cells: as programs write them, and as people do, with grouped digits, currencies and percent signs.

A text such as `1.234` or `1,234` is two numbers, one for each mark before the decimals. `read_amounts` gives both in
one pass, so that a column is read once to decide which of them is meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Literal

from bicameral.columns._words import LONGEST_CELL, is_native_number

# Not numbers: 007 and +49 30 1234 (codes, telephone numbers), 1,234 (depends on the country), 12e4 (an item number).
_INT = re.compile(r"0|-?[1-9][0-9]{0,299}")
_FLOAT = re.compile(r"-?(?:0|[1-9][0-9]{0,299})(?:\.[0-9]{1,299})?(?:[eE][-+][0-9]{1,3})?")
_DIGITS = 700


def parse_number(text: str) -> int | float | None:
    """The number that a text represents as Python and JSON write it, or None if it is not a number."""
    text = text.strip()
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        value = float(text)
        return value if abs(value) != float("inf") else None
    return None


@dataclass(frozen=True, slots=True)
class Amount:
    """A number with its unit: a currency, `%`, or nothing."""

    number: Decimal
    unit: str = ""


DecimalMark = Literal[".", ","]
DECIMAL_MARKS: tuple[DecimalMark, DecimalMark] = (".", ",")

AmountReadings = tuple[Amount | None, Amount | None]
"""A cell with a point before its decimals and with a comma; None where it cannot be read so."""

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
_SPACES = str.maketrans(dict.fromkeys("\u00a0\u202f\u2009", " "))
_GROUPED: Mapping[DecimalMark, re.Pattern[str]] = {
    # Groups of three digits, all with the same mark, and the decimals with the other one.
    ".": re.compile(r"(?:\d+|[1-9]\d{0,2}(?P<mark>[,'’ ])\d{3}(?:(?P=mark)\d{3})*)(?:\.\d+)?", re.A),
    ",": re.compile(r"(?:\d+|[1-9]\d{0,2}(?P<mark>[.'’ ])\d{3}(?:(?P=mark)\d{3})*)(?:,\d+)?", re.A),
}
_WITH_POINT, _WITH_COMMA = _GROUPED["."].fullmatch, _GROUPED[","].fullmatch
_LEADING_ZERO = re.compile(r"0\d", re.A)
_TO_DECIMAL = {".": str.maketrans("", "", ",'’ "), ",": str.maketrans(",", ".", ".'’ ")}


def parse_amount(text: str, decimals: DecimalMark) -> Amount | None:
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
    number = Decimal(digits.translate(_TO_DECIMAL[decimals]))
    unit = after if after == "%" else _CURRENCIES[(before or after).casefold()] if before or after else ""
    return Amount(number.copy_negate() if match["sign"] or match["inner"] else number, unit)


# -- both readings at once

_PARTS = re.compile(r"([^0-9]*)([0-9](?:[0-9.,'’ ]*[0-9])?)([^0-9]*)")
_AFFIX_MEMO_SIZE = 1_024
_affixes: dict[tuple[str, str], Amount | None] = {("", ""): Amount(Decimal(1)), ("-", ""): Amount(Decimal(-1))}


def _read_affixes(head: str, tail: str) -> Amount | None:
    """What stands around the digits of an amount: its sign as 1 or -1, and its unit; None if it is no amount.

    A column has a few of them (`€ `, ` EUR`), so that each is parsed once.
    """
    key = head, tail
    try:
        return _affixes[key]
    except KeyError:
        # The digits have no influence on what may stand around them.
        found = parse_amount(f"{head}1{tail}", ".")
        if len(_affixes) >= _AFFIX_MEMO_SIZE:
            _affixes.clear()
        _affixes[key] = found
        return found


def parse_amounts(text: str) -> AmountReadings:
    """The amounts that a text is with a point and with a comma before its decimals; as `parse_amount`, but faster."""
    text = text.strip()
    if len(text) > LONGEST_CELL:
        return None, None
    match = _PARTS.fullmatch(text)
    if match is None:
        # Other spaces between the digits; around them `parse_amount` knows them.
        match = None if text.isascii() else _PARTS.fullmatch(text.translate(_SPACES))
        if match is None:
            return None, None
    head, digits, tail = match.groups()
    around = _read_affixes(head, tail)
    if around is None or (digits[0] == "0" and digits[1:2].isdigit()):
        return None, None
    unit, sign = around.unit, "-" if around.number < 0 else ""
    if digits.isdigit():
        both = Amount(Decimal(sign + digits), unit)
        return both, both
    # Where both marks occur, the last one is that of the decimals.
    last_point, last_comma = digits.rfind("."), digits.rfind(",")
    point = comma = None
    if not (0 <= last_point < last_comma) and (match := _WITH_POINT(digits)):
        plain = digits.replace(mark, "") if (mark := match[1]) else digits
        point = Amount(Decimal(sign + plain), unit)
    if not (0 <= last_comma < last_point) and (match := _WITH_COMMA(digits)):
        plain = (digits.replace(mark, "") if (mark := match[1]) else digits).replace(",", ".")
        comma = Amount(Decimal(sign + plain), unit)
        # Groups with a blank or an apostrophe and no decimals: the same number in both.
        comma = point if comma == point else comma
    return point, comma


def read_amounts(cell: object) -> AmountReadings:
    """A cell in both notations; a number that is one already is the same in both."""
    if isinstance(cell, str):
        return parse_amounts(cell)
    found = Amount(Decimal(str(cell))) if is_native_number(cell) else None
    return found, found


def amount_reader(decimals: DecimalMark) -> Callable[[object], Amount | None]:
    """Reads a cell with this mark before the decimals."""
    number = DECIMAL_MARKS.index(decimals)
    return lambda cell: read_amounts(cell)[number]


def read_plain_number(cell: object) -> Amount | None:
    """A cell that is a number, or is written as Python and JSON write one."""
    if isinstance(cell, str):
        return None if parse_number(cell) is None else Amount(Decimal(cell.strip()))
    return Amount(Decimal(str(cell))) if is_native_number(cell) else None


def add_amounts(amounts: Iterable[Amount]) -> Decimal:
    """The exact sum of amounts in one currency; ValueError if there are several."""
    amounts = list(amounts)
    units = {amount.unit for amount in amounts if amount.unit}
    if len(units) > 1:
        raise ValueError(", ".join(sorted(units)))
    with localcontext() as context:
        context.prec = _DIGITS
        return sum((amount.number for amount in amounts), Decimal(0))
