"""Calls of the functions on cells as closures, for loops over the rows of a table.

`bind_cells` writes the comparison, the notation and the column into the plan as constants. So what depends on them is
found once, when the expression is compiled, and a row costs a look into what was read before and one comparison of
Python. Everything else, such as a value that is not of the kind of the column, is left to the general way of calling a
function, which has the same results and reports what is wrong.
"""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bicameral.columns import Amount, is_blank
from bicameral.plans._expressions import Const
from bicameral.plans.evaluate._bounds import CURRENT_RUN, WORK_KEY, EvaluationError
from bicameral.plans.evaluate._library_cells import (
    CELL_COMPARISONS,
    MAX_NAME,
    NotationReader,
    cell_matches,
    holds,
    is_readable,
    order_key,
    reader_of,
    unread_error,
    wanted_value,
)

Env = Mapping[str, Any]
Code = Callable[[Env], Any]
Test = Callable[[Any], bool]

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_MEMO_SIZE = 256
_KEY_TYPES = frozenset({bool, int, float, str, dt.date, dt.datetime})


def _text(expr: Any) -> str | None:
    """The text that is written in the plan as an argument."""
    return expr.value if isinstance(expr, Const) and isinstance(expr.value, str) else None


def _reader(notation: Any, column: Any) -> tuple[NotationReader, str] | None:
    """The reader of a call, and the column for its counts; None if they are not written in the plan, or wrong."""
    written, name = _text(notation), _text(column)
    if written is None or name is None:
        return None
    try:
        return reader_of(written), name
    except EvaluationError:
        # Reported when the call is made.
        return None


def _matches_code(args: Sequence[Any], codes: Sequence[Code]) -> Code | None:
    """The code of `cell_matches(cell, op, value, notation, column)`."""
    if len(args) != 5 or (found := _reader(args[3], args[4])) is None:
        return None
    op, notation = _text(args[1]), str(_text(args[3]))
    if op not in CELL_COMPARISONS:
        return None
    reader, column = found
    if isinstance(args[2], Const):
        wanted = wanted_value(args[2].value, notation) if args[2].value is not None else None
        return _constant_code(codes[0], reader, column, op, _test(op, wanted)) if is_readable(wanted) else None
    return _value_code(codes[0], codes[2], notation, column, op)


def _constant_code(cell: Code, reader: NotationReader, column: str, op: str, test: Test) -> Code:
    read, words, guess, name = reader.read, reader.words, reader.guess, column[:MAX_NAME]
    unread = op == "!="

    def run(env: Env) -> bool:
        given = cell(env)
        env[WORK_KEY].spend(1)
        found = read(given)
        work = CURRENT_RUN.run
        if found is None:
            if work is not None:
                work.count_cells(name, words, 1, 0 if is_blank(given) else 1, guess)
            return unread
        if work is not None:
            work.count_cells(name, words, 1, 0, guess)
        return test(found)

    return run


def _value_code(cell: Code, value: Code, notation: str, column: str, op: str) -> Code:
    """The comparison with a value that is computed for each row; mostly it is the same each time."""
    reader = reader_of(notation)
    read, words, guess, name = reader.read, reader.words, reader.guess, column[:MAX_NAME]
    unread, compare, in_numbers = op == "!=", _OPERATORS[op], reader.kind in ("number", "money")
    tests: dict[tuple[object, Any], Test] = {}

    def run(env: Env) -> bool:
        given, wanted = cell(env), value(env)
        env[WORK_KEY].spend(1)
        kind: object = wanted.__class__
        if kind is int and in_numbers and (found := read(given)) is not None:
            # A cell of another column: exact beside a decimal, and different in each row.
            if (work := CURRENT_RUN.run) is not None:
                work.count_cells(name, words, 1, 0, guess)
            return compare(found.number, wanted)
        test = tests.get((kind, wanted)) if kind in _KEY_TYPES else None
        if test is None:
            found = wanted_value(wanted, notation)
            if kind not in _KEY_TYPES or not is_readable(found):
                # None, a word that is looked for as it is written, or an error that names the kind.
                return cell_matches(given, op, wanted, notation, column)
            if len(tests) >= _MEMO_SIZE:
                tests.clear()
            test = tests[(kind, wanted)] = _test(op, found)
        found = read(given)
        work = CURRENT_RUN.run
        if work is not None:
            work.count_cells(name, words, 1, 0 if found is not None or is_blank(given) else 1, guess)
        return unread if found is None else test(found)

    return run


def _test(op: str, wanted: Any) -> Test:
    """The comparison of what was read in a cell with a value of its kind; as `holds`, with the value known before."""
    compare = _OPERATORS[op]
    if isinstance(wanted, Amount):
        number, unit = wanted.number, wanted.unit
        if not unit:
            return lambda found: compare(found.number, number)

        def test(found: Amount) -> bool:
            if found.unit and found.unit != unit:
                return op == "!="
            return compare(found.number, number)

        return test
    if isinstance(wanted, bool):
        return lambda found: compare(found, wanted)
    return lambda found: holds(found, op, wanted)


def _cell_value_code(args: Sequence[Any], codes: Sequence[Code]) -> Code | None:
    """The code of `cell_value(cell, notation, column)`."""
    if len(args) != 3 or (found := _reader(args[1], args[2])) is None or found[0].guess:
        return None
    cell, (reader, column), notation = codes[0], found, str(_text(args[1]))
    read = reader.read_plain

    def run(env: Env) -> Any:
        given = cell(env)
        env[WORK_KEY].spend(1)
        value = read(given)
        if value is None:
            raise unread_error(given, notation, column)
        return value

    return run


def _cell_order_code(args: Sequence[Any], codes: Sequence[Code]) -> Code | None:
    """The code of `cell_order(cell, notation, column, last)`."""
    if len(args) not in (3, 4) or (found := _reader(args[1], args[2])) is None:
        return None
    last = args[3].value if len(args) == 4 and isinstance(args[3], Const) else True
    if type(last) is not bool or (len(args) == 4 and not isinstance(args[3], Const)):
        return None
    cell, (reader, column) = codes[0], found
    read, words, guess, name = reader.read_plain, reader.words, reader.guess, column[:MAX_NAME]

    def run(env: Env) -> list[Any]:
        given = cell(env)
        env[WORK_KEY].spend(1)
        value = read(given)
        work = CURRENT_RUN.run
        if work is not None:
            work.count_cells(name, words, 1, 0 if value is not None or is_blank(given) else 1, guess)
        return order_key(value, last)

    return run


CELL_CODES: Mapping[str, Callable[[Sequence[Any], Sequence[Code]], Code | None]] = {
    "cell_matches": _matches_code,
    "cell_value": _cell_value_code,
    "cell_order": _cell_order_code,
}
"""Makes the code of a call inside a loop; None where it must be called in the general way."""
