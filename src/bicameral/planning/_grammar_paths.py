"""Terminals of the grammar, and paths: the ways from a variable to a field or an item, with their types."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from bicameral import types as t
from bicameral.tools import REFERENCE_KINDS, ReferenceKind

BoundNames = tuple[tuple[str, t.Type], ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where an expression stands: the names that a comprehension binds there, and whether it is inside an f-string.

    The f-string is in double quotes, so texts inside its braces are `quoted` with single ones and nest no f-string.
    """

    bound: BoundNames = ()
    quoted: bool = False

    @property
    def text(self) -> str:
        """The terminal for a text."""
        return "STRING2" if self.quoted else "STRING"

    @property
    def key(self) -> str:
        """The rule for the key of a row: its name, or a column by words."""
        return "(STRING2 | COLUMN2)" if self.quoted else "(KEY | COLUMN)"

    def outside(self) -> Place:
        """The same place outside the comprehension."""
        return Place((), self.quoted)


TOP = Place()


@dataclass(frozen=True, slots=True)
class GrammarPath:
    """A way from a variable to a value: the grammar of the expression, and the type of the value."""

    rule: str
    type: t.Type


def grammar_literal(text: str) -> str:
    """A text as a grammar literal."""
    return json.dumps(text, ensure_ascii=False)


def item_names(type_: t.Type, taken: Collection[str] = ()) -> tuple[str, ...]:
    """The names of one item in a comprehension, as the examples in the prompt use them.

    A name that is taken is passed over: `[row for row in others if row["id"] == row["id"]]` in a loop over rows would
    compare each row with itself.
    """
    match type_:
        case t.RecordType(name=str() as name) if name:
            usual, spare = ({"Mail": "m", "File": "f", "Event": "e"}.get(name, name.lower()),), ("other", "each")
        case t.DictType() | t.RecordType():
            usual, spare = ("row",), ("entry", "other", "each")
        case t.StrType() | t.LiteralType():
            usual, spare = ("line",), ("name", "item", "each")
        case t.DateType() | t.DateTimeType():
            usual, spare = ("x",), ("y", "each")
        case _:
            usual, spare = ("x",), ("y", "each")
    free = tuple(name for name in usual if name not in taken)
    return free or tuple(name for name in spare if name not in taken)[:1]


def is_usable_as(given: t.Type, wanted: t.Type) -> bool:
    """Like `is_assignable`, but an optional value is not usable where a value is required."""
    if isinstance(given, t.OptionalType):
        return isinstance(wanted, t.OptionalType | t.AnyType)
    return t.is_assignable(given, wanted)


def reachable_paths(rule: str, type_: t.Type, *, quoted: bool = False, depth: int = 0) -> Iterator[GrammarPath]:
    """The value itself and everything inside it, up to three levels deep."""
    yield GrammarPath(rule, type_)
    if depth >= 3:
        return
    key = Place(quoted=quoted).key
    match type_:
        case t.RecordType(fields=fields, name=name):
            for field in fields:
                access = _field_access(field.name, named=bool(name), quoted=quoted)
                yield from reachable_paths(f"{rule} {access}", field.type, quoted=quoted, depth=depth + 1)
        case t.ListType(item=t.RecordType() | t.DictType() as item):
            yield from reachable_paths(f'{rule} "[" INDEX "]"', item, quoted=quoted, depth=depth + 1)
        case t.ListType():
            yield GrammarPath(f'{rule} "[" INDEX "]"', type_.item)
        case t.DictType(value=value):
            yield GrammarPath(f'{rule} "[" {key} "]"', value)
        case t.AnyType() if depth < 2:
            yield GrammarPath(f'{rule} "[" {key} "]"', t.ANY)
            yield GrammarPath(f'{rule} "[" INDEX "]"', t.ANY)
        case _:
            return


def _field_access(field: str, *, named: bool, quoted: bool) -> str:
    """The access to a field: `.total` for a record with a name; `["total"]` as well for a row."""
    by_key = grammar_literal(f"['{field}']" if quoted else f'["{field}"]')
    if not field.isidentifier() or keyword.iskeyword(field):
        return by_key
    return grammar_literal(f".{field}") if named else f"({by_key} | {grammar_literal('.' + field)})"


@lru_cache(maxsize=1024)
def type_key(type_: t.Type) -> str:
    """A type as text, for the key of a rule."""
    return json.dumps(t.type_to_json(type_))


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
OPERATOR: " + " | " - " | " * " | " / " | " // " | " % "
WHOLE: " + " | " - " | " * " | " // " | " % "
COMPARE: " == " | " != " | " < " | " <= " | " > " | " >= "
SAME: " == " | " != "
DATE_TEXT: /"[0-9]{4}-[0-9]{2}-[0-9]{2}"/
""".strip()


def _reference_terminal(kind: ReferenceKind) -> str:
    """`file("bills")` as one terminal. The words are the planner's, so nothing is enumerated."""
    return f'{kind.upper()}: /{kind}\\("[^"\\\\\\n\\x00-\\x1f]{{1,60}}"\\)/'


_RESERVED = (*keyword.kwlist, *keyword.softkwlist, "answer", "extract", "ask")
_WITH_REFERENCES = _TERMINALS.replace("REFERENCES", "\n".join(map(_reference_terminal, REFERENCE_KINDS)))


@lru_cache(maxsize=64)
def grammar_terminals(tools: frozenset[str], given: frozenset[str] = frozenset()) -> str:
    """The terminals of every rule.

    Args:
        tools: The names of the tools.
        given: Variables that no statement may assign.

    No variable may begin with `cannot` or with the name of a tool that has several words: a model that has begun to
    refuse or to call a tool, and may not go on with it, would make a variable out of it (`send_mail2 = "…"`). This way
    it has to decide before it begins.
    """
    begun = "|".join(["cannot", *sorted(re.escape(tool) for tool in tools if "_" in tool)])
    kept = [*_RESERVED, *sorted(map(re.escape, given)), f"({begun})[a-z0-9_]*"]
    return _WITH_REFERENCES.replace("KEYWORDS", "|".join(kept))


NamedObjects = Mapping[str, Sequence[str]]
"""The objects that a request names, by format (path, url, email). No other text of such a format can be written."""
_MEASURED_TYPES = (t.IntType, t.FloatType, t.DateType, t.DateTimeType, t.TimeType, t.DurationType)
SORTABLE_TYPES = (t.StrType, *_MEASURED_TYPES, t.AnyType)
