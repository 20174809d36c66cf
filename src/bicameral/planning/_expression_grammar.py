"""Grammar rules for expressions: for each wanted type, the expressions over the variables in scope.

The rules are in the Lark format of LLGuidance. A path is a way from a variable to a field or an item, with its type. A
rule is made once for each pair of type and scope, when another rule first refers to it, so a grammar contains only what
the statement can reach.
"""

from __future__ import annotations

import json
import keyword
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bicameral import types as t
from bicameral.tools import REFERENCE_KINDS, Argument, ReferenceKind, Registry, Tool


@dataclass(frozen=True, slots=True)
class GrammarPath:
    """A way from a variable to a value: the grammar of the expression, and the type of the value."""

    rule: str
    type: t.Type


def grammar_literal(text: str) -> str:
    """A text as a grammar literal."""
    return json.dumps(text, ensure_ascii=False)


def item_name(type_: t.Type) -> str:
    """The name of one item in a comprehension, as the examples in the prompt use it."""
    match type_:
        case t.RecordType(name=str() as name) if name:
            return {"Mail": "m", "File": "f", "Event": "e"}.get(name, name.lower())
        case t.DictType() | t.RecordType():
            return "row"
        case t.StrType() | t.LiteralType():
            return "line"
        case _:
            return "x"


def is_usable_as(given: t.Type, wanted: t.Type) -> bool:
    """Like `is_assignable`, but an optional value is not usable where a value is required."""
    if isinstance(given, t.OptionalType):
        return isinstance(wanted, t.OptionalType | t.AnyType)
    return t.is_assignable(given, wanted)


def reachable_paths(rule: str, type_: t.Type, depth: int = 0) -> Iterator[GrammarPath]:
    """The value itself and everything inside it, up to three levels deep."""
    yield GrammarPath(rule, type_)
    if depth >= 3:
        return
    match type_:
        case t.RecordType(fields=fields, name=name):
            for field in fields:
                yield from reachable_paths(
                    f"{rule} {_field_access(field.name, named=bool(name))}", field.type, depth + 1
                )
        case t.ListType(item=t.RecordType() | t.DictType() as item):
            yield from reachable_paths(f'{rule} "[" INDEX "]"', item, depth + 1)
        case t.ListType():
            yield GrammarPath(f'{rule} "[" INDEX "]"', type_.item)
        case t.DictType(value=value):
            yield GrammarPath(f'{rule} "[" (KEY | COLUMN) "]"', value)
        case t.AnyType() if depth < 2:
            yield GrammarPath(f'{rule} "[" (KEY | COLUMN) "]"', t.ANY)
            yield GrammarPath(f'{rule} "[" INDEX "]"', t.ANY)
        case _:
            return


def _field_access(field: str, *, named: bool) -> str:
    """The access to a field: `.total` for a record with a name; `["total"]` as well for a row."""
    by_key = grammar_literal(f'["{field}"]')
    if not field.isidentifier() or keyword.iskeyword(field):
        return by_key
    return grammar_literal(f".{field}") if named else f"({by_key} | {grammar_literal('.' + field)})"


_TERMINALS = r"""
NAME: /[a-z][a-z0-9_]{0,24}/ & ~/(KEYWORDS)/
INT: /-?[0-9]{1,9}/
COUNT: /[0-9]{1,4}/
INDEX: /-?[0-9]{1,2}/
NUMBER: /-?[0-9]{1,12}(\.[0-9]{1,6})?/
STRING2: /'[^'"\\\n\x00-\x1f]{0,20}'/
STRING: /"([^"\\\n\x00-\x1f]|\\[n"t\\]){0,400}"/
KEY: /"[^"\\\n\x00-\x1f]{1,40}"/
REFERENCES
COLUMN2: /column\('[^'"\\\n\x00-\x1f]{1,40}'\)/
CHARS: /([^"\\\n{}\x00-\x1f]|\\[n"t\\])+/
SPEC: /:(,)?(\.[0-9]f)?|:%[A-Za-z%: \/.-]{1,20}/
OPERATOR: " + " | " - " | " * " | " / "
COMPARE: " == " | " != " | " < " | " <= " | " > " | " >= "
SAME: " == " | " != "
DATE_TEXT: /"[0-9]{4}-[0-9]{2}-[0-9]{2}"/
""".strip()


def _reference_terminal(kind: ReferenceKind) -> str:
    """`file("bills")` as one terminal. The words are the planner's, so nothing is enumerated."""
    return f'{kind.upper()}: /{kind}\\("[^"\\\\\\n\\x00-\\x1f]{{1,60}}"\\)/'


TERMINALS = _TERMINALS.replace(
    "KEYWORDS", "|".join([*keyword.kwlist, *keyword.softkwlist, "answer", "extract", "ask", "cannot"])
).replace("REFERENCES", "\n".join(map(_reference_terminal, REFERENCE_KINDS)))

NamedObjects = Mapping[str, Sequence[str]]
"""The objects that a request names, by format (path, url, email). No other text of such a format can be written."""
BoundNames = tuple[tuple[str, t.Type], ...]
SORTABLE_TYPES = (t.StrType, t.IntType, t.FloatType, t.DateType, t.DateTimeType, t.TimeType, t.AnyType)


class ExpressionGrammar:
    """The rules for every type that a statement needs, over one scope of variables."""

    def __init__(
        self, registry: Registry, scope: Mapping[str, t.Type], *, prefix: str = "", named: NamedObjects | None = None
    ) -> None:
        self._prefix = prefix
        self._named = named
        self._registry = registry
        self._scope = dict(scope)
        self._names: dict[tuple[str, str, BoundNames], str] = {}
        self._rules: dict[str, str] = {}
        self._reached: dict[BoundNames, tuple[GrammarPath, ...]] = {}

    def rules(self) -> Iterator[str]:
        return (f"{name}: {body}" for name, body in self._rules.items())

    def expression(self, wanted: t.Type, bound: BoundNames = ()) -> str:
        """The name of the rule for expressions of the wanted type; `bound` are the names that a comprehension binds."""
        return self._rule("e", _type_key(wanted), bound, lambda: self._expression(wanted, bound))

    def argument(self, argument: Argument) -> str:
        """The name of the rule for what may be given as an argument: an expression of its type, or a reference."""
        refers = argument.refers
        if refers is None or refers == "column":
            return self.expression(argument.type)

        def make() -> list[str]:
            match argument.type:
                case t.ListType(item=item):
                    one = self._rule("a", f"{refers} {_type_key(item)}", (), lambda: [self.expression(item), terminal])
                    return [self.expression(argument.type), f'"[" {one} (", " {one})* "]"']
                case _:
                    return [self.expression(argument.type), terminal]

        # A person may answer with an address or a name of a file, and a cell may hold one.
        given = self.rule_for_kinds(t.StrType, t.AnyType)
        terminal = refers.upper() if given is None else f"({refers.upper()} | {given})"
        return self._rule("a", f"{refers} {_type_key(argument.type)}", (), make)

    def any_expression(self, bound: BoundNames = ()) -> str:
        return self.expression(t.ANY, bound)

    def condition(self, bound: BoundNames = ()) -> str:
        def make() -> list[str]:
            one = self._rule("k", "", bound, lambda: self._comparisons(bound))
            return [one, f'{one} " and " {one}', f'{one} " or " {one}']

        return self._rule("c", "", bound, make)

    def can_write(self, argument: Argument) -> bool:
        """Whether anything can be given as an argument: for a link, for example, only if the request names one."""
        if argument.refers is not None:
            return True
        wanted = argument.type
        item = wanted.item if isinstance(wanted, t.ListType) else wanted
        if not isinstance(item, t.StrType) or item.format is None:
            return True
        if item.format == "id":
            return any(path.type == item for path in self.paths())
        known = self._named.get(item.format, None) if self._named is not None else None
        return known is None or bool(known) or bool(self._rules_reaching(item, ()))

    def rule_for_kinds(self, *kinds: type[t.Type], bound: BoundNames = ()) -> str | None:
        """The name of the rule for reachable values of these kinds, or None if there are none."""
        found = [path.rule for path in self.paths(bound) if isinstance(path.type, kinds)]
        label = ",".join(kind.__name__ for kind in kinds)
        return self._rule("w", label, bound, lambda: found) if found else None

    def paths(self, bound: BoundNames = ()) -> tuple[GrammarPath, ...]:
        if bound not in self._reached:
            variables = self._scope | dict(bound)
            found = (
                path for name, type_ in variables.items() for path in reachable_paths(grammar_literal(name), type_)
            )
            self._reached[bound] = tuple(found)
        return self._reached[bound]

    def list_paths(self, bound: BoundNames = ()) -> list[GrammarPath]:
        """The reachable lists, for loops and comprehensions."""
        return [path for path in self.paths(bound) if isinstance(path.type, t.ListType | t.AnyType)]

    def _rule(self, kind: str, label: str, bound: BoundNames, make: Callable[[], list[str]]) -> str:
        key = (kind, label, bound)
        if key not in self._names:
            name = f"{self._prefix}{kind}{len(self._names)}"
            self._names[key] = name  # before `make`: rules are recursive
            self._rules[name] = " | ".join(dict.fromkeys(make())) or '"None"'
        return self._names[key]

    def _rules_reaching(self, wanted: t.Type, bound: BoundNames) -> list[str]:
        """A list with the rule for all reachable values of the wanted type; empty if there are none."""
        found = [path.rule for path in self.paths(bound) if is_usable_as(path.type, wanted)]
        return [self._rule("p", _type_key(wanted), bound, lambda: found)] if found else []

    def _argumentless_calls(self, wanted: t.Type) -> list[str]:
        """Calls of tools without arguments, which may be part of an expression: `today()`."""
        return [
            grammar_literal(f"{tool.name}()")
            for tool in self._registry
            if not tool.arguments and not tool.changes and t.is_assignable(tool.result, wanted) and wanted != t.ANY
        ]

    # Expressions by type ------------------------------------------------------------------------------------------

    def _expression(self, wanted: t.Type, bound: BoundNames) -> list[str]:
        found = self._rules_reaching(wanted, bound) + self._argumentless_calls(wanted)
        match wanted:
            case t.OptionalType(item=item):
                return [self.expression(item, bound)]
            case t.StrType(format="id"):
                return [path.rule for path in self.paths(bound) if path.type == wanted]
            case t.StrType(format=str() as format_) if self._named is not None and format_ in self._named:
                return found + [grammar_literal(json.dumps(name)) for name in self._named[format_]]
            case t.StrType():
                return found + self._texts(bound)
            case t.LiteralType(values=values):
                return [grammar_literal(json.dumps(value)) for value in values]
            case t.IntType() | t.FloatType():
                return [*found, "INT" if isinstance(wanted, t.IntType) else "NUMBER", self._numbers(wanted, bound)]
            case t.BoolType():
                return [*found, '"True"', '"False"', self.condition(bound)]
            case t.DateType():
                return found + self._dates(bound)
            case t.DateTimeType():
                return found + self._datetimes(bound)
            case t.TimeType():
                return [*found, '"time(" COUNT ", " COUNT ")"']
            case t.ListType(item=item):
                return found + self._lists(item, bound)
            case t.DictType(value=value):
                return [*found, self._dict(value, bound)]
            case t.RecordType() if not found:
                return [self._record(wanted, bound)]
            case t.AnyType():
                return found + self._any(bound)
            case _:
                return found

    def _texts(self, bound: BoundNames) -> list[str]:
        found = ["STRING", self._formatted(bound)]
        found += [f'STRING ".join(" {lists} ")"' for lists in self._rules_reaching(t.ListType(t.STR), bound)]
        if not bound and self.list_paths():
            found.append(f'STRING ".join(" {self._comprehension(t.STR)} ")"')
        if text := self.rule_for_kinds(t.StrType, t.LiteralType, t.AnyType, bound=bound):
            found.append(f'{text} (".lower()" | ".upper()" | ".strip()" | ".title()")')
            found.append(f'{text} ".replace(" STRING ", " STRING ")"')
            found.append(f'{text} ".split(" STRING ")[" INDEX "]"')
        others = [*self._rules_reaching(t.FLOAT, bound), self._numbers(t.FLOAT, bound)]
        found.append(f'"str(" ({" | ".join(others)}) ")"')
        return found

    def _formatted(self, bound: BoundNames) -> str:
        def make() -> list[str]:
            shown = [*self._rules_reaching(t.ANY, bound), self._numbers(t.FLOAT, bound)]
            shown += [path.rule for path in self._quoted_paths(bound)]
            shown += [f'STRING2 ".join(" {lists} ")"' for lists in self._rules_reaching(t.ListType(t.STR), bound)]
            return ['"f\\"" (CHARS | "{" (' + " | ".join(shown) + ') SPEC? "}")+ "\\""']

        return self._rule("f", "", bound, make)

    def _quoted_paths(self, bound: BoundNames) -> list[GrammarPath]:
        """Fields of rows inside an f-string, where the keys are in single quotes."""
        variables = self._scope | dict(bound)
        rows = [
            (name, type_) for name, type_ in variables.items() if isinstance(type_, t.RecordType) and not type_.name
        ]
        return [
            GrammarPath(grammar_literal(f"{name}['{field.name}']"), field.type)
            for name, type_ in rows
            for field in type_.fields
        ] + [
            GrammarPath(f'{grammar_literal(name + chr(91))} (STRING2 | COLUMN2) "]"', t.ANY)
            for name, type_ in variables.items()
            if isinstance(type_, t.DictType | t.AnyType)
        ]

    def _numbers(self, wanted: t.Type, bound: BoundNames) -> str:
        """The rule for computed numbers: lengths, sums, arithmetic on two values."""

        def make() -> list[str]:
            found: list[str] = []
            if sized := self.rule_for_kinds(t.ListType, t.DictType, t.StrType, t.AnyType, bound=bound):
                found.append(f'"len(" {sized} ")"')
            if not bound and self.list_paths():
                found.append(f'"len(" {self._comprehension(t.ANY)} ")"')
                found.append(f'("sum(" | "min(" | "max(" | "mean(") {self._comprehension(t.FLOAT)} ")"')
            found += [
                f'("sum(" | "min(" | "max(" | "mean(") {lists} ")"'
                for lists in self._rules_reaching(t.ListType(t.FLOAT), bound)
            ]
            for one in self._rules_reaching(wanted, bound):
                found.append(f"{one} OPERATOR ({one} | NUMBER) (OPERATOR ({one} | NUMBER))?")
                found.append(f'"(" {one} OPERATOR ({one} | NUMBER) ")" OPERATOR ({one} | NUMBER)')
                found.append(f'"round(" {one} ((" * " | " / ") ({one} | NUMBER))? (", " COUNT)? ")"')
            if text := self.rule_for_kinds(t.StrType, t.AnyType, bound=bound):
                found.append(('"int("' if isinstance(wanted, t.IntType) else '("float(" | "int(")') + f' {text} ")"')
            found.append(self._days_between(bound))
            return found

        return self._rule("n", _type_key(wanted), bound, make)

    def _days_between(self, bound: BoundNames) -> str:
        """`(a - b).days`: the number of days between two days."""
        days = ['"date(" DATE_TEXT ")"', *self._argumentless_calls(t.DATE)]
        if day := self.rule_for_kinds(t.DateType, t.AnyType, bound=bound):
            days.append(day)
        one = " | ".join(days)
        return f'"(" ({one}) " - " ({one}) ").days"'

    def _dates(self, bound: BoundNames) -> list[str]:
        found = ['"date(" DATE_TEXT ")"']
        day = self.rule_for_kinds(t.DateType, bound=bound)
        if starts := self._argumentless_calls(t.DATE) + ([day] if day else []):
            found.append(f'({" | ".join(starts)}) (" + " | " - ") "timedelta(days=" COUNT ")"')
        if moment := self.rule_for_kinds(t.DateTimeType, bound=bound):
            found.append(f'{moment} ".date()"')
        return found

    def _datetimes(self, bound: BoundNames) -> list[str]:
        found = ['"datetime(" COUNT ", " COUNT ", " COUNT ", " COUNT ", " COUNT ")"']
        moment = self.rule_for_kinds(t.DateTimeType, bound=bound)
        if starts := self._argumentless_calls(t.DATETIME) + ([moment] if moment else []):
            unit = '("days" | "hours" | "minutes")'
            found.append(f'({" | ".join(starts)}) (" + " | " - ") "timedelta(" {unit} "=" COUNT ")"')
        if day := self.rule_for_kinds(t.DateType, t.AnyType, bound=bound):
            found.append(f'"combine(" {day} ", " {self.expression(t.TIME, bound)} ")"')
        return found

    def _lists(self, item: t.Type, bound: BoundNames) -> list[str]:
        one = self.expression(item, bound)
        found = [f'"[" ({one} (", " {one})*)? "]"']
        found += [f'{lists} "[" INDEX? ":" INDEX? "]"' for lists in self._rules_reaching(t.ListType(item), bound)]
        found += [f'"unique(" {lists} ")"' for lists in self._rules_reaching(t.ListType(item), bound)]
        if not bound and self.list_paths():
            found.append(self._comprehension(item))
            found.append(f'"unique(" {self._comprehension(item)} ")"')
            found += self._sortings(t.ListType(item))
        if is_usable_as(t.STR, item) and (text := self.rule_for_kinds(t.StrType, t.AnyType, bound=bound)):
            found.append(f'{text} (".splitlines()" | ".split(" STRING ")")')
        return found

    def _sortings(self, wanted: t.Type) -> list[str]:
        """`sorted(list, key=…, reverse=True)`, with a rule for each type of item, since the keys differ."""
        found: list[str] = []
        for item, over in self._lists_by_item(wanted):
            key = f"({keys})" if (keys := _sort_keys(item)) else ""
            if key and isinstance(item, SORTABLE_TYPES):
                key += "?"
            found.append(f'"sorted(" ({over}) {key} (", reverse=True")? ")"')
        return found

    def _extremes(self) -> list[str]:
        """`max(list, key=lambda …)`: the item with the largest or smallest key."""
        pairs = [(over, _sort_keys(item)) for item, over in self._lists_by_item(t.ANY)]
        return [f'("max(" | "min(") ({over}) {keys} ")"' for over, keys in pairs if keys]

    def _lists_by_item(self, wanted: t.Type) -> list[tuple[t.Type, str]]:
        groups: dict[str, tuple[t.Type, list[str]]] = {}
        for path in self.list_paths():
            if is_usable_as(path.type, wanted):
                item = path.type.item if isinstance(path.type, t.ListType) else t.ANY
                groups.setdefault(_type_key(item), (item, []))[1].append(path.rule)
        return [(item, " | ".join(over)) for item, over in groups.values()]

    def _comprehension(self, wanted: t.Type) -> str:
        """`[element for x in list if condition]`, one alternative for each type of item."""

        def make() -> list[str]:
            found: list[str] = []
            for item, over in self._lists_by_item(t.ANY):
                scope: BoundNames = ((item_name(item), item),)
                element = self.expression(wanted, scope)
                binding = grammar_literal(f" for {item_name(item)} in ")
                found.append(f'"[" {element} {binding} ({over}) (" if " {self.condition(scope)})? "]"')
            return found

        return self._rule("l", _type_key(wanted), (), make)

    def _dict(self, value: t.Type, bound: BoundNames) -> str:
        one = self.expression(value, bound)
        return f'"{{" KEY ": " {one} (", " KEY ": " {one})* "}}"'

    def _record(self, record: t.RecordType, bound: BoundNames) -> str:
        parts = (
            f"{grammar_literal(json.dumps(f.name) + ': ')} {self.expression(f.type, bound)}" for f in record.fields
        )
        return '"{" ' + ' ", " '.join(parts) + ' "}"'

    def _any(self, bound: BoundNames) -> list[str]:
        found = [
            "NUMBER",
            '"True"',
            '"False"',
            self._numbers(t.FLOAT, bound),
            *self._texts(bound),
            self._dict(t.ANY, bound),
        ]
        if bound:
            return found
        found += [*self._dates(bound), *self._datetimes(bound)]
        if not self.list_paths():
            return found
        slice_ = '("[" INDEX? ":" INDEX? "]" | "[" INDEX "]")?'
        found += [f"{sorting} {slice_}" for sorting in self._sortings(t.ANY)]
        found += self._extremes()
        found += [self.expression(t.ListType(t.STR)), self.expression(t.BOOL), self._comprehension(t.ANY)]
        if lists := self.rule_for_kinds(t.ListType):
            found.append(f'{lists} "[" INDEX? ":" INDEX? "]"')
        return found

    # Conditions ---------------------------------------------------------------------------------------------------

    def _comparisons(self, bound: BoundNames) -> list[str]:
        found: list[str] = []
        texts = self._rules_reaching(t.STR, bound)
        if text := self.rule_for_kinds(t.StrType, t.LiteralType, bound=bound):
            found.append(f'{text} ".lower()"? SAME ({" | ".join(["STRING", *texts])})')
            found.append(f'STRING (" in " | " not in ") {text} ".lower()"?')
            found.append(f'"not "? {text} (".startswith(" | ".endswith(") STRING ")"')
            found += [
                f'{text} (" in " | " not in ") {lists}' for lists in self._rules_reaching(t.ListType(t.STR), bound)
            ]
            if known := self.rule_for_kinds(t.DictType, bound=bound):
                found.append(f'{text} (" in " | " not in ") {known}')
        if number := self.rule_for_kinds(t.IntType, t.FloatType, bound=bound):
            found.append(f"{number} COMPARE ({' | '.join(['NUMBER', *self._rules_reaching(t.FLOAT, bound)])})")
        if flag := self.rule_for_kinds(t.BoolType, bound=bound):
            found.append(f'"not "? {flag}')
        if day := self.rule_for_kinds(t.DateType, bound=bound):
            found.append(f"{day} COMPARE {self.expression(t.DATE, bound)}")
        if moment := self.rule_for_kinds(t.DateTimeType, bound=bound):
            found.append(f"{moment} COMPARE {self.expression(t.DATETIME, bound)}")
            found.append(f'{moment} ".date()" COMPARE {self.expression(t.DATE, bound)}')
        if maybe := self.rule_for_kinds(t.OptionalType, bound=bound):
            found.append(f'{maybe} (" is not None" | " is None")')
        if lists := self.rule_for_kinds(t.ListType, bound=bound):
            found.append(f'"not "? {lists}')
            found.append(f'STRING (" in " | " not in ") {lists}')
            found.append(f'"len(" {lists} ")" COMPARE INT')
        if unknown := self.rule_for_kinds(t.AnyType, bound=bound):
            days = self.expression(t.DATE, bound)
            found.append(f'{unknown} COMPARE (NUMBER | STRING | VALUE | "True" | "False" | {days} | {unknown})')
            found.append(f'STRING (" in " | " not in ") {unknown} ".lower()"?')
            found += [
                f'{unknown} (" in " | " not in ") {lists}' for lists in self._rules_reaching(t.ListType(t.ANY), bound)
            ]
            found.append(f'"len(" {unknown} ")" COMPARE INT')
        found += [
            f'{grammar_literal(tool.name + "(")} STRING ")"' for tool in self._registry if _is_text_question(tool)
        ]
        return found or ['"True"']


def _sort_keys(item: t.Type) -> str:
    """The rule for `, key=lambda x: …` over what can be sorted inside an item; empty if there is nothing."""
    name = item_name(item)
    paths = reachable_paths(grammar_literal(name), item)
    keys = " | ".join(path.rule for path in paths if isinstance(path.type, SORTABLE_TYPES))
    return f"{grammar_literal(f', key=lambda {name}: ')} ({keys})" if keys else ""


def _is_text_question(tool: Tool) -> bool:
    """Whether a call of the tool is a condition on one text: `file_exists("notes.txt")`."""
    required = [argument.type for argument in tool.arguments if argument.required]
    return tool.result == t.BOOL and not tool.changes and len(required) == 1 and isinstance(required[0], t.StrType)


def _type_key(type_: t.Type) -> str:
    return json.dumps(t.type_to_json(type_))
