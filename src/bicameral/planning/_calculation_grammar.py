"""Grammar rules for numbers, days, moments and conditions.

Each rule is for values of one type, and a path of another type is in none of them: `row["name"] * 2` cannot be written
where the name is a text. Cells of a table that is not known yet may be any of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bicameral import types as t
from bicameral.planning._grammar_paths import Place, grammar_literal, type_key
from bicameral.tools import Tool

if TYPE_CHECKING:
    from bicameral.planning._expression_grammar import ExpressionGrammar

# Numbers --------------------------------------------------------------------------------------------------------------


def number(grammar: ExpressionGrammar, wanted: t.Type, place: Place) -> str:
    """The name of the rule for numbers: terms with up to three operators between them."""

    def make() -> list[str]:
        term, operator = _term(grammar, wanted, place), _operator(wanted)
        return [term + f" ({operator} {term})?" * 3]

    return grammar.rule("n", type_key(wanted), place, make)


def calculated(grammar: ExpressionGrammar, wanted: t.Type, place: Place) -> str:
    """The name of the rule for numbers that depend on something: not `3`, and not `3 + 4`."""

    def make() -> list[str]:
        term, operator = _term(grammar, wanted, place), _operator(wanted)
        atom = _atom(grammar, wanted, place)
        return [atom + f" ({operator} {term})?" * 3, f"{_literal(wanted)} {operator} {atom}" + f" ({operator} {term})?"]

    return grammar.rule("q", type_key(wanted), place, make)


def _literal(wanted: t.Type) -> str:
    return "INT" if isinstance(wanted, t.IntType) else "NUMBER"


def _operator(wanted: t.Type) -> str:
    # A quotient has a fraction, so it is no whole number.
    return "WHOLE" if isinstance(wanted, t.IntType) else "OPERATOR"


def _term(grammar: ExpressionGrammar, wanted: t.Type, place: Place) -> str:
    return grammar.rule(
        "t", type_key(wanted), place, lambda: [_literal(wanted), f'"-"? {_atom(grammar, wanted, place)}']
    )


def _atom(grammar: ExpressionGrammar, wanted: t.Type, place: Place) -> str:
    """The name of the rule for one number that is not written out: a path, a function of something, parentheses."""

    def make() -> list[str]:
        found = grammar.rules_reaching(wanted, place) + grammar.argumentless_calls(wanted)
        found += _functions(grammar, wanted, place)
        return [*found, f'"(" {number(grammar, wanted, place)} ")"']

    return grammar.rule("o", type_key(wanted), place, make)


def _functions(grammar: ExpressionGrammar, wanted: t.Type, place: Place) -> list[str]:
    whole = isinstance(wanted, t.IntType)
    found: list[str] = []
    if sized := grammar.rule_for_kinds(t.ListType, t.DictType, t.StrType, t.AnyType, place=place):
        found.append(f'"len(" {sized} ")"')
    if not place.bound and not place.quoted and (calls := grammar.pure_calls(lists=True)):
        found.append(f'"len(" {calls} ")"')
    numbers = grammar.rules_reaching(t.ListType(wanted), place)
    if grammar.may_nest(place):
        listed = grammar.comprehension(t.ANY, place)
        found.append(f'"len(" ({listed} | "unique(" {listed} ")") ")"')
        if not whole:
            numbers.append(grammar.comprehension(t.FLOAT, place))
    aggregate = '("sum(" | "min(" | "max(")' if whole else '("sum(" | "min(" | "max(" | "mean(")'
    found += [f'{aggregate} {lists} ")"' for lists in numbers]
    inner = number(grammar, t.FLOAT, place)
    found.append(f'"round(" {inner} ")"' if whole else f'"round(" {inner} (", " COUNT)? ")"')
    found.append(f'"abs(" {number(grammar, wanted, place)} ")"')
    text = grammar.rule_for_kinds(t.StrType, place=place)
    converted = f"({inner} | {text})" if text else inner
    found.append(f'"int(" {converted} ")"' if whole else f'("int(" | "float(") {converted} ")"')
    if lists := grammar.rule_for_kinds(t.ListType, place=place):
        counted = grammar.rule_for_kinds(t.StrType, t.LiteralType, t.AnyType, place=place)
        found.append(f'{lists} ".count(" ({place.text}{f" | {counted}" if counted else ""}) ")"')
    return found + _parts_of_days(grammar, place, whole=whole)


def _parts_of_days(grammar: ExpressionGrammar, place: Place, *, whole: bool) -> list[str]:
    """`day.year`, `(a - b).days`, `(event.end - event.start).total_seconds()`."""
    found: list[str] = []
    day = _simple_day(grammar, place)
    dated = grammar.argumentless_calls(t.DATE)
    if path := grammar.rule_for_kinds(t.DateType, t.DateTimeType, t.AnyType, place=place):
        dated.append(path)
    if dated:
        found.append(f'({" | ".join(dated)}) (".year" | ".month" | ".day" | ".weekday()")')
        found.append(f'"(" {day} " - " {day} ").days"')
    if moment := grammar.rule_for_kinds(t.DateTimeType, place=place):
        moments = " | ".join([moment, *grammar.argumentless_calls(t.DATETIME)])
        lasted = '").days"' if whole else '(").total_seconds()" | ").days")'
        found.append(f'"(" ({moments}) " - " ({moments}) {lasted}')
        found.append(f'{moment} (".hour" | ".minute")')
    return found


# Days and moments -----------------------------------------------------------------------------------------------------


def _simple_day(grammar: ExpressionGrammar, place: Place) -> str:
    """The name of the rule for a day without arithmetic."""

    def make() -> list[str]:
        # Inside an f-string the text of a date would need single quotes.
        found = [] if place.quoted else ['"date(" DATE_TEXT ")"']
        found += grammar.argumentless_calls(t.DATE)
        if day := grammar.rule_for_kinds(t.DateType, t.AnyType, place=place):
            found.append(day)
            found.append(f'"date(" {day} ".year" ", " COUNT ", " COUNT ")"')
        if moment := grammar.rule_for_kinds(t.DateTimeType, place=place):
            found.append(f'{moment} ".date()"')
            found.append(f'"date(" {moment} ")"')
        return found

    return grammar.rule("d", "", place, make)


def _length(grammar: ExpressionGrammar, place: Place) -> str:
    """How many days or minutes: a number, or a whole number in scope."""
    known = grammar.rule_for_kinds(t.IntType, place=place)
    return f"(COUNT | {known})" if known else "COUNT"


def dates(grammar: ExpressionGrammar, place: Place) -> list[str]:
    """Days: written out, of a moment, and so many days before or after another one."""
    later = f'(" + " | " - ") "timedelta(" ("days" | "weeks") "=" {_length(grammar, place)} ")"'
    return [f"{_simple_day(grammar, place)} ({later})?"]


def datetimes(grammar: ExpressionGrammar, place: Place) -> list[str]:
    """Moments: written out, a day with a time, and so much before or after another one."""
    combined = f'"combine(" {grammar.expression(t.DATE, place)} ", " {grammar.expression(t.TIME, place)} ")"'
    part = f"(COUNT | {_atom(grammar, t.INT, place)})"
    found = [f'"datetime(" {part} ", " {part} ", " {part} ", " COUNT ", " COUNT ")"', combined]
    moment = grammar.rule_for_kinds(t.DateTimeType, place=place)
    if starts := grammar.argumentless_calls(t.DATETIME) + ([moment] if moment else []):
        unit = '("days" | "hours" | "minutes" | "weeks")'
        after = f'(" + " | " - ") "timedelta(" {unit} "=" {_length(grammar, place)} ")"'
        found.append(f"({' | '.join(starts)}) {after}")
    return found


# Conditions -----------------------------------------------------------------------------------------------------------

_LOWER = '".lower()"?'


def comparisons(grammar: ExpressionGrammar, place: Place) -> list[str]:
    """What a condition may say of values in reach, each with a value of the same type."""
    found = [*_comparisons_of_texts(grammar, place), *_comparisons_of_cells(grammar, place)]
    if grammar.rule_for_kinds(t.IntType, t.FloatType, t.ListType, t.AnyType, t.DateType, t.DateTimeType, place=place):
        found.append(f"{calculated(grammar, t.FLOAT, place)} COMPARE {number(grammar, t.FLOAT, place)}")
    if flag := grammar.rule_for_kinds(t.BoolType, place=place):
        found.append(f'"not "? {flag}')
    if day := grammar.rule_for_kinds(t.DateType, place=place):
        found.append(f"{day} COMPARE {grammar.expression(t.DATE, place)}")
    if moment := grammar.rule_for_kinds(t.DateTimeType, place=place):
        found.append(f"{moment} COMPARE {grammar.expression(t.DATETIME, place)}")
        found.append(f'({moment} ".date()" | "date(" {moment} ")") COMPARE {grammar.expression(t.DATE, place)}')
    if maybe := grammar.rule_for_kinds(t.OptionalType, place=place):
        found.append(f'{maybe} (" is not None" | " is None")')
    if lists := grammar.rule_for_kinds(t.ListType, place=place):
        found.append(f'"not "? {lists}')
        found.append(f'{place.text} (" in " | " not in ") {lists}')
    found += text_questions(grammar) if not place.quoted else []
    return found or ['"True"']


def _comparisons_of_texts(grammar: ExpressionGrammar, place: Place) -> list[str]:
    text = grammar.rule_for_kinds(t.StrType, t.LiteralType, place=place)
    if not text:
        return []
    cell = grammar.rule_for_kinds(t.StrType, t.LiteralType, t.AnyType, place=place)
    found = [
        f"{text} {_LOWER} SAME ({place.text} | {cell} {_LOWER})",
        f'({place.text} | {text} {_LOWER}) (" in " | " not in ") {cell} {_LOWER}',
        f'"not "? {text} {_LOWER} (".startswith(" | ".endswith(") {place.text} ")"',
        f'"not "? {text}',
    ]
    for listed in (*grammar.rules_reaching(t.ListType(t.STR), place), grammar.rule_for_kinds(t.DictType, place=place)):
        if listed:
            found.append(f'{text} {_LOWER} (" in " | " not in ") {listed}')
    return found


def _comparisons_of_cells(grammar: ExpressionGrammar, place: Place) -> list[str]:
    """What may be asked of a value whose type only the run will tell."""
    cell = grammar.rule_for_kinds(t.AnyType, place=place)
    if not cell:
        return []
    texts = grammar.rule_for_kinds(t.StrType, t.LiteralType, t.BoolType, t.AnyType, t.DateTimeType, place=place)
    days = grammar.expression(t.DATE, place)
    values = [place.text, *([] if place.quoted else ["VALUE"]), '"True"', '"False"', days, f"{texts} {_LOWER}"]
    found = [
        f"{cell} {_LOWER} COMPARE ({' | '.join(values)})",
        f'({place.text} | {texts} {_LOWER}) (" in " | " not in ") {cell} {_LOWER}',
        f'"not "? {cell}',
        f'{cell} (".startswith(" | ".endswith(") {place.text} ")"',
    ]
    for lists in grammar.rules_reaching(t.ListType(t.ANY), place):
        found.append(f'{cell} {_LOWER} (" in " | " not in ") {lists}')
    return found


def text_questions(grammar: ExpressionGrammar) -> list[str]:
    """Calls of tools that are a condition on one text: `file_exists("notes.txt")`."""
    return [
        f'"not "? {grammar_literal(tool.name + "(")} {grammar.argument(tool.arguments[0])} ")"'
        for tool in grammar.registry
        if _is_text_question(tool) and grammar.can_write(tool.arguments[0])
    ]


def _is_text_question(tool: Tool) -> bool:
    if tool.result != t.BOOL or tool.changes or not tool.arguments:
        return False
    first, *others = tool.arguments
    return first.required and isinstance(first.type, t.StrType) and not any(other.required for other in others)
