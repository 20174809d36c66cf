"""The rules of a manifest that go beyond the shape of single keys."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from keyword import iskeyword
from typing import TYPE_CHECKING

from bicameral.errors import nearest
from bicameral.types import (
    ANY,
    BOOL,
    FLOAT,
    INT,
    STR,
    DateTimeType,
    DateType,
    DictType,
    DurationType,
    ListType,
    LiteralType,
    OptionalType,
    RecordType,
    StrType,
    TimeType,
    TupleType,
    Type,
    from_json,
    mismatch,
)

from ._argv import Element, Group, Template, holes, parse_element
from ._attached import Attaches, attach_faults, origins_of_named
from ._faults import Fault
from ._origins import Origin, Participants, faults_in
from ._tool import CHANGING

if TYPE_CHECKING:
    from ._manifest import ArgumentSpec, OriginSpec, ToolSpec

_PATH = StrType("path")
_SIMPLE: dict[str, Type] = {
    "str": STR,
    "int": INT,
    "float": FLOAT,
    "bool": BOOL,
    "path": _PATH,
    "list[str]": ListType(STR),
    "list[path]": ListType(_PATH),
}
_ENDPOINT = re.compile(r"[^\s/:]+:(\d{1,5}|\*)|\[[0-9a-fA-F:]+\]:(\d{1,5}|\*)")


def argument_type(spec: ArgumentSpec) -> Type:
    """The type of an argument that is given."""
    return LiteralType(tuple(spec.values)) if spec.type == "literal" else _SIMPLE[spec.type]


def result_type(spec: ToolSpec) -> Type:
    """The type of what the tool gives."""
    match spec.result:
        case "text":
            return STR
        case "lines":
            return ListType(STR)
        case "table":
            return ListType(DictType(STR))
        case "json":
            return ANY if spec.result_type is None else from_json(spec.result_type)


def origins_of(spec: ToolSpec) -> dict[str, Origin]:
    """Where the parts of the result come from."""
    return {part: _origin(given) for part, given in spec.origins.items()}


def attached_by(spec: ToolSpec) -> Attaches | None:
    """What a call sends along by its name; None if nothing is said of that."""
    if spec.attaches is None:
        return None
    said = spec.attaches
    return origins_of_named(said if isinstance(said, list) else {name: _origin(each) for name, each in said.items()})


def _origin(spec: OriginSpec) -> Origin:
    readers = Participants(tuple(spec.readers)) if isinstance(spec.readers, list) else spec.readers
    own = (spec.own_when.field, spec.own_when.is_) if spec.own_when else None
    return Origin(spec.trust, readers, own, spec.fresh, spec.names)


def template(spec: ToolSpec) -> Template:
    """The tool's argv, parsed; a ValueError says what is wrong with an element."""
    return tuple(
        parse_element(part) if isinstance(part, str) else Group(part.when, tuple(map(parse_element, part.add)))
        for part in spec.argv
    )


def faults_of(spec: ToolSpec, *, program: bool = True) -> Iterator[Fault]:
    """Everything wrong with a tool, most telling first. `program`: whether argv begins with the program."""
    if not spec.name.isidentifier() or spec.name.startswith("_") or iskeyword(spec.name):
        yield Fault(("name",), f"{spec.name!r} cannot be the name of a tool", "a Python identifier without '_' first")
    for name, argument in spec.arguments.items():
        for fault in _argument_faults(name, argument):
            yield Fault(("arguments", name, *fault.path), fault.message, fault.expected)
    try:
        parsed = template(spec)
    except ValueError as error:
        yield Fault(("argv",), str(error))
        return
    if program:
        yield from _program_faults(parsed)
    yield from _stdin_faults(spec)
    yield from _template_faults(spec, parsed)
    yield from _effect_faults(spec)
    found = list(_result_faults(spec))
    yield from found
    if not found:
        yield from _origin_faults(spec)
    yield from _grant_faults(spec)


def _argument_faults(name: str, spec: ArgumentSpec) -> Iterator[Fault]:
    if not name.isidentifier() or name.startswith("_") or iskeyword(name):
        yield Fault((), f"{name!r} cannot be the name of an argument", "a Python identifier without '_' first")
    if spec.type == "literal" and not spec.values:
        yield Fault(("values",), "a literal needs the texts it can be", 'for example ["asc", "desc"]')
    if spec.type != "literal" and spec.values:
        yield Fault(("values",), f"only a literal has values, and this is {spec.type!r}")
    if spec.access != "read" and spec.type not in ("path", "list[path]"):
        yield Fault(("access",), f"only a path has an access, and this is {spec.type!r}")
    if spec.default is not None and spec.optional:
        yield Fault(("default",), "an argument with a default is never left out", "either `default` or `optional`")
    if spec.default is not None and (reason := mismatch(spec.default, argument_type(spec), "the default")):
        yield Fault(("default",), reason)


def _program_faults(parsed: Template) -> Iterator[Fault]:
    expected = "a bare name such as 'wc', or an absolute path"
    if not parsed:
        yield Fault(("argv",), "it is empty", expected)
        return
    program = parsed[0]
    if isinstance(program, Group) or any(holes(program)):
        yield Fault(("argv",), "no argument can choose the program", expected)
        return
    text = "".join(part for part in program if isinstance(part, str))
    if not text or text.startswith("-"):
        yield Fault(("argv",), f"{text!r} is not a program", expected)
    elif "/" in text and not text.startswith("/"):
        yield Fault(("argv",), f"{text!r} is relative, so it depends on the folder one happens to be in", expected)


def _template_faults(spec: ToolSpec, parsed: Template) -> Iterator[Fault]:
    known = spec.arguments
    used: set[str] = {spec.stdin} if spec.stdin else set()
    for part in parsed:
        when = part.when if isinstance(part, Group) else None
        if when is not None:
            used.add(when)
            if when not in known:
                yield _unknown(("argv",), when, known)
            elif not known[when].optional and known[when].type != "bool":
                yield Fault(("argv",), f"{when!r} is always given, so `when` says nothing", "an optional argument")
        for element in part.elements if isinstance(part, Group) else (part,):
            used.update(holes(element))
            yield from _element_faults(element, when, spec)
    for name in known:
        if name not in used:
            yield Fault(("arguments", name), "nothing uses this argument", f"{{{name}}} in argv, or stdin = {name!r}")


def _element_faults(element: Element, when: str | None, spec: ToolSpec) -> Iterator[Fault]:
    for name in holes(element):
        argument = spec.arguments.get(name)
        if argument is None:
            yield _unknown(("argv",), name, spec.arguments)
        elif argument.type == "bool":
            yield Fault(
                ("argv",), f"{name!r} is true or false and has no text", f'{{ when = "{name}", add = ["--option"] }}'
            )
        elif argument.type.startswith("list") and len(element) != 1:
            yield Fault(("argv",), f"{name!r} is a list and must be an element of its own", f'"{{{name}}}"')
        elif argument.optional and when != name:
            yield Fault(
                ("argv",), f"{name!r} can be left out", f'{{ when = "{name}", add = ["{{{name}}}"] }} or a default'
            )


def _stdin_faults(spec: ToolSpec) -> Iterator[Fault]:
    if spec.stdin is None:
        return
    argument = spec.arguments.get(spec.stdin)
    if argument is None:
        yield _unknown(("stdin",), spec.stdin, spec.arguments)
    elif argument.type not in ("str", "list[str]"):
        yield Fault(("stdin",), f"{spec.stdin!r} is {argument.type!r}", "an argument of type 'str' or 'list[str]'")


def _effect_faults(spec: ToolSpec) -> Iterator[Fault]:
    for name, argument in spec.arguments.items():
        if argument.access != "read" and spec.effect not in CHANGING:
            yield Fault(
                ("effect",),
                f"it is {spec.effect!r}, but {name!r} is written",
                "'write', 'send' or 'irreversible'",
            )
        if argument.type in ("path", "list[path]") and spec.effect == "pure":
            yield Fault(("effect",), f"it is 'pure', but it reads {name!r}", "'read'")
    if spec.network and spec.effect == "pure":
        yield Fault(("effect",), "it is 'pure', but it uses the network", "'read', 'send' or 'irreversible'")


def _result_faults(spec: ToolSpec) -> Iterator[Fault]:
    if spec.result_type is None:
        return
    if spec.result != "json":
        yield Fault(("result_type",), f"only a json result has a type, and this is {spec.result!r}")
        return
    try:
        found = result_type(spec)
    except ValueError as error:
        yield Fault(("result_type",), str(error))
        return
    if foreign := _not_json(found):
        yield Fault(("result_type",), f"JSON has no {foreign}", "'str'")


def _origin_faults(spec: ToolSpec) -> Iterator[Fault]:
    for fault in faults_in(origins_of(spec), result_type(spec)):
        yield Fault(("origins", *fault.path), fault.message, fault.expected, fault.nearest)
    for name in spec.receivers or ():
        if name not in spec.arguments:
            yield _unknown(("receivers",), name, spec.arguments)
    for fault in attach_faults(attached_by(spec) or {}, spec.arguments):
        yield Fault(("attaches", *fault.path), fault.message, fault.expected)
    if spec.outbound is False and spec.network:
        yield Fault(("outbound",), "it has the network, so it can tell somebody something", "true, or no network")


def _not_json(type_: Type) -> Type | None:
    """The first type inside that no JSON value has."""
    inner: Iterable[Type]
    match type_:
        case DateType() | TimeType() | DateTimeType() | DurationType():
            return type_
        case ListType(item=item) | OptionalType(item=item) | DictType(value=item):
            inner = (item,)
        case TupleType(items=items):
            inner = items
        case RecordType(fields=fields):
            inner = (field.type for field in fields)
        case _:
            inner = ()
    return next(filter(None, map(_not_json, inner)), None)


def _grant_faults(spec: ToolSpec) -> Iterator[Fault]:
    for path in spec.needs:
        if not path.startswith("/"):
            yield Fault(("needs",), f"{path!r} is relative", "an absolute path")
    for endpoint in spec.network if isinstance(spec.network, list) else ():
        if not _ENDPOINT.fullmatch(endpoint):
            yield Fault(("network",), f"{endpoint!r} is not an endpoint", "'host:port', for example 'example.com:443'")
    for name, value in spec.env.items():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or "\0" in value:
            yield Fault(("env", name), "this cannot be an environment variable")


def _unknown(path: tuple[str, ...], name: str, known: Iterable[str]) -> Fault:
    return Fault(path, f"there is no argument {name!r}", ", ".join(known) or "no arguments", nearest(name, known))
