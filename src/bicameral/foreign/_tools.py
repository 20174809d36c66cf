"""Foreign tools as tools of plans: with what a person declared, or else with the worst case.

The server's own texts never get into a `Tool`. Names and choices do, but only plain ones, since they were reviewed with
the declaration; an undeclared tool is `self_described`, so that no model reads of it.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from keyword import iskeyword
from typing import Any, cast

from bicameral.display import make_visible
from bicameral.errors import Place, ToolError
from bicameral.foreign._declarations import ArgumentDeclaration, ToolDeclaration
from bicameral.foreign._listing import ForeignTool
from bicameral.foreign._schema_check import SchemaValidator
from bicameral.foreign._schema_types import fields_from_schema, json_arguments, select_fields, type_from_schema
from bicameral.foreign._schemas import schema_problem, without_unusable_patterns
from bicameral.tools import REQUIRED, UNDECLARED, Argument, AttachedOrigins, Tool, spec_attached, spec_origins
from bicameral.types import (
    ANY,
    STR,
    DateTimeType,
    DateType,
    DictType,
    Field,
    ListType,
    LiteralType,
    OptionalType,
    RecordType,
    StrType,
    TimeType,
    TupleType,
    Type,
    optional_type,
    type_from_json,
)

MAX_ERROR = 500
"""Characters of a server's error message that are shown."""
_PLAIN_CHOICE = re.compile(r"[\w.:/+-][\w .:/+-]{0,59}", re.ASCII)
_MOST_CHOICES = 50
_MOST_CHOICE_WORDS, _MOST_NAME_WORDS = 3, 6
_LONGEST_WORD = 24
"""Letters of one word of a name: a longer one may be a sentence without its spaces."""
_SPEAKING = frozenset(
    "always assistant disregard forget ignore immediately instead instruction instructions kindly must never "
    "obey please you your yourself".split()
)
"""Words that speak to whoever reads a name. What a name means is for the person who reviews it to see; this only keeps
sentences from passing for names where nobody looked closely."""
_MAX_NAME = 60
_MOMENT_CLASSES: Mapping[type[Type], type[dt.datetime | dt.date | dt.time]] = {
    DateTimeType: dt.datetime,
    DateType: dt.date,
    TimeType: dt.time,
}


@dataclass(frozen=True, slots=True)
class ForeignResult:
    """What a server returned: its text, and its structured value if there is one."""

    text: str
    structured: Any = None
    has_structured: bool = False
    is_error: bool = False


ForeignCall = Callable[[Mapping[str, Any]], Awaitable[ForeignResult]]
"""Calls the tool at its server, with the server's own names of the arguments."""


def plain_name(text: str) -> str:
    """A name as a Python identifier: `get-user.v2` becomes `get_user_v2`. Empty if nothing is left."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")[:_MAX_NAME]
    name = f"n{name}" if name[:1].isdigit() else name
    return f"{name}_" if iskeyword(name) else name


def name_words(name: str) -> list[str]:
    """The words of a name in small letters: `searchIssues2` is `search`, `issues` and `2`."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+", name)]


def is_plain_label(text: str, *, most: int = _MOST_NAME_WORDS) -> bool:
    """Whether a name that a stranger chose is one: a few words of some length, and none that speaks to its reader."""
    words = name_words(text)
    # A reader sees through odd capitals: `iGNORE_all` has the word `ignore`, too.
    read = {*words, *re.findall(r"[a-z]+", text.lower())}
    return len(words) <= most and all(len(word) <= _LONGEST_WORD for word in words) and _SPEAKING.isdisjoint(read)


def tool_name(server: str, foreign: ForeignTool, declaration: ToolDeclaration | None) -> str:
    """The name of a foreign tool in plans."""
    return (declaration.name if declaration is not None else None) or f"{plain_name(server)}_{plain_name(foreign.name)}"


def foreign_tool(
    foreign: ForeignTool,
    declaration: ToolDeclaration | None,
    call: ForeignCall,
    *,
    server: str,
    kind: str = "mcp",
    timeout: float = 30.0,
    file: str | None = None,
) -> Tool:
    """A tool of plans that calls a foreign one.

    Args:
        foreign: The tool as it was reviewed; without a declaration, as it is listed.
        declaration: What a person declared of it. Without it the worst case is assumed: every call asks.
        call: Calls it at its server.
        server: The name of the server in the configuration.
        kind: Begins the name of its toolbox, so that no server can pass for a toolbox of another name.
        timeout: Seconds that a call may take if the declaration does not say it.
        file: The declaration file, for errors.
    """
    pin = foreign.pin
    output = foreign.output_schema
    foreign = replace(
        foreign,
        input_schema=without_unusable_patterns(foreign.input_schema),
        output_schema=None if output is None else without_unusable_patterns(output),
    )
    # The schema is part of what was reviewed, and still made by a stranger: it is bounded before anything walks it.
    for what, schema in (("input", foreign.input_schema), ("output", foreign.output_schema)):
        if schema is not None and (problem := schema_problem(schema)):
            raise ToolError(
                "foreign.bad-schema",
                f"the {what} schema of {foreign.name!r} of {server!r} cannot be used: {problem}",
                fix="Its author has to mend it. Until then the other tools of this server work without it.",
            )
    declared = declaration or ToolDeclaration()
    arguments = _make_arguments(foreign, declared)
    runner = _ForeignRunner(foreign, declared, call, server, {each.tool: each.foreign for each in arguments})
    effect = declared.effect
    # Whoever answers learns what is asked, unless a person says that nobody else does.
    outbound = True if declared.outbound is None else declared.outbound
    try:
        return Tool(
            name=tool_name(server, foreign, declaration),
            doc=declared.doc,
            arguments=tuple(each.argument for each in arguments),
            result=runner.result_type,
            effect=effect,
            run=runner.run,
            timeout=declared.timeout or timeout,
            idempotent=effect == "read" if declared.idempotent is None else declared.idempotent,
            keyed=declared.keyed,
            toolbox=f"{kind}:{server}",
            version=pin.removeprefix("sha256:")[:16],
            words=tuple(declared.words),
            origins=spec_origins(declared),
            outbound=outbound,
            receivers=UNDECLARED if declared.receivers is None else _renamed(declared.receivers, arguments),
            attaches=_renamed_keys(spec_attached(declared), arguments),
            code=lambda: pin,
            declared=declaration is not None,
            self_described=declaration is None,
            unreviewed=declaration is None or not declared.reviewed,
            # Of a tool of another, what directs it is a guess from names: any of it may as well be content.
            unaddressed=outbound and effect != "read" and declared.receivers is None,
        )
    except ToolError as error:
        error.place = error.place or (None if file is None else Place(file))
        raise


@dataclass(frozen=True, slots=True)
class _ForeignArgument:
    """An argument of a tool, and the server's own name of it."""

    foreign: str
    argument: Argument

    @property
    def tool(self) -> str:
        return self.argument.name


def _make_arguments(foreign: ForeignTool, declared: ToolDeclaration) -> list[_ForeignArgument]:
    type_ = type_from_schema(foreign.input_schema)
    required = foreign.input_schema.get("required")
    needed = set(cast("list[Any]", required)) if isinstance(required, list) else set[Any]()
    if not isinstance(type_, RecordType):
        if foreign.input_schema.get("properties") in (None, {}):
            return []
        raise ToolError(
            "foreign.bad-schema",
            f"the arguments of {foreign.name!r} are no plain object, so that they have no names",
            expected="an object with properties",
        )
    unknown = next((name for name in declared.arguments if name not in type_.names), None)
    if unknown is not None:
        raise ToolError(
            "foreign.bad-declaration",
            f"{foreign.name!r} has no argument {unknown!r}",
            expected=", ".join(type_.names) or "no arguments",
        )
    arguments: list[_ForeignArgument] = []
    used: set[str] = set()
    for number, each in enumerate(type_.fields, 1):
        said = declared.arguments.get(each.name, ArgumentDeclaration())
        name = plain_name(each.name) if is_plain_label(each.name) else ""
        name = name or f"argument_{number}"
        while name in used:
            name += "_"
        used.add(name)
        argument = Argument(
            name,
            _argument_type(each.type, said, optional=each.name not in needed),
            said.doc,
            REQUIRED if each.name in needed else None,
            said.purpose or UNDECLARED,
            refers=said.refers,
        )
        arguments.append(_ForeignArgument(each.name, argument))
    return arguments


def _argument_type(type_: Type, said: ArgumentDeclaration, *, optional: bool) -> Type:
    type_ = _plain_choices(type_)
    if said.format is not None and isinstance(type_, StrType):
        type_ = StrType(said.format)
    return optional_type(type_) if optional else type_


def _plain_choices(type_: Type) -> Type:
    """The type with only such choices as cannot hold a sentence for the model that reads the tool's arguments."""
    match type_:
        case LiteralType(values=values):
            plain = len(values) <= _MOST_CHOICES and all(map(_is_plain_choice, values))
            return type_ if plain else STR
        case OptionalType(item=item):
            return optional_type(_plain_choices(item))
        case ListType(item=item):
            return ListType(_plain_choices(item))
        case DictType(value=value):
            return DictType(_plain_choices(value))
        case RecordType(fields=fields) if all(map(_is_plain_field, fields)):
            return RecordType(tuple(replace(each, type=_plain_choices(each.type)) for each in fields))
        case RecordType():
            return DictType(ANY)
        case _:
            return type_


def _is_plain_choice(text: str) -> bool:
    return _PLAIN_CHOICE.fullmatch(text) is not None and is_plain_label(text, most=_MOST_CHOICE_WORDS)


def _is_plain_field(field: Field) -> bool:
    return field.name == plain_name(field.name) and is_plain_label(field.name)


def _without_choices(type_: Type) -> Type:
    """The type of a result with texts in place of choices: the server chose the words that would cross by value."""
    match type_:
        case LiteralType():
            return STR
        case OptionalType(item=item):
            return optional_type(_without_choices(item))
        case ListType(item=item):
            return ListType(_without_choices(item))
        case TupleType(items=items):
            return TupleType(tuple(map(_without_choices, items)))
        case DictType(value=value):
            return DictType(_without_choices(value))
        case RecordType(fields=fields):
            return RecordType(tuple(replace(each, type=_without_choices(each.type)) for each in fields), type_.name)
        case _:
            return type_


def _read_moments(value: Any, type_: Type) -> Any:
    """A value of JSON with its texts in ISO 8601 as the moments that its type declares; others stay, and do not fit."""
    match type_, value:
        case OptionalType(item=item), _:
            return _read_moments(value, item)
        case DateTimeType() | DateType() | TimeType(), str():
            try:
                return _MOMENT_CLASSES[type(type_)].fromisoformat(value)
            except ValueError:
                return value
        case ListType(item=item), list():
            return [_read_moments(each, item) for each in cast("list[Any]", value)]
        case DictType(value=item), dict():
            return {name: _read_moments(each, item) for name, each in cast("dict[str, Any]", value).items()}
        case RecordType(), dict():
            entries = cast("dict[str, Any]", value)
            return {name: _read_moments(each, type_.get(name) or ANY) for name, each in entries.items()}
        case _:
            return value


def _renamed(names: Iterable[str], arguments: Iterable[_ForeignArgument]) -> tuple[str, ...]:
    ours = {each.foreign: each.tool for each in arguments}
    return tuple(ours.get(name, name) for name in names)


def _renamed_keys(attached: AttachedOrigins | None, arguments: Iterable[_ForeignArgument]) -> AttachedOrigins:
    """What a call sends along, by our names of the arguments."""
    if attached is None:
        return UNDECLARED
    ours = {each.foreign: each.tool for each in arguments}
    return {ours.get(part, part): origin for part, origin in attached.items()}


@dataclass(frozen=True, eq=False)
class _ForeignRunner:
    """Calls a foreign tool with checked arguments, and reads its result as it is declared."""

    foreign: ForeignTool
    declared: ToolDeclaration
    call: ForeignCall
    server: str
    names: Mapping[str, str] = field(default_factory=dict[str, str])

    async def run(self, arguments: Mapping[str, Any]) -> object:
        # None stands for an argument that is left out: the server's own default counts.
        given = {self.names[name]: json_arguments(value) for name, value in arguments.items() if value is not None}
        if problem := self._arguments_validator.problem(given):
            raise ToolError(
                "foreign.bad-argument", f"{self.foreign.name!r} of {self.server!r} cannot take this: {problem}"
            )
        result = await self.call(given)
        if result.is_error:
            # Cut first: a result may have millions of characters, and each may become several.
            shown = make_visible(" ".join(result.text[: 4 * MAX_ERROR].split())[:MAX_ERROR])
            raise ToolError("foreign.tool-failed", f"{self.foreign.name!r} of {self.server!r} says: {shown}")
        return self._read(result)

    def _read(self, result: ForeignResult) -> object:
        match self._kind:
            case "text":
                return result.text
            case "json":
                return _read_moments(self._parse_json(result.text), self.result_type)
            case _:
                if not result.has_structured:
                    raise self._bad_output("it gave no structured result, although it has an output schema")
                if self._result_validator is not None and (
                    problem := self._result_validator.problem(result.structured)
                ):
                    raise self._bad_output(problem)
                return select_fields(result.structured, self.result_type)

    def _parse_json(self, text: str) -> Any:
        from bicameral.parsing import InvalidJson, read_json

        try:
            return read_json(text, what="the result")
        except InvalidJson as error:
            raise self._bad_output(f"its text is no JSON: {error.why}") from None

    def _bad_output(self, problem: str) -> ToolError:
        return ToolError("foreign.bad-output", f"{self.foreign.name!r} of {self.server!r}: {problem}")

    @property
    def _kind(self) -> str:
        return self.declared.result or ("structured" if self.foreign.output_schema is not None else "text")

    @cached_property
    def result_type(self) -> Type:
        """The type of the result, by the declaration and the output schema."""
        if self._kind == "text":
            return STR
        if self._kind == "json":
            try:
                return ANY if self.declared.result_type is None else type_from_json(self.declared.result_type)
            except ValueError as error:
                raise ToolError("foreign.bad-declaration", f"result_type of {self.foreign.name!r}: {error}") from None
        schema = self.foreign.output_schema
        return ANY if schema is None else _plain_choices(_without_choices(fields_from_schema(schema)))

    @cached_property
    def _arguments_validator(self) -> SchemaValidator:
        return SchemaValidator(self.foreign.input_schema)

    @cached_property
    def _result_validator(self) -> SchemaValidator | None:
        schema = self.foreign.output_schema
        return None if schema is None else SchemaValidator(schema)
