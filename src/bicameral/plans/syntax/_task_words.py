"""Words of tasks: what an argument of a command stands for, and the usual commands for lines.

A command is the name of a tool, one of the usual commands for lines with their usual options, or a program that runs
confined, whose words are those of its own command line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from bicameral import types as t
from bicameral.errors import Place, PlanError, ToolError, nearest_name
from bicameral.plans._expressions import Apply, Const, Expr, ListOf
from bicameral.tools import Argument, Registry, Tool

_DATE_FUNCTIONS: dict[type[t.Type], str] = {t.DateType: "date", t.TimeType: "time", t.DateTimeType: "datetime"}


def parse_word(word: str, argument: Argument, tool: Tool, place: Place) -> Expr:
    """The value that a word stands for where this argument is wanted."""
    value = _parse_value(word, argument.type)
    if value is None:
        message = f"{word!r} cannot be the argument {argument.name!r} of {tool.name!r}"
        place = Place(step=place.step, argument=argument.name)
        raise PlanError("plan.wrong-type", message, place=place, expected=str(argument.type))
    return value


def _parse_value(word: str, type_: t.Type) -> Expr | None:
    match type_:
        case t.OptionalType(item=item):
            return Const(value=None) if word == "null" else _parse_value(word, item)
        case t.StrType() | t.AnyType():
            return _make_const(word)
        case t.LiteralType(values=values):
            return _make_const(word) if word in values else None
        case t.BoolType():
            return Const(value=word == "true") if word in ("true", "false") else None
        case t.IntType() | t.FloatType():
            return _parse_number(word, whole=isinstance(type_, t.IntType))
        case t.DateType() | t.TimeType() | t.DateTimeType():
            return Apply(function=_DATE_FUNCTIONS[type(type_)], args=(Const(value=word),))
        case t.ListType(item=item):
            return _parse_list(word, item)
        case _:
            return None


def _make_const(value: str | int | float) -> Expr | None:
    try:
        return Const(value=value)
    except ValueError:
        return None


def _parse_number(word: str, *, whole: bool) -> Expr | None:
    try:
        return _make_const(int(word))
    except ValueError:
        pass
    try:
        return None if whole else _make_const(float(word))
    except ValueError:
        return None


def _parse_list(word: str, item: t.Type) -> Expr | None:
    """A list is written as JSON; a word that is not JSON stands for a list of itself."""
    try:
        found: Any = json.loads(word) if word.startswith("[") else [word]
    except ValueError:
        return None
    values = [
        _parse_value(one if isinstance(one, str) else json.dumps(one), item) for one in cast("Sequence[Any]", found)
    ]
    present = tuple(value for value in values if value is not None)
    return ListOf(items=present) if len(present) == len(values) else None


def default_value(default: Any) -> Expr | None:
    """The default of an argument as an expression; None for one that no literal can say, such as a date."""
    if isinstance(default, list | tuple):
        items = [_make_const(each) for each in cast("Sequence[Any]", default)]
        return None if None in items else ListOf(items=tuple(item for item in items if item is not None))
    return _make_const(default)


def render_word(value: Expr | None) -> str | None:
    """The word for a value, or None if no word can stand for it."""
    match value:
        case Const(value=str() as text):
            return text
        case Const(value=bool() | None as other):
            return json.dumps(other)
        case Const(value=int() | float() as number):
            return repr(number)
        case Apply(function="date" | "time" | "datetime", args=(Const(value=str() as text),), named=()):
            return text
        case ListOf(items=items) if all(isinstance(item, Const) for item in items):
            return json.dumps([cast("Const", item).value for item in items], ensure_ascii=False)
        case _:
            return None


@dataclass(frozen=True, slots=True)
class LineCommand:
    """A usual command: the tool that does its work, its switches, and its options that take a value."""

    tool: str
    switches: Mapping[str, tuple[str, bool] | None] = field(default_factory=dict[str, "tuple[str, bool] | None"])
    options: Mapping[str, tuple[str, type[int] | type[str]]] = field(
        default_factory=dict[str, "tuple[str, type[int] | type[str]]"]
    )
    reads_input: bool = True


LINE_COMMANDS: Mapping[str, LineCommand] = {
    "cat": LineCommand("read_lines", reads_input=False),
    "sort": LineCommand("sort_lines", {"-r": ("reverse", True), "-n": ("numeric", True)}),
    "uniq": LineCommand("unique_lines"),
    "grep": LineCommand(
        "grep",
        {"-i": ("ignore_case", True), "-v": ("invert", True), "-E": ("regex", True), "-F": ("regex", False)},
        {"-e": ("pattern", str)},
    ),
    "head": LineCommand("head", options={"-n": ("count", int)}),
    "tail": LineCommand("tail", options={"-n": ("count", int)}),
    "cut": LineCommand("cut", options={"-f": ("field", int), "-d": ("delimiter", str)}),
    "wc": LineCommand("count_lines", {"-l": None}),
}


def line_command(tool: str, given: Mapping[str, Expr]) -> tuple[str, list[str]] | None:
    """The usual command for a call and its words; None if it has no option for one of the arguments.

    Options and not positions: `sort true` would read a file of that name anywhere else.
    """
    for name, command in LINE_COMMANDS.items():
        if command.tool == tool:
            found = _option_words(command, given)
            return None if found is None else (name, found)
    return None


def _option_words(command: LineCommand, given: Mapping[str, Expr]) -> list[str] | None:
    words, operands = ["-l"] if "-l" in command.switches else [], list[str]()
    switches = {option: word for word, option in command.switches.items() if option is not None}
    options = {name: word for word, (name, _) in command.options.items()}
    for argument, value in given.items():
        text, option = render_word(value), options.get(argument)
        plain = isinstance(value, Const) and isinstance(value.value, str) and value.value[:1] not in ("", "-")
        if isinstance(value, Const) and (word := switches.get((argument, cast("bool", value.value)))) is not None:
            words.append(word)
        elif plain and option in (None, "-e") and not operands:
            operands.append(text or "")
        elif option is not None and text:
            words += [option, text]
        else:
            return None
    return [*words, *operands]


@dataclass(frozen=True, slots=True)
class CommandOperands:
    """What a command line says of a call."""

    named: dict[str, Expr] = field(default_factory=dict[str, Expr])
    """Arguments given by an option."""
    words: list[str] = field(default_factory=list[str])
    """The other words in order."""
    input: str | None = None
    """The argument that gets the result of an earlier task, or the standard input."""
    reads_stdin: bool = False
    """Whether it reads the standard input where no earlier task feeds it and no word names a file."""
    names_file: bool = False
    """Whether a word that is left over names the file to read."""


def is_program(tool: Tool) -> bool:
    """Whether a tool is a program that runs confined."""
    from bicameral.tools import find_command

    return find_command(tool) is not None


def resolve_command(name: str, words: list[str], registry: Registry, place: Place) -> tuple[Tool, CommandOperands]:
    """The tool that a command means and its arguments as far as the command line says them."""
    plain = name if name in registry else re.sub(r"\W+", "_", name).strip("_").lower()
    tool, command = registry.get(plain), LINE_COMMANDS.get(name)
    ours = None if command is None else registry.get(command.tool)
    # A program of that very name comes before our own tool for its work, if the user gave it the name in a manifest.
    # One that describes itself chose its name: it could take the place of `cat` in every list.
    if tool is None or (ours is not None and tool.self_described):
        tool = ours
    if tool is not None and is_program(tool):
        return tool, _parse_program_words(tool, words, place)
    tool = tool if ours is None else ours
    if tool is None:
        known = {*registry.names, *(alias for alias, one in LINE_COMMANDS.items() if one.tool in registry)}
        raise unknown_tool_error(name, sorted(known), place)
    sink = next((each for each in tool.arguments if each.name == input_argument(tool)), None)
    if command is None:
        reads = sink is not None and _reads_stdin(tool, sink, len(words))
        return tool, CommandOperands(words=list(words), input=sink.name if sink else None, reads_stdin=reads)
    found = _parse_operands(name, command, words, place)
    lines = command.reads_input and sink is not None and sink.required and is_lines(sink.type)
    return tool, replace(found, input=sink.name if sink else None, reads_stdin=lines, names_file=lines)


def input_argument(tool: Tool) -> str | None:
    """The argument that gets the result of an earlier task, or the standard input; None if there is none.

    That of a program is its standard input, and never a word of its command line. A tool that changes something takes
    it as its content, where it has such an argument: what another task gives should not choose a path or a recipient.
    Where it is the first argument all the same, policy sees the label of what it is given.
    """
    from bicameral.tools import stdin_argument

    if is_program(tool):
        return stdin_argument(tool)
    content = [each.name for each in tool.arguments if each.required and each.purpose == "carries"]
    if tool.changes and content:
        return content[-1]
    return tool.arguments[0].name if tool.arguments else None


def is_lines(type_: t.Type) -> bool:
    """Whether a type is a list, which a command for lines takes."""
    return isinstance(type_.item if isinstance(type_, t.OptionalType) else type_, t.ListType)


def _reads_stdin(tool: Tool, sink: Argument, words: int) -> bool:
    """Whether a tool that is no program takes the standard input, as too few words are given.

    Only as content: what directs an effect or selects what is read is never filled in with a text that was piped.
    """
    if not sink.required or words >= sum(argument.required for argument in tool.arguments):
        return False
    return (sink.purpose == "carries" or tool.effect == "pure") and sink.type in (t.STR, t.ListType(t.STR))


def _parse_program_words(tool: Tool, words: Sequence[str], place: Place) -> CommandOperands:
    """The arguments of a program: its words are those of its own command line, never further options."""
    from bicameral.tools import command_arguments, stdin_argument

    try:
        values = command_arguments(tool, words, runnable=False)
    except ToolError as error:
        raise PlanError(
            "plan.unknown-argument", error.message, place=place, expected=error.expected, nearest=error.nearest
        ) from None
    stdin = stdin_argument(tool)
    required = any(argument.required and argument.name == stdin for argument in tool.arguments)
    named = {name: expr for name, value in values.items() if (expr := default_value(value)) is not None}
    if len(named) < len(values):
        raise PlanError("plan.invalid", f"an argument of {tool.name!r} is no text that a plan can hold", place=place)
    return CommandOperands(named, input=stdin, reads_stdin=required)


def unknown_tool_error(name: str, known: Sequence[str], place: Place) -> PlanError:
    """The error for a command that is no tool."""
    near = nearest_name(name, known)
    return PlanError("plan.unknown-tool", f"there is no tool {name!r}", place=place, nearest=near)


def _parse_operands(name: str, command: LineCommand, words: list[str], place: Place) -> CommandOperands:
    found = CommandOperands()
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            found.words.extend(rest)
            break
        if word in command.switches:
            if switch := command.switches[word]:
                found.named[switch[0]] = Const(value=switch[1])
        elif option := command.options.get(word[:2]):
            value = word[2:] or (rest.pop(0) if rest else "")
            found.named[option[0]] = _parse_option_value(word[:2], value, option[1], place)
        elif word.startswith("-") and word[1:].isdigit() and "-n" in command.options:
            found.named[command.options["-n"][0]] = Const(value=int(word[1:]))
        elif word.startswith("-") and len(word) > 1:
            known = ", ".join((*command.switches, *command.options)) or "no option"
            message = f"the option {word!r} of {name!r} is not known"
            raise PlanError("plan.unknown-argument", message, place=place, expected=known)
        else:
            found.words.append(word)
    return found


def _parse_option_value(option: str, value: str, type_: type[int] | type[str], place: Place) -> Expr:
    if type_ is str and value:
        return Const(value=value)
    if value.isascii() and value.isdigit() and len(value) < 10:
        return Const(value=int(value))
    expected = "a whole number" if type_ is int else "a text"
    raise PlanError("plan.wrong-type", f"{value!r} cannot be the value of {option!r}", place=place, expected=expected)
