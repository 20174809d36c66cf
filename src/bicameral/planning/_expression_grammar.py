"""Grammar rules for expressions: for each wanted type, the expressions over the variables in scope.

The rules are in the Lark format of LLGuidance. A rule is made once for each pair of type and place, when another rule
first refers to it, so a grammar contains only what the statement can reach. Numbers, days and conditions are in
`_calculation_grammar`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping

from bicameral import types as t
from bicameral.planning import _calculation_grammar as calculations
from bicameral.planning._call_grammar import call_rules, can_call, is_pure
from bicameral.planning._grammar_paths import (
    SORTABLE_TYPES,
    TOP,
    GrammarPath,
    NamedObjects,
    Place,
    grammar_literal,
    is_usable_as,
    item_names,
    reachable_paths,
    type_key,
)
from bicameral.tools import Argument, Registry

_SLICE = '"[" INDEX? ":" INDEX? "]"'


class ExpressionGrammar:
    """The rules for every type that a statement needs, over one scope of variables."""

    def __init__(
        self, registry: Registry, scope: Mapping[str, t.Type], *, prefix: str = "", named: NamedObjects | None = None
    ) -> None:
        self.registry = registry
        self._prefix = prefix
        self._named = named
        self._scope = dict(scope)
        self._names: dict[tuple[str, str, Place], str] = {}
        self._rules: dict[str, str] = {}
        self._reached: dict[Place, tuple[GrammarPath, ...]] = {}

    def rules(self) -> Iterator[str]:
        return (f"{name}: {body}" for name, body in self._rules.items())

    def expression(self, wanted: t.Type, place: Place = TOP) -> str:
        """The name of the rule for expressions of the wanted type."""
        return self.rule("e", type_key(wanted), place, lambda: self._expression(wanted, place))

    def argument(self, argument: Argument) -> str:
        """The name of the rule for what may be given as an argument: an expression of its type, or a reference."""
        refers = argument.refers
        if refers is None or refers == "column":
            return self.expression(argument.type)

        def make() -> list[str]:
            match argument.type:
                case t.ListType(item=item) | t.OptionalType(item=t.ListType(item=item)):
                    one = self.rule("a", f"{refers} {type_key(item)}", TOP, lambda: [self.expression(item), terminal])
                    return [self.expression(argument.type), f'"[" {one} (", " {one})* "]"']
                case _:
                    return [self.expression(argument.type), terminal]

        # A person may answer with an address or a name of a file, and a cell may hold one.
        given = self.rule_for_kinds(t.StrType, t.AnyType)
        terminal = refers.upper() if given is None else f"({refers.upper()} | {given})"
        return self.rule("a", f"{refers} {type_key(argument.type)}", TOP, make)

    def pure_calls(self, *, lists: bool) -> str | None:
        """The name of the rule for calls of pure tools, with those that return a list apart: `len(grep(…))`."""
        tools = [tool for tool in self.registry if is_pure(tool) and isinstance(tool.result, t.ListType) == lists]
        tools = [tool for tool in tools if can_call(tool, self)]
        if not tools:
            return None
        return self.rule("x", str(lists), TOP, lambda: [call for tool in tools for call in call_rules(tool, self)])

    def any_expression(self, place: Place = TOP) -> str:
        return self.expression(t.ANY, place)

    def condition(self, place: Place = TOP) -> str:
        """The name of the rule for conditions: comparisons, joined by `and` or by `or`."""

        def make() -> list[str]:
            one = self.rule("k", "", place, lambda: calculations.comparisons(self, place))
            return [f'{one} (" and " {one})* ', f'{one} (" or " {one})+']

        return self.rule("c", "", place, make)

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
        return known is None or bool(known) or bool(self.rules_reaching(item, TOP))

    def rule_for_kinds(self, *kinds: type[t.Type], place: Place = TOP) -> str | None:
        """The name of the rule for reachable values of these kinds, or None if there are none."""
        label = ",".join(kind.__name__ for kind in kinds)
        return self._rule_over_paths("w", label, place, lambda path: isinstance(path.type, kinds))

    def rules_reaching(self, wanted: t.Type, place: Place) -> list[str]:
        """A list with the rule for all reachable values of the wanted type; empty if there are none."""
        found = self._rule_over_paths("p", type_key(wanted), place, lambda path: is_usable_as(path.type, wanted))
        return [found] if found else []

    def _rule_over_paths(self, kind: str, label: str, place: Place, fits: Callable[[GrammarPath], bool]) -> str | None:
        """The rule for the paths that fit; in a comprehension it refers to the rule outside, which is made once."""
        if known := self._names.get((kind, label, place)):
            return known
        found = [path.rule for path in self.paths(place) if fits(path)]
        if place.bound and (outside := self._rule_over_paths(kind, label, place.outside(), fits)):
            if not found:
                return outside
            found.append(outside)
        return self.rule(kind, label, place, lambda: found) if found else None

    def paths(self, place: Place = TOP) -> tuple[GrammarPath, ...]:
        """The paths from the names that the place binds, or from the variables in scope if it binds none."""
        if place not in self._reached:
            variables = dict(place.bound) or self._scope
            self._reached[place] = tuple(
                path
                for name, type_ in variables.items()
                for path in reachable_paths(grammar_literal(name), type_, quoted=place.quoted)
            )
        return self._reached[place]

    def list_paths(self, place: Place = TOP) -> list[GrammarPath]:
        """The reachable lists, for loops and comprehensions."""
        return [path for path in self.paths(place) if isinstance(path.type, t.ListType | t.AnyType)]

    def rule(self, kind: str, label: str, place: Place, make: Callable[[], list[str]]) -> str:
        """The name of a rule, which is made when it is first asked for."""
        key = (kind, label, place)
        if key not in self._names:
            name = f"{self._prefix}{kind}{len(self._names)}"
            self._names[key] = name  # before `make`: rules are recursive
            self._rules[name] = " | ".join(dict.fromkeys(make())) or '"None"'
        return self._names[key]

    def argumentless_calls(self, wanted: t.Type) -> list[str]:
        """Calls of tools without arguments, which may be part of an expression: `today()`."""
        return [
            grammar_literal(f"{tool.name}()")
            for tool in self.registry
            if not tool.arguments and not tool.changes and t.is_assignable(tool.result, wanted) and wanted != t.ANY
        ]

    def lists_by_item(self, wanted: t.Type, place: Place = TOP) -> list[tuple[t.Type, str]]:
        """The reachable lists, grouped by the type of their items."""
        groups: dict[str, tuple[t.Type, list[str]]] = {}
        for path in self.list_paths(place.outside()):
            if is_usable_as(path.type, wanted):
                item = path.type.item if isinstance(path.type, t.ListType) else t.ANY
                groups.setdefault(type_key(item), (item, []))[1].append(path.rule)
        return [
            (item, self.rule("g", f"{key} {type_key(wanted)}", place.outside(), lambda over=over: over))
            for key, (item, over) in groups.items()
        ]

    def added_lists(self) -> str | None:
        """The name of the rule for `a + b` of lists with items of one type, or None if there is no list in reach."""

        def make() -> list[str]:
            found: list[str] = []
            for item, over in self.lists_by_item(t.ANY):
                parts = [f"{over} ({_SLICE})?"]
                for name, inside in self.bindings(item, TOP):
                    kept = f'"[" {grammar_literal(name)} {grammar_literal(f" for {name} in ")}'
                    parts.append(f'{kept} {over} " if " {self.condition(inside)} "]"')
                found.append(_added(self.rule("b", f"any {type_key(item)}", TOP, lambda parts=parts: parts)))
            return found

        return self.rule("z", "", TOP, make) if self.list_paths() else None

    def bindings(self, item: t.Type, place: Place) -> list[tuple[str, Place]]:
        """The names that a comprehension may bind to an item, each with the place inside it."""
        return [(name, Place(((name, item),), place.quoted)) for name in item_names(item, self._scope)]

    def comprehension(self, wanted: t.Type, place: Place = TOP) -> str:
        """The name of the rule for `[element for x in list if condition]`, one alternative for each type of item."""

        def make() -> list[str]:
            found: list[str] = []
            for item, over in self.lists_by_item(t.ANY, place):
                for name, inside in self.bindings(item, place):
                    if isinstance(wanted, t.DurationType) and not calculations.has_times(self, inside):
                        continue
                    element, binding = self.expression(wanted, inside), grammar_literal(f" for {name} in ")
                    # Not inside an f-string: the rules of conditions are the largest part of a grammar.
                    condition = "" if place.quoted else f'(" if " {self.condition(inside)})?'
                    found.append(f'"[" {element} {binding} {self._one_or_two(over)} {condition} "]"')
            return found

        return self.rule("l", type_key(wanted), place.outside(), make)

    def text_changes(self, place: Place) -> str:
        """The name of the rule for up to three methods that make another text of one: `.strip().lower()`."""
        text, outside = place.text, place.outside()

        def make() -> list[str]:
            return [
                *('".lower()"', '".upper()"', '".strip()"', '".title()"'),
                f'".replace(" {text} ", " {text} ")"',
                f'".split(" {text} ")" "[" INDEX "]"',
            ]

        one = self.rule("m", "", outside, make)
        return self.rule("y", "", outside, lambda: [f"{one} {one}? {one}?"])

    def changed_text(self, place: Place) -> str | None:
        """The name of the rule for a text in reach that methods change, or None if there is no text."""
        text = self.rule_for_kinds(t.StrType, t.LiteralType, t.AnyType, place=place)
        return self.rule("h", "", place, lambda: [f"{text} {self.text_changes(place)}"]) if text else None

    def may_nest(self, place: Place) -> bool:
        """Whether a comprehension may stand here: not in another one, which would be hard to follow."""
        return not place.bound and bool(self.list_paths(place))

    # Expressions by type ------------------------------------------------------------------------------------------

    def _expression(self, wanted: t.Type, place: Place) -> list[str]:
        found = self.rules_reaching(wanted, place) + self.argumentless_calls(wanted)
        match wanted:
            case t.OptionalType(item=item):
                return [self.expression(item, place)]
            case t.StrType(format="id"):
                ours = (*self.paths(place), *self.paths(place.outside()))
                return [path.rule for path in ours if path.type == wanted]
            case t.StrType(format=str() as format_) if self._named is not None and format_ in self._named:
                return found + [grammar_literal(json.dumps(name)) for name in self._named[format_]]
            case t.StrType():
                return found + self._texts(place)
            case t.LiteralType(values=values):
                return [grammar_literal(json.dumps(value)) for value in values]
            case t.IntType() | t.FloatType():
                return [calculations.number(self, wanted, place)]
            case t.BoolType():
                return [*found, '"True"', '"False"', self.condition(place)]
            case t.DateType():
                return found + calculations.dates(self, place)
            case t.DateTimeType():
                return found + calculations.datetimes(self, place)
            case t.DurationType():
                made = [*calculations.durations(self, place), calculations.written_duration(self, place)]
                return found + made + calculations.totals_of_durations(self, place)
            case t.TimeType():
                return [*found, '"time(" COUNT (", " COUNT)? ")"']
            case t.ListType(item=item):
                return found + self._lists(item, place)
            case t.DictType(value=value):
                return [*found, self._dict(value, place)]
            case t.RecordType() if not found:
                return [self._record(wanted, place)]
            case t.AnyType():
                return found + self._any(place)
            case _:
                return found

    def _texts(self, place: Place) -> list[str]:
        return [self.rule("s", "", place, lambda: self._made_texts(place))]

    def _made_texts(self, place: Place) -> list[str]:
        found = [place.text, *([] if place.quoted else [self._formatted(place)])]
        found += [f'{place.text} ".join(" {self._texts_to_join(place)} ")" {self.text_changes(place)}?']
        if changed := self.changed_text(place):
            found.append(changed)
        found.append(f'"str(" {calculations.calculated(self, t.FLOAT, place)} ")"')
        return found

    def _texts_to_join(self, place: Place) -> str:
        """Lists of texts for `join`, without lists that are written out."""

        def make() -> list[str]:
            return self.rules_reaching(t.ListType(t.STR), place) + self._made_lists(t.STR, place)

        return self.rule("j", "", place, make)

    def _formatted(self, place: Place) -> str:
        def make() -> list[str]:
            inside = Place(place.bound, quoted=True)
            shown = [*self.rules_reaching(t.ANY, inside), calculations.calculated(self, t.FLOAT, inside)]
            shown.append(f'STRING2 ".join(" {self._texts_to_join(inside)} ")"')
            if changed := self.changed_text(inside):
                shown.append(changed)
            if moment := self.rule_for_kinds(t.DateTimeType, place=inside):
                shown += [f'{moment} ".date()"', *calculations.durations(self, inside)]
            return ['"f\\"" (CHARS | "{" (' + " | ".join(shown) + ') SPEC? "}")+ "\\""']

        return self.rule("f", "", place, make)

    def _lists(self, item: t.Type, place: Place) -> list[str]:
        one = self.expression(item, place)
        found = [f'"[" ({one} (", " {one})*)? "]"']
        found += [f"{lists} {_SLICE}" for lists in self.rules_reaching(t.ListType(item), place)]
        found += self._made_lists(item, place)
        if self.may_nest(place):
            found += [sorting for _, sorting in self._sortings(t.ListType(item))]
        if is_usable_as(t.STR, item) and (text := self.rule_for_kinds(t.StrType, t.AnyType, place=place)):
            found.append(f'{text} {self.text_changes(place)}? (".splitlines()" | ".split(" {place.text} ")")')
        return found

    def _made_lists(self, item: t.Type, place: Place) -> list[str]:
        """Lists made of others: comprehensions, several one after the other, without duplicates, sorted."""
        known = self.rules_reaching(t.ListType(item), place)
        made = [self.comprehension(item, place)] if self.may_nest(place) else []
        # Lists of anything may differ in their items: `added_lists` keeps them apart by type.
        if (known or made) and not place.quoted and item != t.ANY:
            made.append(_added(self.list_part(item, place)))
        unique = [f'"unique(" {lists} ")"' for lists in (*known, *made)]
        if not isinstance(item, SORTABLE_TYPES) or not unique:
            return made + unique
        several = self.rule("u", type_key(item), place, lambda: made + unique)
        return [several, f'"sorted(" {several} (", reverse=True")? ")"']

    def list_part(self, item: t.Type, place: Place = TOP) -> str:
        """The name of the rule for one list in a sum of lists: written out, in reach, a part of one, or made."""

        def make() -> list[str]:
            one, made = self.expression(item, place), [self.comprehension(item, place)] if self.may_nest(place) else []
            known = (f"{lists} ({_SLICE})?" for lists in self.rules_reaching(t.ListType(item), place))
            return [f'"[" {one} (", " {one})* "]"', *known, *made]

        return self.rule("b", type_key(item), place, make)

    def _one_or_two(self, lists: str) -> str:
        """The rule for what is gone over or sorted: a list, a part of one, or two of them one after the other."""
        return self.rule("r", lists, TOP, lambda: [f'{lists} ({_SLICE})? (" + " {lists} ({_SLICE})?)?'])

    def _sortings(self, wanted: t.Type) -> list[tuple[t.Type, str]]:
        """`sorted(list, key=…, reverse=True)` with the type of its items, one for each type, since the keys differ."""
        found: list[tuple[t.Type, str]] = []
        for item, over in self.lists_by_item(wanted):
            key = f"({keys})" if (keys := self._sort_keys(item)) else ""
            if key and isinstance(item, SORTABLE_TYPES):
                key += "?"
            found.append((item, f'"sorted(" {self._one_or_two(over)} {key} (", reverse=True")? ")"'))
        return found

    def _extremes(self) -> list[str]:
        """`max(list, key=lambda …)`: the item with the largest or smallest key, or a field of it."""
        found: list[str] = []
        for item, over in self.lists_by_item(t.ANY):
            if keys := self._sort_keys(item):
                found.append(f'("max(" | "min(") {self._one_or_two(over)} {keys} ")" {_field_of(item)}')
        return found

    def _sort_keys(self, item: t.Type) -> str:
        """The rule for `, key=lambda x: …` over what can be sorted inside an item; empty if there is nothing."""
        found: list[str] = []
        for name, inside in self.bindings(item, TOP):
            keys = [path.rule for path in self.paths(inside) if isinstance(path.type, SORTABLE_TYPES)]
            if keys:
                keys.append(calculations.calculated(self, t.FLOAT, inside))
                keys += calculations.durations(self, inside) if calculations.has_times(self, inside) else []
                found.append(f"{grammar_literal(f', key=lambda {name}: ')} ({' | '.join(keys)})")
        return f"({' | '.join(found)})" if found else ""

    def _dict(self, value: t.Type, place: Place) -> str:
        one, key = self.expression(value, place), "STRING2" if place.quoted else "KEY"
        return f'"{{" {key} ": " {one} (", " {key} ": " {one})* "}}"'

    def _record(self, record: t.RecordType, place: Place) -> str:
        parts = (
            f"{grammar_literal(json.dumps(f.name) + ': ')} {self.expression(f.type, place)}" for f in record.fields
        )
        return '"{" ' + ' ", " '.join(parts) + ' "}"'

    def _any(self, place: Place) -> list[str]:
        found = ["NUMBER", '"True"', '"False"', calculations.calculated(self, t.FLOAT, place)]
        found += [*self._texts(place), self._dict(t.ANY, place), *calculations.dates(self, place)]
        if place.bound or place.quoted:
            return found + (calculations.durations(self, place) if calculations.has_times(self, place) else [])
        found += [*calculations.datetimes(self, place), self.expression(t.ListType(t.STR))]
        found += [*calculations.durations(self, place), *calculations.totals_of_durations(self, place)]
        if not self.list_paths():
            return found
        for item, sorting in self._sortings(t.ANY):
            found.append(f'{sorting} ({_SLICE} | "[" INDEX "]" {_field_of(item)})?')
        found += [*self._extremes(), self.expression(t.BOOL), *self._made_lists(t.ANY, place)]
        if lists := self.rule_for_kinds(t.ListType):
            found.append(f"{lists} {_SLICE}")
        if added := self.added_lists():
            found.append(added)
        return found


def _field_of(item: t.Type) -> str:
    """A field of an item that an expression gives, if the item has fields: `.title`, `["amount"]`."""
    fields = [path.rule for path in reachable_paths("", item, depth=2)][1:]
    return f"({' | '.join(fields)})?" if fields and isinstance(item, t.RecordType | t.DictType) else ""


def _added(part: str) -> str:
    """Two or three lists one after the other: `a + b`."""
    return f'{part} " + " {part} (" + " {part})?'
