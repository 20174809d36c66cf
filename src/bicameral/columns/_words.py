"""Words in cells: yes and no in several languages, and what people write where there is no value."""

from __future__ import annotations

from collections.abc import Mapping

LONGEST_CELL = 40
"""A longer text is prose and none of the kinds."""
_LONGEST_MISSING = 20

_MISSING = frozenset(
    "- – — ? . .. ... n/a n.a. na nan none null nil unknown tbd tba unbekannt offen k.a. inconnu n/d s/d "
    "desconocido".split()
)
"""What people write where there is no value. It does not speak against a kind, and is counted as not read."""

_YES = frozenset("yes ja oui sí si true wahr vrai verdadero cierto sim sì ✓ ✔ ☑ ✅".split())
_NO = frozenset("no nein non false falsch faux falso não nao nee ✗ ✘ ☐ ❌".split())
_TRUTHS: Mapping[str, bool] = {**dict.fromkeys(_YES, True), **dict.fromkeys(_NO, False)}

YES_NO_LETTERS = (("y", "n"), ("j", "n"), ("o", "n"), ("s", "n"), ("t", "f"))
"""Single letters count only as a pair: a column of `S` alone may be a size."""


def fold_cell(cell: object) -> str:
    """A short text without the blanks around it and in small letters; anything else as the name of its class."""
    return cell.strip().casefold() if isinstance(cell, str) and len(cell) <= LONGEST_CELL else repr(type(cell))


def is_blank(cell: object) -> bool:
    """Whether a cell is empty."""
    return cell is None or (isinstance(cell, str) and (not cell or cell.isspace()))


def is_placeholder(cell: object) -> bool:
    """Whether a cell says that there is no value, such as `n/a`."""
    return isinstance(cell, str) and len(cell) <= _LONGEST_MISSING and fold_cell(cell) in _MISSING


def is_missing(cell: object) -> bool:
    """Whether a cell is empty, or says that there is no value, such as `n/a`."""
    return is_blank(cell) or is_placeholder(cell)


def is_native_number(cell: object) -> bool:
    """Whether a cell is a number already, and not a text; a truth value is none."""
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def is_native_bit(cell: object) -> bool:
    """Whether a cell is the number 1 or 0."""
    return is_native_number(cell) and cell in (0, 1)


def parse_yes_no(value: object) -> bool | None:
    """The truth value that a word stands for in English, German, French, Spanish, Italian, Portuguese or Dutch.

    Example:
        >>> parse_yes_no("Nein"), parse_yes_no("oui"), parse_yes_no("maybe")
        (False, True, None)
    """
    if isinstance(value, bool):
        return value
    return _TRUTHS.get(value.strip().casefold()) if isinstance(value, str) else None


def read_letter(letters: Mapping[str, bool], cell: object) -> bool | None:
    """A cell of a column that writes yes and no as two letters; the words are read, too."""
    return letters.get(fold_cell(cell), parse_yes_no(cell))


def read_tick(cell: object) -> bool | None:
    """A cell of a column with an `x` for yes and nothing for no."""
    return False if is_blank(cell) else True if fold_cell(cell) == "x" else parse_yes_no(cell)


def read_worded_bit(cell: object) -> bool | None:
    """A cell of a column that has 1 and 0 beside the words."""
    return bool(cell) if is_native_bit(cell) else parse_yes_no(cell)
