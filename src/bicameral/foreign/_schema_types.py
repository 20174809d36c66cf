"""Types of plans from JSON Schemas, and values that fit them.

A schema says more than a type can hold, and the rest is left out: a type accepts every value that the schema accepts.
Two cases are meant to be narrower. The type of arguments accepts only the fields that a schema names. The type of a
result's fields (`fields_from_schema`) has only those that the schema names, and `select_fields` drops the others. Texts
of a schema other than names of fields and choices are not looked at.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any, Literal, cast

from bicameral.foreign._schemas import SchemaDocument, SchemaFault, plain_schema
from bicameral.types import (
    ANY,
    BOOL,
    DATE,
    DATETIME,
    FLOAT,
    INT,
    NULL,
    STR,
    TIME,
    DictType,
    Field,
    FloatType,
    IntType,
    ListType,
    LiteralType,
    NullType,
    OptionalType,
    RecordType,
    StrType,
    TupleType,
    Type,
    format_problem,
    optional_type,
    without_optional,
)

MAX_TYPE_NODES = 2_000
"""Schemas that are looked at for one type; a reference counts each time. What comes after is Any."""
_MAX_DEPTH = 20
_MOST_FIELDS = 500
_MOST_CHOICES = 200
_MAX_CHOICE = 200

_Purpose = Literal["arguments", "result", "fields"]

# A text in one of these formats stays a text. The names are those that words of a request can stand for.
_TEXT_FORMATS = {"email": "email", "idn-email": "email", "uri": "url", "iri": "url", "uuid": "id"}
_MOMENTS = {"date": DATE, "date-time": DATETIME, "time": TIME}


def type_from_schema(schema: Mapping[str, Any] | bool, *, closed: bool = True) -> Type:
    """The type of the values of a schema. What a type cannot say is Any; nothing is raised.

    Args:
        schema: The schema of a stranger; one that `schema_problem` refuses gives a wide type.
        closed: For arguments: an object has the fields that it names and no others, and a text in the format of a
            date is a date, which `json_arguments` writes. Otherwise for results: an object that may have other fields
            is a dict of Any, and dates are the texts that arrive.

    Example:
        >>> str(type_from_schema({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}))
        "{'n': int}"
    """
    return _type(schema, "arguments" if closed else "result")


def fields_from_schema(schema: Mapping[str, Any] | bool) -> Type:
    """The type of a result of which only the fields that the schema names are kept, by `select_fields`."""
    return _type(schema, "fields")


def select_fields(value: Any, type_: Type) -> Any:
    """A value without the fields that its type does not have. Optional ones that are absent are there as None.

    Example:
        >>> shape = RecordType((Field("id", INT), Field("note", OptionalType(STR))))
        >>> select_fields({"id": 7, "added later": True}, shape)
        {'id': 7, 'note': None}
    """
    match type_, value:
        case OptionalType(item=item), _ if value is not None:
            return select_fields(value, item)
        case RecordType(fields=fields), dict():
            entries = cast("dict[str, Any]", value)
            return {
                each.name: select_fields(entries.get(each.name), each.type)
                for each in fields
                if each.name in entries or isinstance(each.type, OptionalType)
            }
        case DictType(value=item), dict():
            return {name: select_fields(each, item) for name, each in cast("dict[str, Any]", value).items()}
        case ListType(item=item), list():
            return [select_fields(each, item) for each in cast("list[Any]", value)]
        case TupleType(items=items), list() if len(cast("list[Any]", value)) == len(items):
            return [select_fields(each, item) for each, item in zip(cast("list[Any]", value), items, strict=True)]
        case _:
            return value


def json_arguments(value: Any) -> Any:
    """Arguments of a plan as JSON: dates and times as ISO 8601, a time without a zone as one here."""
    match value:
        case dt.datetime():
            # `date-time` of JSON Schema needs an offset, and times in plans have none.
            return (value if value.tzinfo is not None else value.astimezone()).isoformat()
        case dt.date() | dt.time():
            return value.isoformat()
        case dt.timedelta():
            return value.total_seconds()
        case dict():
            return {name: json_arguments(each) for name, each in cast("dict[str, Any]", value).items()}
        case list() | tuple():
            return [json_arguments(each) for each in cast("list[Any]", value)]
        case _:
            return value


def _type(schema: Mapping[str, Any] | bool, purpose: _Purpose) -> Type:
    try:
        document = SchemaDocument(plain_schema(schema))
    except SchemaFault:
        return ANY
    return _SchemaReader(document, purpose).type_of(document.root, 0, frozenset())


class _SchemaReader:
    """Reads one schema: with a budget, since a few references to references can stand for millions of schemas."""

    def __init__(self, document: SchemaDocument, purpose: _Purpose) -> None:
        self.document = document
        self.purpose: _Purpose = purpose
        self.nodes = MAX_TYPE_NODES

    def type_of(self, schema: object, depth: int, open_references: frozenset[int]) -> Type:
        """The type of a schema; `open_references` are the targets within which it stands."""
        self.nodes -= 1
        if self.nodes < 0 or depth > _MAX_DEPTH or not isinstance(schema, dict):
            return ANY
        entries = cast("dict[str, Any]", schema)
        says = {name: entries[name] for name in self.document.keywords(entries)}
        found = self._own_type(says, depth, open_references)
        if "$ref" in says:
            found = self._both(found, self._reference(says["$ref"], depth, open_references))
        for each in _schemas(says.get("allOf")):
            found = self._both(found, self.type_of(each, depth + 1, open_references))
        for keyword in ("anyOf", "oneOf"):
            if branches := _schemas(says.get(keyword)):
                types = [self.type_of(each, depth + 1, open_references) for each in branches if each is not False]
                found = self._both(found, self._either(types))
        return found

    def _reference(self, reference: object, depth: int, open_references: frozenset[int]) -> Type:
        target = self.document.resolve(reference)
        # A type cannot contain itself.
        if not isinstance(target, dict) or id(target) in open_references:
            return ANY
        return self.type_of(target, depth + 1, open_references | {id(target)})

    def _own_type(self, says: dict[str, Any], depth: int, open_references: frozenset[int]) -> Type:
        """What the keywords of a schema say without those that combine other schemas."""
        if "const" in says:
            return self._choice_type([says["const"]], says)
        choices: object = says.get("enum")
        if isinstance(choices, list) and choices:
            return self._choice_type(cast("list[Any]", choices), says)
        names = says.get("type")
        if names is None and self.purpose == "arguments" and isinstance(says.get("properties"), dict):
            # What is sent is an object where its fields are described; a result could be anything else, too.
            names = "object"
        kinds = [names] if isinstance(names, str) else cast("list[Any]", names) if isinstance(names, list) else []
        if not kinds:
            return ANY
        return self._either([self._named_type(each, says, depth, open_references) for each in kinds])

    def _named_type(self, name: object, says: dict[str, Any], depth: int, open_references: frozenset[int]) -> Type:
        match name:
            case "string":
                return self._text_type(says.get("format"))
            case "integer":
                return INT
            case "number":
                return FLOAT
            case "boolean":
                return BOOL
            case "null":
                return NULL
            case "array":
                return self._array_type(says, depth, open_references)
            case "object":
                return self._object_type(says, depth, open_references)
            case _:
                return ANY

    def _text_type(self, format_: object) -> Type:
        if not isinstance(format_, str):
            return STR
        if self.purpose == "arguments" and format_ in _MOMENTS:
            return _MOMENTS[format_]
        return StrType(_TEXT_FORMATS[format_]) if format_ in _TEXT_FORMATS else STR

    def _choice_type(self, choices: list[Any], says: dict[str, Any]) -> Type:
        texts = [each for each in choices if isinstance(each, str)]
        others = [each for each in choices if not isinstance(each, str)]
        types: list[Type] = [LiteralType(tuple(dict.fromkeys(texts))) if self._are_plain(texts) else STR] * bool(texts)
        # 1.0 is one of [1, 2], and it is no int.
        number = INT if says.get("type") == "integer" else FLOAT
        for each in others:
            match each:
                case None:
                    types.append(NULL)
                case bool():
                    types.append(BOOL)
                case int() | float():
                    types.append(number)
                case _:
                    types.append(ANY)
        return self._either(types)

    def _are_plain(self, texts: list[str]) -> bool:
        """Whether texts may be the choices of a type.

        A value of a type with choices counts as one that cannot hold a sentence. A server chooses those of a result,
        so that they must look like codes.
        """
        if len(texts) > _MOST_CHOICES:
            return False
        if self.purpose == "arguments":
            return all(len(each) <= _MAX_CHOICE for each in texts)
        return not any(format_problem(each, "code") for each in texts)

    def _array_type(self, says: dict[str, Any], depth: int, open_references: frozenset[int]) -> Type:
        items: object = says.get("items")
        first, rest = (
            (_schemas(says.get("prefixItems")), items)
            if not isinstance(items, list)
            else (cast("list[Any]", items), says.get("additionalItems"))
        )
        firsts = [self.type_of(each, depth + 1, open_references) for each in first]
        if not firsts:
            return ListType(self.type_of(rest, depth + 1, open_references))
        count = len(firsts)
        if says.get("minItems") == count and (rest is False or says.get("maxItems") == count):
            return TupleType(tuple(firsts))
        others = [] if rest is False else [self.type_of(rest, depth + 1, open_references)]
        return ListType(self._either([*firsts, *others]))

    def _object_type(self, says: dict[str, Any], depth: int, open_references: frozenset[int]) -> Type:
        named: object = says.get("properties")
        properties = cast("dict[str, Any]", named) if isinstance(named, dict) else {}
        others: object = says.get("additionalProperties", True)
        patterned = bool(says.get("patternProperties"))
        if not properties:
            if others is False and not patterned:
                return RecordType(())
            # Fields by pattern may be anything that the rest is not.
            return DictType(ANY if patterned else self.type_of(others, depth + 1, open_references))
        if self.purpose == "result" and (others is not False or patterned):
            return DictType(ANY)
        if self.purpose == "arguments" and (patterned or (others is not False and "additionalProperties" in says)):
            return DictType(ANY)
        if len(properties) > _MOST_FIELDS:
            return DictType(ANY)
        needed: object = says.get("required")
        listed = cast("list[Any]", needed) if isinstance(needed, list) else []
        required = {name for name in listed if isinstance(name, str)}
        fields: list[Field] = []
        for name, each in properties.items():
            # A field that may not be there is none.
            if each is False and name not in required:
                continue
            type_ = self.type_of(each, depth + 1, open_references)
            fields.append(Field(name, type_ if name in required else _absent_type(type_)))
        return RecordType(tuple(fields))

    def _either(self, types: Iterable[Type]) -> Type:
        """The type of values of any of these types."""
        found: Type | None = None
        for each in types:
            found = each if found is None else self._join(found, each)
        return ANY if found is None else found

    def _join(self, some: Type, more: Type) -> Type:
        if some == more:
            return some
        match some, more:
            case (NullType(), other) | (other, NullType()):
                return optional_type(other)
            case (OptionalType(), _) | (_, OptionalType()):
                return _absent_type(self._join(without_optional(some), without_optional(more)))
            case LiteralType(values=first), LiteralType(values=second):
                values = tuple(dict.fromkeys(first + second))
                return LiteralType(values) if len(values) <= _MOST_CHOICES else STR
            case StrType() | LiteralType(), StrType() | LiteralType():
                return STR
            case IntType() | FloatType(), IntType() | FloatType():
                return FLOAT
            case ListType(item=first), ListType(item=second):
                return ListType(self._join(first, second))
            case DictType(value=first), DictType(value=second):
                return DictType(self._join(first, second))
            case RecordType(), RecordType():
                return self._join_records(some, more)
            case (DictType() | RecordType(), DictType() | RecordType()):
                return DictType(ANY)
            case _:
                return ANY

    def _join_records(self, some: RecordType, more: RecordType) -> Type:
        if self.purpose == "result" and set(some.names) != set(more.names):
            return DictType(ANY)
        fields: list[Field] = []
        for name in dict.fromkeys(some.names + more.names):
            first, second = some.get(name), more.get(name)
            if first is not None and second is not None:
                fields.append(Field(name, self._join(first, second)))
            elif self.purpose == "fields":
                # The other object may have a field of this name and of another type.
                fields.append(Field(name, OptionalType(ANY)))
            else:
                fields.append(Field(name, _absent_type(first or second or ANY)))
        return RecordType(tuple(fields))

    def _both(self, some: Type, more: Type) -> Type:
        """A type of values that are of both types; where nothing better is known, one of the two."""
        if some == more or more == ANY:
            return some
        match some, more:
            case _ if some == ANY:
                return more
            case OptionalType(item=first), OptionalType(item=second):
                return _absent_type(self._both(first, second))
            case OptionalType(item=item), _:
                return more if isinstance(more, NullType) else self._both(item, more)
            case _, OptionalType(item=item):
                return some if isinstance(some, NullType) else self._both(some, item)
            case (FloatType(), IntType()) | (StrType(format=None), StrType() | LiteralType()):
                return more
            case StrType(), LiteralType():
                return more
            case ListType(item=first), ListType(item=second):
                return ListType(self._both(first, second))
            case DictType(), RecordType():
                return more
            case DictType(value=first), DictType(value=second):
                return DictType(self._both(first, second))
            case RecordType(), RecordType():
                return self._both_records(some, more)
            case _:
                return some

    def _both_records(self, some: RecordType, more: RecordType) -> Type:
        if self.purpose == "result" and set(some.names) != set(more.names):
            return some
        fields: list[Field] = []
        for name in dict.fromkeys(some.names + more.names):
            first, second = some.get(name), more.get(name)
            if first is not None and second is not None:
                fields.append(Field(name, self._both(first, second)))
            else:
                fields.append(Field(name, first or second or ANY))
        return RecordType(tuple(fields))


def _absent_type(type_: Type) -> Type:
    """The type of a field that may be absent. Unlike `optional_type` also for Any: otherwise it had to be there."""
    return type_ if isinstance(type_, OptionalType) else OptionalType(type_)


def _schemas(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
