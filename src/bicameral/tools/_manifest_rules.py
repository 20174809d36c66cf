"""Argv templates of manifests, and the rules of a manifest that go beyond the shape of single keys.

`"--max-count={n}"` becomes `"--max-count=3"`, and no value ever becomes an option or a second word. A `{name}` stands
for an argument, `{{` and `}}` for braces. A list argument must be a whole element and becomes one element for each
item. There is no shell anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from keyword import iskeyword
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from bicameral import types as t
from bicameral.documents import KeyFault
from bicameral.errors import Place, ToolError, nearest_name
from bicameral.tools._argument import CHANGING
from bicameral.tools._call_labels import AttachedOrigins, attach_faults, attached_origins
from bicameral.tools._media import normalise_media
from bicameral.tools._origins import Origin, Participants, origin_faults

if TYPE_CHECKING:
    from bicameral.tools._manifest import ArgumentSpec, OriginSpec, ToolSpec


_TOKEN = re.compile(r"\{\{|\}\}|\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}|[{}]")
# The kernel's limit of one element; all together must also stay below a quarter of the stack.
_LONGEST_ELEMENT = 128 * 1024 - 1
_LONGEST_ARGV = 1024 * 1024

ArgvValue = str | int | float | bool | Path | None | Sequence[str] | Sequence[Path]


@dataclass(frozen=True, slots=True)
class Placeholder:
    """The place of an argument in an element."""

    name: str


ArgvElement = tuple[str | Placeholder, ...]


@dataclass(frozen=True, slots=True)
class OptionalGroup:
    """Elements that are present only if an argument is given (and is not false)."""

    when: str
    elements: tuple[ArgvElement, ...]


ArgvTemplate = tuple[ArgvElement | OptionalGroup, ...]


def parse_element(text: str) -> ArgvElement:
    """The parts of one element; a ValueError says what is wrong with its braces."""
    parts: list[str | Placeholder] = []
    end = 0
    for token in _TOKEN.finditer(text):
        parts.append(text[end : token.start()])
        end = token.end()
        if name := token["name"]:
            parts.append(Placeholder(name))
        elif token[0] in ("{{", "}}"):
            parts.append(token[0][0])
        else:
            raise ValueError(f"{text!r} has a single {token[0]!r}; write it twice to mean the character itself")
    parts.append(text[end:])
    return tuple(part for part in parts if part != "")


def placeholder_names(element: ArgvElement) -> Iterator[str]:
    """The names of the arguments in an element."""
    return (part.name for part in element if isinstance(part, Placeholder))


def fill_template(template: ArgvTemplate, values: Mapping[str, ArgvValue], *, fixed: Collection[str] = ()) -> list[str]:
    """The argv for these values. `fixed` names arguments whose possible values the manifest itself lists.

    A value that would begin an element with `-` is refused, unless a literal `--` precedes it in the template: with it
    the author states that the program takes everything after it as an operand.
    """
    argv: list[str] = []
    operands = False  # whether a literal `--` came before
    for part in _present_elements(template, values):
        for element in _fill_element(part, values):
            placeholder = part[0] if part else ""
            if (
                isinstance(placeholder, Placeholder)
                and element.startswith("-")
                and not operands
                and placeholder.name not in fixed
            ):
                raise _option_like_error(placeholder.name, element)
            argv.append(element)
        operands = operands or part == ("--",)
    _check_length(argv)
    return argv


def _present_elements(template: ArgvTemplate, values: Mapping[str, ArgvValue]) -> Iterator[ArgvElement]:
    for part in template:
        if not isinstance(part, OptionalGroup):
            yield part
        elif (value := values.get(part.when)) is not None and value is not False:
            yield from part.elements


def _fill_element(element: ArgvElement, values: Mapping[str, ArgvValue]) -> list[str]:
    if len(element) == 1 and isinstance(placeholder := element[0], Placeholder):
        value = values[placeholder.name]
        if isinstance(value, Sequence) and not isinstance(value, str):
            return [argv_word(item, placeholder.name) for item in value]
    return ["".join(part if isinstance(part, str) else argv_word(values[part.name], part.name) for part in element)]


def argv_word(value: ArgvValue, argument: str) -> str:
    """One value as the program gets it."""
    text = repr(value) if isinstance(value, float) else str(value)
    try:
        valid = b"\0" not in text.encode()
    except UnicodeEncodeError:
        valid = False
    if not valid:
        raise ToolError(
            "tools.bad-argument",
            "the text holds a character that no command can be given",
            place=Place(argument=argument),
            expected="Unicode text without the character NUL",
        )
    return text


def _option_like_error(argument: str, element: str) -> ToolError:
    text = element if len(element) <= 40 else element[:37] + "..."
    return ToolError(
        "tools.option-like",
        f"{text!r} begins with '-', and the program would take it for an option",
        place=Place(argument=argument),
        expected="a value that does not begin with '-'",
        fix='If the program knows `--`, put "--" before the argument in the manifest\'s argv; else use "--option={x}".',
    )


def _check_length(argv: Sequence[str]) -> None:
    sizes = [len(element.encode()) for element in argv]
    if max(sizes, default=0) > _LONGEST_ELEMENT or sum(sizes) > _LONGEST_ARGV:
        raise ToolError(
            "tools.argument-too-large",
            f"{argv[0]!r} cannot be given {sum(sizes):,} bytes of arguments",
            expected=f"at most {_LONGEST_ELEMENT:,} bytes each and {_LONGEST_ARGV:,} together",
            fix="Large content goes to a command through `stdin` in its manifest, or as a file.",
        )


_PATH = t.StrType("path")
_SIMPLE: dict[str, t.Type] = {
    "str": t.STR,
    "int": t.INT,
    "float": t.FLOAT,
    "bool": t.BOOL,
    "path": _PATH,
    "list[str]": t.ListType(t.STR),
    "list[path]": t.ListType(_PATH),
}
_ENDPOINT = re.compile(r"[^\s/:]+:(\d{1,5}|\*)|\[[0-9a-fA-F:]+\]:(\d{1,5}|\*)")


def spec_argument_type(spec: ArgumentSpec) -> t.Type:
    """The type of an argument that is given."""
    return t.LiteralType(tuple(spec.values)) if spec.type == "literal" else _SIMPLE[spec.type]


def spec_result_type(spec: ToolSpec) -> t.Type:
    """The type of the tool's result."""
    match spec.result:
        case "text":
            return t.STR
        case "lines":
            return t.ListType(t.STR)
        case "table":
            return t.ListType(t.DictType(t.STR))
        case "json":
            return t.ANY if spec.result_type is None else t.type_from_json(spec.result_type)


class FlowSpec(Protocol):
    """A declaration in a file, of a command or of a foreign tool, as far as it says where things come from."""

    @property
    def origins(self) -> Mapping[str, OriginSpec]: ...

    @property
    def attaches(self) -> Mapping[str, OriginSpec] | Sequence[str] | None: ...


def spec_origins(spec: FlowSpec) -> dict[str, Origin]:
    """The declared origins of the result."""
    return {part: _origin_from_spec(given) for part, given in spec.origins.items()}


def spec_attached(spec: FlowSpec) -> AttachedOrigins | None:
    """The declared things that a call sends along by name; None if nothing is declared."""
    if spec.attaches is None:
        return None
    if not isinstance(spec.attaches, Mapping):
        return attached_origins(spec.attaches)
    return {name: _origin_from_spec(each) for name, each in spec.attaches.items()}


def _origin_from_spec(spec: OriginSpec) -> Origin:
    readers = Participants(tuple(spec.readers)) if isinstance(spec.readers, list) else spec.readers
    own = (spec.own_when.field, spec.own_when.is_) if spec.own_when else None
    return Origin(spec.trust, readers, own, spec.fresh, spec.names)


def parse_template(spec: ToolSpec) -> ArgvTemplate:
    """The tool's argv, parsed; a ValueError says what is wrong with an element."""
    return tuple(
        parse_element(part) if isinstance(part, str) else OptionalGroup(part.when, tuple(map(parse_element, part.add)))
        for part in spec.argv
    )


def spec_faults(spec: ToolSpec, *, program: bool = True) -> Iterator[KeyFault]:
    """Everything wrong with a tool, most important first. `program`: whether argv begins with the program."""
    if not spec.name.isidentifier() or spec.name.startswith("_") or iskeyword(spec.name):
        yield KeyFault(
            ("name",), f"{spec.name!r} cannot be the name of a tool", "a Python identifier without '_' first"
        )
    for name, argument in spec.arguments.items():
        for fault in _argument_faults(name, argument):
            yield replace(fault, path=("arguments", name, *fault.path))
    try:
        parsed = parse_template(spec)
    except ValueError as error:
        yield KeyFault(("argv",), str(error))
        return
    if program:
        yield from _program_faults(parsed)
    yield from _stdin_faults(spec)
    yield from _template_faults(spec, parsed)
    yield from effect_faults(spec)
    yield from _media_faults(spec)
    faults = list(_result_faults(spec))
    yield from faults
    # Origins are checked against the result type, so only if that is valid.
    if not faults:
        yield from _flow_faults(spec)
    yield from _grant_faults(spec)


def _argument_faults(name: str, spec: ArgumentSpec) -> Iterator[KeyFault]:
    if not name.isidentifier() or name.startswith("_") or iskeyword(name):
        yield KeyFault((), f"{name!r} cannot be the name of an argument", "a Python identifier without '_' first")
    if spec.type == "literal" and not spec.values:
        yield KeyFault(("values",), "a literal needs the texts it can be", 'for example ["asc", "desc"]')
    if spec.type != "literal" and spec.values:
        yield KeyFault(("values",), f"only a literal has values, and this is {spec.type!r}")
    if spec.access != "read" and spec.type not in ("path", "list[path]"):
        yield KeyFault(("access",), f"only a path has an access, and this is {spec.type!r}")
    if spec.default is not None and spec.optional:
        yield KeyFault(("default",), "an argument with a default is never left out", "either `default` or `optional`")
    if spec.default is not None and (reason := t.mismatch(spec.default, spec_argument_type(spec), "the default")):
        yield KeyFault(("default",), reason)


def _program_faults(parsed: ArgvTemplate) -> Iterator[KeyFault]:
    expected = "a bare name such as 'wc', or an absolute path"
    if not parsed:
        yield KeyFault(("argv",), "it is empty", expected)
        return
    program = parsed[0]
    if isinstance(program, OptionalGroup) or any(placeholder_names(program)):
        yield KeyFault(("argv",), "no argument can choose the program", expected)
        return
    text = "".join(part for part in program if isinstance(part, str))
    if not text or text.startswith("-"):
        yield KeyFault(("argv",), f"{text!r} is not a program", expected)
    elif "/" in text and not text.startswith("/"):
        yield KeyFault(("argv",), f"{text!r} is relative, so it depends on the folder one happens to be in", expected)


def _template_faults(spec: ToolSpec, parsed: ArgvTemplate) -> Iterator[KeyFault]:
    known = spec.arguments
    used: set[str] = {spec.stdin} if spec.stdin else set()
    for part in parsed:
        when = part.when if isinstance(part, OptionalGroup) else None
        if when is not None:
            used.add(when)
            if when not in known:
                yield _unknown_argument_fault(("argv",), when, known)
            elif not known[when].optional and known[when].type != "bool":
                yield KeyFault(("argv",), f"{when!r} is always given, so `when` says nothing", "an optional argument")
        for element in part.elements if isinstance(part, OptionalGroup) else (part,):
            used.update(placeholder_names(element))
            yield from _element_faults(element, when, spec)
    for name in known:
        if name not in used:
            yield KeyFault(
                ("arguments", name), "nothing uses this argument", f"{{{name}}} in argv, or stdin = {name!r}"
            )


def _element_faults(element: ArgvElement, when: str | None, spec: ToolSpec) -> Iterator[KeyFault]:
    for name in placeholder_names(element):
        argument = spec.arguments.get(name)
        if argument is None:
            yield _unknown_argument_fault(("argv",), name, spec.arguments)
        elif argument.type == "bool":
            yield KeyFault(
                ("argv",), f"{name!r} is true or false and has no text", f'{{ when = "{name}", add = ["--option"] }}'
            )
        elif argument.type.startswith("list") and len(element) != 1:
            yield KeyFault(("argv",), f"{name!r} is a list and must be an element of its own", f'"{{{name}}}"')
        elif argument.optional and when != name:
            yield KeyFault(
                ("argv",), f"{name!r} can be left out", f'{{ when = "{name}", add = ["{{{name}}}"] }} or a default'
            )


def _stdin_faults(spec: ToolSpec) -> Iterator[KeyFault]:
    if spec.stdin is None:
        return
    argument = spec.arguments.get(spec.stdin)
    if argument is None:
        yield _unknown_argument_fault(("stdin",), spec.stdin, spec.arguments)
    elif argument.type not in ("str", "list[str]"):
        yield KeyFault(("stdin",), f"{spec.stdin!r} is {argument.type!r}", "an argument of type 'str' or 'list[str]'")


def effect_faults(spec: ToolSpec) -> Iterator[KeyFault]:
    """Why a tool with these arguments cannot have the effect that it has."""
    for name, argument in spec.arguments.items():
        if argument.access != "read" and spec.effect not in CHANGING:
            yield KeyFault(
                ("effect",), f"it is {spec.effect!r}, but {name!r} is written", "'write', 'send' or 'irreversible'"
            )
        if argument.type in ("path", "list[path]") and spec.effect == "pure":
            yield KeyFault(("effect",), f"it is 'pure', but it reads {name!r}", "'read'")
    if spec.network and spec.effect == "pure":
        yield KeyFault(("effect",), "it is 'pure', but it uses the network", "'read', 'send' or 'irreversible'")


def _media_faults(spec: ToolSpec) -> Iterator[KeyFault]:
    for key, kinds in (("accepts", spec.accepts), ("gives", spec.gives)):
        for kind in kinds:
            if normalise_media(kind) is None:
                yield KeyFault((key,), f"{kind[:60]!r} is not a MIME type", "'application/pdf' or 'image/*'")


def _result_faults(spec: ToolSpec) -> Iterator[KeyFault]:
    if spec.result_type is None:
        return
    if spec.result != "json":
        yield KeyFault(("result_type",), f"only a json result has a type, and this is {spec.result!r}")
        return
    try:
        result = spec_result_type(spec)
    except ValueError as error:
        yield KeyFault(("result_type",), str(error))
        return
    no_json = (t.DateType, t.TimeType, t.DateTimeType, t.DurationType)
    if foreign := next((each for each in t.iter_types(result) if isinstance(each, no_json)), None):
        yield KeyFault(("result_type",), f"JSON has no {foreign}", "'str'")


def _flow_faults(spec: ToolSpec) -> Iterator[KeyFault]:
    for fault in origin_faults(spec_origins(spec), spec_result_type(spec)):
        yield replace(fault, path=("origins", *fault.path))
    for name in spec.receivers or ():
        if name not in spec.arguments:
            yield _unknown_argument_fault(("receivers",), name, spec.arguments)
    for fault in attach_faults(spec_attached(spec) or {}, spec.arguments):
        yield replace(fault, path=("attaches", *fault.path))
    if spec.outbound is False and spec.network:
        yield KeyFault(("outbound",), "it has the network, so it can tell somebody something", "true, or no network")


def _grant_faults(spec: ToolSpec) -> Iterator[KeyFault]:
    for path in spec.needs:
        if not path.startswith("/"):
            yield KeyFault(("needs",), f"{path!r} is relative", "an absolute path")
    for endpoint in spec.network if isinstance(spec.network, list) else ():
        if not _ENDPOINT.fullmatch(endpoint):
            yield KeyFault(
                ("network",), f"{endpoint!r} is not an endpoint", "'host:port', for example 'example.com:443'"
            )
    for name, value in spec.env.items():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or "\0" in value:
            yield KeyFault(("env", name), "this cannot be an environment variable")


def _unknown_argument_fault(path: tuple[str, ...], name: str, known: Iterable[str]) -> KeyFault:
    return KeyFault(
        path, f"there is no argument {name!r}", ", ".join(known) or "no arguments", nearest_name(name, known)
    )
