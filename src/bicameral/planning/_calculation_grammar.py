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
    if changed := grammar.changed_text(place):
        found.append(f'"len(" {changed} ")"')
    if not place.bound and not place.quoted:
        counted = [grammar.pure_calls(lists=True), grammar.added_lists()]
        found += [f'"len(" {lists} ")"' for lists in counted if lists]
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
    texts = [rule for rule in (grammar.rule_for_kinds(t.StrType, place=place), changed) if rule]
    converted = f"({' | '.join([inner, *texts])})"
    found.append(f'"int(" {converted} ")"' if whole else f'("int(" | "float(") {converted} ")"')
    if lists := grammar.rule_for_kinds(t.ListType, place=place):
        counted = grammar.rule_for_kinds(t.StrType, t.LiteralType, t.AnyType, place=place)
        found.append(f'{lists} ".count(" ({place.text}{f" | {counted}" if counted else ""}) ")"')
    return found + _parts_of_days(grammar, place, whole=whole)


def _parts_of_days(grammar: ExpressionGrammar, place: Place, *, whole: bool) -> list[str]:
    """`day.year`, `(a - b).days`, `(event.end - event.start).total_seconds()`, `length.days`."""
    found: list[str] = []
    dated = grammar.argumentless_calls(t.DATE)
    if path := grammar.rule_for_kinds(t.DateType, t.DateTimeType, t.AnyType, place=place):
        dated.append(path)
    if dated:
        found.append(f'({" | ".join(dated)}) (".year" | ".month" | ".day" | ".weekday()")')
        found.append(f'"(" {_between_days(grammar, place)} ").days"')
    if lasted := _between_moments(grammar, place):
        found.append(f'"(" {lasted} ").days"' if whole else f'"(" {lasted} (").total_seconds()" | ").days")')
        found.append(f'{grammar.rule_for_kinds(t.DateTimeType, place=place)} (".hour" | ".minute")')
    if length := grammar.rule_for_kinds(t.DurationType, place=place):
        found.append(f'{length} ".days"' if whole else f'{length} (".total_seconds()" | ".days")')
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
    """How many days or minutes: a number, or a whole number in scope, also `n * 7` and `n + 1`."""
    known = grammar.rule_for_kinds(t.IntType, place=place)
    return f"(COUNT | {known} (WHOLE (COUNT | {known}))?)" if known else "COUNT"


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
        found.append(f'({" | ".join(starts)}) (" + " | " - ") {written_duration(grammar, place)}')
    return found


# Lengths of time ------------------------------------------------------------------------------------------------------

_TIMED = (t.DateType, t.DateTimeType, t.DurationType)
_UNIT = '("days" | "hours" | "minutes" | "weeks")'


def has_times(grammar: ExpressionGrammar, place: Place) -> bool:
    """Whether a length of time can be read or measured from what the place itself binds."""
    return any(isinstance(path.type, _TIMED) for path in grammar.paths(place))


def _between_days(grammar: ExpressionGrammar, place: Place) -> str:
    """The name of the rule for `day - today()`."""
    day = _simple_day(grammar, place)
    return grammar.rule("i", "", place, lambda: [f'{day} " - " {day}'])


def _between_moments(grammar: ExpressionGrammar, place: Place) -> str | None:
    """The name of the rule for `event.end - event.start`, or None if there is no moment in reach."""
    moment = grammar.rule_for_kinds(t.DateTimeType, place=place)
    if moment is None:
        return None
    moments = " | ".join([moment, *grammar.argumentless_calls(t.DATETIME)])
    return grammar.rule("v", "", place, lambda: [f'({moments}) " - " ({moments})'])


def durations(grammar: ExpressionGrammar, place: Place) -> list[str]:
    """Lengths of time that are measured: between two days or two moments."""
    between = _between_moments(grammar, place)
    found = [between] if between else []
    # Inside an f-string a day minus a day would read `37 days, 0:00:00`: there `.days` is what a person expects.
    if not place.quoted and (grammar.argumentless_calls(t.DATE) or grammar.rule_for_kinds(t.DateType, place=place)):
        found.append(_between_days(grammar, place))
    return found


def written_duration(grammar: ExpressionGrammar, place: Place) -> str:
    """A length of time that is written out: `timedelta(hours=2)`."""
    return f'"timedelta(" {_UNIT} "=" {_length(grammar, place)} ")"'


def totals_of_durations(grammar: ExpressionGrammar, place: Place) -> list[str]:
    """`sum([event.end - event.start for event in events])`, where the items of a list have times."""
    lists = grammar.rules_reaching(t.ListType(t.DURATION), place)
    items = [item for item, _ in grammar.lists_by_item(t.ANY, place)] if grammar.may_nest(place) else []
    if any(has_times(grammar, inside) for item in items for _, inside in grammar.bindings(item, place)):
        lists.append(grammar.comprehension(t.DURATION, place))
    return [f'("sum(" | "min(" | "max(" | "mean(") {each} ")"' for each in lists]


# Conditions -----------------------------------------------------------------------------------------------------------


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
    if grammar.rule_for_kinds(*_TIMED, place=place):
        known = grammar.rules_reaching(t.DURATION, place)
        measured, limits = [*known, *durations(grammar, place)], [*known, written_duration(grammar, place)]
        found.append(f"({' | '.join(measured)}) COMPARE ({' | '.join(limits)})")
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
    changes = f"{grammar.text_changes(place)}?"
    found = [
        f"{text} {changes} SAME ({place.text} | {cell} {changes})",
        f'({place.text} | {text} {changes}) (" in " | " not in ") {cell} {changes}',
        f'"not "? {text} {changes} (".startswith(" | ".endswith(") {place.text} ")"',
        f'"not "? {text} {changes}',
    ]
    for listed in (*grammar.rules_reaching(t.ListType(t.STR), place), grammar.rule_for_kinds(t.DictType, place=place)):
        if listed:
            found.append(f'{text} {changes} (" in " | " not in ") {listed}')
    return found


def _comparisons_of_cells(grammar: ExpressionGrammar, place: Place) -> list[str]:
    """What may be asked of a value whose type only the run will tell."""
    cell = grammar.rule_for_kinds(t.AnyType, place=place)
    if not cell:
        return []
    texts = grammar.rule_for_kinds(t.StrType, t.LiteralType, t.BoolType, t.AnyType, t.DateTimeType, place=place)
    days = grammar.expression(t.DATE, place)
    changes = f"{grammar.text_changes(place)}?"
    values = [place.text, '"True"', '"False"', days, f"{texts} {changes}"]
    found = [
        f"{cell} {changes} COMPARE ({' | '.join(values)})",
        # Words are bound to a cell as it is written: after more methods none would be equal to it.
        *([] if place.quoted else [f'{cell} ".lower()"? COMPARE VALUE']),
        f'({place.text} | {texts} {changes}) (" in " | " not in ") {cell} {changes}',
        f'"not "? {cell} {changes}',
        f'{cell} {changes} (".startswith(" | ".endswith(") {place.text} ")"',
    ]
    for lists in grammar.rules_reaching(t.ListType(t.ANY), place):
        found.append(f'{cell} {changes} (" in " | " not in ") {lists}')
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
